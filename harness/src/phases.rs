//! Prepares the phase of each thread, which it performs while it is measured, and its part of the table.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;

use crate::keys::{KeySource, drawn_lookups};
use crate::operations::{Cycle, Lookups, Measured, Mix, Phase, Pool, Present};
use crate::workload::Workload;

/// A subject with the keys that a workload starts from.
pub(crate) struct Table {
    pub(crate) subject: Box<dyn Measured>,
    /// Number of keys that it refused while it was filled.
    pub(crate) refused: u64,
}

/// Draws the keys that all threads look up, if the workload needs them in advance.
pub(crate) fn draw_lookups(workload: &Workload, keys: &KeySource, seed: u64) -> Arc<[usize]> {
    let random = &mut SmallRng::seed_from_u64(seed);
    match *workload {
        Workload::Lookup { hit, .. } => drawn_lookups(keys, hit, random),
        _ => Arc::default(),
    }
}

/// Inserts keys in random order, so that a walk along the list does not meet them in the order of insertion. Returns
/// the accepted keys, in the order of the list.
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
        match *workload {
            Workload::LookupHit { .. } => lookups(self.cycle(keys.resident()), Present::All),
            Workload::LookupMiss { .. } => lookups(self.cycle(keys.absent()), Present::None),
            Workload::Lookup { .. } => {
                let drawn = Arc::clone(self.drawn);
                let present = Present::Drawn(Arc::clone(&drawn), keys.residents());
                lookups(self.cycle(0..drawn.len()), present)
            }
            Workload::Insert { .. } => Phase::Insert(self.share(keys.resident())),
            Workload::Remove { .. } => {
                let mine = self.share(keys.resident());
                self.fill(mine.clone());
                Phase::Remove(mine)
            }
            Workload::Mix { lookup, .. } => Phase::Mix(Box::new(self.mix(lookup))),
        }
    }

    /// Prepares a mix. Half of the resident keys stay; the other half and the churn keys are the
    /// two pools, each of them half inserted.
    fn mix(&mut self, lookup: u8) -> Mix {
        let resident = self.keys.resident();
        let middle = resident.start + resident.len() / 2;
        let stable = self.fill(self.share(resident.start..middle));
        let pool = self.fill(self.share(middle..resident.end));
        let (absent, pool) = (self.cycle(self.keys.absent()), self.pool(pool));
        Mix::new(lookup, (stable, absent, pool), &mut self.random)
    }

    /// Inserts these keys, and returns the accepted ones.
    fn fill(&mut self, keys: Range<usize>) -> Vec<usize> {
        let offered = keys.len();
        let subject = &*self.table.subject;
        let accepted = fill(subject, (self.keys, keys), &mut self.random, self.stop);
        self.refused += (offered - accepted.len()) as u64;
        accepted
    }

    /// Returns the thread's pool: the keys inside, and its churn keys, which are outside.
    fn pool(&self, mut inside: Vec<usize>) -> Pool {
        let live = inside.len();
        inside.extend(self.share(self.keys.churn()));
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
