//! The `cuckoo-hashing` study: SmartCuckoo against plain cuckoo hashing with one thread (the figure of that name). Both tables
//! get the same operations on the same keys, and every answer is checked.

use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use figures::plot::Scale;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use relatives::smart_cuckoo::{Buckets, CuckooTable, Key, PlainCuckoo, SmartCuckoo};
use serde::{Deserialize, Serialize};

use super::within;
use crate::machine::{self, Cores};
use crate::operations::{Op, Scheduled, after};
use crate::row::Sample;
use crate::study::{Better, Extras, Quantity, Study, Subjects, Task, all_places};
use crate::subjects::{Registry, original};
use crate::wording::{counted, grouped};

/// Measure SmartCuckoo against plain cuckoo hashing: kicks, failed inserts, and throughput.
///
/// Both are exact hash tables for one thread, with two hash functions and one key per bucket;
/// SmartCuckoo knows before it moves a key whether an insert must fail. Both run the five mixes of
/// SmartCuckoo's evaluation, up to half a key per bucket, where inserts begin to fail, and beyond;
/// they take turns at each load, and ratios are taken within rounds.
///
/// Prints one table, and writes cuckoo-hashing.csv, cuckoo-hashing.machine.toml and
/// cuckoo-hashing.svg. Takes a quarter of a minute, and needs a core to itself.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
pub struct CuckooHashing {
    /// Buckets of each table, with one key each.
    #[arg(long, value_name = "N", default_value_t = 1 << 18, value_parser = within(100..=Buckets::MAX as u64))]
    pub buckets: usize,
}

/// Keys offered per bucket, refused ones included. Beyond 0.5 keys must be refused.
const LOADS: [f64; 8] = [0.2, 0.4, 0.45, 0.5, 0.55, 0.6, 0.75, 0.9];
/// Operations at each load of the mix that inserts nothing. Beyond load 0.5 each of its updates walks a large part of
/// SmartCuckoo's table.
const OPERATIONS: u64 = 4_000;
/// Memory of three tables, and of twice as many keys in their order.
const BYTES_PER_BUCKET: f64 = 88.0;

const THROUGHPUT: Quantity = Quantity::new(
    "throughput, million/s",
    Some(Better::More),
    Some(Scale::Zero),
);
// The order of keys is the same under all mixes, so these are of the first one.
const KICKS: Quantity = Quantity::new("kicks per insert", None, Some(Scale::Zero));
const REFUSED: Quantity = Quantity::new("share refused", None, Some(Scale::Zero));
/// Keys thrown out of their bucket for keys that were refused; as many moves again undid it.
const WASTED: Quantity = Quantity::new("kicks wasted", None, None);

pub static STUDY: Study<CuckooHashing> = Study {
    name: "cuckoo-hashing",
    title: "SmartCuckoo and plain cuckoo hashing",
    question: "What does it bring to know beforehand that an insert must fail?",
    check: |study| machine::check_memory("--buckets", study.buckets as f64 * BYTES_PER_BUCKET),
    subjects: describe,
    alone: false,
    parts: |_| MIXES.map(|(name, ..)| name.into()).into(),
    measure: |study, task, _| measure(study.buckets, task),
    quantities: &[THROUGHPUT, KICKS, REFUSED, WASTED],
    axis: |_| ("load: keys offered for each bucket", Scale::Zero),
    tabled: all_places,
    how: |study| {
        format!(
            "Tables of {} buckets of one key each, under mixes of inserts/lookups/updates; each point covers the keys offered \
             since the previous point. Load: keys offered per bucket, refused ones included. {} gives up after {}, which \
             count; those that undo them do not. Kicks and refusals are the same under all mixes.",
            grouped(study.buckets as u64),
            PlainCuckoo::NAME,
            counted(PlainCuckoo::MAX_KICKS as f64, "kick"),
        )
    },
    extras: Extras::NONE,
};

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

fn describe(_: &CuckooHashing, registry: &Registry) -> Result<Subjects> {
    let describe = |name: &str| {
        // As a subject it is behind a mutex; here it is not.
        let meaning = registry.get(name)?.description.replace("; one mutex", "");
        Ok((name.to_owned(), meaning))
    };
    let names = [SmartCuckoo::NAME, PlainCuckoo::NAME].into_iter();
    names.map(describe).collect()
}

