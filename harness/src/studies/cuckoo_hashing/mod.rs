//! SmartCuckoo against plain cuckoo hashing, one thread: kicks, failed inserts, and throughput under the five mixes of
//! SmartCuckoo's evaluation, up to a load factor of one half, where inserts begin to fail, and beyond.
//!
//! *Load* is the number of keys offered for each bucket, refused ones included, as in the theory of random graphs. Both
//! tables get the same operations on the same keys, and take turns from one load to the next, so that ratios are of
//! neighbours in time. Every answer is held against what must come out.
//!
//! **When to want SmartCuckoo.** Of 2^18 buckets and 9 rounds of keys, it first refuses a key at load 0.506 (0.495 to
//! 0.514), which is as far as any table of this kind can go; plain cuckoo hashing with 50 kicks gives up at 0.474 (0.431 to
//! 0.479), because it takes long ways for endless ones. From 0.45 to 0.5 it makes 0.53 kicks an insert instead of 1.18, from
//! 0.6 to 0.75 0.45 instead of 13.6, and none of them in vain. So want it where a failed insert is dear and must be known
//! at once, or where keys go on being offered to a full table: there inserts are 2 to 4 times as fast.
//!
//! It loses everywhere else. Up to load 0.45, where inserts hardly ever fail, every mix is at 0.1 to 0.6 of the plain table's
//! throughput (measured on a busy machine: intervals are wide), as the graph must be kept beside it. It takes 24 bytes a
//! bucket instead of 8. And a delete walks over the whole subgraph: 3 buckets in the mean at load 0.2, 10 at 0.4, 22 at 0.45,
//! but 130,000 at 0.9, which makes a mix of 5 % updates useless beyond load 0.5.

pub mod figure;
mod mix;
mod results;
mod run;
mod sheet;

use std::ops::ControlFlow;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};

pub use mix::Mix;
pub use results::Results;
pub use sheet::sheet;

use crate::machine::pinning::Cores;
use crate::relatives::smart_cuckoo::{Buckets, CuckooTable, Key, PlainCuckoo, SmartCuckoo};
use crate::results::rows::{self, columns};
use run::{Part, Run};

/// How much is measured.
#[derive(Clone, Debug)]
pub struct Effort {
    /// Buckets of each table.
    pub buckets: usize,
    /// Loads at which is counted and timed, ascending: what is between two of them is one part.
    pub loads: Vec<f64>,
    /// How often everything is measured.
    pub rounds: usize,
    /// After how many kicks the plain table gives up.
    pub most_kicks: u64,
    /// Operations at each load of the mix that inserts nothing.
    pub operations: usize,
    /// Keys and their order follow from it.
    pub seed: u64,
}

columns! {
    /// One measurement: one table under one mix, from the load before (at first from an empty table) to this one, in one
    /// round.
    Row:
    /// Name of the table that was measured.
    table: String,
    /// Percentages of inserts, lookups and updates.
    mix: String,
    /// Keys offered for each bucket since the table was empty, refused ones included.
    load: f64,
    /// Round the measurement was taken in, from 1; the tables took turns at each load.
    round: usize,
    /// Buckets of the table, of one key each.
    buckets: usize,
    /// Kicks after which the plain table gives up.
    most_kicks: u64,
    /// Whether the thread was pinned to its core.
    pinned: bool,
    /// Keys offered since the load before; in the mix without inserts that was before the clock started.
    inserts: u64,
    /// Keys among them that were refused.
    refused: u64,
    /// Refused keys for which nothing was moved.
    refused_early: u64,
    /// Keys thrown out of their bucket for keys that were placed.
    kicks: u64,
    /// Keys thrown out of their bucket for keys that were refused; as many moves again undid it.
    wasted_kicks: u64,
    /// Load at which the table first refused a key; empty while it has not.
    first_refusal: Option<f64>,
    /// Lookups, half of them of absent keys.
    lookups: u64,
    /// Updates: a key is taken out and put in again.
    updates: u64,
    /// Buckets that were told anew which subgraph they are in, by updates.
    renewed: u64,
    /// What the table takes in the end, in bytes.
    memory_bytes: usize,
    /// Operations that were timed: lookups, updates, and inserts but for the mix without.
    operations: u64,
    /// How long they took together.
    seconds: f64,
    /// Throughput in million operations per second: operations / seconds / 1,000,000.
    mops: f64,
}

/// The largest load: with as many keys as buckets again, nothing new is to be seen.
pub const MOST_LOAD: f64 = 2.0;

