//! Runs one table through a mix, from load to load.

use std::time::Instant;

use anyhow::{Result, ensure};
use rand::rngs::SmallRng;
use relatives::smart_cuckoo::{CuckooTable, Key};

use super::{Keys, Mix, Row};
use crate::workload::{Op, Scheduled, after};

/// A table under a mix, and how far it has come.
pub(super) struct CuckooHashingRun<'a, T> {
    table: T,
    mix: Mix,
    keys: &'a Keys,
    schedule: Scheduled,
    offered: usize,
    inside: Vec<Key>,
    next_inside: usize,
    next_absent: usize,
    /// Number of keys that had been offered when the table first refused one.
    first_refusal: Option<usize>,
    wrong: u64,
}

impl<'a, T: CuckooTable> CuckooHashingRun<'a, T> {
    pub(super) fn new(table: T, mix: Mix, keys: &'a Keys, random: &mut SmallRng) -> Self {
        let (_, inserts, lookups) = mix;
        let counts = [
            (Op::Grow, inserts * 100),
            (Op::LookupStable, lookups * 50),
            (Op::LookupAbsent, lookups * 50),
        ];
        Self {
            table,
            mix,
            keys,
            schedule: Scheduled::new(&counts, Op::Update, random),
            offered: 0,
            inside: Vec::with_capacity(keys.coming.len()),
            next_inside: 0,
            next_absent: 0,
            first_refusal: None,
            wrong: 0,
        }
    }

    /// Runs until `offered` keys were offered, and returns what was done since the last load. A mix
    /// without inserts gets its keys before the clock starts, and then runs for `operations` operations.
    pub(super) fn part(&mut self, offered: usize, operations: usize) -> Result<Row> {
        let (mix, inserts, _) = self.mix;
        let mut part = Row {
            table: T::NAME.into(),
            mix: mix.into(),
            buckets: self.table.buckets().number(),
            ..Row::default()
        };
        let grows = inserts > 0;
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
        let (of, wrong) = (T::NAME, self.wrong);
        ensure!(wrong == 0, "{of} gave {wrong} wrong answers in mix {mix}");
        part.mops = part.operations as f64 / part.seconds / 1e6;
        let load = |offered| offered as f64 / part.buckets as f64;
        part.first_refusal = self.first_refusal.map(load);
        part.memory_bytes = self.table.memory_bytes();
        Ok(part)
    }

    fn operate(&mut self, part: &mut Row) {
        match self.schedule.next_op() {
            Op::Grow => self.offer(part),
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
                match self.table.remove(key) {
                    Some(renewed) => part.renewed += renewed as u64,
                    None => self.wrong += 1,
                }
                self.wrong += u64::from(!self.table.insert(key).placed);
                part.updates += 1;
            }
        }
        part.operations += 1;
    }

    fn offer(&mut self, part: &mut Row) {
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

    fn next_inside(&mut self) -> Key {
        let next = self.next_inside;
        self.next_inside = after(next, self.inside.len());
        self.inside[next]
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use relatives::smart_cuckoo::PlainCuckoo;

    use super::super::MIXES;
    use super::super::tests::study;
    use super::*;

    /// Keys that count as absent are inserted, and so found; then keys that count as inserted are not, and so missed.
    #[test]
    fn wrong_answers_end_the_run() {
        let random = &mut SmallRng::seed_from_u64(1);
        let keys = Keys::new(&study(), random);
        let (coming, absent) = (keys.coming.clone(), keys.coming.clone());
        let found = Keys { coming, absent };
        for mix in [MIXES[1], MIXES[4]] {
            for (keys, inside) in [(&found, Vec::new()), (&keys, keys.absent.clone())] {
                let table = PlainCuckoo::new(4_000).unwrap();
                let mut run = CuckooHashingRun::new(table, mix, keys, random);
                run.inside = inside;
                let error = run.part(500, 500).unwrap_err().to_string();
                assert!(error.contains("plain-cuckoo gave"), "{error}");
            }
        }
    }
}
