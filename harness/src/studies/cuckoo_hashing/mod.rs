//! The `cuckoo-hashing` study: SmartCuckoo against plain cuckoo hashing with one thread. Both tables get
//! the same operations on the same keys, and every answer is checked.

mod run;

use anyhow::{Result, ensure};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde::Serialize;

use clap::{Args, value_parser};
use relatives::smart_cuckoo::{Buckets, CuckooTable, Key, PlainCuckoo, SmartCuckoo};

use crate::machine::{self, Cores};
use crate::results::{Record, bounded, columns};
use crate::show::chart::{Axis, Scale};
use crate::show::{Run, rounded};
use crate::studies::shown::Unit::{Number, Throughput};
use crate::studies::{At, Progress, Quantity, Shown, Study, check_loads, joined, seeds, within};
use crate::subjects::Registry;
use crate::wording::{counted, grouped};

use run::CuckooHashingRun;

/// Measure SmartCuckoo against plain cuckoo hashing: kicks, failed inserts, and throughput.
///
/// Both are exact hash tables for one thread, with two hash functions and one key per bucket;
/// SmartCuckoo knows before it moves a key whether an insert must fail. Both run the five mixes of
/// SmartCuckoo's evaluation, up to half a key per bucket, where inserts begin to fail, and beyond;
/// they take turns at each load, and ratios are taken within rounds.
///
/// Prints one table, and writes cuckoo-hashing.csv, cuckoo-hashing.machine.toml and
/// cuckoo-hashing.svg. Takes a quarter of a minute, and needs a core to itself.
#[derive(Clone, Debug, Args, Serialize)]
pub struct CuckooHashing {
    /// Buckets of each table, with one key each.
    #[arg(long, value_name = "N", default_value_t = 1 << 18, value_parser = within(100..=Buckets::MOST as u64))]
    pub buckets: usize,
    /// Loads, ascending, above 0 and at most 2: keys offered per bucket, refused ones included.
    /// Beyond 0.5 keys must be refused.
    #[arg(
        long,
        value_name = "F,F,…",
        value_delimiter = ',',
        allow_negative_numbers = true,
        default_value = "0.2,0.4,0.45,0.5,0.55,0.6,0.75,0.9"
    )]
    pub loads: Vec<f64>,
    /// Number of rounds; with fewer than 6, no interval can be given.
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = within(1..1 << 32))]
    pub rounds: usize,
    /// Kicks after which the plain table gives up and undoes them.
    #[arg(long, value_name = "N", default_value_t = PlainCuckoo::MOST_KICKS, value_parser = value_parser!(u64).range(1..1 << 32))]
    pub kicks: u64,
    /// Operations at each load of the mix that inserts nothing. Beyond load 0.5 each of its updates
    /// walks a large part of SmartCuckoo's table.
    #[arg(long, value_name = "N", default_value_t = 4_000, value_parser = within(1..1 << 32))]
    pub operations: usize,
    /// Seed of the keys and their order.
    #[arg(long, default_value_t = 1, value_parser = seeds())]
    pub seed: u64,
}

