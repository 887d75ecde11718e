//! Size and cells of a Bloom filter: how many cells it has, and which of them a key uses.
//!
//! For n keys and a false positive rate ε a filter has *m* = n log2(1/ε) / ln 2 cells, and each key
//! uses *k* = ln 2 · m/n of them, rounded. Then half of the cells are in use once the n keys are in.
//!
//! The k cells come from one 64-bit hash by double hashing (Kirsch, Mitzenmacher, *Less Hashing,
//! Same Performance: Building a Better Bloom Filter*, 2006), whose stride is the hash mixed once
//! more. Every position along the way is a 64-bit number that is scaled down to a cell in
//! proportion, so the number of cells need be neither a power of two nor a prime.

use std::f64::consts::LN_2;

use anyhow::{Result, ensure};
use filter::internals::MAX_BUCKETS;
use filter::mix;
use subject::SLOTS_PER_BUCKET;

/// The most keys that a filter may be sized for: the slots of the largest cuckoo table.
const MAX_KEYS: usize = MAX_BUCKETS.saturating_mul(SLOTS_PER_BUCKET);

/// With more hashes, false positives would be rarer than two keys with the same hash.
pub(crate) const MAX_HASHES: usize = u64::BITS as usize;

/// The lowest false positive rate that a filter may be sized for.
const MIN_RATE: f64 = 1.0 / (1_u128 << MAX_HASHES) as f64;

/// The number of cells of a filter, and the mapping of keys to cells.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DoubleHashing {
    pub cells: usize,
    /// The number of hashes, k: how many cells a key has, some of which may coincide.
    pub hashes: usize,
}

impl DoubleHashing {
    /// Sizes a filter for this many keys, with this false positive rate once they are in. Fails if
    /// `keys` is zero or more than 2^34, or the rate is below 2^-64 or above one half.
    pub fn sized(keys: usize, false_positive_rate: f64) -> Result<Self> {
        ensure!(
            (1..=MAX_KEYS).contains(&keys),
            "capacity: {keys} keys; a Bloom filter is sized for 1 to {MAX_KEYS}"
        );
        ensure!(
            (MIN_RATE..=0.5).contains(&false_positive_rate),
            "false positive rate: {false_positive_rate}; a Bloom filter can have {MIN_RATE:.1e} to 0.5"
        );
        let hashes = -false_positive_rate.log2();
        let cells = (keys as f64 * hashes / LN_2).ceil() as usize;
        // ln 2 · m/n is log2(1/ε) again.
        let hashes = hashes.round() as usize;
        Ok(Self { cells, hashes })
    }

    #[inline]
    pub(crate) fn cells(&self, hash: u64) -> impl Iterator<Item = usize> + use<> {
        let (cells, stride) = (self.cells as u128, mix(hash));
        // Multiplies and shifts instead of dividing (Lemire 2019).
        let reduce = move |place: u64| ((u128::from(place) * cells) >> 64) as usize;
        std::iter::successors(Some(hash), move |place| Some(place.wrapping_add(stride)))
            .take(self.hashes)
            .map(reduce)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_size_error_names_cause() {
        let error = |keys, rate| DoubleHashing::sized(keys, rate).unwrap_err().to_string();
        for keys in [0, MAX_KEYS + 1] {
            assert!(error(keys, 0.01).contains("capacity: "), "{keys}");
        }
        for rate in [0.6, f64::NAN, 1e-20] {
            assert!(error(1, rate).contains("false positive rate: "), "{rate}");
        }
        assert!(DoubleHashing::sized(1, 0.5).is_ok() && DoubleHashing::sized(1, MIN_RATE).is_ok());
    }
}