fn measure(buckets: usize, task: &Task) -> Result<Vec<Sample>> {
    Cores::detect().pin(0);
    let mix = MIXES.into_iter().find(|mix| mix.0 == task.part);
    let mix = mix.with_context(|| format!("no mix is called {}", task.part))?;
    let keys = Keys::new(buckets, &mut SmallRng::seed_from_u64(task.seed));
    let run = |name: &String| {
        Ok(match original(name) {
            SmartCuckoo::NAME => runner(SmartCuckoo::new(buckets)?, mix, &keys, task.seed),
            PlainCuckoo::NAME => runner(PlainCuckoo::new(buckets)?, mix, &keys, task.seed),
            other => bail!("no table is called {other}"),
        })
    };
    let runs = task.subjects.iter().map(|name| Ok((name, run(name)?)));
    let mut runs = runs.collect::<Result<Vec<(_, Runner)>>>()?;
    let mut samples = Vec::new();
    for load in LOADS {
        for (name, run) in &mut runs {
            for (quantity, value) in run(load)?.values(mix) {
                samples.push(task.sample(name, (mix.0, load), &quantity, value));
            }
        }
        // Which table goes first alternates.
        runs.rotate_left(1);
    }
    Ok(samples)
}

/// Runs a table until its load is offered. Returns what was done since the previous load.
type Runner<'a> = Box<dyn FnMut(f64) -> Result<Part> + 'a>;

fn runner<'a, T: CuckooTable + 'a>(table: T, mix: Mix, keys: &'a Keys, seed: u64) -> Runner<'a> {
    let mut run = Run::new(table, mix, keys, seed);
    Box::new(move |load| run.part(load))
}

/// Keys, all distinct except in one table in about 2^30.
struct Keys {
    /// Keys to insert, in this order.
    coming: Vec<Key>,
    /// Keys that are never inserted.
    absent: Vec<Key>,
}

impl Keys {
    fn new(buckets: usize, random: &mut SmallRng) -> Self {
        let count = offered(buckets, LOADS[LOADS.len() - 1]);
        let mut draw = || {
            let keys = (0..count).map(|_| Key::new(random.random()).unwrap_or(Key::MIN));
            keys.collect()
        };
        let (coming, absent) = (draw(), draw());
        Self { coming, absent }
    }
}

fn offered(buckets: usize, load: f64) -> usize {
    (load * buckets as f64) as usize
}

/// What was done to one table since the previous load.
#[derive(Clone, Debug, Default)]
struct Part {
    /// Keys offered; in the mix without inserts, before the clock started.
    inserts: u64,
    refused: u64,
    /// Keys thrown out of their bucket for keys that were placed.
    kicks: u64,
    wasted_kicks: u64,
    /// Half of them of absent keys.
    lookups: u64,
    updates: u64,
    /// Operations that were timed: lookups, updates, and inserts except in the mix without.
    operations: u64,
    seconds: f64,
}

impl Part {
    fn values(&self, mix: Mix) -> Vec<(Quantity, f64)> {
        let per_insert = |count: u64| count as f64 / self.inserts.max(1) as f64;
        let mut values = vec![(THROUGHPUT, self.operations as f64 / self.seconds / 1e6)];
        if mix == MIXES[0] {
            values.push((KICKS, per_insert(self.kicks + self.wasted_kicks)));
            values.push((REFUSED, per_insert(self.refused)));
            values.push((WASTED, self.wasted_kicks as f64));
        }
        values
    }
}

/// A table under a mix, and how far it has come.
struct Run<'a, T> {
    table: T,
    mix: Mix,
    keys: &'a Keys,
    schedule: Scheduled,
    offered: usize,
    inside: Vec<Key>,
    next_inside: usize,
    next_absent: usize,
    wrong: u64,
}

impl<'a, T: CuckooTable> Run<'a, T> {
    fn new(table: T, mix: Mix, keys: &'a Keys, seed: u64) -> Self {
        let (_, inserts, lookups) = mix;
        let counts = [
            (Op::Insert, inserts * 100),
            (Op::LookupStable, lookups * 50),
            (Op::LookupAbsent, lookups * 50),
        ];
        let random = &mut SmallRng::seed_from_u64(seed);
        Self {
            table,
            mix,
            keys,
            schedule: Scheduled::new(&counts, Op::Update, random),
            offered: 0,
            inside: Vec::with_capacity(keys.coming.len()),
            next_inside: 0,
            next_absent: 0,
            wrong: 0,
        }
    }

