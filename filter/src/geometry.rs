//! Where a key may be: its fingerprint and its two buckets.

use crate::layout::Layout;

/// The fingerprint of a key, and the buckets where it may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Location {
    /// What is stored for the key; at least 1.
    pub fingerprint: u64,
    /// The bucket chosen by the hash.
    pub first: usize,
    /// The other bucket; for about one fingerprint in m it is the same one.
    pub second: usize,
}

impl Location {
    /// Returns those of two values, one per bucket, that belong to different buckets: both, or only the first.
    pub(crate) fn different<'a, T>(&self, both: &'a [T; 2]) -> &'a [T] {
        if self.first == self.second {
            &both[..1]
        } else {
            both
        }
    }
}

/// The greatest number of buckets, 2^32: with more, the bits that choose the bucket could overlap
/// with those that make the fingerprint.
pub const MAX_BUCKETS: usize = match 1usize.checked_shl(32) {
    Some(buckets) => buckets,
    // On a 32-bit machine, as many as can be indexed.
    None => usize::MAX,
};

/// How keys are distributed over a number of buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry<const SLOTS: usize, const BITS: usize> {
    buckets: usize,
}

impl<const SLOTS: usize, const BITS: usize> Geometry<SLOTS, BITS> {
    /// Describes a table of `buckets` buckets.
    ///
    /// # Panics
    /// When `buckets` is 0 or more than [`MAX_BUCKETS`]. A layout that does not exist is a
    /// compile-time error.
    pub fn new(buckets: usize) -> Self {
        const { assert!(Layout::<SLOTS, BITS>::TIMESTAMP_BITS > 0) };
        assert!(
            (1..=MAX_BUCKETS).contains(&buckets),
            "a table has 1 to {MAX_BUCKETS} buckets, not {buckets}"
        );
        Geometry { buckets }
    }

    /// Returns the number of buckets.
    #[inline]
    pub fn buckets(&self) -> usize {
        self.buckets
    }

    /// Returns the location of the key with this hash.
    #[inline]
    pub fn locate(&self, hash: u64) -> Location {
        locate(hash, Layout::<SLOTS, BITS>::MAX_FINGERPRINT, self.buckets)
    }

    /// Returns the other bucket of a fingerprint that is in `bucket`; this function is its own
    /// inverse.
    #[inline]
    pub fn other(&self, fingerprint: u64, bucket: usize) -> usize {
        other(fingerprint, bucket, self.buckets)
    }
}

/// [`Geometry::locate`] for a layout known only at run time.
#[inline]
pub(crate) fn locate(hash: u64, max_fingerprint: u64, buckets: usize) -> Location {
    // Zero means "empty", so it becomes one. This makes one fingerprint twice as frequent as the
    // others, which raises the false positive rate by 1 part in 2^(BITS − 1).
    let fingerprint = (hash & max_fingerprint).max(1);
    let first = reduce(hash, buckets);
    Location {
        fingerprint,
        first,
        second: other(fingerprint, first, buckets),
    }
}

/// [`Geometry::other`].
#[inline]
fn other(fingerprint: u64, bucket: usize, buckets: usize) -> usize {
    // Multiplied by the golden ratio, consecutive numbers end up far apart. They are squared first,
    // because two shifts advance by the difference of two such products: for the fingerprints
    // themselves that would again be a multiple of the golden ratio, one of 2 × 2^BITS, and chains
    // would stay within a small circle of buckets. (Measured: with 8-bit fingerprints, a table of
    // 2^18 buckets of four took 0.952 of its slots; with squares 0.968, as many as with longer
    // fingerprints.)
    let square = fingerprint.wrapping_mul(fingerprint);
    let spread = reduce(square.wrapping_mul(0x9e37_79b9_7f4a_7c15), buckets);
    let (difference, borrowed) = spread.overflowing_sub(bucket);
    // A processor could not predict this, so it must not become a branch.
    select_unpredictable(borrowed, difference.wrapping_add(buckets), difference)
}

/// Chooses a value: from Rust 1.88 on, without a branch.
#[inline]
#[cfg_attr(
    has_select_unpredictable,
    expect(clippy::incompatible_msrv, reason = "only where the compiler has it")
)]
pub(crate) fn select_unpredictable<T>(condition: bool, yes: T, no: T) -> T {
    #[cfg(has_select_unpredictable)]
    return std::hint::select_unpredictable(condition, yes, no);
    #[cfg(not(has_select_unpredictable))]
    if condition { yes } else { no }
}

/// Scales a 64-bit number down to a bucket below `buckets` (Lemire 2019): evenly, if all numbers
/// are equally likely.
#[inline]
pub fn reduce(number: u64, buckets: usize) -> usize {
    ((u128::from(number) * buckets as u128) >> 64) as usize
}

#[cfg(all(test, not(kcas_loom)))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn other_bucket_leads_back(hash: u64, buckets in 1usize..100_000) {
            for buckets in [buckets, 1, 2, 3, MAX_BUCKETS] {
                let geometry = Geometry::<4, 12>::new(buckets);
                let location = geometry.locate(hash);
                prop_assert!(location.first < buckets && location.second < buckets);
                prop_assert!((1..=4095).contains(&location.fingerprint));
                let back = geometry.other(location.fingerprint, location.second);
                prop_assert_eq!(back, location.first);
            }
        }
    }
}
