//! The two kinds of rows of measurements, and their CSV files. The first column, `study`, tells them apart:
//! [`SWEEP`] for a [`Row`], and the name of a study for a [`Sample`]. Nothing is aggregated: tables and figures are
//! computed from rows, so they can always be computed again, or differently.

use std::fs::{self, File};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use csv::{ReaderBuilder, WriterBuilder};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The first column of the rows of a sweep.
pub const SWEEP: &str = "sweep";

/// One measurement of a sweep: one subject, under one workload, at one number of threads, running and frozen, in one
/// round. A column that does not apply, or is not known, is empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Always [`SWEEP`].
    pub study: String,
    /// Name of the experiment.
    pub experiment: String,
    /// Name of the structure that was measured; NAME#2 is another copy of it.
    pub subject: String,
    /// Label of the workload, for example `lookup-hit` or `mix-90-5-5`.
    pub workload: String,
    /// Threads that ran at the same time, from 1.
    pub threads: usize,
    /// Threads that were frozen in the middle of an insert or remove, if the experiment has those.
    pub frozen: Option<usize>,
    /// Rate at which operations were due, as a share of the subject's throughput in the closed loop of the same round;
    /// empty in that loop.
    pub offered: Option<f64>,
    /// Round, from 1: a process.
    pub round: usize,
    /// Whether there were more threads than cores.
    pub oversubscribed: bool,
    /// Whether every thread was pinned to its core.
    pub pinned: bool,
    /// Load factor of the workload: occupied slots over all slots.
    pub load_factor: f64,
    /// Distinct keys that fill the table to the load factor.
    pub keys: u64,
    /// Slots of the table.
    pub slots: u64,
    /// Size of the table in bytes.
    pub memory_bytes: u64,
    /// Percentage of lookups that ask for a key that is there; empty if there are no lookups.
    pub hit: Option<u8>,
    /// The subject that all others are compared with.
    pub first: String,
    /// Throughput of the first subject over that of this one: where they took turns, the median over the turns.
    pub ratio: Option<f64>,
    /// Throughput in million operations per second of all threads together: where subjects took turns, the median.
    pub mops: f64,
    /// Number of undisturbed turns, which count. 0 if other programs disturbed nearly all; such a row decides nothing.
    /// Empty where subjects did not take turns.
    pub turns: Option<usize>,
    /// Operations done in the timed part, refused inserts included.
    pub operations: u64,
    /// Timed seconds.
    pub seconds: f64,
    /// Inserts that were refused for lack of room, when the table was filled or when it was timed.
    pub refused: u64,
    /// Lookups of absent keys.
    pub absent: u64,
    /// Absent keys that were found.
    pub false_positives: u64,
    /// Time in ns until the second core has a line that the first one has written, just before the measurement; empty
    /// if it is not known.
    pub hand_over_ns: Option<f64>,
    /// Rate at which operations were due, in million per second.
    pub offered_mops: Option<f64>,
    /// Latency in ns that half of the operations stayed within, if they were timed one by one: from the moment an
    /// operation was due, or else from its start, to its end.
    pub p50_ns: Option<u64>,
    /// Latency that 99 of 100 stayed within.
    pub p99_ns: Option<u64>,
    /// Latency that 999 of 1,000 stayed within.
    pub p999_ns: Option<u64>,
    /// Longest latency.
    pub max_ns: Option<u64>,
    /// Name of the machine model by which this was predicted; empty if it was measured.
    pub simulated: Option<String>,
}

/// One number of a study. Subjects are compared within a round, where case, place and quantity are the same.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sample {
    /// Name of the study.
    pub study: String,
    /// Name of the structure that was measured; NAME#2 is another copy of it.
    pub subject: String,
    /// The conditions that compared subjects share: a panel of the figure.
    pub case: String,
    /// Place on the horizontal axis of the case.
    pub place: f64,
    /// Round, from 1.
    pub round: usize,
    /// Name of the value, with its unit.
    pub quantity: String,
    pub value: f64,
}