columns! {
    /// One measurement: one table under one mix, from the load before (at first from an empty
    /// table) to this one, in one round.
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
    /// Keys offered since the load before; in the mix without inserts that was before the clock
    /// started.
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

/// Percentages of operations, as in `experiments/mixes.toml`: name, inserts of new keys, lookups,
/// half of them of inserted keys, half of absent ones. The rest are updates: a key is removed and
/// inserted again, as a set has no value that could be changed in place.
type Mix = (&'static str, usize, usize);

/// The mixes of SmartCuckoo's evaluation, in the order of the paper.
const MIXES: [Mix; 5] = [
    ("100/0/0", 100, 0),
    ("75/25/0", 75, 25),
    ("50/50/0", 50, 50),
    ("25/75/0", 25, 75),
    ("0/95/5", 0, 95),
];

/// Two tables, and twice as many keys in their order.
const BYTES_PER_BUCKET: f64 = 64.0;

/// The largest load: with twice as many keys as buckets, there is nothing new to see.
const MOST_LOAD: f64 = 2.0;

impl Study for CuckooHashing {
    type Row = Row;

    const NAME: &'static str = "cuckoo-hashing";

    fn about(&self, registry: &Registry) -> Result<(Run, Vec<(String, String)>)> {
        let described = |name: &str| {
            // As a subject it is behind a mutex; here it is not.
            let meaning = registry.get(name)?.description.replace("; one mutex", "");
            Ok((name.to_owned(), meaning))
        };
        let about = [
            "SmartCuckoo and plain cuckoo hashing",
            "What does it bring to know beforehand that an insert must fail?",
        ];
        let pinning = format!("one thread; {}", Cores::detect().describe());
        let subjects = TABLES.into_iter().map(described).collect::<Result<_>>()?;
        Ok((Run::seeded(about, self.seed, pinning), subjects))
    }

    fn check(&self, _: &Registry) -> Result<bool> {
        ensure!(!self.loads.is_empty(), "--loads: give at least one");
        check_loads(&self.loads, MOST_LOAD)?;
        ensure!(
            self.loads.is_sorted_by(|a, b| a < b),
            "--loads: {:?} must be in ascending order, each once",
            self.loads
        );
        machine::check_memory("--buckets", self.buckets as f64 * BYTES_PER_BUCKET)?;
        let parts = [0.0].into_iter().chain(self.loads.iter().copied());
        let counts: Vec<_> = parts.map(|load| offered(self.buckets, load)).collect();
        ensure!(
            counts.is_sorted_by(|a, b| a < b),
            "--loads: {} buckets are too few to tell {:?} apart; raise --buckets",
            self.buckets,
            self.loads
        );
        Ok(true)
    }

    fn steps(&self) -> u64 {
        (self.rounds * MIXES.len() * self.loads.len()) as u64
    }

    fn measure(&self, progress: &mut Progress, rows: &mut Vec<Row>) -> Result<()> {
        let pinned = Cores::detect().pin(0);
        for round in 1..=self.rounds {
            let seed = SmallRng::seed_from_u64(self.seed ^ (round as u64) << 32);
            for mix in MIXES {
                let keys = Keys::new(self, &mut seed.clone());
                let mut order = seed.clone();
                let smart = SmartCuckoo::new(self.buckets)?;
                let mut smart = CuckooHashingRun::new(smart, mix, &keys, &mut order.clone());
                let plain = PlainCuckoo::with_limit(self.buckets, self.kicks)?;
                let mut plain = CuckooHashingRun::new(plain, mix, &keys, &mut order);
                for (index, &load) in self.loads.iter().enumerate() {
                    progress(&format!("round {round}, mix {}", mix.0))?;
                    let offered = offered(self.buckets, load);
                    // Which table goes first alternates with the load and the round.
                    let parts = if (round + index).is_multiple_of(2) {
                        let smart = smart.part(offered, self.operations)?;
                        [smart, plain.part(offered, self.operations)?]
                    } else {
                        let plain = plain.part(offered, self.operations)?;
                        [smart.part(offered, self.operations)?, plain]
                    };
                    rows.extend(parts.map(|part| Row {
                        load,
                        round,
                        most_kicks: self.kicks,
                        pinned,
                        ..part
                    }));
                }
            }
        }
        Ok(())
    }
}

const TABLES: [&str; 2] = [SmartCuckoo::NAME, PlainCuckoo::NAME];

fn offered(buckets: usize, load: f64) -> usize {
    (load * buckets as f64) as usize
}

/// Keys, all distinct except in one table in about 2^30.
struct Keys {
    /// Keys to insert, in this order.
    coming: Vec<Key>,
    /// Keys that are never inserted.
    absent: Vec<Key>,
}

impl Keys {
    fn new(study: &CuckooHashing, random: &mut SmallRng) -> Self {
        let most = study.loads.last().copied().unwrap_or_default();
        let count = offered(study.buckets, most);
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

impl Record for Row {
    fn check(&self) -> Result<()> {
        bounded("load", self.load, 1e-9..=MOST_LOAD)?;
        let fits = self.refused_early <= self.refused && self.refused <= self.inserts;
        ensure!(fits, "more keys were refused than offered");
        ensure!(
            MIXES.iter().any(|(name, ..)| *name == self.mix),
            "column `mix`: {:?} is not a known mix",
            self.mix
        );
        Ok(())
    }
}

impl Row {
    /// Of what is the same under all mixes, as the order of keys is.
    fn each(&self, of: u64, each: u64) -> Option<f64> {
        (self.mix == MIXES[0].0).then(|| of as f64 / each.max(1) as f64)
    }
}

type Of = Quantity<Row>;

impl Shown for Row {
    const OURS: Option<&'static str> = Some(TABLES[0]);

    const QUANTITIES: &'static [Of] = &[
        Of::both("throughput", Throughput, |row| Some(row.mops)),
        Of::panel("kicks an insert", Number, |row| {
            row.each(row.kicks + row.wasted_kicks, row.inserts)
        }),
        Of::panel("share refused", Number, |row| {
            row.each(row.refused, row.inserts)
        }),
        Of::column("found early", Number, |row| row.each(row.refused_early, 1)),
        Of::column("kicks wasted", Number, |row| row.each(row.wasted_kicks, 1)),
        Of::column("first refused at load", Number, |row| {
            row.first_refusal.filter(|_| row.mix == MIXES[0].0)
        }),
        Of::column("buckets renewed an update", Number, |row| {
            (row.updates > 0).then(|| row.renewed as f64 / row.updates as f64)
        }),
        Of::column("bytes a bucket", Number, |row| {
            row.each(row.memory_bytes as u64, row.buckets as u64)
        }),
    ];

    fn at(&self) -> At<'_> {
        At {
            subject: &self.table,
            round: self.round,
            case: (&*self.mix).into(),
            place: self.load,
            pinned: self.pinned,
        }
    }

    fn axis(_: &str) -> Axis {
        let name = "load: keys offered for each bucket";
        Axis::new(name, Scale::FromZero, rounded)
    }

    fn placed(_: &str, places: &[f64]) -> String {
        format!("load {}", joined(places, |load| load.to_string()))
    }

    fn how(rows: &[Self]) -> String {
        let [smart, plain] = TABLES;
        let first = &rows[0];
        let bytes = |table| {
            let row = rows.iter().find(|row| row.table == table);
            row.map_or(0, |row| row.memory_bytes)
        };
        format!(
            "Tables of {} buckets of one key each, under mixes of inserts/lookups/updates; what stands at a load was measured \
             between the load before and that one. Load: keys offered for each bucket, refused ones included. Kicks of \
             inserts that were refused count, those that undid them do not: {plain} gives up after {}. Kicks and \
             refusals are the same under all mixes; refused keys count as operations. {smart} takes {:.1} times the memory: with as \
             much, {plain} would be at a lower load by this factor. An update takes a key out and puts it in again; {smart} as published \
             has no deletion, and ours looks at all buckets of a subgraph.",
            grouped(first.buckets as u64),
            counted(first.most_kicks, "kick"),
            bytes(smart) as f64 / bytes(plain) as f64,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::studies::study::testing::measure;

    pub(super) fn study() -> CuckooHashing {
        CuckooHashing {
            buckets: 4_000,
            loads: vec![0.25, 0.4, 0.75],
            rounds: 2,
            kicks: 50,
            operations: 1_000,
            seed: 1,
        }
    }

    #[test]
    fn both_tables_go_through_all_mixes_and_smart_cuckoo_wastes_nothing() {
        let study = CuckooHashing {
            // Once through the schedule.
            operations: 10_000,
            ..study()
        };
        let (rows, _) = measure(&study, None);
        assert_eq!(rows.len() as u64, 2 * study.steps());
        for pair in rows.chunks(2) {
            let [smart, plain] = pair else { panic!() };
            assert_eq!([&*smart.table, &*plain.table], TABLES);
            let same = |row: &Row| (row.mix.clone(), row.load, row.round, row.inserts);
            assert_eq!(same(smart), same(plain));
            assert_eq!(smart.operations, plain.operations);
            let early = (smart.refused_early, smart.wasted_kicks);
            assert_eq!(early, (smart.refused, 0));
            assert_eq!(plain.wasted_kicks, 50 * plain.refused);
            assert!(plain.refused_early == 0 && plain.renewed == 0);
            // The table that gives up early refuses more in the end.
            assert!(smart.refused <= plain.refused);
            assert_eq!(smart.refused > 100, smart.load == 0.75, "{smart:?}");
            let has_refused = smart.first_refusal.is_some();
            assert_eq!(has_refused, smart.load == 0.75, "{smart:?}");
        }
        // The last row of a round: the mix without inserts.
        let last = &rows[rows.len() - 2];
        assert_eq!((&*last.mix, last.operations), ("0/95/5", 10_000));
        assert_eq!((last.lookups, last.updates), (9_500, 500));
        assert!(last.renewed > last.updates);
        // The operations of a growing mix are in the proportions of its percentages.
        for (mix, lookups) in [("75/25/0", 1.0 / 3.0), ("50/50/0", 1.0), ("25/75/0", 3.0)] {
            let of_mix = rows.iter().filter(|row| row.mix == mix);
            let inserts: u64 = of_mix.clone().map(|row| row.inserts).sum();
            let share = of_mix.map(|row| row.lookups).sum::<u64>() as f64 / inserts as f64;
            assert!((share / lookups - 1.0).abs() < 0.05, "{mix}: {share}");
        }
    }
}
