//! What is claimed of the [`CountingBloom`] filter: it is wrong as often as a Bloom filter, hardly any counter saturates
//! at the size it is made for, and as many as expected with more keys.

use anyhow::{Result, ensure};
use statrs::distribution::{DiscreteCDF, Poisson};
use subject::Subject;
use subject::layout::FALSE_POSITIVE_RATE;

use crate::CountingBloom;
use crate::bloom::theory as bloom;
use crate::theory::{Claim, Effort, exactly};
use crate::theory::{Keys, of_share};

/// The formula for counters that stay at 15.
const SATURATED: &str = "Σ_{j ≥ 15} e^(−kn/m) (kn/m)^j / j!, Fan et al. 2000";

/// So many times the keys that it is sized for saturate a good many counters.
const TOO_MANY: u64 = 8;

/// Measures what is claimed.
pub fn theory(effort: Effort) -> Result<Vec<Claim>> {
    let keys = Keys::of(effort);
    let n = effort.keys;
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

/// The share of counters that are saturated with n keys in.
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
