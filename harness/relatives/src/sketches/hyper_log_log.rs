//! How many different keys occurred: the HyperLogLog of Flajolet, Fusy, Gandouet and Meunier
//! (2007), with 64-bit hashes as in Heule, Nunkesser and Hall (2013).
//!
//! The first *p* bits of a key's hash choose one of m = 2^p registers. It keeps the greatest *rank*
//! of its keys: the position of the first one among the remaining bits. The number of keys is
//! estimated from all registers, with a standard error of
//!
//! ```text
//! 1.04 / √m
//! ```
//!
//! relative to that number; with few keys it is smaller still.
//!
//! The estimate is the *improved raw estimator* of Ertl, *New cardinality estimation algorithms for
//! HyperLogLog sketches* (2017, algorithm 6). It is a single formula from zero keys to 2^64, and
//! unbiased. The estimators of 2007 and 2013 switch between two formulas, and that of 2013 corrects
//! the remaining bias with tables of measured values.
//!
//! Threads share the registers. An insert first looks whether it must raise its register, which is
//! seldom, and does so by an atomic maximum. An estimate taken while others insert lies between the
//! one before and the one after. All accesses are relaxed: registers only rise, and no other data
//! is read on the strength of them.

use std::f64::consts::LN_2;
use std::sync::atomic::{AtomicU8, Ordering};

use anyhow::{Result, ensure};
use bytemuck::allocation::zeroed_slice_box;
use kcas::steps::step;

/// Lowest precision of a sketch.
pub const MIN_PRECISION: u8 = 4;
/// Highest precision of a sketch.
pub const MAX_PRECISION: u8 = 18;

/// A HyperLogLog sketch of atomic registers.
#[derive(Debug)]
pub struct HyperLogLog {
    precision: u8,
    registers: Box<[AtomicU8]>,
}

impl HyperLogLog {
    /// Creates a sketch of 2^`precision` registers of one byte each.
    ///
    /// # Errors
    ///
    /// If the precision is not from [`MIN_PRECISION`] to [`MAX_PRECISION`].
    pub fn new(precision: u8) -> Result<Self> {
        ensure!(
            (MIN_PRECISION..=MAX_PRECISION).contains(&precision),
            "the precision of a HyperLogLog sketch is {MIN_PRECISION} to {MAX_PRECISION}, not {precision}"
        );
        Ok(Self {
            precision,
            registers: zeroed_slice_box(1 << precision),
        })
    }

    /// Adds a key; a key that was added before changes nothing.
    #[inline]
    pub fn insert(&self, hash: u64) {
        let index = hash >> (u64::BITS - u32::from(self.precision));
        // A one after the last bit, so that there is always one to find.
        let rest = (hash << 1 | 1) << (self.precision - 1);
        let rank = rest.leading_zeros() as u8 + 1;
        let register = &self.registers[index as usize];
        step();
        if register.load(Ordering::Relaxed) < rank {
            step();
            register.fetch_max(rank, Ordering::Relaxed);
        }
    }

    /// Estimates how many different keys were added.
    pub fn estimate(&self) -> f64 {
        let greatest = self.greatest_rank();
        let mut counts = vec![0.0; greatest + 1];
        for register in &self.registers {
            counts[usize::from(register.load(Ordering::Relaxed))] += 1.0;
        }
        let m = self.registers.len() as f64;
        // The harmonic sum of 2^rank. Registers that give only a bound, those never raised and
        // those that cannot be raised further, contribute their expected value.
        let mut sum = m * tau(1.0 - counts[greatest] / m);
        for count in counts[1..greatest].iter().rev() {
            sum = 0.5 * (sum + count);
        }
        sum += m * sigma(counts[0] / m);
        m * m / (2.0 * LN_2 * sum)
    }

    /// Returns the greatest rank that a register can have.
    fn greatest_rank(&self) -> usize {
        usize::from(65 - self.precision)
    }

    /// Returns the standard error of the estimate, relative to it: 1.04 / √m.
    pub fn standard_error(&self) -> f64 {
        1.04 / (self.registers.len() as f64).sqrt()
    }

