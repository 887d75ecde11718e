//! The memory that a key costs, and the false positive rate: every subject at several load factors,
//! by what the subject declares and by what the system gave the process. Then the table is filled
//! on, up to the first key that is refused.
//!
//! Each measurement has a process of its own, so that nothing an earlier one left behind is
//! counted.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, value_parser};
use histories::Event;
use relatives::theory::Trial;
use serde::{Deserialize, Serialize};
use subject::calls::Operation;
use subject::{Operations, SLOTS_PER_BUCKET};

use crate::results::rows::{Record, bounded, columns};
use crate::results::statistics::distinct;
use crate::results::summary::Summary;
use crate::show::chart::{Axis, Line, Panel, Scale};
use crate::show::sidecar::Run;
use crate::show::units::rounded;
use crate::studies::shown::{At, Quantity, Shown, Unit, joined};
use crate::studies::study::{Progress, Study, within};
use crate::studies::subprocess::measure;
use crate::subjects::registry::Registry;
use crate::wording::{counted, grouped};

columns! {
    /// One measurement: one subject at one load factor.
    Row:
    /// Name of the structure that was measured.
    subject: String,
    /// Load factor at which all keys would be in: the table was made for keys / load factor slots.
    load_factor: f64,
    /// Keys that were inserted, all distinct.
    keys: u64,
    /// Keys among them that were refused.
    refused: u64,
    /// Threads that inserted them.
    threads: usize,
    /// What the structure says it takes, in bytes.
    declared_bytes: u64,
    /// What the process took in addition once the keys were in, in bytes of resident memory.
    resident_bytes: u64,
    /// Absent keys that were looked up.
    absent: u64,
    /// Absent keys that were found.
    wrong: u64,
    /// Load factor at which the structure first refused a key: keys that were in, over slots. Once
    /// everything else was measured, more keys were inserted until it did. Empty if it took as many
    /// keys as slots, and in older files.
    #[serde(default)]
    first_refusal: Option<f64>,
}

/// Measure the memory that a key costs, how often absent keys are found, and when keys are refused.
///
/// Measures every subject at several load factors, each in a process of its own: the memory it
/// declares, the memory the process took, the false positive rate, and the load factor at which it
/// first refuses a key. Prints one table, and writes memory.csv, memory.machine.toml and
/// memory.svg. Takes about 2 minutes on two cores.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
pub struct Memory {
    /// Subjects to measure, by the names that `harness list` shows; each must support inserts and
    /// lookups.
    #[arg(
        long,
        value_name = "NAME,NAME,…",
        value_delimiter = ',',
        default_value = "lock-free,segment-lock,global-lock,optimistic,vector-quotient,blocked-bloom,fastbloom,\
                         atomic-cuckoo-filter,cuckoofilter-mutex,exact-set"
    )]
    pub subjects: Vec<String>,
    /// Load factors, above 0 and at most 1.
    #[arg(
        long,
        value_name = "F,F,…",
        value_delimiter = ',',
        default_value = "0.3,0.5,0.7,0.9,0.95"
    )]
    pub loads: Vec<f64>,
    /// Number of keys to insert. With few keys, threads and allocator weigh more.
    #[arg(long, value_name = "N", default_value_t = 4_000_000, value_parser = value_parser!(u64).range(1_000..1 << 32))]
    pub keys: u64,
    /// Threads that insert them.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = within(1..=1_024))]
    pub threads: usize,
    /// Number of absent keys to look up.
    #[arg(long, value_name = "N", default_value_t = 4_000_000, value_parser = value_parser!(u64).range(1..1 << 40))]
    pub absent: u64,
    /// Seed of the keys.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

impl Row {
    /// Returns the bits per key that the structure declares, and those that the process took.
    fn bits_a_key(&self) -> [f64; 2] {
        let inside = (self.keys - self.refused).max(1) as f64;
        [self.declared_bytes, self.resident_bytes].map(|bytes| 8.0 * bytes as f64 / inside)
    }

    fn rate(&self) -> f64 {
        self.wrong as f64 / self.absent.max(1) as f64
    }
}

