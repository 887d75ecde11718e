//! Key → (fingerprint, bucket, other bucket), for any number of buckets.
//!
//! A 64-bit hash gives the fingerprint from its low end and the first bucket from its high end. The
//! other bucket is `(g(fingerprint) − bucket) mod m`, where `g` spreads fingerprints over the buckets:
//! an involution for every m, so either bucket leads to the other without the key, and a table need not
//! be a power of two. (The xor of Fan et al. 2014 needs one.)
//!
//! The hash must be good in all of its 64 bits, as ahash's, xxhash's or SipHash's are: an identity or a
//! single multiplication is not enough. The default hasher is good as it is; every other one is mixed first
//! ([`Mixed`]), unless it is given to [`Builder::unmixed_hasher`](crate::Builder::unmixed_hasher).
//! `filter/tests/evenness.rs` shows what comes of it, and what would without.

use std::hash::{BuildHasher, Hasher};

use ahash::RandomState;

use crate::layout::Layout;

/// The default hasher: ahash with fixed seeds, so that runs of one program repeat. (Hashes differ between versions of
/// ahash, and between programs that were compiled for processors with and without AES.)
///
/// Where strangers choose the keys, seed a hasher at random instead
/// ([`Builder::hasher`](crate::Builder::hasher)): with known seeds they can choose keys that collide. If the filter is to
/// be saved, keep the seeds ([`saved`](crate::saved#hashers)).
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

/// Makes a good hash of one that is distinct but no more, such as a number that is its own hash: each bit of
/// the result depends on each bit of `hash`. Distinct stays distinct.
///
/// The functions that take a hash, such as
/// [`insert_hash`](crate::CuckooFilter::insert_hash), take it as it is: if you make hashes elsewhere, and are
/// not sure of all their bits, mix them with this first.
#[inline]
pub fn mix(hash: u64) -> u64 {
    // The finalizer of SplitMix64 (Stafford's thirteenth variant).
    let hash = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ hash >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ hash >> 31
}

/// A hasher whose hashes are [mixed](mix): good in all bits, whatever `S` is, as long as it tells keys apart.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mixed<S>(pub S);

impl<S: BuildHasher> BuildHasher for Mixed<S> {
    type Hasher = MixedHasher<S::Hasher>;

    #[inline]
    fn build_hasher(&self) -> Self::Hasher {
        MixedHasher(self.0.build_hasher())
    }
}

/// The [`Hasher`] of [`Mixed`]: what is written goes to `H` by the same function, since many hashers treat numbers in ways
/// of their own. (`write_str` and `write_length_prefix` are not stable, and take the way that the standard library gives
/// them; so with a hasher of a nightly compiler that has its own, strings and slices have other hashes here.)
#[derive(Clone, Debug)]
pub struct MixedHasher<H>(H);

/// Hands these functions on.
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

/// Where a key may live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// What is stored of the key: at least 1.
    pub fingerprint: u64,
    /// The bucket that the hash names.
    pub first: usize,
    /// The other bucket; for about one fingerprint in m it is the same one.
    pub second: usize,
}

impl Location {
    /// Of what there is of both buckets, that of different ones: both, or the first.
    pub(crate) fn different<'a, T>(&self, both: &'a [T; 2]) -> &'a [T] {
        if self.first == self.second {
            &both[..1]
        } else {
            both
        }
    }
}

/// The greatest number of buckets: 2^32, above which the bits that choose the bucket could overlap
/// with those that make the fingerprint.
pub const MAX_BUCKETS: usize = match 1usize.checked_shl(32) {
    Some(buckets) => buckets,
    // On a 32-bit machine, as many as can be numbered.
    None => usize::MAX,
};

/// How keys are spread over a number of buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry<const SLOTS: usize, const BITS: usize> {
    buckets: usize,
    /// The buckets fall into slices of this size, one after the other, and both of a key are in the same one. In all
    /// tables but those of a [growing](crate::growing) filter, there is one slice.
    slice: usize,
    /// The bits of a fingerprint that choose the other bucket: all of them, but in a growing filter.
    pairing: u64,
}

impl<const SLOTS: usize, const BITS: usize> Geometry<SLOTS, BITS> {
    /// A table of `buckets` buckets.
    ///
    /// # Panics
    /// When `buckets` is 0 or more than [`MAX_BUCKETS`]. A layout that does not exist is an error at compile
    /// time.
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

    /// A table of `slices` slices of `slice` buckets, in which only these bits of a fingerprint choose the other bucket.
    /// Its locations are its owner's business: [`locate`](Self::locate) knows of no slices.
    pub(crate) fn sliced(slice: usize, slices: usize, pairing: u64) -> Self {
        Geometry {
            slice,
            pairing,
            ..Geometry::new(slice * slices)
        }
    }

    /// Number of buckets.
    #[inline]
    pub fn buckets(&self) -> usize {
        self.buckets
    }

    /// The location of the key whose hash this is.
    #[inline]
    pub fn locate(&self, hash: u64) -> Location {
        locate(hash, Layout::<SLOTS, BITS>::MAX_FINGERPRINT, self.buckets)
    }

    /// The other bucket of a fingerprint that lives in `bucket`; its own inverse.
    #[inline]
    pub fn other(&self, fingerprint: u64, bucket: usize) -> usize {
        // The division is for those who need it.
        let start = match self.slice == self.buckets {
            true => 0,
            false => bucket - bucket % self.slice,
        };
        start + other(fingerprint & self.pairing, bucket - start, self.slice)
    }
}

/// [`Geometry::locate`], where the layout is known at run time only.
#[inline]
pub(crate) fn locate(hash: u64, max_fingerprint: u64, buckets: usize) -> Location {
    // Zero means "empty", so it becomes one. That one fingerprint is twice as frequent as the others
    // raises the false positive rate by 1 part in 2^(BITS − 1).
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
    // Multiplied by the golden ratio, consecutive numbers fall far apart. Squared first, because two
    // shifts lead on by the difference of two such products: were they the fingerprints themselves, that
    // would be a multiple of the golden ratio again, one of 2 × 2^BITS, and chains would go round
    // in a small circle of buckets. (Measured: of 8-bit fingerprints, a table of 2^18 buckets of four
    // took 0.952 of its slots; with squares 0.968, as many as of longer ones.)
    let square = fingerprint.wrapping_mul(fingerprint);
    let spread = reduce(square.wrapping_mul(0x9e37_79b9_7f4a_7c15), buckets);
    let (difference, borrowed) = spread.overflowing_sub(bucket);
    if borrowed {
        difference.wrapping_add(buckets)
    } else {
        difference
    }
}

/// A 64-bit number, reduced to a bucket in proportion to its size (Lemire 2019): to one below `buckets`, evenly if all
/// numbers are as likely.
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
        // Poisson counts of mean 1,000 (3,921 for fingerprints): seven standard deviations. The second
        // bucket takes only 255 values for each first one, so it is a little less even.
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
