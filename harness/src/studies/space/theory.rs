//! Formula and measurement: what the literature claims of a structure, what the code computes from
//! it, and what was measured, in one row each.

use anyhow::{Context, Result, ensure};
use clap::{Args, value_parser};
use relatives::theory::{Claim, Claims, LEAST_KEYS, SIGMAS, Trial};
use serde::Serialize;

use super::structures::STRUCTURES;
use crate::machine;
use crate::results::{Judge, Record, columns};
use crate::show::{Column, Run, Sheet, Sidecar};
use crate::studies::{Presented, Progress, Study, seeds};
use crate::subjects::Registry;
use crate::wording::{counted, unknown};

columns! {
    /// One claim about a structure, and whether it held.
    Row:
    /// Name of the structure.
    structure: String,
    /// The quantity that the claim is about, with its parameters.
    quantity: String,
    /// The formula, and where it is from.
    formula: String,
    /// What the formula gives.
    predicted: f64,
    /// What was measured.
    measured: f64,
    /// The least that may be measured if the formula holds.
    least: f64,
    /// The most that may be measured if the formula holds.
    most: f64,
    /// Whether it is within these.
    holds: bool,
}

impl Row {
    fn of(structure: &str, claim: Claim) -> Self {
        Self {
            structure: structure.into(),
            holds: claim.holds(),
            quantity: claim.quantity,
            formula: claim.formula.into(),
            predicted: claim.predicted,
            measured: claim.measured,
            least: *claim.allowed.start(),
            most: *claim.allowed.end(),
        }
    }
}

impl Record for Row {
    /// Unlike other numbers, the limits may be below 0.
    fn validate(&self) -> Result<()> {
        ensure!(
            self.holds == (self.least..=self.most).contains(&self.measured),
            "column `holds` is {}, but {} was measured where {} to {} is allowed",
            self.holds,
            self.measured,
            self.least,
            self.most
        );
        Ok(())
    }
}

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
    pub subjects: Vec<String>,
    /// Keys of each table, and absent keys to look up in it. The more keys, the narrower the
    /// allowed range.
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = value_parser!(u64).range(LEAST_KEYS..=1 << 28))]
    pub keys: u64,
    /// Seed of the keys.
    #[arg(long, default_value_t = 1, value_parser = seeds())]
    pub seed: u64,
}

impl Theory {
    fn structures(&self) -> Result<Vec<(&'static str, Claims)>> {
        if self.subjects.is_empty() {
            return Ok(STRUCTURES.to_vec());
        }
        let find = |name: &String| {
            let found = STRUCTURES.iter().find(|(of, _)| of == name);
            found.copied().with_context(|| {
                let known: Vec<_> = STRUCTURES.iter().map(|(name, _)| *name).collect();
                let unknown = unknown(name, &known);
                format!("--subjects: no formulas for the structure {unknown}")
            })
        };
        self.subjects.iter().map(find).collect()
    }
}

impl Study for Theory {
    type Row = Row;

    const NAME: &'static str = "theory";

    fn about(&self, _: &Registry) -> Result<(Run, Vec<(String, String)>)> {
        let about = [
            "Formulas beside measurements",
            "Do the structures do what the literature says of them?",
        ];
        let pinning = "one thread, not pinned: nothing is timed";
        Ok((Run::seeded(about, self.seed, pinning), Vec::new()))
    }

    fn check(&self, _: &Registry) -> Result<bool> {
        // The largest structure, and the keys.
        machine::check_memory("--keys", self.keys as f64 * 40.0)?;
        Ok(!self.structures()?.is_empty())
    }

    fn steps(&self) -> u64 {
        self.structures().map_or(0, |all| all.len() as u64)
    }

    fn measure(&self, progress: &mut Progress, rows: &mut Vec<Row>) -> Result<()> {
        let trial = Trial::new(self.keys, self.seed);
        for (name, claims) in self.structures()? {
            progress(name)?;
            let claims = claims(trial).context(name)?;
            let row = |claim| Row::of(name, claim);
            rows.extend(claims.into_iter().map(row));
        }
        Ok(())
    }

    /// Fails with the names of the rows that do not hold, if there are any.
    fn judge(rows: &[Row]) -> Result<()> {
        let named = |row: &Row| {
            format!(
                "\n  {}, {}: measured {}, allowed {} to {}",
                row.structure, row.quantity, row.measured, row.least, row.most
            )
        };
        let broken: Vec<_> = rows.iter().filter(|row| !row.holds).map(named).collect();
        let (all, number, broken) = (counted(rows.len(), "row"), broken.len(), broken.concat());
        let does = if number == 1 { "does" } else { "do" };
        ensure!(number == 0, "of {all}, {number} {does} not hold:{broken}");
        Ok(())
    }
}

impl Presented for Vec<Row> {
    fn sheet(&self, _: Option<&Sidecar>, _: &Judge) -> Option<Sheet> {
        let columns: [Column<Row>; 7] = [
            ("structure", |row| row.structure.clone()),
            ("quantity", |row| row.quantity.clone()),
            ("formula", |row| row.formula.clone()),
            ("predicted", |row| number(row.predicted)),
            ("measured", |row| number(row.measured)),
            ("allowed", |row| match [row.least, row.most].map(number) {
                [least, _] if row.least == row.most => least,
                [least, most] => format!("{least} to {most}"),
            }),
            ("holds", |row| if row.holds { "yes" } else { "NO" }.into()),
        ];
        let allowed = format!(
            "allowed: what may be measured if the formula holds; where chance plays a part, {SIGMAS} standard deviations to \
             either side."
        );
        let lead = "What the formulas say, and what was measured.";
        Some(Sheet::of(lead, self, &columns, vec![allowed]))
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
    use super::*;
    use crate::studies::study::testing::measure;

    #[test]
    fn an_interrupted_measurement_keeps_whole_structures() {
        let theory = Theory {
            subjects: vec!["lock-free".into(), "growing".into()],
            keys: LEAST_KEYS,
            seed: 1,
        };
        let (rows, _) = measure(&theory, Some(1));
        assert!(rows.len() == 3 && rows.iter().all(|row| row.structure == "lock-free"));
    }

    #[test]
    fn rows_that_do_not_hold_are_named() {
        let row = |measured| Row::of("bloom", Claim::exact("fill", "1/2", 0.5, measured));
        assert!(Theory::judge(&[row(0.5)]).is_ok());
        let error = Theory::judge(&[row(0.5), row(0.6)]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "of 2 rows, 1 does not hold:\n  bloom, fill: measured 0.6, allowed 0.5 to 0.5"
        );
    }
}
