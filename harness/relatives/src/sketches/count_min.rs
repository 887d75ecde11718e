//! How often each key occurred: the count-min sketch of Cormode and Muthukrishnan, *An Improved
//! Data Stream Summary: The Count-Min Sketch and its Applications* (2005).
//!
//! There are `depth` rows of `width` counters. Each row has its own hash function, drawn from a
//! pairwise-independent family. A key adds to one counter in every row, and the smallest of its
//! counters is the estimate. For a stream of N keys,
//!
//! ```text
//! count  ≤  estimate                              always, and
//! estimate  ≤  count + ε N                        with probability 1 − δ at least, for each key
//!
//! width = ⌈e / ε⌉,  depth = ⌈ln(1 / δ)⌉
//! ```
//!
//! Threads add with atomic increments and never wait. An estimate taken while others add lies
//! between the estimate before and the one after all overlapping calls. It is not linearizable, but
//! *intermediate value linearizable* (Rinberg and Keidar 2020), which preserves both bounds. All
//! accesses are relaxed: no other data is read on the strength of a counter.

use std::f64::consts::E;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Result, anyhow, ensure};
use bytemuck::allocation::try_zeroed_slice_box;
use kcas::steps::step;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

/// The largest number of rows: more would not improve estimates noticeably.
pub const MAX_DEPTH: usize = 64;

/// The largest number of counters, which take 32 GiB.
pub const MAX_COUNTERS: usize = 1 << 32;

/// A count-min sketch of atomic counters.
#[derive(Debug)]
pub struct CountMin {
    width: usize,
    seed: u64,
    rows: Box<[Row]>,
    /// The counters, row after row.
    counters: Box<[AtomicU64]>,
}

/// The hash function of a row.
#[derive(Debug)]
struct Row {
    multiplier: u128,
    addend: u128,
}

impl Row {
    /// Returns a key's counter among `width`. Multiply-shift in 128 bits (Dietzfelbinger 1996) maps
    /// 64 bits to 64, any two keys pairwise independently; the result, as a fraction of 2^64,
    /// selects the counter.
    #[inline]
    fn index(&self, hash: u64, width: usize) -> usize {
        let product = self.multiplier.wrapping_mul(hash.into());
        let spread = product.wrapping_add(self.addend) >> 64;
        ((spread * width as u128) >> 64) as usize
    }
}

impl CountMin {
    /// Creates a sketch whose estimates are too high by more than `error` × the length of the
    /// stream for at most a `failure` share of all keys. The seed determines its hash functions.
    ///
    /// # Errors
    ///
    /// If a value is not between 0 and 1, or needs more memory than there is.
    pub fn new(error: f64, failure: f64, seed: u64) -> Result<Self> {
        for (name, value) in [("error", error), ("failure", failure)] {
            ensure!(
                value > 0.0 && value < 1.0,
                "the {name} of a count-min sketch is a share above 0 and below 1, not {value}"
            );
        }
        // A number too large for the type becomes the type's largest, and is refused.
        let width = (E / error).ceil() as usize;
        let depth = (1.0 / failure).ln().ceil() as usize;
        Self::with_shape(width, depth, seed)
    }

    /// Creates a sketch with `depth` rows of `width` counters.
    ///
    /// # Errors
    ///
    /// If there are no counters, or more than [`MAX_DEPTH`], [`MAX_COUNTERS`] or the memory allow.
    pub fn with_shape(width: usize, depth: usize, seed: u64) -> Result<Self> {
        ensure!(
            (1..=MAX_DEPTH).contains(&depth),
            "a count-min sketch has 1 to {MAX_DEPTH} rows, not {depth}"
        );
        let most = MAX_COUNTERS / depth;
        ensure!(
            (1..=most).contains(&width),
            "a count-min sketch of {depth} rows has 1 to {most} counters in each, not {width}"
        );
        let counters = width * depth;
        let mut random = SmallRng::seed_from_u64(seed);
        let row = |_| Row {
            multiplier: random.random(),
            addend: random.random(),
        };
        Ok(Self {
            width,
            seed,
            rows: (0..depth).map(row).collect(),
            counters: try_zeroed_slice_box(counters)
                .map_err(|()| anyhow!("there is no memory for {counters} counters"))?,
        })
    }

    /// Returns the counters of a key, one from each row.
    #[inline]
    fn of(&self, hash: u64) -> impl Iterator<Item = &AtomicU64> {
        let rows = self.counters.chunks_exact(self.width).zip(&self.rows);
        rows.map(move |(counters, row)| {
            step();
            &counters[row.index(hash, self.width)]
        })
    }

    /// Adds `count` occurrences of a key and returns its estimate: at least these occurrences plus
    /// those added by calls that had already returned.
    #[inline]
    pub fn add(&self, hash: u64, count: u64) -> u64 {
        let added = |counter: &AtomicU64| counter.fetch_add(count, Ordering::Relaxed) + count;
        self.of(hash).map(added).min().unwrap_or(0)
    }

    /// Takes back `count` occurrences of a key that were added before. Taking back occurrences that
    /// were not added spoils the estimates of other keys.
    #[inline]
    pub fn subtract(&self, hash: u64, count: u64) {
        for counter in self.of(hash) {
            counter.fetch_sub(count, Ordering::Relaxed);
        }
    }

    /// Estimates how often a key occurred; never too low.
    #[inline]
    pub fn estimate(&self, hash: u64) -> u64 {
        let counts = self.of(hash);
        counts
            .map(|counter| counter.load(Ordering::Relaxed))
            .min()
            .unwrap_or(0)
    }

