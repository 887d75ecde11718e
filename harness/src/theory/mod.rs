//! Formula beside measurement: what the literature says of a structure, what the code computes from it, and what
//! came out, in one row each.
//!
//! What may be measured if a formula holds follows from the formula, not from what came out: where chance
//! plays a part, [`SIGMAS`] standard deviations to either side, which a formula that holds leaves once in two million
//! measurements.

mod blocked_bloom;
mod bloom;
mod counting_bloom;
mod cuckoo;
mod cuckoo_graph;
mod fastbloom;
mod growing;
mod measure;
pub mod row;
mod scalable_bloom;
mod sketches;

use std::ops::ControlFlow;

use anyhow::{Context, Result};
use serde::Serialize;

use crate::subject::Subject;
use crate::subjects::{
    BlockedBloom, Bloom, CountMinSet, CountingBloom, Fastbloom, GlobalLock, Growing,
    HyperLogLogCounter, LockFree, ScalableBloom, SmartCuckooMutex,
};
use crate::wording::unknown;

/// One claim about a structure, and whether it held.
#[derive(Debug, Clone, Serialize)]
pub struct Comparison {
    /// The structure, by the name that `harness list` shows.
    pub structure: &'static str,
    /// What is told of it, with the parameters: `false positive rate, 10 bits a key`.
    pub quantity: String,
    /// The formula, as it would be written in a paper, and where it is from.
    pub formula: &'static str,
    /// What the formula gives.
    pub predicted: f64,
    /// What was measured.
    pub measured: f64,
    /// The least that may be measured if the formula holds.
    pub least: f64,
    /// The most that may be measured if the formula holds.
    pub most: f64,
}

/// How many standard deviations a measurement may be off.
pub const SIGMAS: f64 = 5.0;

impl Comparison {
    /// Whether what was measured is within what the formula allows.
    pub fn holds(&self) -> bool {
        (self.least..=self.most).contains(&self.measured)
    }

    /// The same, when what is measured, which is never negative, may be off by chance: it has this standard deviation.
    pub(crate) fn by_chance(self, deviation: f64) -> Self {
        let row = self.within(SIGMAS * deviation);
        let least = row.least.max(0.0);
        Self { least, ..row }
    }

    /// The same, when what is measured may be off by so much.
    pub(crate) fn within(self, off: f64) -> Self {
        Self {
            least: self.predicted - off,
            most: self.predicted + off,
            ..self
        }
    }

    /// The same, when what is measured may be anything from `least` to `most`.
    pub(crate) fn between(self, least: f64, most: f64) -> Self {
        Self {
            least,
            most,
            ..self
        }
    }
}

/// A claim about a subject that holds only if what is measured is what is predicted.
pub(crate) fn exactly<S: Subject>(
    quantity: impl Into<String>,
    formula: &'static str,
    predicted: f64,
    measured: f64,
) -> Comparison {
    Comparison {
        structure: S::NAME,
        quantity: quantity.into(),
        formula,
        predicted,
        measured,
        least: predicted,
        most: predicted,
    }
}

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Keys that are inserted into each table, or nearly, and absent keys that are looked up in it. At least
    /// [`LEAST_KEYS`].
    pub keys: u64,
    /// Keys follow from it.
    pub seed: u64,
}

/// With fewer keys than that, the deviations of a formula are no longer those of large numbers.
pub const LEAST_KEYS: u64 = 10_000;

/// What is claimed of one structure.
#[derive(Clone, Copy, Debug)]
pub struct Claims {
    /// The structure, by the name that `harness list` shows.
    pub structure: &'static str,
    /// Measures it.
    compare: fn(Effort) -> Result<Vec<Comparison>>,
}

/// All structures of which something is claimed, in the order in which they are shown.
pub const STRUCTURES: &[Claims] = &[
    claims::<LockFree>(cuckoo::lock_free),
    claims::<Growing>(growing::theory),
    claims::<GlobalLock>(cuckoo::global_lock),
    claims::<Bloom>(bloom::theory),
    claims::<CountingBloom>(counting_bloom::theory),
    claims::<ScalableBloom>(scalable_bloom::theory),
    claims::<BlockedBloom>(blocked_bloom::theory),
    claims::<Fastbloom>(fastbloom::theory),
    claims::<SmartCuckooMutex>(|effort| cuckoo_graph::theory(effort.seed)),
    claims::<CountMinSet>(|_| sketches::count_min()),
    claims::<HyperLogLogCounter>(|_| sketches::hyper_log_log()),
];

const fn claims<S: Subject>(compare: fn(Effort) -> Result<Vec<Comparison>>) -> Claims {
    Claims {
        structure: S::NAME,
        compare,
    }
}

impl Claims {
    /// What is claimed of the structure of this name.
    ///
    /// # Errors
    ///
    /// A name of which nothing is claimed; the message lists the others.
    pub fn of(structure: &str) -> Result<&'static Self> {
        let mut all = STRUCTURES.iter();
        let found = all.find(|claims| claims.structure == structure);
        found.with_context(|| {
            let known: Vec<_> = STRUCTURES.iter().map(|claims| claims.structure).collect();
            format!(
                "no formulas for the structure {}",
                unknown(structure, &known)
            )
        })
    }
}

/// Measures structures, with a step of progress before each; `progress` may break it off, and what is done so far is
/// returned.
///
/// # Errors
///
/// A structure that cannot be made so large, or loses a key.
pub fn measure(
    structures: &[&Claims],
    effort: Effort,
    mut progress: impl FnMut(&str) -> ControlFlow<()>,
) -> Result<Vec<Comparison>> {
    let mut rows = Vec::new();
    for claims in structures {
        if progress(claims.structure).is_break() {
            break;
        }
        rows.extend((claims.compare)(effort).context(claims.structure)?);
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Registry;

    #[test]
    fn what_is_measured_is_allowed_up_to_the_ends() {
        let row = |measured| exactly::<Bloom>("a", "b", 2.0, measured);
        assert!(row(2.0).holds() && !row(2.1).holds() && !row(f64::NAN).holds());
        assert!(row(3.0).by_chance(0.2).holds() && row(1.0).by_chance(0.2).holds());
        assert!(!row(3.01).by_chance(0.2).holds() && !row(0.99).by_chance(0.2).holds());
        assert_eq!(row(2.0).by_chance(1.0).least, 0.0);
        assert!(row(5.0).between(4.0, 5.0).holds() && !row(2.0).between(4.0, 5.0).holds());
    }

    #[test]
    fn structures_are_subjects_and_others_are_refused() {
        let registry = Registry::standard();
        for claims in STRUCTURES {
            assert!(registry.get(claims.structure).is_ok());
            assert_eq!(
                Claims::of(claims.structure).unwrap().structure,
                claims.structure
            );
        }
        let error = Claims::of("roofline").unwrap_err().to_string();
        assert!(
            error.contains("\"roofline\"; known are lock-free, "),
            "{error}"
        );
    }

    #[test]
    fn what_is_broken_off_ends() {
        let effort = Effort {
            keys: LEAST_KEYS,
            seed: 1,
        };
        let all: Vec<_> = STRUCTURES.iter().collect();
        let mut seen = Vec::new();
        let rows = measure(&all, effort, |name| {
            seen.push(name.to_owned());
            match name {
                "lock-free" => ControlFlow::Continue(()),
                _ => ControlFlow::Break(()),
            }
        });
        assert!(rows.unwrap().iter().all(|row| row.structure == "lock-free"));
        assert_eq!(seen, ["lock-free", "growing"]);
    }
}
