//! How a saved filter recognises its hasher: by the hashes of known keys.

use std::hash::BuildHasher;

use super::words::digest_of;
use crate::traits::DynKey;

/// The digest of the hashes that this hasher gives.
pub(crate) fn digest_of_known_keys(hasher: &impl BuildHasher) -> u64 {
    digest_of_hashes(|key| hasher.hash_one(key))
}

/// Condenses what a hasher makes of known keys: the number differs for other hashers, other seeds,
/// and machines on which the hasher gives other hashes. No known key is hashed differently by the
/// default hasher on machines of another word size or byte order.
pub(crate) fn digest_of_hashes(hash: impl Fn(&dyn DynKey) -> u64) -> u64 {
    let mut digest = digest_of(&[]);
    let mut note = |key: &dyn DynKey| digest.update(&hash(key).to_le_bytes());
    for number in [0, 1, 0x0123_4567_89ab_cdef, u64::MAX] {
        note(&number);
    }
    // Each type reaches a hasher through a different function of `Hasher`.
    macro_rules! note_as {
        ($($type:ty)+) => {
            $(note(&(0x0123_4567_89ab_cdef_1032_5476_98ba_dcfe_u128 as $type));)+
        };
    }
    note_as!(u8 u16 u32 u128 i8 i16 i32 i64 i128);
    note(&0x1032_5476_usize);
    note(&-0x1032_5476_isize);
    // Hashers treat short and long strings differently, and strings differently from bytes, which
    // are preceded by their length.
    let long = "the quick brown fox jumps over the lazy dog, and then the dog jumps over the quick brown fox";
    for length in [0, 3, 7, 15, 31, 63, 90] {
        note(&&long[..length]);
        note(&&long.as_bytes()[..length]);
    }
    note(&(1_u16, "two", 3_u64));
    // Before a variant's value, its number is hashed.
    note(&Some(1_u32));
    note(&None::<u32>);
    digest.finalize()
}