impl Memory {
    /// Measures the first subject at the first load in this process, which should do nothing else.
    pub(crate) fn measure_here(&self, registry: &Registry) -> Result<Row> {
        let (keys, absent, load) = (self.keys, self.absent, self.loads[0]);
        // The system keeps stacks for later threads, which are not part of the structure: start
        // threads once before measuring.
        self.count(keys, |_| false);
        let before = resident()?;
        let buckets = (keys as f64 / load / SLOTS_PER_BUCKET as f64).ceil() as usize;
        let subject = registry.get(&self.subjects[0])?.build(buckets)?;
        let trial = Trial::new(absent, self.seed);
        let (inside, full) = (AtomicU64::new(0), AtomicU64::new(u64::MAX));
        let is_refused = |index| {
            let answer = subject.call(Operation::Insert, trial.key(index));
            let refused = answer != Event::Insert(Ok(()));
            if refused {
                full.fetch_min(inside.load(Relaxed), Relaxed);
            } else {
                inside.fetch_add(1, Relaxed);
            }
            refused
        };
        let found = |index| {
            let answer = subject.call(Operation::Contains, trial.key(index));
            answer == Event::Contains(true)
        };
        let refused = self.count(keys, is_refused);
        let resident_bytes = resident()?.saturating_sub(before);
        if refused == 0 {
            let lost = self.count(keys, |index| !found(index));
            ensure!(lost == 0, "{lost} of {keys} keys are missing");
        }
        let wrong = self.count(absent, |index| found(keys + index));
        let declared_bytes = subject.memory_bytes() as u64;
        let has_refused = || full.load(Relaxed) != u64::MAX;
        let slots = subject.slots() as u64;
        self.count(slots.saturating_sub(keys), |index| {
            !has_refused() && is_refused(keys + index)
        });
        Ok(Row {
            subject: self.subjects[0].clone(),
            load_factor: load,
            keys,
            refused,
            threads: self.threads,
            declared_bytes,
            resident_bytes,
            absent,
            wrong,
            first_refusal: has_refused().then(|| full.load(Relaxed) as f64 / slots as f64),
        })
    }

    /// Counts the numbers below `end` for which `counted` is true, on all threads.
    fn count(&self, end: u64, counted: impl Fn(u64) -> bool + Sync) -> u64 {
        let counted = &counted;
        thread::scope(|scope| {
            let parts: Vec<_> = (0..self.threads as u64)
                .map(|part| {
                    let numbers = (part..end).step_by(self.threads);
                    scope.spawn(move || numbers.filter(|&number| counted(number)).count() as u64)
                })
                .collect();
            let count = |part: thread::ScopedJoinHandle<u64>| part.join().unwrap_or(end);
            parts.into_iter().map(count).sum()
        })
    }
}

fn resident() -> Result<u64> {
    let memory = memory_stats::memory_stats();
    let memory = memory.context("the system does not report on this process")?;
    Ok(memory.physical_mem as u64)
}

impl Study for Memory {
    type Row = Row;

    const NAME: &'static str = "memory";

    fn about(&self, registry: &Registry) -> Result<(Run, Vec<(String, String)>)> {
        let described =
            |name: &String| Ok((name.clone(), registry.get(name)?.description.to_owned()));
        let run = Run::begin(
            "Memory of a key, and how often absent keys are found for it".into(),
            "What does a key cost in memory, and how wrong is a structure for that?".into(),
            self.seed,
            format!("generated from seed {}", self.seed),
            "not pinned: nothing is timed".into(),
        );
        let subjects = self.subjects.iter().map(described);
        Ok((run, subjects.collect::<Result<_>>()?))
    }

    fn check(&self, registry: &Registry) -> Result<bool> {
        for subject in &self.subjects {
            let entry = registry.get(subject).context("--subjects")?;
            ensure!(entry.holds_keys, "--subjects: {subject} holds no keys");
            if let Some(missing) = entry.operations.missing(Operations::INSERT) {
                bail!("--subjects: {subject} cannot {missing}");
            }
        }
        for load in &self.loads {
            ensure!(
                *load > 0.0 && *load <= 1.0,
                "--loads: {load} is not above 0 and at most 1"
            );
        }
        Ok(true)
    }

    fn steps(&self) -> u64 {
        (self.subjects.len() * self.loads.len()) as u64
    }

    fn measure(&self, progress: &mut Progress, rows: &mut Vec<Row>) -> Result<()> {
        for subject in &self.subjects {
            for load in &self.loads {
                if progress(subject).is_break() {
                    return Ok(());
                }
                let one = Self {
                    subjects: vec![subject.clone()],
                    loads: vec![*load],
                    ..self.clone()
                };
                let row = measure(Memory::NAME, &one);
                rows.push(row.with_context(|| format!("{subject} at load factor {load}"))?);
            }
        }
        Ok(())
    }
}

impl Record for Row {
    fn check(&self) -> Result<()> {
        bounded("load_factor", self.load_factor, 1e-9..=1.0)?;
        ensure!(
            self.refused <= self.keys && self.wrong <= self.absent,
            "more keys were refused or found than there are"
        );
        bounded(
            "first_refusal",
            self.first_refusal.unwrap_or_default(),
            0.0..=1.0,
        )
    }
}

type Of = Quantity<Row>;

