//! What a key costs in memory, and how often absent keys are found for it: every subject at several load factors,
//! by what it says of itself and by what the system gave the process.
//!
//! Each measurement has a process of its own, so that nothing an earlier one left behind is counted.

pub mod figure;

use std::env;
use std::path::Path;
use std::process::Command;
use std::thread;

use anyhow::{Context, Result, ensure};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};
use sysinfo::{ProcessRefreshKind, ProcessesToUpdate, System};

use filter::specification::Event;

use crate::results::rows::{self, columns};
use crate::show::sheet::Sheet;
use crate::subject::SLOTS_PER_BUCKET;
use crate::subjects::registry::Entry;
use subject::calls::Operation;

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
}

/// One measurement to make.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Keys to insert.
    pub keys: u64,
    /// Load factor that they make.
    pub load: f64,
    /// Threads that insert them.
    pub threads: usize,
    /// Absent keys to look up.
    pub absent: u64,
    /// Keys follow from it.
    pub seed: u64,
}

impl Row {
    /// Bits a key by what the structure says.
    pub fn bits_a_key(&self) -> f64 {
        8.0 * self.declared_bytes as f64 / (self.keys - self.refused).max(1) as f64
    }

    /// Bits a key by what the process took.
    pub fn resident_bits_a_key(&self) -> f64 {
        8.0 * self.resident_bytes as f64 / (self.keys - self.refused).max(1) as f64
    }

    /// False positive rate.
    pub fn rate(&self) -> f64 {
        self.wrong as f64 / self.absent.max(1) as f64
    }
}

/// Measures a subject in this process, which should do nothing else.
///
/// # Errors
///
/// A subject that cannot be built so large, or loses a key; a system that does not tell of memory.
pub fn measure_here(entry: &Entry, effort: &Effort) -> Result<Row> {
    let Effort {
        keys,
        load,
        threads,
        absent,
        seed,
    } = *effort;
    // Stacks that the system keeps for later threads are no part of the structure.
    in_parts(threads, keys, |_| false);
    let before = resident()?;
    let buckets = (keys as f64 / load / SLOTS_PER_BUCKET as f64).ceil() as usize;
    let subject = entry.build(buckets)?;
    let first: u64 = SmallRng::seed_from_u64(seed).random();
    let key = |index: u64| first.wrapping_add(index);
    let insert = |index| subject.call(Operation::Insert, key(index));
    let found = |index| subject.call(Operation::Contains, key(index)) == Event::Contains(true);
    let refused = in_parts(threads, keys, |index| {
        insert(index) != Event::Insert(Ok(()))
    });
    let resident_bytes = resident()?.saturating_sub(before);
    if refused == 0 {
        let lost = in_parts(threads, keys, |index| !found(index));
        ensure!(lost == 0, "{lost} of {keys} keys are missing");
    }
    let wrong = in_parts(threads, absent, |index| found(keys + index));
    Ok(Row {
        subject: entry.name.into(),
        load_factor: load,
        keys,
        refused,
        threads,
        declared_bytes: subject.memory_bytes() as u64,
        resident_bytes,
        absent,
        wrong,
    })
}

/// How many of the numbers below `end` are counted, each thread having a part of them.
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

/// Resident memory of this process, in bytes.
fn resident() -> Result<u64> {
    let own = sysinfo::get_current_pid()
        .map_err(anyhow::Error::msg)
        .context("cannot ask the system for this process")?;
    let mut system = System::new().context("cannot ask the system about this process")?;
    let memory = ProcessRefreshKind::nothing().with_memory();
    system.refresh_processes_specifics(ProcessesToUpdate::Some(&[own]), false, memory);
    let process = system.process(own);
    Ok(process
        .context("the system does not tell of this process")?
        .memory())
}

/// Measures a subject in a process of its own, which is this program with the arguments given by
/// [`arguments`](Effort::arguments) after the name of its command.
///
/// # Errors
///
/// A process that fails; the message is its own.
pub fn measure_apart(command: &str, subject: &str, effort: &Effort) -> Result<Row> {
    let program = env::current_exe().context("cannot find this program")?;
    let output = Command::new(program)
        .arg(command)
        .args(effort.arguments(subject))
        .output()
        .context("cannot start a process for the measurement")?;
    ensure!(
        output.status.success(),
        "{subject} at load factor {}: {}",
        effort.load,
        String::from_utf8_lossy(&output.stderr).trim()
    );
    let mut csv = csv::ReaderBuilder::new()
        .has_headers(false)
        .from_reader(&*output.stdout);
    let row = csv.deserialize().next();
    Ok(row.context("the process told no result")??)
}

impl Effort {
    /// The arguments that stand for it on a command line.
    pub fn arguments(&self, subject: &str) -> Vec<String> {
        let Self {
            keys,
            load,
            threads,
            absent,
            seed,
        } = self;
        let numbers = [keys.to_string(), load.to_string(), threads.to_string()];
        let rest = [absent.to_string(), seed.to_string()];
        let arguments = [subject.to_owned()].into_iter().chain(numbers);
        arguments.chain(rest).collect()
    }
}

/// Reads all rows of a file, as [`rows::read`] does.
pub fn read(csv: &Path) -> Result<Vec<Row>> {
    rows::read(csv, |row: &Row| {
        ensure!(
            row.load_factor > 0.0 && row.load_factor <= 1.0,
            "column `load_factor`: {} is not above 0 and at most 1",
            row.load_factor
        );
        ensure!(
            row.refused <= row.keys && row.wrong <= row.absent,
            "more keys are refused or found than there are"
        );
        Ok(())
    })
}

/// What a key costs in memory.
pub fn sheet(rows: &[Row]) -> Sheet {
    let line = |row: &Row| {
        vec![
            row.subject.clone(),
            row.load_factor.to_string(),
            format!("{:.1}", row.bits_a_key()),
            format!("{:.1}", row.resident_bits_a_key()),
            format!("{:.2e}", row.rate()),
            row.refused.to_string(),
        ]
    };
    let header = [
        "subject",
        "load",
        "bits a key, declared",
        "resident",
        "false positive rate",
        "refused",
    ];
    Sheet {
        lead: "Memory for each key that is in.".into(),
        header: header.map(str::to_owned).into(),
        lines: rows.iter().map(line).collect(),
        notes: vec![
            "declared: what the structure says it takes; resident: what the process took in addition.".into(),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subjects::registry::Registry;

    fn effort() -> Effort {
        Effort {
            keys: 100_000,
            load: 0.9,
            threads: 3,
            absent: 100_000,
            seed: 1,
        }
    }

    #[test]
    fn the_filter_takes_what_theory_says() {
        let registry = Registry::standard();
        let row = measure_here(registry.get("lock-free").unwrap(), &effort()).unwrap();
        assert_eq!((row.keys, row.refused, row.threads), (100_000, 0, 3));
        // 64 bits for four slots, 0.9 of them occupied.
        assert!((17.7..18.5).contains(&row.bits_a_key()), "{row:?}");
        // 2 buckets of 4 slots, 0.9 occupied, 12 bits.
        let theory = 8.0 * 0.9 / 4096.0;
        assert!((0.7..1.3).contains(&(row.rate() / theory)), "{row:?}");
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
        let tight = Effort {
            load: 1.0,
            ..effort()
        };
        let row = measure_here(registry.get("segment-lock").unwrap(), &tight).unwrap();
        assert!(row.refused > 0 && row.refused < row.keys / 10, "{row:?}");
    }
}