/// Checks that something can be measured so.
///
/// # Errors
///
/// A field that cannot be; the message names it and says what is allowed.
pub fn validate(effort: &Effort) -> Result<()> {
    ensure!(!effort.loads.is_empty(), "loads: there is none");
    for load in &effort.loads {
        ensure!(
            *load > 0.0 && *load <= MOST_LOAD,
            "loads: {load} is not above 0 and at most {MOST_LOAD}"
        );
    }
    ensure!(
        effort.loads.is_sorted_by(|a, b| a < b),
        "loads: {:?} are not in ascending order, each once",
        effort.loads
    );
    let parts = [0.0].into_iter().chain(effort.loads.iter().copied());
    let counts: Vec<_> = parts.map(|load| offered(effort.buckets, load)).collect();
    ensure!(
        counts.is_sorted_by(|a, b| a < b),
        "loads: {} buckets are too few to tell {:?} apart",
        effort.buckets,
        effort.loads
    );
    ensure!(
        effort.buckets <= Buckets::MOST,
        "buckets: {} are more than {}",
        effort.buckets,
        Buckets::MOST
    );
    ensure!(effort.rounds > 0, "rounds: there is none");
    ensure!(effort.operations > 0, "operations: there is none");
    Ok(())
}

/// How often [`measure`] tells of progress, if it is not broken off.
pub fn steps(effort: &Effort) -> u64 {
    (effort.rounds * Mix::ALL.len() * effort.loads.len()) as u64
}

/// Measures both tables; `progress` is told before each load what comes, and may break it off: then what is done so far is
/// returned.
///
/// # Errors
///
/// An [effort](validate) that cannot be; a table that answers wrongly.
pub fn measure(
    effort: &Effort,
    progress: &mut impl FnMut(&str) -> ControlFlow<()>,
) -> Result<Vec<Row>> {
    validate(effort)?;
    let pinned = Cores::detect().pin(0);
    let mut rows = Vec::new();
    for round in 1..=effort.rounds {
        let seed = SmallRng::seed_from_u64(effort.seed ^ (round as u64) << 32);
        for mix in Mix::ALL {
            let keys = Keys::new(effort, &mut seed.clone());
            let mut order = seed.clone();
            let mut smart = Run::new(
                SmartCuckoo::new(effort.buckets)?,
                mix,
                &keys,
                &mut order.clone(),
            );
            let plain = PlainCuckoo::with_limit(effort.buckets, effort.most_kicks)?;
            let mut plain = Run::new(plain, mix, &keys, &mut order);
            for (index, &load) in effort.loads.iter().enumerate() {
                if progress(&format!("round {round}, mix {mix}")).is_break() {
                    return Ok(rows);
                }
                let offered = offered(effort.buckets, load);
                // Who goes first changes from load to load, and from round to round.
                let parts = if (round + index).is_multiple_of(2) {
                    let smart = smart.part(offered, effort.operations)?;
                    [smart, plain.part(offered, effort.operations)?]
                } else {
                    let plain = plain.part(offered, effort.operations)?;
                    [smart.part(offered, effort.operations)?, plain]
                };
                let names = [SmartCuckoo::NAME, PlainCuckoo::NAME];
                for (name, part) in names.into_iter().zip(parts) {
                    rows.push(row(name, part, effort, (mix, load, round), pinned));
                }
            }
        }
    }
    Ok(rows)
}

fn row(
    table: &str,
    part: Part,
    effort: &Effort,
    (mix, load, round): (Mix, f64, usize),
    pinned: bool,
) -> Row {
    Row {
        table: table.into(),
        mix: mix.to_string(),
        load,
        round,
        buckets: effort.buckets,
        most_kicks: effort.most_kicks,
        pinned,
        inserts: part.inserts,
        refused: part.refused,
        refused_early: part.refused_early,
        kicks: part.kicks,
        wasted_kicks: part.wasted_kicks,
        first_refusal: part
            .first_refusal
            .map(|offered| offered as f64 / effort.buckets as f64),
        lookups: part.lookups,
        updates: part.updates,
        renewed: part.renewed,
        memory_bytes: part.memory_bytes,
        operations: part.operations,
        seconds: part.seconds,
        mops: part.operations as f64 / part.seconds / 1e6,
    }
}

/// How many keys make this load.
fn offered(buckets: usize, load: f64) -> usize {
    (load * buckets as f64) as usize
}

/// Keys, all distinct but for one table in 2^30 or so.
struct Keys {
    /// To be inserted, in this order.
    coming: Vec<Key>,
    /// Never inserted.
    absent: Vec<Key>,
}

impl Keys {
    fn new(effort: &Effort, random: &mut SmallRng) -> Self {
        let most = effort.loads.last().copied().unwrap_or_default();
        let count = offered(effort.buckets, most);
        let mut draw = || {
            let keys = (0..count).map(|_| Key::new(random.random()).unwrap_or(Key::MIN));
            keys.collect()
        };
        Self {
            coming: draw(),
            absent: draw(),
        }
    }
}

/// Reads all rows of a file, as [`rows::read`] does.
///
/// # Errors
///
/// A file that cannot be read, or a row that cannot be right; the message names file and line.
pub fn read(csv: &Path) -> Result<Vec<Row>> {
    rows::read(csv, |row: &Row| {
        for (column, value) in [("seconds", row.seconds), ("mops", row.mops)] {
            ensure!(
                value.is_finite() && value >= 0.0,
                "column `{column}`: {value} is not possible"
            );
        }
        ensure!(
            row.load > 0.0 && row.load <= MOST_LOAD,
            "column `load`: {} is not above 0 and at most {MOST_LOAD}",
            row.load
        );
        ensure!(
            row.refused_early <= row.refused && row.refused <= row.inserts,
            "more keys are refused than there are"
        );
        (Mix::ALL.into_iter())
            .find(|mix| mix.to_string() == row.mix)
            .with_context(|| format!("column `mix`: {:?} is none of ours", row.mix))?;
        Ok(())
    })
}

