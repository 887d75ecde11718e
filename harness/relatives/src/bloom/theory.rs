//! The claims about the [`Bloom`] filter: its size, its fill and its false positive rate.

use std::f64::consts::LN_2;

use anyhow::Result;

use crate::Bloom;
use crate::double_hashing::DoubleHashing;
use crate::theory::Keys;
use crate::theory::{Claim, Trial, exactly};

/// The false positive rate of a Bloom filter.
pub const RATE: &str = "(1 − e^(−kn/m))^k, Bloom 1970";

/// Bits per key, m/n.
const BITS: [f64; 5] = [6.0, 8.0, 10.0, 13.0, 16.0];

/// Keys inserted, as a multiple of the number that a filter of ten bits per key is sized for.
const LOADS: [f64; 2] = [0.5, 2.0];

/// Measures the claims.
pub fn theory(trial: Trial) -> Result<Vec<Claim>> {
    let mut rows = Vec::new();
    for bits in BITS {
        let bloom = sized(trial, bits)?;
        rows.extend(sizes(&bloom, trial, bits));
        rows.extend(wrong(&bloom, trial, bits, 1.0)?);
    }
    for load in LOADS {
        rows.extend(wrong(&sized(trial, 10.0)?, trial, 10.0, load)?);
    }
    Ok(rows)
}

/// Builds a filter with this many bits per key, for all keys.
fn sized(trial: Trial, bits: f64) -> Result<Bloom> {
    Bloom::new(trial.keys as usize, (-bits * LN_2).exp2())
}

fn sizes(bloom: &Bloom, trial: Trial, bits: f64) -> [Claim; 2] {
    let shape = bloom.shape();
    let [cells, hashes] = [shape.cells(), shape.hashes()].map(|number| number as f64);
    let name = |what| format!("{what}, {bits} bits a key");
    let size = "n log2(1/ε) / ln 2, rounded up";
    // In exact arithmetic it would be `bits` × n; the tolerance is for rounding errors.
    let m = exactly::<Bloom>(name("m"), size, bits * trial.keys as f64, cells).within(1.0);
    let optimum = "ln 2 · m/n, rounded";
    let k = exactly::<Bloom>(name("k"), optimum, LN_2 * bits, hashes).within(0.5);
    [m, k]
}

/// Measures fill and false positive rate with `load` times the keys that the filter is sized for.
fn wrong(bloom: &Bloom, trial: Trial, bits: f64, load: f64) -> Result<[Claim; 2]> {
    let (keys, shape) = (Keys::of(trial), bloom.shape());
    let inserted = (load * trial.keys as f64) as u64;
    keys.insert(bloom, 0..inserted)?;
    let n = inserted as f64;
    let name = match load {
        1.0 => format!("{bits} bits a key"),
        _ => format!("{bits} bits a key, {load} times as many keys"),
    };
    let fill = bloom.bits_set() as f64 / shape.cells() as f64;
    let fill = exactly::<Bloom>(
        format!("fill, {name}"),
        "1 − e^(−kn/m), Bloom 1970",
        shape.fill(n),
        fill,
    );
    let rate = keys.false_positive_rate(bloom, inserted, name, RATE, rate(shape, n));
    Ok([fill.by_chance(deviation_of_fill(shape, n)), rate])
}

/// Returns the false positive rate of a filter with n keys, and its standard deviation from one
/// filter to another, which comes from that of the fill.
pub fn rate(shape: &DoubleHashing, n: f64) -> (f64, f64) {
    let rate = shape.false_positive_rate(n);
    let steepness = shape.hashes() as f64 * rate / shape.fill(n);
    (rate, steepness * deviation_of_fill(shape, n))
}

/// Returns the standard deviation of the fill: that of the share of m bins that are not empty after
/// kn balls.
fn deviation_of_fill(shape: &DoubleHashing, n: f64) -> f64 {
    let balls = shape.uses_a_cell(n);
    let empty = (-balls).exp();
    (empty * (1.0 - (1.0 + balls) * empty) / shape.cells() as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_filled_and_wrong_as_often_as_published() {
        crate::theory::all_hold(20_000, theory);
    }
}