impl Shown for Row {
    const QUANTITIES: &'static [Of] = &[
        Of::new("bits a key, declared", Unit::BitsAKey, |row| {
            Some(row.bits_a_key()[0])
        }),
        Of::new("bits a key, resident", Unit::BitsAKey, |row| {
            Some(row.bits_a_key()[1])
        })
        .drawn(),
        Of::new("false positive rate", Unit::Rate, |row| Some(row.rate())),
        Of::new("refused", Unit::Number, |row| Some(row.refused as f64)),
        Of::new("first refusal", Unit::Number, |row| row.first_refusal),
    ];

    fn at(&self) -> At<'_> {
        At {
            subject: &self.subject,
            round: 1,
            case: "".into(),
            place: self.load_factor,
            pinned: true,
        }
    }

    fn axis(_: &str) -> Axis {
        Axis::measured("load factor", Scale::Linear, rounded)
    }

    fn placed(_: &str, places: &[f64]) -> String {
        joined(places, |load| load.to_string())
    }

    fn how(rows: &[Self]) -> String {
        let first = &rows[0];
        format!(
            "{} keys, inserted by {}. Declared: what a structure says it takes; resident: what the process took in addition, of a table made for keys / load factor \
             slots; a structure that grows by itself (exact-set) takes what it takes. Rates: of {} absent keys each; in the figure, where all keys \
             are in; a point is a load factor, the leftmost one the highest. A structure that is never wrong has no point there. Dashed: bits a key that are \
             needed for a rate of ε. First refusal: load factor at which a key was first refused, as keys came on; a dash where none was up \
             to load factor 1.",
            grouped(first.keys),
            counted(first.threads, "thread"),
            grouped(first.absent),
        )
    }

    fn complete(rows: &[Self], panels: &mut Vec<Panel>) {
        let line = |subject: &str| {
            let of = |row: &&Row| row.subject == subject && row.wrong > 0 && row.refused == 0;
            let points = rows.iter().filter(of);
            let points = points
                .filter_map(|row| Some((row.bits_a_key()[1], Summary::of(vec![row.rate()])?)));
            Line::new(subject, points.collect())
        };
        let subjects = distinct(rows.iter().map(|row| &*row.subject));
        let lines = subjects.into_iter().map(line).collect();
        panels.push(super::rates("false-positives", "False positives", lines));
    }

    /// Says what each structure takes, and how wrong it is, at the highest load that it holds.
    fn sentences(rows: &[Self]) -> Vec<String> {
        let of_subjects = rows.chunk_by(|a, b| a.subject == b.subject);
        let fullest = of_subjects.filter_map(|rows| {
            let whole = rows.iter().filter(|row| row.refused == 0);
            whole.max_by(|a, b| a.load_factor.total_cmp(&b.load_factor))
        });
        let sentence = |row: &Row| {
            let [declared, resident] = row.bits_a_key();
            format!(
                "{}: {resident:.1} bits a key at load factor {} ({declared:.1} by its own account), and {:.2e} of absent keys found{}.",
                row.subject,
                row.load_factor,
                row.rate(),
                row.first_refusal.map_or_else(String::new, |load| format!(
                    "; it first refused a key at load factor {load:.3}"
                )),
            )
        };
        fullest.map(sentence).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(subject: &str, load: f64) -> Row {
        let memory = Memory {
            subjects: vec![subject.into()],
            loads: vec![load],
            keys: 100_000,
            threads: 3,
            absent: 100_000,
            seed: 1,
        };
        memory.measure_here(&Registry::standard()).unwrap()
    }

    #[test]
    fn the_filter_takes_what_theory_says() {
        let row = measured("lock-free", 0.9);
        assert_eq!((row.keys, row.refused, row.threads), (100_000, 0, 3));
        // 64 bits for four slots, 0.9 of them occupied.
        let [bits, _] = row.bits_a_key();
        assert!((17.7..18.5).contains(&bits), "{row:?}");
        // 2 buckets of 4 slots, 0.9 occupied, 12 bits.
        let theory = 8.0 * 0.9 / 4096.0;
        assert!((0.7..1.3).contains(&(row.rate() / theory)), "{row:?}");
    }

    /// Whether among the keys that were to be in or after them.
    #[test]
    fn the_first_refusal_is_found_at_any_load() {
        for (subject, load, expected) in [
            ("lock-free", 0.5, true),
            ("segment-lock", 1.0, true),
            ("blocked-bloom", 0.5, false),
        ] {
            let row = measured(subject, load);
            assert_eq!(row.refused > 0, load == 1.0, "{row:?}");
            assert_eq!(row.first_refusal.is_some(), expected, "{row:?}");
            // Buckets of four slots get 98 % full in the limit.
            let range = 0.9..0.99;
            assert!(
                row.first_refusal.is_none_or(|load| range.contains(&load)),
                "{row:?}"
            );
        }
    }
}
