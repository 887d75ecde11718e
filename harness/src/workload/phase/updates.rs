//! The phase that looks up any keys and updates the thread's own keys.

use std::ops::Range;
use std::sync::Arc;

use rand::rngs::SmallRng;
use subject::Subject;

use super::schedule::Schedule;
use super::{Tally, after};
use crate::workload::keys::KeyList;

/// The steps of an update. Each update is one operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Update {
    /// A remove and an insert of one key: the closest a set without values comes to giving a key
    /// another value.
    Blind,
    /// The same after a lookup of the key: the closest it comes to a read-modify-write.
    ReadFirst,
}

/// Lookups and updates in a fixed, shuffled order, repeated cyclically.
///
/// All threads draw from one list of keys, so that keys looked up often are also updated often.
/// Only one thread updates a given key, so all of its removes must find it. During an update the
/// key is absent for a moment: a lookup by another thread may rightly say so. So a thread checks
/// its removes and its lookups of its own keys. When all threads are done every key must be
/// present, which the caller checks.
#[derive(Debug)]
pub struct Updates {
    schedule: Schedule<Kind>,
    update: Update,
    drawn: Arc<[usize]>,
    next_drawn: usize,
    /// The drawn keys that belong to the thread, in order.
    own: Vec<usize>,
    next_own: usize,
    mine: Range<usize>,
    /// For each of the thread's own keys, whether it is in the filter.
    inside: Vec<bool>,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Lookup,
    Update,
}

impl Updates {
    /// Creates the phase. Of 100 operations, `lookup` look up the next key drawn, starting at
    /// `offset`, and the others update the next that is among `mine`. Of these, the `accepted` must
    /// be in the filter. If no drawn key belongs to the thread, updates are omitted, and not
    /// counted.
    pub fn new(
        (lookup, update): (u8, Update),
        (drawn, offset): (Arc<[usize]>, usize),
        (mine, accepted): (Range<usize>, &[usize]),
        random: &mut SmallRng,
    ) -> Self {
        let mut inside = vec![false; mine.len()];
        for &index in accepted {
            inside[index - mine.start] = true;
        }
        let is_own = |index: &usize| mine.contains(index);
        Self {
            schedule: Schedule::shuffled(
                &[(Kind::Lookup, usize::from(lookup) * 100)],
                Kind::Update,
                random,
            ),
            update,
            next_drawn: offset % drawn.len(),
            own: drawn.iter().copied().filter(is_own).collect(),
            next_own: 0,
            drawn,
            mine,
            inside,
        }
    }

    /// Counts the thread's own keys that are not in the filter, for lack of room.
    pub(super) fn left_out(&self) -> u64 {
        self.inside.iter().filter(|&&inside| !inside).count() as u64
    }

    pub(super) fn perform_batch<S: Subject, L: KeyList + ?Sized>(
        &mut self,
        subject: &S,
        keys: &L,
        length: usize,
        tally: &mut Tally,
    ) {
        for at in self.schedule.next_batch(length) {
            match self.schedule.kinds[at] {
                Kind::Lookup => {
                    let index = self.drawn[self.next_drawn];
                    self.next_drawn = after(self.next_drawn, self.drawn.len());
                    let found = subject.contains(keys.get(index));
                    let own = self.inside.get(index.wrapping_sub(self.mine.start));
                    tally.missing += u64::from(own.is_some_and(|&inside| inside & !found));
                }
                Kind::Update => {
                    let Some(&index) = self.own.get(self.next_own) else {
                        continue;
                    };
                    self.next_own = after(self.next_own, self.own.len());
                    let key = keys.get(index);
                    let inside = &mut self.inside[index - self.mine.start];
                    if self.update == Update::ReadFirst {
                        let found = subject.contains(key);
                        tally.missing += u64::from(*inside & !found);
                    }
                    if *inside {
                        tally.missing += u64::from(!subject.remove(key));
                    }
                    *inside = subject.insert(key);
                    tally.refused += u64::from(!*inside);
                }
            }
            tally.operations += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::super::exact::Exact;
    use super::super::{Measured, Phase};
    use super::*;
    use crate::workload::keys::Keys;

    fn keys() -> Keys {
        Keys::Numbers((0..100).collect())
    }

    /// 70 % lookups of all 100 keys, and updates of 40..60.
    fn updates(update: Update, accepted: &[usize]) -> Phase {
        let random = &mut SmallRng::seed_from_u64(1);
        let drawn = (0..100).collect();
        let own = (40..60, accepted);
        Phase::Update(Updates::new((70, update), (drawn, 5), own, random))
    }

    #[test]
    fn updates_have_their_percentage_and_put_every_key_back() {
        let mine: Vec<usize> = (40..60).collect();
        for (update, lookups) in [(Update::Blind, 21_000), (Update::ReadFirst, 30_000)] {
            let subject = Exact::holding(100, &keys(), 0..100);
            let tally = subject.perform_exactly(30_000, &keys(), &mut updates(update, &mine));
            let right = Tally {
                operations: 30_000,
                ..Tally::default()
            };
            assert_eq!(tally, right);
            assert_eq!(*subject.calls.lock().unwrap(), [9_000, lookups, 9_000]);
            assert_eq!(*subject.fewest_and_most.lock().unwrap(), (99, 100));
            assert_eq!(subject.count_found(&keys(), 0..100), 100);
        }
    }

    #[test]
    fn a_key_that_was_refused_is_tried_again_and_not_missed_meanwhile() {
        let mine: Vec<usize> = (40..50).collect();
        let subject = Exact::holding(95, &keys(), 0..90);
        let mut phase = updates(Update::ReadFirst, &mine);
        assert_eq!(phase.left_out(), 10);
        let tally = subject.perform_exactly(30_000, &keys(), &mut phase);
        assert_eq!(tally.missing, 0, "50..60 are in at most one by one");
        // 0..40, 50..60 and 60..90 occupy 80 of 95 places.
        assert_eq!((tally.refused, phase.left_out()), (9_000 / 2, 10));
    }

    #[test]
    fn removes_tell_which_keys_were_lost() {
        let mine: Vec<usize> = (40..60).collect();
        let subject = Exact::holding(100, &keys(), 50..100);
        let random = &mut SmallRng::seed_from_u64(1);
        let (drawn, own) = (((0..100).collect(), 0), (40..60, &mine[..]));
        let mut phase = Phase::Update(Updates::new((0, Update::Blind), drawn, own, random));
        let tally = subject.perform_exactly(10_000, &keys(), &mut phase);
        assert_eq!(tally.missing, 10, "each of 40..50 is missed once");
    }

    #[test]
    fn lookups_check_the_keys_of_the_thread_and_no_others() {
        let mine: Vec<usize> = (40..60).collect();
        let lost = Exact::holding(100, &keys(), 50..100);
        let random = &mut SmallRng::seed_from_u64(1);
        let own = (40..60, &mine[..]);
        let lookups = ((100, Update::Blind), ((0..100).collect(), 0), own);
        let mut phase = Phase::Update(Updates::new(lookups.0, lookups.1, lookups.2, random));
        let tally = lost.perform_exactly(10_000, &keys(), &mut phase);
        assert_eq!(tally.missing, 10_000 / 10);
    }
}
