//! The claims about the [`CountingBloom`] filter: its false positive rate is that of a Bloom
//! filter, hardly any counter saturates at the size it is made for, and with more keys as many
//! saturate as predicted.

use anyhow::{Result, ensure};
use statrs::distribution::{DiscreteCDF, Poisson};
use subject::Subject;
use subject::layout::FALSE_POSITIVE_RATE;

use crate::CountingBloom;
use crate::bloom::theory as bloom;
use crate::theory::{Claim, Trial, exactly};
use crate::theory::{Keys, of_share};

/// The formula for the share of saturated counters, those that stay at 15.
const SATURATED: &str = "Σ_{j ≥ 15} e^(−kn/m) (kn/m)^j / j!, Fan et al. 2000";

/// With this many times the keys that the filter is sized for, a good many counters saturate.
const TOO_MANY: u64 = 8;

/// Measures the claims.
pub fn theory(trial: Trial) -> Result<Vec<Claim>> {
    let keys = Keys::of(trial);
    let n = trial.keys;
    let filter = CountingBloom::new(n as usize, FALSE_POSITIVE_RATE)?;
    let bits = 4.0 * filter.shape().cells() as f64 / n as f64;
    let name = format!("{bits:.1} bits a key");
    keys.insert(&filter, 0..n)?;
    let expected = bloom::rate(filter.shape(), n as f64);
    let mut rows = vec![keys.false_positive_rate(&filter, n, name.clone(), bloom::RATE, expected)];
    rows.push(saturated(&filter, &name, n));
    for index in 0..n {
        ensure!(filter.remove(&keys.key(index)), "does not remove {index}");
    }
    let left = (0..n).filter(|&index| filter.contains(&keys.key(index)));
    rows.push(exactly::<CountingBloom>(
        format!("keys found when all are out, {name}"),
        "none, unless counters saturated",
        0.0,
        left.count() as f64,
    ));

    let small = CountingBloom::new((n / TOO_MANY) as usize, FALSE_POSITIVE_RATE)?;
    keys.insert(&small, 0..n)?;
    let name = format!("{name}, {TOO_MANY} times as many keys");
    rows.push(saturated(&small, &name, n));
    Ok(rows)
}

/// Measures the share of counters that are saturated with n keys.
fn saturated(filter: &CountingBloom, name: &str, n: u64) -> Claim {
    let (cells, uses) = (
        filter.shape().cells() as f64,
        filter.shape().uses_a_cell(n as f64),
    );
    let law = Poisson::new(uses).map_or(f64::NAN, |law| law.sf(14));
    let share = filter.saturated() as f64 / cells;
    let name = format!("share of saturated counters, {name}");
    exactly::<CountingBloom>(name, SATURATED, law, share).by_chance(of_share(law, cells))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_wrong_and_saturated_as_often_as_published() {
        crate::theory::all_hold(100_000, theory);
    }
}
