//! Runs one table through a mix, from load to load.

use std::time::Instant;

use anyhow::{Result, ensure};
use rand::rngs::SmallRng;
use relatives::smart_cuckoo::{CuckooTable, Key};

use super::{Keys, Mix};
use crate::workload::phase::after;
use crate::workload::phase::schedule::Schedule;

/// A table under a mix, and how far it has come.
pub(super) struct CuckooHashingRun<'a, T> {
    table: T,
    mix: Mix,
    keys: &'a Keys,
    schedule: Schedule<Kind>,
    /// Number of keys offered so far.
    offered: usize,
    /// Keys that are in the table.
    inside: Vec<Key>,
    next_inside: usize,
    next_absent: usize,
    /// Number of keys that had been offered when the table first refused one.
    first_refusal: Option<usize>,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Insert,
    LookupInside,
    LookupAbsent,
    Update,
}

/// Counts between two loads.
#[derive(Debug, Default)]
pub(super) struct Part {
    pub(super) inserts: u64,
    pub(super) refused: u64,
    pub(super) refused_early: u64,
    pub(super) kicks: u64,
    pub(super) wasted_kicks: u64,
    pub(super) lookups: u64,
    pub(super) updates: u64,
    pub(super) renewed: u64,
    /// Wrong answers.
    pub(super) wrong: u64,
    pub(super) operations: u64,
    pub(super) seconds: f64,
    pub(super) first_refusal: Option<usize>,
    pub(super) memory_bytes: usize,
}

impl<'a, T: CuckooTable> CuckooHashingRun<'a, T> {
    pub(super) fn new(table: T, mix: Mix, keys: &'a Keys, random: &mut SmallRng) -> Self {
        let lookups = usize::from(mix.lookup) * 100;
        let counts = [
            (Kind::Insert, usize::from(mix.insert) * 100),
            (Kind::LookupInside, lookups / 2),
            (Kind::LookupAbsent, lookups - lookups / 2),
        ];
        Self {
            table,
            mix,
            keys,
            schedule: Schedule::shuffled(&counts, Kind::Update, random),
            offered: 0,
            inside: Vec::with_capacity(keys.coming.len()),
            next_inside: 0,
            next_absent: 0,
            first_refusal: None,
        }
    }

    /// Runs until `offered` keys were offered. A mix without inserts gets its keys before the clock
    /// starts, and then runs for `operations` operations.
    pub(super) fn part(&mut self, offered: usize, operations: usize) -> Result<Part> {
        let mut part = Part::default();
        let grows = self.mix.insert > 0;
        if !grows {
            while self.offered < offered {
                self.offer(&mut part);
            }
        }
        let start = Instant::now();
        while if grows {
            self.offered < offered
        } else {
            part.operations < operations as u64
        } {
            self.operate(&mut part);
        }
        part.seconds = start.elapsed().as_secs_f64();
        ensure!(
            part.wrong == 0,
            "{} gave {} wrong answers in mix {}",
            T::NAME,
            part.wrong,
            self.mix
        );
        part.first_refusal = self.first_refusal;
        part.memory_bytes = self.table.memory_bytes();
        Ok(part)
    }

    fn operate(&mut self, part: &mut Part) {
        match self.schedule.next_kind() {
            Kind::Insert => self.offer(part),
            Kind::LookupInside if !self.inside.is_empty() => {
                let key = self.next_inside();
                part.wrong += u64::from(!self.table.contains(key));
                part.lookups += 1;
            }
            Kind::LookupInside | Kind::LookupAbsent => {
                let key = self.keys.absent[self.next_absent];
                self.next_absent = after(self.next_absent, self.keys.absent.len());
                part.wrong += u64::from(self.table.contains(key));
                part.lookups += 1;
            }
            Kind::Update => {
                let key = self.next_inside();
                match self.table.remove(key) {
                    Some(renewed) => part.renewed += renewed as u64,
                    None => part.wrong += 1,
                }
                part.wrong += u64::from(!self.table.insert(key).placed);
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
            part.refused_early += u64::from(insertion.kicks == 0);
            part.wasted_kicks += insertion.kicks;
            self.first_refusal.get_or_insert(self.offered);
        }
    }

    /// Returns the next of the keys inside, one after another.
    fn next_inside(&mut self) -> Key {
        let next = self.next_inside;
        self.next_inside = after(next, self.inside.len());
        self.inside[next]
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use relatives::smart_cuckoo::{Buckets, Insertion, PlainCuckoo};

    use super::super::tests::study;
    use super::*;

    /// Accepts every key, and finds none.
    struct Forgetful(PlainCuckoo);

    impl CuckooTable for Forgetful {
        const NAME: &'static str = "forgetful";

        fn new(buckets: usize) -> Result<Self> {
            Ok(Self(PlainCuckoo::new(buckets)?))
        }

        fn insert(&mut self, _key: Key) -> Insertion {
            Insertion {
                placed: true,
                kicks: 0,
            }
        }

        fn remove(&mut self, _key: Key) -> Option<usize> {
            Some(0)
        }

        fn buckets(&self) -> &Buckets {
            self.0.buckets()
        }

        fn memory_bytes(&self) -> usize {
            0
        }
    }

    #[test]
    fn wrong_answers_are_no_measurement() {
        let random = &mut SmallRng::seed_from_u64(1);
        let keys = Keys::new(&study(), random);
        for mix in [Mix::ALL[1], Mix::ALL[4]] {
            let table = Forgetful::new(100).unwrap();
            let part = CuckooHashingRun::new(table, mix, &keys, random).part(500, 500);
            let error = part.unwrap_err().to_string();
            assert!(error.contains("forgetful gave"), "{error}");
        }
    }
}
