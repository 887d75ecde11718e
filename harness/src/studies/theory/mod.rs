//! Formula beside measurement: what the literature says of a structure, what the code computes from it, and what
//! came out, in one row each.
//!
//! What may be measured if a formula holds follows from the formula, not from what came out: where chance
//! plays a part, [`SIGMAS`](relatives::theory::SIGMAS) standard deviations to either side, which a formula that holds leaves once in two million
//! measurements.

mod cuckoo;
mod fastbloom;
mod growing;
pub mod row;

use std::ops::ControlFlow;

use crate::show::sheet::Sheet;
use crate::subjects::{
    BlockedBloom, Bloom, CountMinSet, CountingBloom, Fastbloom, GlobalLock, Growing,
    HyperLogLogCounter, LockFree, ScalableBloom, SmartCuckooMutex,
};
use crate::wording::unknown;
use anyhow::{Context, Result};
use relatives::sketches::theory as sketches;
use relatives::smart_cuckoo::theory as cuckoo_graph;
use relatives::theory::{Comparison, Effort, SIGMAS};
use relatives::{blocked_bloom, bloom, counting_bloom, scalable_bloom};
use subject::Subject;

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
    claims::<Bloom>(bloom::theory::theory),
    claims::<CountingBloom>(counting_bloom::theory::theory),
    claims::<ScalableBloom>(scalable_bloom::theory::theory),
    claims::<BlockedBloom>(blocked_bloom::theory::theory),
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

/// Formulas beside what was measured.
pub fn sheet(rows: &[row::Row]) -> Sheet {
    let line = |row: &row::Row| {
        let allowed = match row.least == row.most {
            true => number(row.least),
            false => format!("{} to {}", number(row.least), number(row.most)),
        };
        let holds = if row.holds { "yes" } else { "NO" };
        vec![
            row.structure.clone(),
            row.quantity.clone(),
            row.formula.clone(),
            number(row.predicted),
            number(row.measured),
            allowed,
            holds.to_owned(),
        ]
    };
    let header = [
        "structure",
        "quantity",
        "formula",
        "predicted",
        "measured",
        "allowed",
        "holds",
    ];
    Sheet {
        lead: "What the formulas say, and what was measured.".into(),
        header: header.map(str::to_owned).into(),
        lines: rows.iter().map(line).collect(),
        notes: vec![format!(
            "allowed: what may be measured if the formula holds; where chance plays a part, {SIGMAS} standard deviations to \
             either side."
        )],
    }
}

/// A number of any size, to some four digits; a whole one as it is.
fn number(value: f64) -> String {
    match value.abs() {
        whole if whole.fract() == 0.0 && whole < 1e15 => value.to_string(),
        ..0.01 => format!("{value:.3e}"),
        ..1.0 => format!("{value:.4}"),
        ..1_000.0 => format!("{value:.2}"),
        _ => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subjects::registry::Registry;

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
            keys: relatives::theory::LEAST_KEYS,
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

    #[test]
    fn numbers_of_any_size_have_four_digits() {
        let shown = [0.0, 10.0, 1.637e-15, 0.0019531, 0.96654, 16.5571, 665_833.4].map(number);
        let expected = [
            "0",
            "10",
            "1.637e-15",
            "1.953e-3",
            "0.9665",
            "16.56",
            "665833",
        ];
        assert_eq!(shown, expected);
    }
}
