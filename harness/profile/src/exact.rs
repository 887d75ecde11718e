//! Exact counts of all keys, to compare the estimates with: they take memory for every distinct
//! key.

use std::collections::HashMap;
use std::hash::BuildHasher;

use filter::FixedState;
use relatives::sketches::CountMin;
use relatives::theory::Claim;

use super::{Description, Key, Settings, Sketches};

/// How often each key occurred, as seen by one thread or by all together.
#[derive(Default)]
pub(super) struct Counts(HashMap<Key, u64, FixedState>);

impl Counts {
    /// Counts an occurrence.
    pub(super) fn add(&mut self, key: &[u8]) {
        match self.0.get_mut(key) {
            Some(count) => *count += 1,
            None => _ = self.0.insert(key.into(), 1),
        }
    }

    /// Adds what another thread counted.
    pub(super) fn merge(&mut self, other: Self) {
        for (key, count) in other.0 {
            *self.0.entry(key).or_default() += count;
        }
    }
}

/// The truth beside the estimates.
#[derive(Debug, Clone)]
pub struct Exact {
    /// Number of distinct keys.
    pub distinct: u64,
    /// How often each of the heaviest keys occurred, in their order.
    pub counts: Vec<u64>,
    /// The largest overestimate of any key's count.
    pub worst: u64,
    /// What the sketches promise, and whether it held.
    pub bounds: Vec<Claim>,
}

impl Exact {
    /// Compares the estimates with the counts.
    pub(super) fn compare(
        counts: &Counts,
        sketches: &Sketches,
        description: &Description,
        settings: &Settings,
    ) -> Self {
        let counts = &counts.0;
        let heaviest = description.heaviest.iter();
        let distinct = counts.len() as u64;
        let errors = Errors::of(counts, &sketches.counts, description.count_error);
        let bounds = vec![
            Claim {
                structure: "hyperloglog",
                quantity: "distinct keys".into(),
                formula: "3 standard errors of 1.04/√m each (Flajolet et al. 2007)",
                predicted: distinct as f64,
                measured: description.distinct,
                least: distinct as f64 * (1.0 - 3.0 * description.standard_error),
                most: distinct as f64 * (1.0 + 3.0 * description.standard_error),
            },
            Claim {
                structure: "count-min",
                quantity: "keys whose estimate is below the count".into(),
                formula: "none (Cormode and Muthukrishnan 2005)",
                predicted: 0.0,
                measured: errors.too_low as f64,
                least: 0.0,
                most: 0.0,
            },
            Claim {
                structure: "count-min",
                quantity: "share of keys whose estimate is too high by more than ε N".into(),
                formula: "δ at most (Cormode and Muthukrishnan 2005)",
                predicted: sketches.counts.failure(),
                measured: errors.too_high as f64 / distinct as f64,
                least: 0.0,
                most: sketches.counts.failure(),
            },
            Claim {
                structure: "top-k",
                quantity: "keys left out that must be among the heaviest".into(),
                formula: "none above the (k + 1)-th count + ε N + T − 1, where no estimate is too high by more than ε N",
                predicted: 0.0,
                measured: missed(counts, description, settings) as f64,
                least: 0.0,
                most: 0.0,
            },
        ];
        Self {
            distinct,
            counts: heaviest.map(|heavy| counts[&heavy.label]).collect(),
            worst: errors.worst,
            bounds,
        }
    }
}

/// How the estimates of all keys relate to their counts.
#[derive(Default)]
struct Errors {
    too_low: u64,
    too_high: u64,
    worst: u64,
}

impl Errors {
    fn of(counts: &HashMap<Key, u64, FixedState>, sketch: &CountMin, bearable: f64) -> Self {
        let mut errors = Self::default();
        for (key, &count) in counts {
            let estimate = sketch.estimate(FixedState.hash_one(&**key));
            let error = estimate.saturating_sub(count);
            errors.too_low += u64::from(estimate < count);
            errors.too_high += u64::from(error as f64 > bearable);
            errors.worst = errors.worst.max(error);
        }
        errors
    }
}

/// Returns how many keys are missing among the heaviest that [`TopK`](relatives::sketches::TopK)
/// promises.
fn missed(
    counts: &HashMap<Key, u64, FixedState>,
    description: &Description,
    settings: &Settings,
) -> usize {
    let mut all: Vec<_> = counts.values().copied().collect();
    if all.len() <= settings.top {
        return all.len() - description.heaviest.len();
    }
    let (_, next, _) = all.select_nth_unstable_by(settings.top, |one, other| other.cmp(one));
    let in_progress = settings.threads.saturating_sub(1) as f64;
    let promised = *next as f64 + description.count_error + in_progress;
    let heavier = counts.values().filter(|&&count| count as f64 > promised);
    let shown = description.heaviest.iter();
    let shown = shown.filter(|heavy| counts[&heavy.label] as f64 > promised);
    heavier.count() - shown.count()
}