    /// Returns the length of the stream: all occurrences of all keys.
    pub fn total(&self) -> u64 {
        // Each row counts every key once, so any row will do, and no counter is needed that all
        // threads write.
        let row = &self.counters[..self.width];
        row.iter()
            .map(|counter| counter.load(Ordering::Relaxed))
            .sum()
    }

    /// Adds the stream of another sketch to this one.
    ///
    /// # Errors
    ///
    /// If the other sketch has a different shape or seed, so that its counters stand for other
    /// keys.
    pub fn merge(&self, other: &Self) -> Result<()> {
        let parameters = |sketch: &Self| (sketch.width, sketch.depth(), sketch.seed);
        ensure!(
            parameters(self) == parameters(other),
            "count-min sketches merge only if they have the same width, depth and seed, not {:?} and {:?}",
            parameters(self),
            parameters(other)
        );
        for (counter, other) in self.counters.iter().zip(&other.counters) {
            counter.fetch_add(other.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        Ok(())
    }

    /// Returns the number of counters per row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Returns the number of rows.
    pub fn depth(&self) -> usize {
        self.rows.len()
    }

    /// Returns the ε of the bound: the error that few estimates exceed, as a share of the stream's
    /// length.
    pub fn error(&self) -> f64 {
        E / self.width as f64
    }

    /// Returns the δ of the bound: the share of keys whose estimates may be higher still.
    pub fn failure(&self) -> f64 {
        (-(self.depth() as f64)).exp()
    }

    /// Returns the size of the counters in bytes.
    pub fn memory_bytes(&self) -> usize {
        size_of_val(&*self.counters)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use filter::hashing::mix;

    use super::*;

    #[test]
    fn its_shape_is_that_of_the_paper() {
        let sketch = CountMin::new(0.01, 0.01, 1).unwrap();
        assert_eq!((sketch.width(), sketch.depth()), (272, 5));
        assert_eq!(sketch.memory_bytes(), 8 * 272 * 5);
        assert!(sketch.error() <= 0.01 && sketch.failure() <= 0.01);
        let sketch = CountMin::new(0.5, 0.99, 1).unwrap();
        assert_eq!((sketch.width(), sketch.depth()), (6, 1));
    }

    #[test]
    fn a_shape_that_cannot_be_is_an_error_that_says_what_can() {
        for (error, failure, expected) in [
            (
                0.0,
                0.1,
                "the error of a count-min sketch is a share above 0",
            ),
            (f64::NAN, 0.1, "below 1, not NaN"),
            (0.1, 1.0, "the failure"),
            (1e-300, 0.1, "of 3 rows has 1 to 1431655765 counters"),
            (0.1, 1e-300, "1 to 64 rows, not 691"),
        ] {
            let refused = CountMin::new(error, failure, 1).unwrap_err().to_string();
            assert!(refused.contains(expected), "{refused}");
        }
        assert!(CountMin::with_shape(0, 1, 1).is_err() && CountMin::with_shape(1, 0, 1).is_err());
    }

    #[test]
    fn what_is_added_is_counted_and_what_is_subtracted_is_not() {
        let sketch = CountMin::new(0.001, 0.01, 1).unwrap();
        assert_eq!((sketch.estimate(mix(1)), sketch.total()), (0, 0));
        assert_eq!((sketch.add(mix(1), 3), sketch.add(mix(1), 4)), (3, 7));
        sketch.add(mix(2), 5);
        assert_eq!((sketch.estimate(mix(1)), sketch.total()), (7, 12));
        sketch.subtract(mix(1), 7);
        assert_eq!((sketch.estimate(mix(1)), sketch.total()), (0, 5));
        assert_eq!(sketch.estimate(mix(2)), 5);
    }

    #[test]
    fn threads_lose_no_count() {
        const THREADS: u64 = 4;
        let sketch = CountMin::with_shape(7, 3, 1).unwrap();
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| (0..5_000).for_each(|key| _ = sketch.add(mix(key % 100), 1)));
            }
        });
        assert_eq!(sketch.total(), THREADS * 5_000);
        let alone = CountMin::with_shape(7, 3, 1).unwrap();
        (0..100).for_each(|key| _ = alone.add(mix(key), THREADS * 50));
        assert!((0..100).all(|key| alone.estimate(mix(key)) == sketch.estimate(mix(key))));
    }

    #[test]
    fn a_merged_sketch_is_that_of_both_streams() {
        let of = |keys: std::ops::Range<u64>| {
            let sketch = CountMin::with_shape(50, 3, 1).unwrap();
            keys.for_each(|key| _ = sketch.add(mix(key), key));
            sketch
        };
        let merged = of(0..100);
        merged.merge(&of(50..300)).unwrap();
        let whole = of(0..100);
        (50..300).for_each(|key| _ = whole.add(mix(key), key));
        assert_eq!(merged.total(), whole.total());
        assert!((0..400).all(|key| merged.estimate(mix(key)) == whole.estimate(mix(key))));
    }

    #[test]
    fn sketches_of_other_counters_do_not_merge() {
        let sketch = CountMin::with_shape(50, 3, 1).unwrap();
        for (width, depth, seed) in [(51, 3, 1), (50, 2, 1), (50, 3, 2)] {
            let other = CountMin::with_shape(width, depth, seed).unwrap();
            let refused = sketch.merge(&other).unwrap_err().to_string();
            assert!(refused.contains("same width, depth and seed"), "{refused}");
        }
    }
}