    /// Runs until the keys of this load were offered. A mix without inserts gets its keys before the clock starts, and
    /// then runs for [`OPERATIONS`].
    fn part(&mut self, load: f64) -> Result<Part> {
        let (mix, inserts, _) = self.mix;
        let offered = offered(self.table.buckets().number(), load);
        let mut part = Part::default();
        while inserts == 0 && self.offered < offered {
            self.offer(&mut part);
        }
        let start = Instant::now();
        while self.offered < offered || (inserts == 0 && part.operations < OPERATIONS) {
            self.operate(&mut part);
        }
        part.seconds = start.elapsed().as_secs_f64();
        let (name, wrong) = (T::NAME, self.wrong);
        ensure!(wrong == 0, "{name} gave {wrong} wrong answers in mix {mix}");
        Ok(part)
    }

    fn operate(&mut self, part: &mut Part) {
        match self.schedule.next_op() {
            Op::Insert => self.offer(part),
            Op::LookupStable if !self.inside.is_empty() => {
                let key = self.next_inside();
                self.wrong += u64::from(!self.table.contains(key));
                part.lookups += 1;
            }
            Op::LookupStable | Op::LookupAbsent => {
                let key = self.keys.absent[self.next_absent];
                self.next_absent = after(self.next_absent, self.keys.absent.len());
                self.wrong += u64::from(self.table.contains(key));
                part.lookups += 1;
            }
            _ => {
                let key = self.next_inside();
                self.wrong += u64::from(self.table.remove(key).is_none());
                self.wrong += u64::from(!self.table.insert(key).placed);
                part.updates += 1;
            }
        }
        part.operations += 1;
    }

    fn offer(&mut self, part: &mut Part) {
        let key = self.keys.coming[self.offered];
        self.offered += 1;
        let insertion = self.table.insert(key);
        part.inserts += 1;
        if insertion.placed {
            self.inside.push(key);
            part.kicks += insertion.kicks;
        } else {
            part.refused += 1;
            part.wasted_kicks += insertion.kicks;
        }
    }

    fn next_inside(&mut self) -> Key {
        let next = self.next_inside;
        self.next_inside = after(next, self.inside.len());
        self.inside[next]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUCKETS: usize = 4_000;

    #[test]
    fn smart_cuckoo_wastes_no_kick_in_any_mix() {
        let keys = &Keys::new(BUCKETS, &mut SmallRng::seed_from_u64(1));
        for mix in MIXES {
            let mut smart = runner(SmartCuckoo::new(BUCKETS).unwrap(), mix, keys, 1);
            let mut plain = runner(PlainCuckoo::new(BUCKETS).unwrap(), mix, keys, 1);
            let (mut inserts, mut lookups) = (0, 0);
            for load in LOADS {
                let (smart, plain) = (smart(load).unwrap(), plain(load).unwrap());
                assert_eq!(smart.inserts, plain.inserts);
                assert_eq!(smart.operations, plain.operations);
                assert_eq!(smart.wasted_kicks, 0);
                assert_eq!(plain.wasted_kicks, PlainCuckoo::MAX_KICKS * plain.refused);
                assert!(load >= 0.5 || smart.refused == 0, "{smart:?}");
                assert_eq!(smart.refused > 100, load >= 0.75, "{smart:?}");
                (inserts, lookups) = (inserts + smart.inserts, lookups + smart.lookups);
                if mix == MIXES[4] {
                    assert_eq!(smart.operations, OPERATIONS);
                    assert!(smart.updates > 0);
                }
            }
            // The operations of a growing mix are in the proportions of its percentages.
            let share = mix.2 as f64 / mix.1 as f64 * inserts as f64;
            let is_near = (lookups as f64 - share).abs() <= 0.05 * share;
            assert!(is_near || mix == MIXES[4], "{mix:?}: {lookups}");
        }
    }

    /// A key that counts as absent is inserted and found, or one that counts as inserted is not and is missed.
    #[test]
    fn wrong_answers_end_run() {
        let keys = Keys::new(BUCKETS, &mut SmallRng::seed_from_u64(1));
        let (coming, absent) = (keys.coming.clone(), keys.coming.clone());
        let found = Keys { coming, absent };
        for mix in [MIXES[1], MIXES[4]] {
            for (keys, inside) in [(&found, Vec::new()), (&keys, keys.absent.clone())] {
                let table = PlainCuckoo::new(BUCKETS).unwrap();
                let mut run = Run::new(table, mix, keys, 1);
                run.inside = inside;
                let error = run.part(0.2).unwrap_err().to_string();
                assert!(error.contains("plain-cuckoo gave"), "{error}");
            }
        }
    }
}
