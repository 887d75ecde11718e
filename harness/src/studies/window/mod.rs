//! The `window` study: filters that forget. A window is cut into twelve ticks. In each, threads insert new
//! keys, renew keys that come in each period, and look keys up; then they ask for keys of every age up to
//! two windows and more.

mod contenders;
mod run;

use anyhow::{Result, ensure};
use clap::Args;
use serde::Serialize;

use crate::experiment::MAX_THREADS;
use crate::machine::{self, Cores};
use crate::results::{Record, columns};
use crate::run::order;
use crate::show::chart::{Axis, Guide, Panel, Scale};
use crate::show::{Run, rounded};
use crate::studies::shown::Unit::{BitsAKey, Number, Throughput};
use crate::studies::{At, Entrant, Progress, Quantity, Shown, Study, joined, seeds, within};
use crate::subjects::Registry;
use crate::wording::{counted, grouped, noun};

use contenders::ALL;

/// Measure filters that forget: throughput, memory, and the age at which a key is forgotten.
///
/// The expiring filter is compared with two filters of fixed size that take turns, and with the
/// published crate cuckoo-clock. Each is built to remember the keys of a window, as many as --keys says. Threads
/// insert new keys and renew old ones all the time, one of them begins the periods, and all look keys up.
/// Subjects of a round run one right after another, and ratios are taken within rounds.
///
/// Prints one table, and writes window.csv, window.machine.toml and window.svg. Takes half a minute, and
/// needs the cores to itself. Ctrl-C ends it after the current run, and keeps the finished ones.
#[derive(Clone, Debug, Args, Serialize)]
pub struct Window {
    /// Keys that come in a window.
    #[arg(long, value_name = "N", default_value_t = 116_000, value_parser = within(1_200..=100_000_000))]
    pub keys: usize,
    /// Numbers of threads, separated by commas.
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values = ["1", "2", "8"], value_parser = within(1..=MAX_THREADS as u64))]
    pub threads: Vec<usize>,
    /// Number of rounds; with fewer than 6, no interval can be given.
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = within(1..1 << 32))]
    pub rounds: usize,
    /// Seed of the keys.
    #[arg(long, default_value_t = 1, value_parser = seeds())]
    pub seed: u64,
}

/// Ticks of a window.
const TICKS: usize = 12;

/// Ages up to which keys are asked for, in ticks.
const OLDEST: usize = 2 * TICKS + TICKS / 2;

columns! {
    /// What one subject did of one kind in one round, on so many threads.
    Row:
    /// Name of the structure that was measured.
    subject: String,
    /// Round the measurement was taken in, from 1.
    round: usize,
    /// Threads that worked, from 1.
    threads: usize,
    /// insert: new keys. renew: keys that come once in each period. lookup: half of the keys are
    /// there, none is older than a window. remembered: keys of one age, new or renewed, not timed.
    kind: String,
    /// Time since the key was inserted or last renewed, in windows; 0 where it differs.
    age: f64,
    /// How many of them there were.
    operations: u64,
    /// How many keys were found; of inserts and renewals, how many were not refused.
    found: u64,
    /// Throughput in million operations per second, the beginning of periods included; 0 where it was not
    /// timed.
    mops: f64,
    /// What the structure takes, in bytes.
    memory_bytes: u64,
    /// Keys that it is to remember.
    keys: u64,
    /// The longest time that it took to begin a period, in ms.
    begin_ms: f64,
    /// Whether there were more threads than cores.
    oversubscribed: bool,
    /// Whether every thread was pinned to its core.
    pinned: bool,
}

impl Study for Window {
    type Row = Row;

    const NAME: &'static str = "window";

    fn check(&self, _: &Registry) -> Result<bool> {
        // The largest filter takes 23, and each key is in a list.
        machine::check_memory("--keys", self.keys as f64 * 40.0)?;
        Ok(true)
    }

    fn about(&self, _: &Registry) -> Result<(Run, Vec<(String, String)>)> {
        let about = [
            "Filters that forget",
            "What does it cost to remember a key for a window of time, and for how long is it remembered?",
        ];
        let run = Run::seeded(about, self.seed, Cores::detect().describe());
        Ok((run, Entrant::described(&ALL)))
    }

    fn steps(&self) -> u64 {
        (self.rounds * self.threads.len() * ALL.len()) as u64
    }

    fn measure(&self, progress: &mut Progress, rows: &mut Vec<Row>) -> Result<()> {
        let cores = &Cores::detect();
        let rounds = (self.seed, self.rounds);
        order::in_rounds(rounds, &self.threads, &ALL, |round, &threads, contender| {
            progress(&format!("round {round}, {}", contender.name))?;
            rows.extend((contender.run)(&run::Plan {
                keys: self.keys,
                seed: self.seed ^ (round as u64) << 32,
                threads,
                round,
                cores,
            })?);
            Ok(())
        })
    }
}

impl Record for Row {
    fn check(&self) -> Result<()> {
        let fits = self.found <= self.operations;
        ensure!(fits, "column `found` is above `operations`");
        Ok(())
    }

    fn identity(&self) -> Option<String> {
        let (subject, kind, age, round) = (&self.subject, &self.kind, self.age, self.round);
        let threads = counted(self.threads, "thread");
        Some(format!(
            "{kind} of age {age} by {subject} at {threads} in round {round}"
        ))
    }
}

