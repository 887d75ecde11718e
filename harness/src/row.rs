//! The two kinds of rows of measurements, and their CSV files. The first column, `study`, tells them apart:
//! [`SWEEP`] for a [`Row`], and the name of a study for a [`Sample`]. Nothing is aggregated: tables and figures are
//! computed from rows, so they can always be computed again, or differently.

use std::collections::HashSet;
use std::fs::{self, File};
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use csv::{ReaderBuilder, StringRecord, WriterBuilder};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::latency::percent;

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
    /// Exponent of the Zipf law by which keys are chosen; 0 if each is as likely as any other.
    pub skew: f64,
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
    /// Time in ns until one core has a line that another one has written, between the first two cores: mean of before
    /// and after; empty if it is not known, or the cores were moved meanwhile.
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

/// The columns that hold text.
const TEXT: [&str; 8] = [
    "study",
    "experiment",
    "subject",
    "workload",
    "first",
    "simulated",
    "case",
    "quantity",
];

/// No number of a row is above this.
const MAX_VALUE: f64 = 1e15;

impl Row {
    /// Below this share of the rate at which operations were due, a subject has not kept up.
    pub const KEEPS_UP: f64 = 0.95;

    /// Returns whether operations queued up for as long as the measurement lasted.
    pub fn is_overloaded(&self) -> bool {
        self.offered_mops
            .is_some_and(|due| self.mops < Self::KEEPS_UP * due)
    }

    /// Returns whether no operation was done, though no thread was frozen: such a row is no measure of speed.
    pub fn stood_still(&self) -> bool {
        self.mops == 0.0 && self.frozen.is_none()
    }

    pub(crate) fn check(&self) -> Result<()> {
        ensure!(self.threads > 0, "column `threads` is 0");
        ensure!(self.round > 0, "column `round` is 0");
        let is_load = self.load_factor > 0.0 && self.load_factor <= 1.0;
        ensure!(is_load, "column `load_factor` is not above 0 and at most 1");
        ensure!(self.seconds > 0.0, "column `seconds` is 0");
        ensure!(
            self.hit.is_none_or(|hit| hit <= 100),
            "column `hit` is above 100"
        );
        ensure!(
            self.mops > 0.0 || self.operations == 0,
            "column `mops` is 0, but `operations` is not"
        );
        ensure!(
            self.false_positives <= self.absent,
            "column `false_positives` is above `absent`"
        );
        let all = [self.p50_ns, self.p99_ns, self.p999_ns, self.max_ns];
        ensure!(all.is_sorted(), "latencies do not ascend");
        Ok(())
    }

    fn identity(&self) -> String {
        format!(
            "round {} of {} under {} on {} threads ({:?} frozen, {} keys, load factor {}, {:?} % hits, skew {}, {} % due{})",
            self.round,
            self.subject,
            self.workload,
            self.threads,
            self.frozen,
            self.keys,
            self.load_factor,
            self.hit,
            self.skew,
            percent(self.offered.unwrap_or_default()),
            match &self.simulated {
                Some(machine) => format!(", simulated on {machine}"),
                None => String::new(),
            }
        )
    }
}

impl Sample {
    fn check(&self) -> Result<()> {
        ensure!(self.round > 0, "column `round` is 0");
        Ok(())
    }

    fn identity(&self) -> String {
        format!(
            "{} of {}, {} {}, in round {}",
            self.quantity, self.subject, self.case, self.place, self.round
        )
    }
}

/// Reads and checks all rows of a file. An error names the line and the column.
pub fn read(csv: &Path) -> Result<Rows> {
    let name = csv.display();
    let text =
        fs::read_to_string(csv).with_context(|| format!("cannot read the results file {name}"))?;
    parse(&text).with_context(|| format!("in the results file {name}"))
}

pub fn parse(text: &str) -> Result<Rows> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let header = reader.headers()?.clone();
    ensure!(
        header.get(0) == Some("study"),
        "its first column is not `study`: no command writes such a file"
    );
    ensure!(
        text.ends_with('\n'),
        "its last row is cut off; remove it, and add a round with --append 1"
    );
    let records: Vec<StringRecord> = reader.records().collect::<Result<_, _>>()?;
    let kinds: HashSet<_> = records.iter().map(|record| &record[0]).collect();
    ensure!(
        kinds.len() <= 1,
        "its rows are of several studies; keep each in a file of its own"
    );
    let is_sweep = match kinds.into_iter().next() {
        Some(kind) => kind == SWEEP,
        None => header.iter().any(|name| name == "experiment"),
    };
    Ok(if is_sweep {
        let rows = rows(&header, &records, Row::check, Row::identity)?;
        let same =
            |column: fn(&Row) -> &String| rows.iter().all(|row| column(row) == column(&rows[0]));
        ensure!(
            same(|row| &row.experiment) && same(|row| &row.first),
            "columns `experiment` and `first` are not the same in all rows"
        );
        Rows::Sweep(rows)
    } else {
        Rows::Study(rows(&header, &records, Sample::check, Sample::identity)?)
    })
}

fn rows<R: DeserializeOwned>(
    header: &StringRecord,
    records: &[StringRecord],
    check: fn(&R) -> Result<()>,
    identity: fn(&R) -> String,
) -> Result<Vec<R>> {
    let (mut rows, mut known) = (Vec::new(), HashSet::new());
    for record in records {
        let line = record.position().map_or(0, csv::Position::line);
        let mut add = || {
            check_numbers(header, record)?;
            let row = record.deserialize(Some(header))?;
            check(&row)?;
            let identity = identity(&row);
            ensure!(
                known.insert(identity.clone()),
                "{identity} is there already"
            );
            rows.push(row);
            Ok(())
        };
        add().with_context(|| format!("line {line}"))?;
    }
    Ok(rows)
}

