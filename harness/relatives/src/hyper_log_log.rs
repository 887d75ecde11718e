//! How many different keys occurred: the HyperLogLog of Flajolet, Fusy, Gandouet and Meunier
//! (2007), with 64-bit hashes as in Heule, Nunkesser and Hall (2013).
//!
//! The first *p* bits of a key's hash choose one of m = 2^p registers. It keeps the greatest *rank*
//! of its keys: the position of the first one among the remaining bits. The number of keys is
//! estimated from all registers, with a standard error of 1.04 / √m relative to that number; with
//! few keys it is smaller still.
//!
//! The estimate is the *improved raw estimator* of Ertl, *New cardinality estimation algorithms for
//! HyperLogLog sketches* (2017, algorithm 6): a single formula from zero keys to 2^64, and unbiased.
//!
//! An insert first looks whether it must raise its register, which is seldom, and does so by an
//! atomic maximum. All accesses are relaxed: registers only rise, and no other data is read on the
//! strength of them. As a subject it only takes keys: what it costs threads to count distinct keys
//! together, next to what it costs to store them.

use std::f64::consts::LN_2;
use std::hash::{BuildHasher, Hash};
use std::sync::atomic::{AtomicU8, Ordering};

use anyhow::Result;
use bytemuck::allocation::zeroed_slice_box;
use filter::FixedState;
use filter::hashing::mix;
use kcas::steps::step;
use statrs::distribution::{ChiSquared, ContinuousCDF, Normal};
use statrs::statistics::Statistics;
use subject::layout::slots;
use subject::{Operations, Subject};

use crate::theory::{Claim, SIGMAS, Theory, Trial};

/// As a subject: a standard error of 0.81 % in 16 KiB, however many keys there are.
const PRECISION: u8 = 14;

/// A HyperLogLog sketch of atomic registers.
#[derive(Debug)]
pub struct HyperLogLog {
    precision: u8,
    registers: Box<[AtomicU8]>,
    slots: usize,
}

impl HyperLogLog {
    /// Creates a sketch of 2^`precision` registers of one byte each; a precision of 4 to 18 is
    /// usual.
    pub fn new(precision: u8) -> Self {
        Self {
            precision,
            registers: zeroed_slice_box(1 << precision),
            slots: 0,
        }
    }