/// Rows of both tables at load 0.5 under the first mix, one each for each round: SmartCuckoo's throughput and the plain
/// table's.
#[cfg(test)]
pub(crate) fn sample(rounds: &[[f64; 2]]) -> Vec<Row> {
    let effort = tests::effort();
    let names = [SmartCuckoo::NAME, PlainCuckoo::NAME];
    let row = |table, round, mops: f64| {
        let part = Part {
            operations: (mops * 1e6) as u64,
            seconds: 1.0,
            ..Part::default()
        };
        row(table, part, &effort, (Mix::ALL[0], 0.5, round), true)
    };
    let rounds = rounds.iter().enumerate();
    let rows =
        rounds.flat_map(|(round, mops)| [0, 1].map(|of| row(names[of], round + 1, mops[of])));
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn effort() -> Effort {
        Effort {
            buckets: 4_000,
            loads: vec![0.25, 0.4, 0.75],
            rounds: 2,
            most_kicks: 50,
            operations: 1_000,
            seed: 1,
        }
    }

    #[test]
    fn both_tables_go_through_all_mixes_and_smart_cuckoo_wastes_nothing() {
        let effort = Effort {
            // Once through the schedule.
            operations: 10_000,
            ..effort()
        };
        let mut told = 0;
        let rows = measure(&effort, &mut |_| {
            told += 1;
            ControlFlow::Continue(())
        });
        let rows = rows.unwrap();
        assert_eq!(told, steps(&effort));
        assert_eq!(rows.len() as u64, 2 * steps(&effort));
        for pair in rows.chunks(2) {
            let [smart, plain] = pair else { panic!() };
            assert_eq!(
                (&*smart.table, &*plain.table),
                ("smart-cuckoo", "plain-cuckoo")
            );
            let same = |row: &Row| (row.mix.clone(), row.load, row.round, row.inserts);
            assert_eq!(same(smart), same(plain));
            assert_eq!(smart.operations, plain.operations);
            assert_eq!(
                (smart.refused_early, smart.wasted_kicks),
                (smart.refused, 0)
            );
            assert_eq!(plain.wasted_kicks, 50 * plain.refused);
            assert!(plain.refused_early == 0 && plain.renewed == 0);
            // Whoever gives up early refuses more, in the end.
            assert!(smart.refused <= plain.refused);
            assert_eq!(smart.refused > 100, smart.load == 0.75, "{smart:?}");
            assert_eq!(
                smart.first_refusal.is_some(),
                smart.load == 0.75,
                "{smart:?}"
            );
        }
        // The last of a round: the mix without inserts.
        let last = &rows[rows.len() - 2];
        assert_eq!((&*last.mix, last.operations), ("0/95/5", 10_000));
        assert_eq!((last.lookups, last.updates), (9_500, 500));
        assert!(last.renewed > last.updates);
    }

    /// Operations of a growing mix are as many as its percentages say.
    #[test]
    fn mixes_have_their_percentages() {
        let rows = measure(&effort(), &mut |_| ControlFlow::Continue(())).unwrap();
        for (mix, lookups) in [("75/25/0", 1.0 / 3.0), ("50/50/0", 1.0), ("25/75/0", 3.0)] {
            let of_mix = rows.iter().filter(|row| row.mix == mix);
            let (inserts, looked_up) = of_mix.fold((0, 0), |(inserts, lookups), row| {
                (inserts + row.inserts, lookups + row.lookups)
            });
            let share = looked_up as f64 / inserts as f64;
            assert!((share / lookups - 1.0).abs() < 0.05, "{mix}: {share}");
        }
    }

    #[test]
    fn what_is_broken_off_keeps_what_was_done() {
        let mut left = 4;
        let rows = measure(&effort(), &mut |_| {
            left -= 1;
            match left {
                0 => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        });
        assert_eq!(rows.unwrap().len(), 6);
    }

    #[test]
    fn what_cannot_be_measured_is_named() {
        let refused = |change: fn(&mut Effort)| {
            let mut effort = effort();
            change(&mut effort);
            validate(&effort).unwrap_err().to_string()
        };
        for (error, expected) in [
            (
                refused(|effort| effort.loads.clear()),
                "loads: there is none",
            ),
            (
                refused(|effort| effort.loads[2] = 3.0),
                "loads: 3 is not above 0",
            ),
            (refused(|effort| effort.loads[1] = 0.1), "ascending order"),
            (refused(|effort| effort.buckets = 2), "too few"),
            (refused(|effort| effort.buckets = 1 << 33), "buckets: "),
            (refused(|effort| effort.rounds = 0), "rounds: "),
            (refused(|effort| effort.operations = 0), "operations: "),
        ] {
            assert!(error.contains(expected), "{error}");
        }
    }
}