/// Checks that each number is finite, not below 0, and not absurd.
fn check_numbers(header: &StringRecord, record: &StringRecord) -> Result<()> {
    for (column, cell) in header.iter().zip(record) {
        match cell.parse::<f64>() {
            Ok(value) if TEXT.contains(&column) || (0.0..=MAX_VALUE).contains(&value) => {}
            Err(_) if column == "study" && cell.is_empty() => bail!("column `study` is empty"),
            Err(_) => {}
            Ok(_) => bail!("column `{column}` is {cell}, but must be from 0 to {MAX_VALUE:e}"),
        }
    }
    Ok(())
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
        self.0.serialize(row)?;
        Ok(self.0.flush()?)
    }
}

/// Reads the rows that another process prints, without a header.
pub fn printed<R: DeserializeOwned>(
    output: impl std::io::Read,
) -> impl Iterator<Item = csv::Result<R>> {
    let csv = ReaderBuilder::new().has_headers(false).from_reader(output);
    csv.into_deserialize()
}

/// Returns a made-up row, for tests of code that reads rows.
#[cfg(test)]
pub(crate) fn sample_row(
    subject: &str,
    workload: &str,
    threads: usize,
    round: usize,
    mops: f64,
) -> Row {
    Row {
        study: SWEEP.into(),
        experiment: "test".into(),
        subject: subject.into(),
        workload: workload.into(),
        threads,
        round,
        oversubscribed: threads > 2,
        pinned: true,
        load_factor: 0.92,
        keys: 60_000,
        slots: 65_220,
        memory_bytes: 130_440,
        operations: 1_000,
        seconds: 0.1,
        first: "lock-free".into(),
        mops,
        ..Row::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written<R: Serialize>(rows: &[R]) -> String {
        let file = tempfile::NamedTempFile::new().unwrap();
        let (first, rest) = rows.split_at(1);
        Writer::create(file.path())
            .unwrap()
            .write(&first[0])
            .unwrap();
        let mut writer = Writer::append(file.path()).unwrap();
        rest.iter().for_each(|row| writer.write(row).unwrap());
        fs::read_to_string(file.path()).unwrap()
    }

    fn sample() -> Sample {
        Sample {
            study: "window".into(),
            subject: "expiring".into(),
            case: "inserts".into(),
            place: 2.0,
            round: 1,
            quantity: "million/s".into(),
            value: 17.25,
        }
    }

    #[test]
    fn written_rows_are_read_back() {
        let timed = Row {
            frozen: Some(0),
            p50_ns: Some(10),
            p99_ns: Some(10),
            p999_ns: Some(12),
            max_ns: Some(20),
            hit: Some(0),
            ratio: Some(1.0),
            ..sample_row("a", "lookup", 1, 1, 5.0)
        };
        let rows = vec![timed, sample_row("b", "lookup", 1, 1, 2.5)];
        assert_eq!(parse(&written(&rows)).unwrap(), Rows::Sweep(rows));
        let second = Sample {
            round: 2,
            ..sample()
        };
        let samples = vec![sample(), second];
        assert_eq!(parse(&written(&samples)).unwrap(), Rows::Study(samples));
    }

    #[test]
    fn wrong_row_is_refused_with_its_line() {
        let good = written(&[sample()]);
        let row = "window,expiring,inserts,2.0,1,million/s,17.25\n";
        assert!(good.ends_with(row), "{good}");
        for (from, to, expected) in [
            ("17.25", "NaN", "line 2: column `value` is NaN"),
            ("17.25", "inf", "column `value` is inf"),
            ("17.25", "-1", "column `value` is -1"),
            ("17.25", "1e16", "column `value` is 1e16"),
            ("17.25", "fast", "line 2"),
            ("2.0,1,", "2.0,0,", "column `round` is 0"),
            ("17.25\n", "17.25", "cut off"),
            ("study,", "what,", "first column is not `study`"),
            ("value\n", "values\n", "line 2"),
            (row, &format!("{row}{row}"), "line 3: million/s of expiring"),
            (
                row,
                &format!("{row}growth{}", &row[6..]),
                "of several studies",
            ),
        ] {
            let error = format!("{:#}", parse(&good.replace(from, to)).unwrap_err());
            assert!(error.contains(expected), "{from} {to}: {error}");
        }
    }

    #[test]
    fn impossible_sweep_row_is_refused() {
        let good = sample_row("a", "lookup", 1, 1, 5.0);
        type Change = fn(&mut Row);
        let wrong: [(Change, &str); 7] = [
            (|row| row.threads = 0, "`threads`"),
            (|row| row.load_factor = 1.5, "`load_factor`"),
            (|row| row.hit = Some(101), "`hit`"),
            (|row| row.mops = 0.0, "`mops`"),
            (|row| row.false_positives = 1, "`false_positives`"),
            (|row| row.ratio = Some(-1.0), "`ratio`"),
            (
                |row| (row.p50_ns, row.p99_ns) = (Some(2), Some(1)),
                "ascend",
            ),
        ];
        for (change, expected) in wrong {
            let mut row = good.clone();
            change(&mut row);
            let error = format!("{:#}", parse(&written(&[row])).unwrap_err());
            assert!(error.contains(expected), "{error}");
        }
    }

    /// A figure would draw both as one.
    #[test]
    fn rows_of_two_experiments_are_refused() {
        let mut other = sample_row("b", "lookup", 1, 1, 5.0);
        other.experiment = "other".into();
        let text = written(&[sample_row("a", "lookup", 1, 1, 5.0), other]);
        let error = parse(&text).unwrap_err().to_string();
        assert!(error.contains("`experiment`"), "{error}");
    }
}
