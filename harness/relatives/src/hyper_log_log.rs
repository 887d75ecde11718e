//! How many different keys occurred: the HyperLogLog of Flajolet, Fusy, Gandouet and Meunier
//! (2007), with 64-bit hashes as in Heule, Nunkesser and Hall (2013): the published crate
//! `hyperloglockless` 0.5, which threads share.
//!
//! A few bits of a key's hash choose one of m registers, which keeps the greatest *rank* of its keys:
//! the position of the first one among the other bits. The number of keys is estimated from all
//! registers, with a standard error of 1.04 / √m relative to that number; with few keys it is smaller
//! still. As a subject it only takes keys: it shows what counting distinct keys costs threads, beside
//! the cost of storing them.

use std::hash::Hash;

use anyhow::{Context, Result};
use filter::{FixedState, mix};
use hyperloglockless::AtomicHyperLogLog;
use statrs::distribution::{ChiSquared, ContinuousCDF, Normal};
use statrs::statistics::Statistics;
use subject::layout::geometry;
use subject::{Operations, Subject};

use crate::theory::{Claim, SIGMAS, Trial};

/// The subject has a standard error of 0.81 % in 16 KiB, however many keys there are.
const PRECISION: u8 = 14;

#[derive(Debug)]
pub struct HyperLogLog(AtomicHyperLogLog<FixedState>);

impl Subject for HyperLogLog {
    const NAME: &'static str = "hyperloglog";
    const DESCRIPTION: &'static str = "the published crate hyperloglockless 0.5, a HyperLogLog sketch of 16 KiB, which tells how many different keys were inserted, and no more";
    const GUARANTEES: &'static str =
        "lock-free; estimates are those of all inserts that have returned";
    const OPERATIONS: Operations = Operations::INSERT_ONLY;

    fn with_buckets(buckets: usize) -> Result<Self> {
        geometry(buckets)?;
        Ok(Self(AtomicHyperLogLog::with_hasher(PRECISION, FixedState)))
    }

    #[inline]
    fn insert<K: Hash + ?Sized>(&self, key: &K) -> bool {
        self.0.insert(key);
        true
    }

    fn memory_bytes(&self) -> usize {
        self.0.len() + size_of::<Self>()
    }
}

/// Claims that estimates are unbiased and as precise as published, also those of merged sketches.
pub fn claims(_: Trial) -> Result<Vec<Claim>> {
    const SKETCHES: u64 = 250;
    let of = |seed, keys: std::ops::Range<u64>| {
        let sketch = AtomicHyperLogLog::with_hasher(10, FixedState);
        let start = mix(seed);
        keys.for_each(|key| sketch.insert_hash(mix(start.wrapping_add(key))));
        sketch
    };
    let deviation = 1.04 / 1024_f64.sqrt();
    let (least, most) = deviations(SKETCHES);
    let mut claims = Vec::new();
    for (keys, least) in [(100, 0.0), (1_000, 0.0), (3_000, 0.0), (10_000, least)] {
        let about = |what| format!("{what}, m = 1024, {keys} keys");
        let ratio = |seed| of(seed, 0..keys).raw_count() / keys as f64;
        let ratios: Vec<_> = (0..SKETCHES).map(ratio).collect();
        let (what, found) = (about("mean of estimate over count"), (&ratios).mean());
        let formula = "1 (Flajolet et al. 2007: nearly unbiased)";
        let mean = Claim::exact(what, formula, 1.0, found);
        claims.push(mean.within(SIGMAS * deviation / (SKETCHES as f64).sqrt()));
        let what = about("standard deviation of the relative error");
        let formula = "1.04/√m (Flajolet et al. 2007) of many keys; of few, less";
        let spread = Claim::exact(what, formula, deviation, (&ratios).std_dev());
        claims.push(spread.allowing(least * deviation..=most * deviation));
    }
    let merged = of(1, 0..12_000);
    let other = of(1, 8_000..20_000);
    (merged.union(&other).ok()).context("both have one precision")?;
    let whole = of(1, 0..20_000);
    let differ = merged.iter().zip(whole.iter());
    claims.push(Claim::exact(
        "registers of a merged sketch that are not those of the union, m = 1024, 20000 keys",
        "none (Flajolet et al. 2007)",
        0.0,
        differ.filter(|(merged, whole)| merged != whole).count() as f64,
    ));
    Ok(claims)
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