/// What the threads did, as tables and figures name it.
const KINDS: [(&str, &str); 4] = [
    (run::INSERT, "inserts of new keys"),
    (run::RENEW, "renewals"),
    (run::LOOKUP, "lookups, half present"),
    (run::REMEMBERED, "keys of one age"),
];

impl Row {
    fn is_of_one_age(&self) -> bool {
        self.kind == run::REMEMBERED
    }

    fn bits_a_key(&self) -> Option<f64> {
        (self.kind == run::INSERT).then(|| 8.0 * self.memory_bytes as f64 / self.keys as f64)
    }
}

type Of = Quantity<Row>;

impl Shown for Row {
    const OURS: Option<&'static str> = Some(ALL[0].name);

    const QUANTITIES: &'static [Of] = &[
        Of::both("throughput", Throughput, |row| {
            (row.mops > 0.0).then_some(row.mops)
        }),
        Of::panel("share found", Number, |row| {
            row.is_of_one_age()
                .then(|| row.found as f64 / row.operations as f64)
        }),
        Of::column("bits for each key of a window", BitsAKey, Row::bits_a_key),
    ];

    fn at(&self) -> At<'_> {
        let named = KINDS.iter().find(|(kind, _)| *kind == self.kind);
        let (age, threads) = (self.age, self.threads as f64);
        At {
            subject: &self.subject,
            round: self.round,
            case: named.map_or(&*self.kind, |of| of.1).into(),
            place: if self.is_of_one_age() { age } else { threads },
            pinned: self.pinned,
        }
    }

    fn axis(case: &str) -> Axis {
        if case == KINDS[3].1 {
            Axis::new("age of the key in windows", Scale::FromZero, rounded)
        } else {
            Axis::measured("threads", Scale::Logarithmic, rounded)
        }
    }

    fn placed(case: &str, places: &[f64]) -> String {
        let all = joined(places, |place| place.to_string());
        let last = places.last().copied().unwrap_or_default();
        if case == KINDS[3].1 {
            format!("age {all}")
        } else {
            format!("{all} {}", noun(last, "thread"))
        }
    }

    /// Of ages, those at which some are to be forgotten.
    fn tabled(case: &str, mut places: Vec<f64>) -> Vec<f64> {
        places.retain(|place| case != KINDS[3].1 || [1.0, 1.5, 2.0].contains(place));
        places
    }

    fn how(rows: &[Self]) -> String {
        format!(
            "{} keys come in each window, a quarter of them twice; each filter must remember a key for a window. The beginning \
             of periods is part of inserts. Ages are in windows, and of all numbers of threads.",
            grouped(rows[0].keys)
        )
    }

    fn complete(_: &[Self], panels: &mut Vec<Panel>) {
        let forgotten = Guide {
            name: "a window, then forgotten",
            points: vec![(0.0, 1.0), (1.0, 1.0), (1.0, 0.0), (2.5, 0.0)],
        };
        let is_of_ages = |panel: &&mut Panel| panel.label == Self::QUANTITIES[1].name;
        let ages = panels.iter_mut().filter(is_of_ages);
        ages.for_each(|panel| panel.guides.push(forgotten.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::studies::study::testing::measure;

    /// Every contender remembers a key for a window, and the expiring one forgets it half a window
    /// later; two filters that take turns need a whole one.
    #[test]
    fn keys_are_remembered_for_a_window_and_then_forgotten() {
        let window = Window {
            keys: 12_000,
            threads: vec![1, 3],
            rounds: 1,
            seed: 1,
        };
        let (rows, steps) = measure(&window, None);
        assert_eq!(steps.len() as u64, window.steps());
        let share = |subject: &str, threads, age: f64| {
            let is = |row: &&Row| {
                (&*row.subject, row.threads, &*row.kind) == (subject, threads, run::REMEMBERED)
                    && row.age == age
            };
            let row = rows.iter().find(is).unwrap();
            row.found as f64 / row.operations as f64
        };
        for threads in [1, 3] {
            for age in (0..TICKS).map(|tick| tick as f64 / TICKS as f64) {
                assert_eq!(share("expiring", threads, age), 1.0);
                assert_eq!(share("rotating", threads, age), 1.0);
            }
            assert!(share("expiring", threads, 1.5) < 0.01);
            assert!(share("rotating", threads, 1.5) > 0.3);
            assert!(share("rotating", threads, 2.0) < 0.01);
            assert!(share("cuckoo-clock", threads, 2.0) < 0.01);
        }
        let kinds = |kind: &str| rows.iter().filter(|row| row.kind == kind).count();
        assert_eq!([run::INSERT, run::RENEW, run::LOOKUP].map(kinds), [6; 3]);
        for row in rows.iter().filter(|row| row.kind != run::REMEMBERED) {
            assert!(row.mops > 0.0 && row.operations > 0, "{row:?}");
            let all = row.found as f64 / row.operations as f64;
            match &*row.kind {
                run::LOOKUP => assert!((0.48..=0.52).contains(&all), "{row:?}"),
                _ => assert!(all > 0.99, "{row:?}"),
            }
        }
    }
}
