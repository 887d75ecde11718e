//! The `memory` study: the memory that a key costs, and the false positive rate. It measures every
//! subject at several load factors, by what the subject declares and by what the system gave the
//! process. Then it fills the table on, up to the first key that is refused.
//!
//! Each measurement has a process of its own, so that nothing an earlier one left behind is
//! counted.

pub mod figure;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, value_parser};
use histories::Event;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};
use subject::Operations;
use subject::SLOTS_PER_BUCKET;
use subject::calls::Operation;
use sysinfo::{ProcessRefreshKind, ProcessesToUpdate, System};

use crate::results::rows::{Record, columns};
use crate::results::verdict::Judge;
use crate::show::chart::Figure;
use crate::show::findings::Story;
use crate::show::sheet::Sheet;
use crate::show::sidecar::Sidecar;
use crate::studies::apart;
use crate::studies::study::{About, Progress, Shown, Study, within};
use crate::subjects::registry::Registry;
use crate::subjects::registry::SubjectInfo;

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
#[derive(Clone, Debug, Args, Serialize)]
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
    /// What is done with each.
    #[command(flatten)]
    #[serde(flatten)]
    pub settings: MemorySettings,
}

// What is done with a subject at a load factor. Not a doc comment: that would replace the help of
// the commands.
#[derive(Clone, Copy, Debug, Args, Serialize)]
pub struct MemorySettings {
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

/// One measurement, made in a process of its own for another process.
#[derive(Clone, Debug, Args)]
pub struct One {
    /// The subject.
    pub subject: String,
    /// Load factor that the keys make.
    pub load: f64,
    /// What is done with it.
    #[command(flatten)]
    pub settings: MemorySettings,
}

/// Name of the command that makes [`One`] measurement.
pub const ONE: &str = "memory-of-one";

impl Row {
    /// Returns the bits per key that the structure declares.
    pub fn bits_a_key(&self) -> f64 {
        8.0 * self.declared_bytes as f64 / (self.keys - self.refused).max(1) as f64
    }

    /// Returns the bits per key that the process took.
    pub fn resident_bits_a_key(&self) -> f64 {
        8.0 * self.resident_bytes as f64 / (self.keys - self.refused).max(1) as f64
    }

    /// Returns the false positive rate.
    pub fn rate(&self) -> f64 {
        self.wrong as f64 / self.absent.max(1) as f64
    }
}

/// Measures a subject in this process, which should do nothing else.
///
/// # Errors
///
/// Fails if the subject cannot be built that large, or loses a key, or if the system does not
/// report its memory use.
pub fn measure_here(entry: &SubjectInfo, load: f64, settings: MemorySettings) -> Result<Row> {
    let MemorySettings {
        keys,
        threads,
        absent,
        seed,
    } = settings;
    // The system keeps stacks for later threads, which are not part of the structure: start threads
    // once before measuring.
    in_parts(threads, keys, |_| false);
    let before = resident()?;
    let buckets = (keys as f64 / load / SLOTS_PER_BUCKET as f64).ceil() as usize;
    let subject = entry.build(buckets)?;
    let first: u64 = SmallRng::seed_from_u64(seed).random();
    let key = |index: u64| first.wrapping_add(index);
    let (inside, full) = (AtomicU64::new(0), AtomicU64::new(u64::MAX));
    let is_refused = |index| {
        let refused = subject.call(Operation::Insert, key(index)) != Event::Insert(Ok(()));
        if refused {
            full.fetch_min(inside.load(Relaxed), Relaxed);
        } else {
            inside.fetch_add(1, Relaxed);
        }
        refused
    };
    let found = |index| subject.call(Operation::Contains, key(index)) == Event::Contains(true);
    let refused = in_parts(threads, keys, is_refused);
    let resident_bytes = resident()?.saturating_sub(before);
    if refused == 0 {
        let lost = in_parts(threads, keys, |index| !found(index));
        ensure!(lost == 0, "{lost} of {keys} keys are missing");
    }
    let wrong = in_parts(threads, absent, |index| found(keys + index));
    let declared_bytes = subject.memory_bytes() as u64;
    let has_refused = || full.load(Relaxed) != u64::MAX;
    let slots = subject.slots() as u64;
    in_parts(threads, slots.saturating_sub(keys), |index| {
        !has_refused() && is_refused(keys + index)
    });
    Ok(Row {
        subject: entry.name.into(),
        load_factor: load,
        keys,
        refused,
        threads,
        declared_bytes,
        resident_bytes,
        absent,
        wrong,
        first_refusal: has_refused().then(|| full.load(Relaxed) as f64 / slots as f64),
    })
}

/// Counts the numbers below `end` for which `counted` returns true; each thread takes a part of
/// them.
fn in_parts(threads: usize, end: u64, counted: impl Fn(u64) -> bool + Sync) -> u64 {
    let counted = &counted;
    thread::scope(|scope| {
        let parts: Vec<_> = (0..threads as u64)
            .map(|part| {
                let numbers = (part..end).step_by(threads);
                scope.spawn(move || numbers.filter(|&number| counted(number)).count() as u64)
            })
            .collect();
        let count = |part: thread::ScopedJoinHandle<u64>| part.join().unwrap_or(end);
        parts.into_iter().map(count).sum()
    })
}

/// Returns the resident memory of this process, in bytes.
fn resident() -> Result<u64> {
    let own = sysinfo::get_current_pid()
        .map_err(anyhow::Error::msg)
        .context("cannot ask the system for this process")?;
    let mut system = System::new().context("cannot ask the system about this process")?;
    let memory = ProcessRefreshKind::nothing().with_memory();
    system.refresh_processes_specifics(ProcessesToUpdate::Some(&[own]), false, memory);
    let process = system.process(own);
    Ok(process
        .context("the system does not report on this process")?
        .memory())
}

impl One {
    /// Measures in a new process, which runs this program.
    ///
    /// # Errors
    ///
    /// Fails with the message of the process if that fails.
    fn measure_apart(&self) -> Result<Row> {
        let Self {
            subject,
            load,
            settings,
        } = self;
        let arguments = [
            ONE.into(),
            subject.clone(),
            load.to_string(),
            format!("--keys={}", settings.keys),
            format!("--threads={}", settings.threads),
            format!("--absent={}", settings.absent),
            format!("--seed={}", settings.seed),
        ];
        apart::measure(&arguments).with_context(|| format!("{subject} at load factor {load}"))
    }

