//! The claims about the [`ScalableBloom`] filter: when it adds stages, and that it stays below its
//! compound false positive rate however many there are.

use anyhow::{Context, Result, ensure};
use subject::Subject;
use subject::layout::FALSE_POSITIVE_RATE;

use crate::ScalableBloom;
use crate::bloom::theory as bloom;
use crate::theory::Keys;
use crate::theory::{Claim, Trial, exactly};

/// Growth, tightening, and the number of stages filled, the last of them half.
const CASES: [(usize, f64, u32); 4] = [
    (ScalableBloom::GROWTH, ScalableBloom::TIGHTENING, 10),
    (2, 0.5, 10),
    (2, 0.9, 10),
    (4, 0.85, 6),
];

/// Measures the claims.
pub fn theory(trial: Trial) -> Result<Vec<Claim>> {
    let cases = CASES.into_iter();
    let rows = cases
        .map(|case| of_case(trial, case))
        .collect::<Result<Vec<_>>>()?;
    Ok(rows.into_iter().flatten().collect())
}

/// A filter with all its stages, the last of them half full.
struct Filled {
    filter: ScalableBloom,
    /// Growth and tightening, as claims name them.
    name: String,
    keys: Keys,
    inserted: u64,
    /// Number of keys for which there is room without the last stage.
    before_last: usize,
    /// The number of keys at which each stage was added.
    added_at: Vec<usize>,
}

fn of_case(trial: Trial, case: (usize, f64, u32)) -> Result<[Claim; 4]> {
    let filled = Filled::of(trial, case)?;
    let (_, _, stages) = case;
    let [there, addition] = filled.stages(stages);
    let [compound, bound] = filled.false_positives()?;
    Ok([there, addition, compound, bound])
}

impl Filled {
    /// Fills a filter with keys, all of which it must find.
    fn of(trial: Trial, (growth, tightening, stages): (usize, f64, u32)) -> Result<Self> {
        // Makes all stages but the last, and half of the last, hold all keys.
        let before = (growth.pow(stages - 1) - 1) / (growth - 1);
        let last = growth.pow(stages - 1);
        let first = (trial.keys as usize / (before + last / 2)).max(1);
        let filter = ScalableBloom::new(first, FALSE_POSITIVE_RATE, growth, tightening)?;
        let keys = Keys::of(trial);
        let inserted = (first * (before + last / 2)) as u64;
        let mut added_at = vec![0];
        for index in 0..inserted {
            ensure!(
                filter.insert(&keys.key(index)),
                "refused the key with index {index}"
            );
            if filter.stages() > added_at.len() {
                added_at.push(filter.keys() - 1);
            }
        }
        let denied = (0..inserted).find(|&index| !filter.contains(&keys.key(index)));
        ensure!(denied.is_none(), "denies the key with index {denied:?}");
        Ok(Self {
            filter,
            name: format!("growth {growth}, tightening {tightening}"),
            keys,
            inserted,
            before_last: first * before,
            added_at,
        })
    }

    /// Claims when stages are added.
    fn stages(&self, stages: u32) -> [Claim; 2] {
        let Self { filter, name, .. } = self;
        let there = exactly::<ScalableBloom>(
            format!("stages, {name}"),
            "the least i with n0 (s^i − 1) / (s − 1) ≥ n, Almeida et al. 2007",
            stages.into(),
            filter.stages() as f64,
        );
        let last_added = self.added_at.last().copied().unwrap_or_default() as f64;
        let full_at = self.before_last as f64;
        let addition = exactly::<ScalableBloom>(
            format!("keys when the last stage is added, {name}"),
            "n0 (s^i − 1) / (s − 1), Almeida et al. 2007",
            full_at,
            last_added,
        );
        // From there on, each insert checks with a probability of one in `looks_every`. That none
        // of this many does is as unlikely as a deviation of five standard deviations.
        let addition = addition.between(
            full_at,
            full_at + 15.0 * filter.looks_every(stages as usize - 2) as f64,
        );
        [there, addition]
    }

    /// Claims how often absent keys are found: as stages of these sizes let expect, and within the
    /// bound for any number of stages.
    fn false_positives(&self) -> Result<[Claim; 2]> {
        let Self { filter, name, .. } = self;
        let (mut not_found, mut variance) = (1.0, 0.0);
        let ends = [&self.added_at[..], &[filter.keys()]].concat();
        for (index, ends) in ends.windows(2).enumerate() {
            let shape = filter.shape(index).context("lacks a stage")?;
            let (rate, deviation) = bloom::rate(shape, (ends[1] - ends[0]) as f64);
            not_found *= 1.0 - rate;
            variance += deviation * deviation;
        }
        let compound = self.keys.false_positive_rate(
            filter,
            self.inserted,
            name.clone(),
            "1 − Π (1 − p_i), p_i = (1 − e^(−kn/m))^k of stage i",
            (1.0 - not_found, variance.sqrt()),
        );
        // The bound is on the expectation, and the measurement may exceed that by chance.
        let by_chance = compound.most - compound.predicted;
        let bound = exactly::<ScalableBloom>(
            format!("compound false positive rate, at most, {name}"),
            "ε0 / (1 − r), Almeida et al. 2007",
            FALSE_POSITIVE_RATE,
            compound.measured,
        );
        let bound = bound.between(0.0, FALSE_POSITIVE_RATE + by_chance);
        Ok([compound, bound])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_and_is_wrong_as_published() {
        crate::theory::all_hold(70_000, theory);
    }
}
