//! From a key's hash to its fingerprint and its two buckets, for any number of buckets.
//!
//! A 64-bit hash gives the fingerprint from its low end and the first bucket from its high end. The
//! other bucket is `(g(fingerprint) − bucket) mod m`, where `g` spreads fingerprints over the
//! buckets: an involution for every m, so either bucket leads to the other without the key, and a
//! table need not be a power of two. (The xor of Fan et al. 2014 requires one.)
//!
//! The hash must be good in all of its 64 bits, as those of ahash, xxhash and SipHash are: an
//! identity or a single multiplication is not enough. The default hasher is good as it is; any
//! other is mixed first ([`Mixed`]), unless it is given to
//! [`Builder::unmixed_hasher`](crate::Builder::unmixed_hasher). `filter/tests/evenness.rs` shows
//! how even the result is, and how uneven it would be without mixing.

use std::hash::{BuildHasher, Hasher};
use std::hint::select_unpredictable;

use ahash::RandomState;

use crate::layout::Layout;

/// The default hasher: ahash with fixed seeds, so that runs of a program are repeatable. (Hashes
/// differ between versions of ahash, and between programs compiled for processors with and without
/// AES.)
///
/// If strangers choose the keys, seed a hasher at random instead
/// ([`Builder::hasher`](crate::Builder::hasher)): if they know the seeds, they can choose keys that
/// collide. If the filter is to be saved, keep the seeds ([`save`](crate::save#hashers)).
#[derive(Clone, Copy, Debug, Default)]
pub struct FixedState;

impl BuildHasher for FixedState {
    type Hasher = <RandomState as BuildHasher>::Hasher;

    #[inline]
    fn build_hasher(&self) -> Self::Hasher {
        // The first digits of pi, after the point.
        RandomState::with_seeds(
            0x243f_6a88_85a3_08d3,
            0x1319_8a2e_0370_7344,
            0xa409_3822_299f_31d0,
            0x082e_fa98_ec4e_6c89,
        )
        .build_hasher()
    }
}

/// Turns a hash that is merely distinct, such as a number used as its own hash, into a good one:
/// each bit of the result depends on each bit of `hash`. Distinct hashes stay distinct.
///
/// The functions that take a hash, such as [`insert_hash`](crate::CuckooFilter::insert_hash), use
/// it as it is: if you make hashes elsewhere and are not sure of all their bits, mix them with this
/// function first.
#[inline]
pub fn mix(hash: u64) -> u64 {
    // The finalizer of SplitMix64 (Stafford's thirteenth variant).
    let hash = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ hash >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ hash >> 31
}

/// A hasher whose hashes are [mixed](mix): good in all bits, whatever `S` is, as long as it tells
/// keys apart.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mixed<S>(pub S);

impl<S: BuildHasher> BuildHasher for Mixed<S> {
    type Hasher = MixedHasher<S::Hasher>;

    #[inline]
    fn build_hasher(&self) -> Self::Hasher {
        MixedHasher(self.0.build_hasher())
    }
}

/// The [`Hasher`] of [`Mixed`]: passes each write on to the function of the same name in `H`, since
/// many hashers treat numbers in ways of their own. (`write_str` and `write_length_prefix` are not
/// stable, and take the standard library's default path; so if a hasher for a nightly compiler
/// defines them, strings and slices hash differently here.)
#[derive(Clone, Debug)]
pub struct MixedHasher<H>(H);

/// Forwards these functions.
macro_rules! handed_on {
    ($($write:ident: $type:ty,)+) => {
        $(#[inline]
        fn $write(&mut self, value: $type) {
            self.0.$write(value);
        })+
    };
}

impl<H: Hasher> Hasher for MixedHasher<H> {
    handed_on! {
        write: &[u8],
        write_u8: u8,
        write_u16: u16,
        write_u32: u32,
        write_u64: u64,
        write_u128: u128,
        write_usize: usize,
        write_i8: i8,
        write_i16: i16,
        write_i32: i32,
        write_i64: i64,
        write_i128: i128,
        write_isize: isize,
    }

    #[inline]
    fn finish(&self) -> u64 {
        mix(self.0.finish())
    }
}

/// The fingerprint of a key, and the buckets where it may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// What is stored for the key; at least 1.
    pub fingerprint: u64,
    /// The bucket chosen by the hash.
    pub first: usize,
    /// The other bucket; for about one fingerprint in m it is the same one.
    pub second: usize,
}

impl Location {
    /// Of two values, one per bucket, returns those of different buckets: both, or only the first.
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
    /// The buckets are divided into consecutive slices of this size, and both buckets of a key are
    /// in the same slice. All tables have one slice, except those of a [growing](crate::growing)
    /// filter.
    slice: usize,
    /// The bits of a fingerprint that choose the other bucket: all of them, except in a growing
    /// filter.
    pairing: u64,
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
        Geometry {
            buckets,
            slice: buckets,
            pairing: Layout::<SLOTS, BITS>::MAX_FINGERPRINT,
        }
    }

    /// Describes a table of `slices` slices of `slice` buckets, in which only these bits of a
    /// fingerprint choose the other bucket. Its owner must compute the locations itself:
    /// [`locate`](Self::locate) ignores slices.
    pub(crate) fn sliced(slice: usize, slices: usize, pairing: u64) -> Self {
        Geometry {
            slice,
            pairing,
            ..Geometry::new(slice * slices)
        }
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
        // Only tables with several slices need the division.
        let start = if self.slice == self.buckets {
            0
        } else {
            bucket - bucket % self.slice
        };
        start + other(fingerprint & self.pairing, bucket - start, self.slice)
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

/// Scales a 64-bit number down to a bucket below `buckets` (Lemire 2019): evenly, if all numbers
/// are equally likely.
#[inline]
pub fn reduce(number: u64, buckets: usize) -> usize {
    ((u128::from(number) * buckets as u128) >> 64) as usize
}

#[cfg(all(test, not(kcas_loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_other_bucket_leads_back(hash: u64, buckets in 1usize..100_000) {
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

    #[test]
    fn every_fingerprint_and_every_bucket_is_used_evenly() {
        let geometry = Geometry::<4, 8>::new(1_000);
        let mut fingerprints = vec![0u32; 256];
        let (mut first, mut second) = (vec![0u32; 1_000], vec![0u32; 1_000]);
        for key in 0..1_000_000u64 {
            let location = geometry.locate(FixedState.hash_one(key));
            fingerprints[location.fingerprint as usize] += 1;
            first[location.first] += 1;
            second[location.second] += 1;
        }
        assert_eq!(fingerprints[0], 0);
        // Poisson counts with mean 1,000 (3,921 for fingerprints): seven standard deviations. The
        // second bucket takes only 255 values for each first bucket, so it is a little less even.
        let within = |counts: &[u32], low, high| counts.iter().all(|c| (low..high).contains(c));
        assert!(within(&fingerprints[2..], 3_480, 4_360));
        assert!((7_200..8_500).contains(&fingerprints[1]));
        assert!(within(&first, 780, 1_220));
        assert!(within(&second, 780, 1_220));
    }

    #[test]
    fn the_default_hasher_repeats() {
        assert_eq!(FixedState.hash_one("key"), FixedState.hash_one("key"));
        assert_ne!(FixedState.hash_one("key"), FixedState.hash_one("kez"));
    }
}