    /// Measures in this process, and prints the row.
    ///
    /// # Errors
    ///
    /// Fails like [`measure_here`].
    pub fn run(&self, registry: &Registry) -> Result<()> {
        let subject = registry.get(&self.subject)?;
        apart::print(&[measure_here(subject, self.load, self.settings)?])
    }
}

impl Study for Memory {
    type Row = Row;

    const NAME: &'static str = "memory";

    fn about(&self, registry: &Registry) -> Result<About> {
        let described =
            |name: &String| Ok((name.clone(), registry.get(name)?.description.to_owned()));
        Ok(About {
            title: "Memory of a key, and how often absent keys are found for it",
            question: "What does a key cost in memory, and how wrong is a structure for that?",
            seed: self.settings.seed,
            pinning: "not pinned: nothing is timed".into(),
            subjects: self.subjects.iter().map(described).collect::<Result<_>>()?,
            ..About::default()
        })
    }

    fn check(&self, registry: &Registry) -> Result<()> {
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
        Ok(())
    }

    fn steps(&self) -> u64 {
        (self.subjects.len() * self.loads.len()) as u64
    }

    fn measure(&self, progress: &mut Progress, rows: &mut Vec<Row>) -> Result<()> {
        for subject in &self.subjects {
            for &load in &self.loads {
                if progress(subject).is_break() {
                    return Ok(());
                }
                let one = One {
                    subject: subject.clone(),
                    load,
                    settings: self.settings,
                };
                rows.push(one.measure_apart()?);
            }
        }
        Ok(())
    }
}

impl Record for Row {
    const COLUMNS: &'static [(&'static str, &'static str)] = COLUMNS;

