//! Prepares the phase of each thread, which it performs while it is measured, and its part of the table.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;

use crate::keys::{KeySource, drawn_ages, drawn_lookups};
use crate::operations::{
    Cycle, Lookups, Measured, Op, Phase, Pool, Pools, Present, Scheduled, pools,
};
use crate::workload::{Workload, Ycsb};

/// A subject with the keys that a workload starts from.
pub(crate) struct Table {
    pub(crate) subject: Box<dyn Measured>,
    /// Number of keys that it refused while it was filled.
    pub(crate) refused: u64,
    /// The pools of threads that look up keys of one another.
    pub(crate) pools: Pools,
}

/// Draws the keys that all threads look up, if the workload needs them in advance.
pub(crate) fn draw_lookups(workload: &Workload, keys: &KeySource, seed: u64) -> Arc<[usize]> {
    let mut random = SmallRng::seed_from_u64(seed);
    match *workload {
        Workload::Lookup { hit, skew, .. } => drawn_lookups(keys, hit, skew, &mut random),
        Workload::Ycsb { mix, skew, .. } if mix != Ycsb::D => {
            drawn_lookups(keys, 100, skew, &mut random)
        }
        _ => Arc::default(),
    }
}

/// Inserts keys in random order, so that a walk along the list does not meet them in the order of insertion. Returns the
/// accepted keys, in the order of the list.
pub(crate) fn fill(
    subject: &dyn Measured,
    (keys, range): (&KeySource, Range<usize>),
    random: &mut SmallRng,
    stop: &AtomicBool,
) -> Vec<usize> {
    let mut order: Vec<usize> = range.collect();
    order.shuffle(random);
    subject.fill(keys.keys(), &mut order, stop);
    order.sort_unstable();
    order
}

/// One thread's part of a table while it is prepared.
pub(crate) struct Part<'a> {
    pub(crate) table: &'a Table,
    pub(crate) keys: &'a KeySource,
    /// The keys that all threads look up, if they were drawn before.
    pub(crate) drawn: &'a Arc<[usize]>,
    pub(crate) thread: usize,
    pub(crate) threads: usize,
    pub(crate) random: SmallRng,
    /// How many keys the table has refused.
    pub(crate) refused: u64,
    pub(crate) stop: &'a AtomicBool,
}

