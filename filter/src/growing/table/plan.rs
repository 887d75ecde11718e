//! From a key to its location in a table, and to whether two words hold it.

use crate::growing::schedule::PAIRING_BITS;
use crate::hashing::{self, Location};
use crate::layout::Shape;

/// The bits of a fingerprint that choose the other bucket.
pub(super) const PAIRING: u64 = (1 << PAIRING_BITS) - 1;

/// What the tables of a filter need to know about a key; the same for all of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    /// The low bits of its fingerprints, and its buckets within a slice.
    pub(crate) short: Location,
    /// More of the hash: first the slice number, then the high bits of the fingerprint. A table
    /// with twice as many slices uses one bit for the slice number that its fingerprints lose.
    pub(crate) tail: u64,
}

impl Key {
    /// Makes the key with this hash, in a filter whose slices have this many buckets.
    #[inline]
    pub(crate) fn new(hash: u64, slice: usize) -> Key {
        Key {
            short: hashing::locate(hash, PAIRING, slice),
            tail: hash >> PAIRING_BITS,
        }
    }
}

/// Where keys may be in a table, and what its words look like: all that lookups need to know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(super) shape: Shape,
    /// Buckets per slice.
    pub(super) slice: usize,
    /// There are 2^`slice_bits` slices.
    pub(super) slice_bits: u32,
    /// Mask of the fingerprint bits above those that choose the other bucket.
    pub(super) extension: u64,
}

impl Plan {
    /// Returns where a key may be.
    #[inline]
    pub(crate) fn locate(&self, key: Key) -> Location {
        let slice = key.tail & !(u64::MAX << self.slice_bits);
        let start = slice as usize * self.slice;
        let extension = key.tail >> self.slice_bits << PAIRING_BITS & self.extension;
        Location {
            fingerprint: key.short.fingerprint | extension,
            first: key.short.first + start,
            second: key.short.second + start,
        }
    }

    /// True if one of two words holds the fingerprint.
    #[inline]
    pub(crate) fn matches(&self, [first, second]: [u64; 2], fingerprint: u64) -> bool {
        self.shape.contains(first, fingerprint) | self.shape.contains(second, fingerprint)
    }
}
