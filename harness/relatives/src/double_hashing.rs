//! Size and cells of a Bloom filter: how many cells it has, and which of them a key uses. All
//! filters of the family share this, whether a cell is a bit or a counter.
//!
//! For n keys and a false positive rate ε a filter has *m* = n log2(1/ε) / ln 2 cells, which is
//! 1.44 log2(1/ε) per key, and each key uses *k* = ln 2 · m/n of them, rounded. Then half of the
//! cells are in use once the n keys are in.
//!
//! The k cells come from one 64-bit hash by double hashing (Kirsch, Mitzenmacher, *Less Hashing,
//! Same Performance: Building a Better Bloom Filter*, 2006): the sequence starts at the hash
//! itself, and its stride is the hash mixed once more. Both are 64-bit numbers, and so is every
//! position along the way, which is scaled down to a cell in proportion. So the number of cells
//! need be neither a power of two nor a prime.
//!
//! # How often a filter is wrong
//!
//! With n keys in, a cell is in use with probability 1 − e^(−kn/m): the
//! [fill](DoubleHashing::fill). An absent key is found if all of its k cells are: (1 −
//! e^(−kn/m))^k, the [false positive rate](DoubleHashing::false_positive_rate).

use std::f64::consts::LN_2;

use anyhow::{Result, ensure};
use filter::hashing::{MAX_BUCKETS, mix};
use subject::SLOTS_PER_BUCKET;

/// The largest number of keys that a filter may be sized for: as many as the largest cuckoo table
/// has slots.
pub(super) const MAX_KEYS: usize = MAX_BUCKETS.saturating_mul(SLOTS_PER_BUCKET);

/// The largest number of hashes per key: with more, false positives would be rarer than two keys
/// with the same hash.
pub(super) const MAX_HASHES: usize = u64::BITS as usize;

/// The lowest false positive rate that a filter may be sized for.
pub(super) const MIN_RATE: f64 = 1.0 / (1_u128 << MAX_HASHES) as f64;

/// The number of cells of a filter, and the mapping of keys to cells.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DoubleHashing {
    cells: usize,
    hashes: usize,
}

impl DoubleHashing {
    /// Sizes a filter for this many keys, with this false positive rate once they are in.
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

    /// Takes the cells and hashes of a filter that was sized elsewhere.
    pub fn of_size(cells: usize, hashes: usize) -> Self {
        Self { cells, hashes }
    }

    /// Returns the number of cells, m.
    pub fn cells(&self) -> usize {
        self.cells
    }

    /// Returns the number of hashes, k: how many cells a key has, some of which may coincide.
    pub fn hashes(&self) -> usize {
        self.hashes
    }

    /// Returns the cells of the key with this hash.
    #[inline]
    pub(super) fn of(&self, hash: u64) -> impl Iterator<Item = usize> + use<> {
        let (cells, stride) = (self.cells as u128, mix(hash));
        // Multiplies and shifts instead of dividing (Lemire 2019).
        let reduce = move |place: u64| ((u128::from(place) * cells) >> 64) as usize;
        std::iter::successors(Some(hash), move |place| Some(place.wrapping_add(stride)))
            .take(self.hashes)
            .map(reduce)
    }

    /// Returns the expected share of cells in use with this many keys.
    pub fn fill(&self, keys: f64) -> f64 {
        -(-self.uses_a_cell(keys)).exp_m1()
    }

    /// Returns the expected false positive rate with this many keys.
    pub fn false_positive_rate(&self, keys: f64) -> f64 {
        self.fill(keys).powi(self.hashes as i32)
    }

    /// Returns how many times a cell is used on average, counting every cell of every key: kn/m.
    pub fn uses_a_cell(&self, keys: f64) -> f64 {
        self.hashes as f64 * keys / self.cells as f64
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::hash::BuildHasher;

    use filter::FixedState;

    use super::*;

    #[test]
    fn sizes_are_those_of_the_literature() {
        // 1.4427 × 9 bits per key and nine hashes for 1 in 512; ten bits and seven hashes for 0.82
        // %.
        let shape = DoubleHashing::sized(1_000_000, 1.0 / 512.0).unwrap();
        assert_eq!((shape.cells(), shape.hashes()), (12_984_256, 9));
        let shape = DoubleHashing::sized(1_000, 0.00819).unwrap();
        assert_eq!((shape.cells(), shape.hashes()), (10_001, 7));
        assert!((shape.fill(1_000.0) - 0.5034).abs() < 1e-4);
        assert!((shape.false_positive_rate(1_000.0) - 0.00819).abs() < 1e-5);
    }

    #[test]
    fn what_cannot_be_is_refused_by_name() {
        let refusal = |keys, rate| DoubleHashing::sized(keys, rate).unwrap_err().to_string();
        for keys in [0, MAX_KEYS + 1] {
            assert!(refusal(keys, 0.01).contains("capacity: "), "{keys}");
        }
        for rate in [0.0, 0.6, -0.1, f64::NAN, f64::INFINITY, 1e-20] {
            assert!(refusal(1, rate).contains("false positive rate: "), "{rate}");
        }
        assert!(DoubleHashing::sized(1, 0.5).is_ok() && DoubleHashing::sized(1, MIN_RATE).is_ok());
    }

    /// All cells are used equally, and two cells of a key seldom coincide.
    #[test]
    fn cells_are_used_evenly() {
        let shape = DoubleHashing::sized(100, 1.0 / 512.0).unwrap();
        let mut uses = vec![0_u32; shape.cells()];
        let mut doubled = 0;
        const KEYS: u64 = 100_000;
        for key in 0..KEYS {
            let cells: Vec<_> = shape.of(FixedState.hash_one(key)).collect();
            assert_eq!(cells.len(), shape.hashes());
            doubled += usize::from(cells.iter().collect::<HashSet<_>>().len() < cells.len());
            cells.iter().for_each(|&cell| uses[cell] += 1);
        }
        // The counts are Poisson with this mean; allows six standard deviations.
        let mean = (KEYS as f64) * shape.hashes() as f64 / shape.cells() as f64;
        let off = 6.0 * mean.sqrt();
        let even = |&count: &u32| (f64::from(count) - mean).abs() < off;
        assert!(uses.iter().all(even), "{mean} ± {off}: {uses:?}");
        // Two of nine cells coincide if a multiple of the stride is less than a cell: at most twice
        // for each of the multiples 1 to 8, with probability 1 / 1,299 each.
        assert!(
            (100..8 * 2 * KEYS as usize / 1_299).contains(&doubled),
            "{doubled}"
        );
    }
}