impl Part<'_> {
    /// Fills the part. Returns the phase of the thread.
    pub(crate) fn phase(&mut self, workload: &Workload) -> Phase {
        let keys = self.keys;
        let lookups = |cycle, present| Phase::Lookup(Lookups { cycle, present });
        let scheduled = match *workload {
            Workload::LookupHit { .. } => {
                return lookups(self.cycle(keys.resident()), Present::All);
            }
            Workload::LookupMiss { .. } => {
                return lookups(self.cycle(keys.absent()), Present::None);
            }
            Workload::Lookup { .. } | Workload::Ycsb { mix: Ycsb::C, .. } => {
                let drawn = Arc::clone(self.drawn);
                let present = Present::Drawn(Arc::clone(&drawn), keys.residents());
                return lookups(self.cycle(0..drawn.len()), present);
            }
            Workload::Insert { .. } => return Phase::Insert(self.share(keys.resident())),
            Workload::Remove { .. } => {
                let mine = self.share(keys.resident());
                self.fill(mine.clone());
                return Phase::Remove(mine);
            }
            Workload::Mix { lookup, hit, .. } => self.mix(lookup, hit),
            Workload::Window { lookup, skew, .. } => self.window(lookup, skew, (pools(1), 0)),
            Workload::Ycsb {
                mix: mix @ Ycsb::D,
                skew,
                ..
            } => {
                let shared = (Arc::clone(&self.table.pools), self.thread);
                self.window(mix.lookup(), skew, shared)
            }
            Workload::Ycsb { mix, .. } => self.updates(mix),
            Workload::Grow {
                insert,
                hit,
                from,
                load,
                ..
            } => self.growth(insert, hit, from / load),
        };
        Phase::Scheduled(Box::new(scheduled))
    }

    /// Prepares a mix. Half of the resident keys stay; the other half and the churn keys are the
    /// two pools, each of them half inserted.
    fn mix(&mut self, lookup: u8, hit: u8) -> Scheduled {
        let resident = self.keys.resident();
        let middle = resident.start + resident.len() / 2;
        let stable = self.fill(self.share(resident.start..middle));
        let pool = self.fill(self.share(middle..resident.end));
        let counts = lookups(lookup, hit);
        Scheduled {
            stable,
            walk: self.cycle(self.keys.absent()),
            pools: self.with_own((pools(1), 0), pool),
            ..Scheduled::new(&counts, Op::Remove, &mut self.random)
        }
    }

    /// Prepares a window over all keys of the thread that are ever inserted, and lookups in the
    /// windows of all these pools, of which one will be the thread's own. An age counts the newer
    /// keys of all threads, which are taken to slide in turns.
    fn window(&mut self, lookup: u8, skew: f64, (pools, own): (Pools, usize)) -> Scheduled {
        let inside = self.fill(self.share(self.keys.resident()));
        let (size, threads) = (inside.len(), pools.len());
        let ages = drawn_ages(size * threads, skew, &mut self.random).into_iter();
        let ages = ages.map(|age| ((own + age) % threads, age / threads));
        let counts = [(Op::LookupAged, percent(lookup))];
        Scheduled {
            size,
            ages: ages.collect(),
            pools: self.with_own((pools, own), inside),
            ..Scheduled::new(&counts, Op::Slide, &mut self.random)
        }
    }

    fn updates(&mut self, mix: Ycsb) -> Scheduled {
        self.fill(self.share(self.keys.resident()));
        let update = match mix {
            Ycsb::F => Op::ReadAndUpdate,
            _ => Op::Update,
        };
        let counts = [(Op::LookupShared, percent(mix.lookup()))];
        Scheduled {
            walk: self.cycle(0..self.drawn.len()),
            ..Scheduled::new(&counts, update, &mut self.random)
        }
    }

    /// Prepares a phase that fills the table, of which it finds this share filled.
    fn growth(&mut self, insert: u8, hit: u8, filled: f64) -> Scheduled {
        let mine = self.share(self.keys.resident());
        let middle = mine.start + (mine.len() as f64 * filled) as usize;
        let mut stable = self.fill(mine.start..middle);
        stable.reserve_exact(mine.end - middle);
        let counts = lookups(100 - insert, hit);
        Scheduled {
            stable,
            to_insert: Some(middle..mine.end),
            walk: self.cycle(self.keys.absent()),
            ..Scheduled::new(&counts, Op::Grow, &mut self.random)
        }
    }

    /// Inserts these keys, and returns the accepted ones.
    fn fill(&mut self, keys: Range<usize>) -> Vec<usize> {
        let offered = keys.len();
        let subject = &*self.table.subject;
        let accepted = fill(subject, (self.keys, keys), &mut self.random, self.stop);
        self.refused += (offered - accepted.len()) as u64;
        accepted
    }

    /// Sets the thread's own pool: the keys inside, and its churn keys, which are outside.
    fn with_own(&self, (pools, own): (Pools, usize), mut inside: Vec<usize>) -> (Pools, usize) {
        let live = inside.len();
        inside.extend(self.share(self.keys.churn()));
        pools[own].get_or_init(|| Pool::new(inside, live));
        (pools, own)
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

fn percent(percent: u8) -> usize {
    usize::from(percent) * Scheduled::LENGTH / 100
}

/// Returns the lookups of a schedule, of which `hit` per cent ask for a present key.
fn lookups(lookup: u8, hit: u8) -> [(Op, usize); 2] {
    let hits = usize::from(lookup) * usize::from(hit);
    [
        (Op::LookupStable, hits),
        (Op::LookupAbsent, percent(lookup) - hits),
    ]
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
    fn shares_of_threads_partition_range() {
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
