//! The `theory` study compares formula and measurement: what the literature claims of a structure,
//! what the code computes from it, and what was measured, in one row each.
//!
//! The range that is allowed if a formula holds follows from the formula, not from the measurement:
//! where chance plays a part, it is [`SIGMAS`] standard deviations to either side. A formula that
//! holds leaves it once in two million measurements.

mod row;
mod structures;

use anyhow::{Context, Result, ensure};
use clap::{Args, value_parser};
use relatives::theory::{LEAST_KEYS, SIGMAS, Trial};
use serde::Serialize;

use crate::results::verdict::Judge;
use crate::show::findings::Story;
use crate::show::sheet::Sheet;
use crate::show::sidecar::Sidecar;
use crate::studies::study::{About, Progress, Shown, Study};
use crate::subjects::registry::Registry;
use crate::wording::{counted, unknown};
pub use row::{COLUMNS, Row};
pub use structures::{STRUCTURES, Structure};

/// Compare structures with what the literature says of them: formula, prediction, measurement.
///
/// Covers every structure with known formulas: how often it is wrong about absent keys, how full it
/// gets, what a key takes, what its parameters come to. Each row gives the range that is allowed if
/// the formula holds, which follows from statistics and not from the measurement; rows outside are
/// named, and the exit code is 1. Prints one table, and writes theory.csv and theory.machine.toml.
/// Takes less than half a minute.
#[derive(Clone, Debug, Args, Serialize)]
pub struct Theory {
    /// Structures to measure, by the names that `harness list` shows; by default all that have
    /// formulas.
    #[arg(long, value_name = "NAME,NAME,…", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Keys of each table, and absent keys to look up in it. The more keys, the narrower the
    /// allowed range.
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = value_parser!(u64).range(LEAST_KEYS..=1 << 28))]
    pub keys: u64,
    /// Seed of the keys.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

impl Theory {
    fn structures(&self) -> Result<Vec<&'static Structure>> {
        if self.only.is_empty() {
            return Ok(STRUCTURES.iter().collect());
        }
        let find = |name: &String| {
            let found = STRUCTURES.iter().find(|structure| structure.name == name);
            found.with_context(|| {
                let known: Vec<_> = STRUCTURES.iter().map(|structure| structure.name).collect();
                let unknown = unknown(name, &known);
                format!("--only: no formulas for the structure {unknown}")
            })
        };
        self.only.iter().map(find).collect()
    }
}

impl Study for Theory {
    type Row = Row;

    const NAME: &'static str = "theory";

    fn about(&self, _: &Registry) -> Result<About> {
        Ok(About {
            title: "Formulas beside measurements",
            question: "Do the structures do what the literature says of them?",
            seed: self.seed,
            pinning: "one thread, not pinned: nothing is timed".into(),
            ..About::default()
        })
    }

    fn check(&self, _: &Registry) -> Result<()> {
        self.structures().map(drop)
    }

    fn steps(&self) -> u64 {
        self.structures()
            .map_or(0, |structures| structures.len() as u64)
    }

    fn measure(&self, progress: &mut Progress, rows: &mut Vec<Row>) -> Result<()> {
        let trial = Trial::new(self.keys, self.seed);
        for structure in self.structures()? {
            if progress(structure.name).is_break() {
                break;
            }
            let claims = (structure.claims)(trial).context(structure.name)?;
            rows.extend(
                claims
                    .into_iter()
                    .map(|claim| Row::of(structure.name, claim)),
            );
        }
        Ok(())
    }

    /// Fails with the names of the rows that do not hold, if there are any.
    fn judge(rows: &[Row]) -> Result<()> {
        let broken = rows.iter().filter(|row| !row.holds);
        let broken: Vec<_> = broken
            .map(|row| {
                format!(
                    "\n  {}, {}: measured {}, allowed {} to {}",
                    row.structure, row.quantity, row.measured, row.least, row.most
                )
            })
            .collect();
        ensure!(
            broken.is_empty(),
            "of {}, {} not hold:{}",
            counted(rows.len(), "row"),
            match broken.len() {
                1 => "1 does".to_owned(),
                broken => format!("{broken} do"),
            },
            broken.concat()
        );
        Ok(())
    }
}

impl Shown for Row {
    fn sheet(rows: &[Self], _: Option<&Sidecar>, _: &Judge) -> Option<Sheet> {
        let line = |row: &Row| {
            let allowed = if row.least == row.most {
                number(row.least)
            } else {
                format!("{} to {}", number(row.least), number(row.most))
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
        Some(Sheet {
            lead: "What the formulas say, and what was measured.".into(),
            header: header.map(str::to_owned).into(),
            lines: rows.iter().map(line).collect(),
            notes: vec![format!(
                "allowed: what may be measured if the formula holds; where chance plays a part, {SIGMAS} standard deviations to \
             either side."
            )],
        })
    }

    fn story(_: &[Self], _: Option<&Sidecar>, _: &Judge) -> Story {
        Story::default()
    }
}

/// Formats a number of any size, to some four digits; a whole number in full.
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
    use std::ops::ControlFlow;

    use relatives::theory::Claim;

    use super::*;

    #[test]
    fn what_is_broken_off_ends() {
        let theory = Theory {
            only: Vec::new(),
            keys: LEAST_KEYS,
            seed: 1,
        };
        let (mut seen, mut rows) = (Vec::new(), Vec::new());
        let mut progress = |name: &str| {
            seen.push(name.to_owned());
            match name {
                "lock-free" => ControlFlow::Continue(()),
                _ => ControlFlow::Break(()),
            }
        };
        theory.measure(&mut progress, &mut rows).unwrap();
        assert!(rows.iter().all(|row| row.structure == "lock-free"));
        assert_eq!(seen, ["lock-free", "growing"]);
    }

    #[test]
    fn rows_that_do_not_hold_are_named() {
        let row = |measured| Row::of("bloom", Claim::exact("fill", "1/2", 0.5, measured));
        assert!(Theory::judge(&[row(0.5)]).is_ok());
        let error = Theory::judge(&[row(0.5), row(0.6)])
            .unwrap_err()
            .to_string();
        assert_eq!(
            error,
            "of 2 rows, 1 does not hold:\n  bloom, fill: measured 0.6, allowed 0.5 to 0.5"
        );
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
