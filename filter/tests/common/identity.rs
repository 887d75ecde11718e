//! A hasher that uses a number as its own hash, so that a test can choose fingerprint and bucket
//! through the key, and see the effect of a weak hasher.

use std::hash::{BuildHasherDefault, Hasher};

pub(crate) type Identity = BuildHasherDefault<ItsOwnHash>;

/// The last number that was hashed.
#[derive(Clone, Copy, Default)]
pub(crate) struct ItsOwnHash(u64);

impl Hasher for ItsOwnHash {
    /// Keys are `u64`; others are hashed only to tell the hashers of saved filters apart.
    fn write(&mut self, _: &[u8]) {}
    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
    fn finish(&self) -> u64 {
        self.0
    }
}