    fn validate(&self) -> Result<()> {
        ensure!(
            self.load_factor > 0.0 && self.load_factor <= 1.0,
            "column `load_factor`: {} is not above 0 and at most 1",
            self.load_factor
        );
        ensure!(
            self.refused <= self.keys && self.wrong <= self.absent,
            "more keys were refused or found than there are"
        );
        if let Some(load) = self.first_refusal {
            ensure!(
                (0.0..=1.0).contains(&load),
                "column `first_refusal`: {load} is not between 0 and 1"
            );
        }
        Ok(())
    }
}

impl Shown for Row {
    fn sheet(rows: &[Self], _: Option<&Sidecar>, _: &Judge) -> Option<Sheet> {
        let line = |row: &Row| {
            vec![
                row.subject.clone(),
                row.load_factor.to_string(),
                format!("{:.1}", row.bits_a_key()),
                format!("{:.1}", row.resident_bits_a_key()),
                format!("{:.2e}", row.rate()),
                row.refused.to_string(),
                row.first_refusal
                    .map_or("–".into(), |load| format!("{load:.4}")),
            ]
        };
        let header = [
            "subject",
            "load",
            "bits a key, declared",
            "resident",
            "false positive rate",
            "refused",
            "first refusal",
        ];
        Some(Sheet {
        lead: "Memory for each key that is in.".into(),
        header: header.map(str::to_owned).into(),
        lines: rows.iter().map(line).collect(),
        notes: vec![
            "declared: what the structure says it takes; resident: what the process took in addition.".into(),
            "first refusal: load factor at which a key was first refused, as keys came on; a dash where none was up to load factor 1.".into(),
        ],
    })
    }

    fn figure(rows: &[Self], sidecar: Option<&Sidecar>) -> Result<Option<Figure>> {
        figure::of(rows, sidecar).map(Some)
    }

    /// Says what each structure takes and how often it is wrong at the highest load factor at which
    /// it holds all keys.
    fn story(rows: &[Self], _: Option<&Sidecar>, _: &Judge) -> Story {
        let mut sentences = Vec::new();
        for of_subject in rows.chunk_by(|a, b| a.subject == b.subject) {
            let whole = of_subject.iter().filter(|row| row.refused == 0);
            let fullest = whole.max_by(|a, b| a.load_factor.total_cmp(&b.load_factor));
            sentences.extend(fullest.map(|row| {
            format!(
                "{}: {:.1} bits a key at load factor {} ({:.1} by its own account), and {:.2e} of absent keys found{}.",
                row.subject,
                row.resident_bits_a_key(),
                row.load_factor,
                row.bits_a_key(),
                row.rate(),
                row.first_refusal.map_or_else(String::new, |load| format!("; it first refused a key at load factor {load:.3}")),
            )
        }));
        }
        Story {
            sentences,
            ..Story::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: MemorySettings = MemorySettings {
        keys: 100_000,
        threads: 3,
        absent: 100_000,
        seed: 1,
    };

    #[test]
    fn the_filter_takes_what_theory_says() {
        let registry = Registry::standard();
        let row = measure_here(registry.get("lock-free").unwrap(), 0.9, SETTINGS).unwrap();
        assert_eq!((row.keys, row.refused, row.threads), (100_000, 0, 3));
        // 64 bits for four slots, 0.9 of them occupied.
        assert!((17.7..18.5).contains(&row.bits_a_key()), "{row:?}");
        // 2 buckets of 4 slots, 0.9 occupied, 12 bits.
        let theory = 8.0 * 0.9 / 4096.0;
        assert!((0.7..1.3).contains(&(row.rate() / theory)), "{row:?}");
    }

    /// Whether among the keys that were to be in or after them.
    #[test]
    fn the_first_refusal_is_found_at_any_load() {
        let registry = Registry::standard();
        for (subject, load, expected) in [
            ("lock-free", 0.5, true),
            ("lock-free", 1.0, true),
            ("blocked-bloom", 0.5, false),
        ] {
            let row = measure_here(registry.get(subject).unwrap(), load, SETTINGS).unwrap();
            assert_eq!(row.refused > 0, load == 1.0, "{row:?}");
            assert_eq!(row.first_refusal.is_some(), expected, "{row:?}");
            // Buckets of four slots get 98 % full in the limit.
            let range = 0.95..0.99;
            assert!(
                row.first_refusal.is_none_or(|load| range.contains(&load)),
                "{row:?}"
            );
        }
    }

    #[test]
    fn every_number_has_one_thread() {
        for threads in [1, 3, 8] {
            assert_eq!(in_parts(threads, 1_000, |number| number % 10 == 0), 100);
        }
    }

    #[test]
    fn too_many_keys_are_refused_not_lost() {
        let registry = Registry::standard();
        let tight = 1.0;
        let row = measure_here(registry.get("segment-lock").unwrap(), tight, SETTINGS).unwrap();
        assert!(row.refused > 0 && row.refused < row.keys / 10, "{row:?}");
    }
}