/// All rows of a file.
#[derive(Clone, Debug, PartialEq)]
pub enum Rows {
    Sweep(Vec<Row>),
    Study(Vec<Sample>),
}

impl Row {
    /// Below this share of the rate at which operations were due, a subject has not kept up.
    pub const KEEPS_UP: f64 = 0.95;

    /// Returns whether operations queued up for as long as the measurement lasted.
    pub fn is_overloaded(&self) -> bool {
        self.offered_mops
            .is_some_and(|due| self.mops < Self::KEEPS_UP * due)
    }
}

/// Reads all rows of a file.
pub fn read(csv: &Path) -> Result<Rows> {
    let name = csv.display();
    let text =
        fs::read_to_string(csv).with_context(|| format!("cannot read the results file {name}"))?;
    parse(&text).with_context(|| format!("in the results file {name}"))
}

fn parse(text: &str) -> Result<Rows> {
    ensure!(!text.is_empty(), "it is empty; measure again");
    ensure!(
        text.starts_with("study,"),
        "its first column is not `study`: no command writes such a file"
    );
    ensure!(
        text.ends_with('\n'),
        "its last row is cut off; remove it, and for a sweep add a round with --append 1"
    );
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    Ok(if text.starts_with("study,experiment,") {
        Rows::Sweep(reader.deserialize().collect::<Result<_, _>>()?)
    } else {
        Rows::Study(reader.deserialize().collect::<Result<_, _>>()?)
    })
}

/// Writes rows one by one, each at once into the file.
pub struct Writer(csv::Writer<File>);

impl Writer {
    /// Starts a file, in place of an earlier one.
    pub fn create(csv: &Path) -> Result<Self> {
        Self::open(csv, File::create(csv), true)
    }

    /// Adds rows to a file.
    pub fn append(csv: &Path) -> Result<Self> {
        Self::open(csv, File::options().append(true).open(csv), false)
    }

    fn open(csv: &Path, file: std::io::Result<File>, has_headers: bool) -> Result<Self> {
        let file = file.with_context(|| format!("cannot write {}", csv.display()))?;
        let mut builder = WriterBuilder::new();
        Ok(Self(builder.has_headers(has_headers).from_writer(file)))
    }

    pub fn write(&mut self, row: &impl Serialize) -> Result<()> {
        let written = self.0.serialize(row).and_then(|()| Ok(self.0.flush()?));
        written.context("cannot write a row; free space, or choose another directory with --out")
    }
}

/// Reads the rows that another process prints, without a header.
pub fn printed<R: DeserializeOwned>(
    output: impl std::io::Read,
) -> impl Iterator<Item = csv::Result<R>> {
    let csv = ReaderBuilder::new().has_headers(false).from_reader(output);
    csv.into_deserialize()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written<R: Serialize>(rows: &[R]) -> String {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut writer = Writer::create(file.path()).unwrap();
        writer.write(&rows[0]).unwrap();
        let mut writer = Writer::append(file.path()).unwrap();
        rows[1..].iter().for_each(|row| writer.write(row).unwrap());
        fs::read_to_string(file.path()).unwrap()
    }

    #[test]
    fn written_rows_are_read_back() {
        let timed = Row {
            study: SWEEP.into(),
            frozen: Some(0),
            p50_ns: Some(10),
            ratio: Some(1.5),
            ..Row::default()
        };
        let rows = vec![timed, Row::default()];
        assert_eq!(parse(&written(&rows)).unwrap(), Rows::Sweep(rows));
        let samples = vec![Sample::default(); 2];
        let text = written(&samples);
        assert_eq!(parse(&text).unwrap(), Rows::Study(samples));
        for (wrong, expected) in [
            ("", "is empty"),
            (text.trim_end(), "cut off"),
            (&text["study,".len()..], "first column is not `study`"),
            (&text.replace("0.0", "fast"), "line: 2"),
            (&text.replace("value", "values"), "`values`"),
        ] {
            let error = format!("{:#}", parse(wrong).unwrap_err());
            assert!(error.contains(expected), "{error}");
        }
    }
}