    /// Adds all keys of another sketch to this one, as if they had been inserted one by one.
    ///
    /// # Errors
    ///
    /// If the other sketch has a different precision.
    pub fn merge(&self, other: &Self) -> Result<()> {
        ensure!(
            self.precision == other.precision,
            "HyperLogLog sketches merge only if they have the same precision, not {} and {}",
            self.precision,
            other.precision
        );
        for (register, other) in self.registers.iter().zip(&other.registers) {
            register.fetch_max(other.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        Ok(())
    }

    /// Counts the registers that differ from those of another sketch of the same precision.
    pub(crate) fn differing(&self, other: &Self) -> usize {
        let pairs = self.registers.iter().zip(&other.registers);
        let differ = |(one, other): &(&AtomicU8, &AtomicU8)| {
            one.load(Ordering::Relaxed) != other.load(Ordering::Relaxed)
        };
        pairs.filter(differ).count()
    }

    /// Returns the size of the registers in bytes.
    pub fn memory_bytes(&self) -> usize {
        size_of_val(&*self.registers)
    }
}

/// Ertl's σ(x) = x + Σ x^(2^k) 2^(k − 1) over k from 1 on, to the last bit; infinite for 1.
fn sigma(mut x: f64) -> f64 {
    if x >= 1.0 {
        return f64::INFINITY;
    }
    let (mut sum, mut weight) = (x, 1.0);
    loop {
        x *= x;
        let longer = sum + weight * x;
        if longer == sum {
            return sum;
        }
        (sum, weight) = (longer, 2.0 * weight);
    }
}

/// Ertl's τ(x) = (1 − x − Σ (1 − x^(2^−k))² 2^−k over k from 1 on) / 3, to the last bit.
fn tau(mut x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return 0.0;
    }
    let (mut sum, mut weight) = (1.0 - x, 1.0);
    loop {
        x = x.sqrt();
        weight *= 0.5;
        let longer = sum - (1.0 - x).powi(2) * weight;
        if longer == sum {
            return sum / 3.0;
        }
        sum = longer;
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use filter::hashing::mix;

    use super::*;

    fn ranks(sketch: &HyperLogLog) -> Vec<u8> {
        let registers = sketch.registers.iter();
        registers
            .map(|register| register.load(Ordering::Relaxed))
            .collect()
    }

    #[test]
    fn a_register_keeps_the_greatest_rank_of_its_keys() {
        let sketch = HyperLogLog::new(4).unwrap();
        let mut expected = vec![0; 16];
        for (hash, index, rank) in [
            (0x3800_0000_0000_0000, 3, 1),
            (0x3200_0000_0000_0000, 3, 3),
            (0x3400_0000_0000_0000, 3, 3),
            (0xf000_0000_0000_0001, 15, 60),
            (0x0000_0000_0000_0000, 0, 61),
        ] {
            sketch.insert(hash);
            expected[index] = rank;
            assert_eq!(ranks(&sketch), expected, "{hash:x}");
        }
        assert_eq!(sketch.greatest_rank(), 61);
    }

    #[test]
    fn a_precision_that_cannot_be_is_an_error_that_says_what_can() {
        for precision in [0, 3, 19, 64, 255] {
            let refused = HyperLogLog::new(precision).unwrap_err().to_string();
            assert!(refused.contains("is 4 to 18, not"), "{refused}");
        }
        let sizes = (MIN_PRECISION..=MAX_PRECISION)
            .map(|precision| HyperLogLog::new(precision).unwrap().memory_bytes());
        assert!(sizes.eq((4..=18).map(|precision| 1 << precision)));
    }

    #[test]
    fn estimates_of_extreme_registers_are_what_they_can_be() {
        let sketch = HyperLogLog::new(4).unwrap();
        assert_eq!(sketch.estimate(), 0.0);
        sketch.insert(mix(1));
        sketch.insert(mix(1));
        assert!((sketch.estimate() - 1.0).abs() < 0.1);
        // No register can show a greater rank.
        (0..16).for_each(|index| sketch.insert(index << 60));
        assert_eq!(sketch.estimate(), f64::INFINITY);
    }

    /// Compares the functions with the sums that define them.
    #[test]
    fn the_functions_of_the_estimator_are_their_series() {
        for x in [0.0, 0.1, 0.5, 0.9, 0.999] {
            let terms = (1..40).map(|k| f64::powf(x, 2_f64.powi(k)) * 2_f64.powi(k - 1));
            assert!((sigma(x) - x - terms.sum::<f64>()).abs() < 1e-9 * sigma(x).max(1.0));
        }
        for x in [0.1_f64, 0.5, 0.9, 0.999] {
            let terms = (1..60).map(|k| (1.0 - x.powf(2_f64.powi(-k))).powi(2) * 2_f64.powi(-k));
            assert!((tau(x) - (1.0 - x - terms.sum::<f64>()) / 3.0).abs() < 1e-12);
        }
        assert_eq!((sigma(1.0), tau(0.0), tau(1.0)), (f64::INFINITY, 0.0, 0.0));
    }

    #[test]
    fn threads_leave_what_one_leaves() {
        let (alone, shared) = (HyperLogLog::new(8).unwrap(), HyperLogLog::new(8).unwrap());
        (0..8_000).for_each(|key| alone.insert(mix(key)));
        thread::scope(|scope| {
            for thread in 0..4 {
                let shared = &shared;
                // Two threads insert each key.
                let keys = 2_000 * thread..2_000 * thread + 4_000;
                scope.spawn(move || keys.for_each(|key| shared.insert(mix(key % 8_000))));
            }
        });
        assert_eq!(alone.differing(&shared), 0);
    }

    /// Another thread may store a greater rank between the look at a register and its raise; that
    /// rank stays.
    #[cfg(feature = "steps")]
    #[test]
    fn a_greater_rank_between_steps_stays() {
        let sketch = std::sync::Arc::new(HyperLogLog::new(4).unwrap());
        let other = std::sync::Arc::clone(&sketch);
        let between = move |step| {
            if step == 1 {
                other.insert(0x0100_0000_0000_0000);
            }
        };
        kcas::steps::with_hook(between, || sketch.insert(0x0800_0000_0000_0000));
        assert_eq!(ranks(&sketch)[0], 4);
    }

    #[test]
    fn sketches_of_another_precision_do_not_merge() {
        let (one, other) = (HyperLogLog::new(8).unwrap(), HyperLogLog::new(9).unwrap());
        let refused = one.merge(&other).unwrap_err().to_string();
        assert!(refused.contains("not 8 and 9"), "{refused}");
    }
}
