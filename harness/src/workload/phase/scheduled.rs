//! The phase of several kinds of operation, in a fixed, shuffled order that is repeated cyclically.

use std::ops::Range;

use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use subject::Subject;

use super::{Cycle, Pools, Tally, after};
use crate::workload::Kind;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// Looks up a key that stays in the filter; as long as there is none, an absent one.
    LookupStable,
    /// Looks up a key that is never inserted.
    LookupAbsent,
    /// Looks up the next of the keys that all threads look up and update.
    LookupShared,
    /// Looks up a key of the next age in one of the windows. It must be found unless its owner has
    /// begun to remove keys since it was chosen.
    LookupAged,
    /// Inserts the next key of the thread's pool.
    Insert,
    /// Removes the oldest key of the thread's pool.
    Remove,
    /// Inserts a key that is to stay.
    Grow,
    /// Removes a shared key and inserts it again: see [`Ycsb`](crate::workload::Ycsb).
    Update,
    /// The same after a lookup of the key: the closest a set comes to a read-modify-write.
    ReadAndUpdate,
    /// Removes the oldest key of the thread's window and inserts a new one.
    Slide,
}

/// Operations of one thread. All but the schedule is empty unless its operations need it.
#[derive(Default)]
pub struct Scheduled {
    /// Kinds of operation in a shuffled order, and the walk through them.
    pub(crate) kinds: Vec<Op>,
    pub(crate) places: Cycle,
    /// Keys that stay in the filter.
    pub(crate) stable: Vec<usize>,
    pub(crate) next_stable: usize,
    /// Absent or shared keys.
    pub(crate) walk: Cycle,
    /// Keys still to be inserted; when there are no more, the phase ends.
    pub(crate) coming: Option<Range<usize>>,
    /// Pools of threads that look each other's keys up, and which of them is the thread's own.
    ///
    /// It alone inserts and removes the keys of its pool, so it knows every answer about them.
    pub(crate) pools: (Pools, usize),
    /// Number of keys in the window at first, and after every slide.
    pub(crate) size: usize,
    /// For each lookup in a window, whose key, and how many that thread has inserted after it.
    pub(crate) ages: Vec<(usize, usize)>,
    pub(crate) next_age: usize,
    /// The keys that were removed, and refused when they should have been inserted again.
    pub(crate) owed: Vec<usize>,
}

impl Scheduled {
    /// Operations in a schedule: enough that a percentage of a percentage is exact.
    pub(crate) const LENGTH: usize = 100 * 100;

    /// Creates a phase with each operation as often as its count, and the last in all other places.
    pub(crate) fn new(counts: &[(Op, usize)], last: Op, random: &mut SmallRng) -> Self {
        let mut kinds = Vec::with_capacity(Self::LENGTH);
        for &(kind, count) in counts {
            kinds.resize(kinds.len() + count, kind);
        }
        kinds.resize(Self::LENGTH, last);
        kinds.shuffle(random);
        if last == Op::Remove {
            // Removes and inserts alternate, so that the load factor stays constant.
            let removes = kinds.iter_mut().filter(|op| **op == Op::Remove);
            removes.skip(1).step_by(2).for_each(|op| *op = Op::Insert);
        }
        Self {
            places: Cycle::new(0..kinds.len(), 0),
            kinds,
            ..Self::default()
        }
    }

    #[inline]
    pub(crate) fn next_op(&mut self) -> Op {
        self.kinds[self.places.next_key()]
    }

    /// Returns what the operation does that is this many places after the next.
    pub(super) fn coming(&self, ahead: usize) -> Kind {
        let at = (self.places.next + ahead) % self.kinds.len();
        match self.kinds[at] {
            Op::LookupStable | Op::LookupAbsent | Op::LookupShared | Op::LookupAged => Kind::Lookup,
            Op::Insert | Op::Grow => Kind::Insert,
            Op::Remove => Kind::Remove,
            Op::Update | Op::ReadAndUpdate | Op::Slide => Kind::Update,
        }
    }

    /// An operation for which there is no key is omitted, and not counted.
    pub(super) fn perform_batch<S: Subject>(
        &mut self,
        subject: &S,
        keys: &[u64],
        length: usize,
        tally: &mut Tally,
    ) -> bool {
        let finds = |key: usize| subject.contains(&keys[key]);
        let inserts = |key: usize| subject.insert(&keys[key]);
        let removes = |key: usize| subject.remove(&keys[key]);
        let (pools, own) = &self.pools;
        let own = pools.get(*own).and_then(|pool| pool.get());
        for at in self.places.next_batch(length) {
            match self.kinds[at] {
                Op::LookupStable if !self.stable.is_empty() => {
                    let key = self.stable[self.next_stable];
                    self.next_stable = after(self.next_stable, self.stable.len());
                    tally.note_lookup(true, finds(key));
                }
                Op::LookupStable | Op::LookupAbsent => {
                    tally.note_lookup(false, finds(self.walk.next_key()));
                }
                Op::LookupShared => tally.note_lookup(true, finds(self.walk.next_key())),
                Op::LookupAged => {
                    let (thread, age) = self.ages[self.next_age];
                    self.next_age = after(self.next_age, self.ages.len());
                    // One that still fills its part has no window yet.
                    let Some(pool) = pools[thread].get().or(own) else {
                        continue;
                    };
                    let taken = pool.taken();
                    let Some(key) = pool.of_age(age) else {
                        continue;
                    };
                    let found = finds(key);
                    tally.missing += u64::from(!found & (pool.taken() == taken));
                }
                Op::Remove => {
                    let Some(key) = own.and_then(|pool| pool.take_oldest()) else {
                        continue;
                    };
                    tally.missing += u64::from(!removes(key));
                }
                Op::Insert => {
                    let Some((pool, key)) = own.and_then(|pool| Some((pool, pool.next_in()?)))
                    else {
                        continue;
                    };
                    if inserts(key) {
                        pool.accept();
                    } else {
                        tally.refused += 1;
                    }
                }
                Op::Grow => {
                    let Some(key) = self.coming.as_mut().and_then(Iterator::next) else {
                        break;
                    };
                    if inserts(key) {
                        self.stable.push(key);
                    } else {
                        tally.refused += 1;
                    }
                }
                op @ (Op::Update | Op::ReadAndUpdate) => {
                    let key = self.walk.next_key();
                    if op == Op::ReadAndUpdate {
                        tally.note_lookup(true, finds(key));
                    }
                    if !removes(key) {
                        tally.missing += 1;
                    } else if !inserts(key) {
                        tally.refused += 1;
                        self.owed.push(key);
                    }
                    self.owed.pop_if(|owed| inserts(*owed));
                }
                Op::Slide => {
                    let Some(pool) = own.filter(|_| self.size > 0) else {
                        continue;
                    };
                    if let Some(key) = pool.take_oldest() {
                        tally.missing += u64::from(!removes(key));
                    }
                    // More than one if earlier ones were refused.
                    while pool.live() < self.size
                        && let Some(key) = pool.next_in()
                    {
                        if !inserts(key) {
                            tally.refused += 1;
                            break;
                        }
                        pool.accept();
                    }
                }
            }
            tally.operations += 1;
        }
        self.coming.as_ref().is_none_or(|coming| !coming.is_empty())
    }
}
