//! Prepares the phase of each thread: what it does while it is measured, and its part of the table.

use std::ops::Range;
use std::sync::Arc;

use rand::SeedableRng;
use rand::rngs::SmallRng;

use super::Bench;
use crate::run::plan::Measurement;
use crate::workload::draw;
use crate::workload::keys::KeySource;
use crate::workload::phase::{
    Cycle, Growth, Lookups, Measured, Mix, Phase, Pool, Pools, Update, Updates, Window, pools,
};
use crate::workload::{Workload, Ycsb};

/// Draws the keys that all threads look up, if the workload needs them in advance.
pub(super) fn draw_lookups(workload: &Workload, keys: &KeySource, seed: u64) -> Arc<[usize]> {
    let mut random = SmallRng::seed_from_u64(seed);
    match *workload {
        Workload::Lookup { hit, skew, .. } => draw::lookups(keys, hit, skew, &mut random),
        Workload::Ycsb { mix, skew, .. } if mix != Ycsb::D => {
            draw::lookups(keys, 100, skew, &mut random)
        }
        _ => Arc::default(),
    }
}

impl Bench<'_> {
    /// Prepares a thread's part of the table. Returns what the thread is to do, and how many keys
    /// were refused. All threads of a measurement get the same `pools`, one for each of them.
    pub(in crate::run) fn prepare(
        &self,
        thread: usize,
        subject: &dyn Measured,
        measurement: &Measurement,
        pools: &Pools,
    ) -> (Phase, u64) {
        let mut part = Part {
            bench: self,
            subject,
            pools,
            thread,
            threads: measurement.threads,
            random: self.random(thread),
            refused: 0,
        };
        let phase = part.phase(&measurement.workload);
        (phase, part.refused)
    }
}

/// One thread's part of a measurement while it is prepared.
struct Part<'a> {
    bench: &'a Bench<'a>,
    subject: &'a dyn Measured,
    pools: &'a Pools,
    thread: usize,
    threads: usize,
    random: SmallRng,
    /// Number of keys refused so far.
    refused: u64,
}

impl Part<'_> {
    fn phase(&mut self, workload: &Workload) -> Phase {
        let keys = self.bench.keys;
        match *workload {
            Workload::LookupHit { .. } => Phase::LookupResident(self.cycle(keys.resident())),
            Workload::LookupMiss { .. } => Phase::LookupAbsent(self.cycle(keys.absent())),
            Workload::Insert { .. } => Phase::Insert(self.share(keys.resident())),
            Workload::Remove { .. } => {
                let mine = self.share(keys.resident());
                self.fill(mine.clone());
                Phase::Remove(mine)
            }
            Workload::Mix { lookup, hit, .. } => Phase::Mix(self.mix((lookup, hit))),
            Workload::Lookup { .. } | Workload::Ycsb { mix: Ycsb::C, .. } => {
                let drawn = Arc::clone(&self.bench.drawn);
                let start = self.share(0..drawn.len()).start;
                Phase::Lookup(Lookups::new(drawn, start, keys.residents()))
            }
            Workload::Window { lookup, skew, .. } => {
                Phase::Window(self.window((lookup, skew), (pools(1), 0)))
            }
            Workload::Ycsb {
                mix: mix @ Ycsb::D,
                skew,
                ..
            } => {
                let shared = (Arc::clone(self.pools), self.thread);
                Phase::Window(self.window((mix.lookup(), skew), shared))
            }
            Workload::Ycsb { mix, .. } => Phase::Update(self.updates(mix)),
            Workload::Grow {
                insert,
                hit,
                from,
                load,
                ..
            } => Phase::Grow(self.growth((insert, hit), (from, load))),
        }
    }

    /// Prepares a mix. Half of the resident keys stay; the other half and the churn keys are the
    /// two pools, each of them half inserted.
    fn mix(&mut self, lookup_and_hit: (u8, u8)) -> Mix {
        let keys = self.bench.keys;
        let resident = keys.resident();
        let middle = resident.len() / 2;
        let stable = self.fill(self.share(0..middle));
        let pool = self.fill(self.share(middle..resident.end));
        let (pool, absent) = (self.pool(pool), self.cycle(keys.absent()));
        Mix::new(lookup_and_hit, stable, absent, pool, &mut self.random)
    }

    /// Prepares a window over all keys of the thread that are ever inserted, and lookups in the
    /// windows of all these pools, of which one will be the thread's own.
    fn window(&mut self, (lookup, skew): (u8, f64), pools: (Pools, usize)) -> Window {
        let inside = self.fill(self.share(self.bench.keys.resident()));
        let in_all = inside.len() * pools.0.len();
        let pool = self.pool(inside);
        let ages = draw::ages(in_all, skew, &mut self.random);
        Window::new(lookup, pools, pool, &ages, &mut self.random)
    }

    fn updates(&mut self, mix: Ycsb) -> Updates {
        self.fill(self.share(self.bench.keys.resident()));
        let update = match mix {
            Ycsb::F => Update::ReadFirst,
            _ => Update::Blind,
        };
        let cycle = self.cycle(0..self.bench.drawn.len());
        Updates::new((mix.lookup(), update), cycle, &mut self.random)
    }

    /// Prepares a phase that fills the table from one load factor to another.
    fn growth(&mut self, insert_and_hit: (u8, u8), (from, load): (f64, f64)) -> Growth {
        let mine = self.share(self.bench.keys.resident());
        let middle = mine.start + (mine.len() as f64 * from / load) as usize;
        let accepted = self.fill(mine.start..middle);
        let absent = self.cycle(self.bench.keys.absent());
        let coming = middle..mine.end;
        Growth::new(insert_and_hit, accepted, coming, absent, &mut self.random)
    }

    /// Inserts these keys, and returns the accepted ones.
    fn fill(&mut self, keys: Range<usize>) -> Vec<usize> {
        let asked = keys.len();
        let accepted = self.bench.fill(self.subject, keys, &mut self.random);
        self.refused += (asked - accepted.len()) as u64;
        accepted
    }

    /// Returns a pool of the keys inside and of the thread's churn keys, which are outside.
    fn pool(&self, mut inside: Vec<usize>) -> Pool {
        let live = inside.len();
        inside.extend(self.share(self.bench.keys.churn()));
        Pool::new(inside, live)
    }

    /// Returns a walk over the range: the same for all threads, but each starts elsewhere.
    fn cycle(&self, range: Range<usize>) -> Cycle {
        let start = self.share(0..range.len()).start;
        Cycle::new(range, start)
    }

    fn share(&self, range: Range<usize>) -> Range<usize> {
        share(range, self.thread, self.threads)
    }
}

/// Returns a thread's part of a range that is divided among all threads.
fn share(range: Range<usize>, thread: usize, threads: usize) -> Range<usize> {
    let bound =
        |part: usize| range.start + (range.len() as u128 * part as u128 / threads as u128) as usize;
    bound(thread)..bound(thread + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_disjoint_and_leave_nothing_out() {
        for (length, threads) in [(0, 3), (2, 3), (10, 3), (1_000, 7)] {
            let mut next = 100;
            for thread in 0..threads {
                let mine = share(100..100 + length, thread, threads);
                assert_eq!(mine.start, next);
                assert!(mine.len().abs_diff(length / threads) <= 1);
                next = mine.end;
            }
            assert_eq!(next, 100 + length);
        }
    }
}