    /// Adds the key with this hash; a key that was added before changes nothing.
    #[inline]
    pub fn insert_hash(&self, hash: u64) {
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
        // The greatest rank that a register can have.
        let greatest = usize::from(65 - self.precision);
        let mut counts = vec![0.0; greatest + 1];
        self.ranks()
            .for_each(|rank| counts[usize::from(rank)] += 1.0);
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

    /// Adds all keys of another sketch of the same precision, as if they had been inserted one by
    /// one.
    pub fn merge(&self, other: &Self) {
        for (register, rank) in self.registers.iter().zip(other.ranks()) {
            register.fetch_max(rank, Ordering::Relaxed);
        }
    }

    fn ranks(&self) -> impl Iterator<Item = u8> {
        let registers = self.registers.iter();
        registers.map(|register| register.load(Ordering::Relaxed))
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

impl Subject for HyperLogLog {
    const NAME: &'static str = "hyperloglog";
    const DESCRIPTION: &'static str = "a HyperLogLog sketch of 16 KiB, which tells how many different keys were inserted, and no more";
    const GUARANTEES: &'static str = "wait-free; estimates are monotonic";
    const OPERATIONS: Operations = Operations::INSERT_ONLY;

    fn with_buckets(buckets: usize) -> Result<Self> {
        let slots = slots(buckets)?;
        Ok(Self {
            slots,
            ..Self::new(PRECISION)
        })
    }

    #[inline]
    fn insert<K: Hash + ?Sized>(&self, key: &K) -> bool {
        self.insert_hash(FixedState.hash_one(key));
        true
    }

    /// Never asked: the sketch does not know its keys.
    fn contains<K: Hash + ?Sized>(&self, _: &K) -> bool {
        false
    }

    /// Returns the number of keys asked for; there is no limit on them.
    fn slots(&self) -> usize {
        self.slots
    }

    fn memory_bytes(&self) -> usize {
        size_of_val(&*self.registers)
    }
}

/// Estimates are unbiased and as precise as they should be, and those of merged sketches equal those
/// of the union.
impl Theory for HyperLogLog {
    fn claims(_: Trial) -> Result<Vec<Claim>> {
        const SKETCHES: u64 = 250;
        let of = |seed, keys: std::ops::Range<u64>| {
            let sketch = Self::new(10);
            let start = mix(seed);
            keys.for_each(|key| sketch.insert_hash(mix(start.wrapping_add(key))));
            sketch
        };
        let deviation = 1.04 / 1024_f64.sqrt();
        let (least, most) = deviations(SKETCHES);
        let mut claims = Vec::new();
        for (keys, least) in [(100, 0.0), (1_000, 0.0), (3_000, 0.0), (10_000, least)] {
            let about = |what| format!("{what}, m = 1024, {keys} keys");
            let error = |seed| of(seed, 0..keys).estimate() / keys as f64 - 1.0;
            let errors: Vec<_> = (0..SKETCHES).map(error).collect();
            let mean = Claim::exact(
                about("mean relative error"),
                "0 (Ertl 2017: unbiased)",
                0.0,
                (&errors).mean(),
            );
            claims.push(mean.within(SIGMAS * deviation / (SKETCHES as f64).sqrt()));
            let spread = Claim::exact(
                about("standard deviation of the relative error"),
                "1.04/√m (Flajolet et al. 2007) of many keys; of few, less",
                deviation,
                (&errors).std_dev(),
            );
            claims.push(spread.allowing(least * deviation..=most * deviation));
        }
        let merged = of(1, 0..12_000);
        merged.merge(&of(1, 8_000..20_000));
        let whole = of(1, 0..20_000);
        let differ = merged.ranks().zip(whole.ranks());
        claims.push(Claim::exact(
            "registers of a merged sketch that are not those of the union, m = 1024, 20000 keys",
            "none (Flajolet et al. 2007)",
            0.0,
            differ.filter(|(merged, whole)| merged != whole).count() as f64,
        ));
        Ok(claims)
    }
}

/// Returns the multiples of the true standard deviation between which that of a sample lies, except
/// with a probability as small as that of [`SIGMAS`]: its square, times the degrees of freedom,
/// follows the chi-square law.
fn deviations(sample: u64) -> (f64, f64) {
    let freedom = sample as f64 - 1.0;
    let chance = Normal::standard().cdf(-SIGMAS);
    let law = ChiSquared::new(freedom).expect("the degrees of freedom are positive");
    let multiple = |chance| (law.inverse_cdf(chance) / freedom).sqrt();
    (multiple(chance), multiple(1.0 - chance))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_register_keeps_the_greatest_rank_of_its_keys() {
        let sketch = HyperLogLog::new(4);
        let mut expected = [0; 16];
        for (hash, index, rank) in [
            (0x3800_0000_0000_0000, 3, 1),
            (0x3200_0000_0000_0000, 3, 3),
            (0x3400_0000_0000_0000, 3, 3),
            (0xf000_0000_0000_0001, 15, 60),
            (0x0000_0000_0000_0000, 0, 61),
        ] {
            sketch.insert_hash(hash);
            expected[index] = rank;
            assert!(sketch.ranks().eq(expected.iter().copied()), "{hash:x}");
        }
    }

    /// A sketch without keys, one that is full, and the series that is summed up near that.
    #[test]
    fn estimates_reach_from_nothing_to_everything() {
        let sketch = HyperLogLog::new(4);
        assert_eq!(sketch.estimate(), 0.0);
        (0..16).for_each(|index| sketch.insert_hash(index << 60));
        assert_eq!(sketch.estimate(), f64::INFINITY);
        for x in [0.1_f64, 0.5, 0.9, 0.999] {
            let terms = (1..60).map(|k| (1.0 - x.powf(2_f64.powi(-k))).powi(2) * 2_f64.powi(-k));
            assert!((tau(x) - (1.0 - x - terms.sum::<f64>()) / 3.0).abs() < 1e-12);
        }
    }

    /// Another thread may store a greater rank between the look at a register and its raise.
    #[cfg(feature = "steps")]
    #[test]
    fn a_greater_rank_between_steps_stays() {
        let sketch = std::rc::Rc::new(HyperLogLog::new(4));
        let other = std::rc::Rc::clone(&sketch);
        let between = move |step| {
            if step == 1 {
                other.insert_hash(0x0100_0000_0000_0000);
            }
        };
        kcas::steps::with_hook(between, || sketch.insert_hash(0x0800_0000_0000_0000));
        assert_eq!(sketch.ranks().next(), Some(4));
    }
}
