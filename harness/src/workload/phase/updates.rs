//! The phase that looks up and updates keys that all threads share.

use rand::rngs::SmallRng;
use subject::Subject;

use super::schedule::Schedule;
use super::{Cycle, Tally};
use crate::workload::keys::KeyList;
use crate::workload::latency;

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
/// All threads look up and update the keys of one list, so that keys looked up often are also
/// updated often, by all threads. The list that it runs over holds copies of the keys in the order
/// of operations, as that of [lookups](super::Lookups) does, so that reaching a key costs as much.
///
/// During an update the key is absent for a moment: a lookup by another thread may rightly say so,
/// and so may a remove, after which nothing is inserted: the other thread puts the key back. Each
/// remove that succeeds is followed by one insert. So a thread that works alone misses no key, and
/// when all threads are done each key must be there exactly as often as before, which the caller
/// checks.
#[derive(Debug)]
pub struct Updates {
    schedule: Schedule<Kind>,
    update: Update,
    cycle: Cycle,
    /// The keys that were removed, and refused when they were to be inserted again.
    owed: Vec<usize>,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Lookup,
    Update,
}

impl Updates {
    /// Creates the phase. Of 100 operations, `lookup` look up the next key of the cycle, and the
    /// others update it.
    pub fn new((lookup, update): (u8, Update), cycle: Cycle, random: &mut SmallRng) -> Self {
        let lookups = usize::from(lookup) * 100;
        Self {
            schedule: Schedule::shuffled(&[(Kind::Lookup, lookups)], Kind::Update, random),
            update,
            cycle,
            owed: Vec::new(),
        }
    }

    /// Counts the keys that the thread has removed and could not insert again, for lack of room.
    pub(super) fn left_out(&self) -> u64 {
        self.owed.len() as u64
    }

    /// Returns what the operation does that is this many places after the next.
    pub(super) fn coming(&self, ahead: usize) -> latency::Kind {
        match self.schedule.coming(ahead) {
            Kind::Lookup => latency::Kind::Lookup,
            Kind::Update => latency::Kind::Update,
        }
    }

    pub(super) fn perform_batch<S: Subject, L: KeyList + ?Sized>(
        &mut self,
        subject: &S,
        keys: &L,
        length: usize,
        tally: &mut Tally,
    ) {
        let places = self.schedule.next_batch(length.min(self.cycle.left()));
        let batch = self.cycle.next_batch(places.len());
        tally.operations += batch.len() as u64;
        let kinds = &self.schedule.kinds[places];
        for ((key, index), kind) in keys.iter(batch.clone()).zip(batch).zip(kinds) {
            match kind {
                Kind::Lookup => tally.missing += u64::from(!subject.contains(key)),
                Kind::Update => {
                    if self.update == Update::ReadFirst {
                        tally.missing += u64::from(!subject.contains(key));
                    }
                    if !subject.remove(key) {
                        tally.missing += 1;
                    } else if !subject.insert(key) {
                        tally.refused += 1;
                        self.owed.push(index);
                    }
                    if let Some(&owed) = self.owed.last()
                        && subject.insert(keys.get(owed))
                    {
                        self.owed.pop();
                    }
                }
            }
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

    /// Operations on all 100 keys, of which so many per cent are lookups.
    fn updates(lookup: u8, update: Update) -> Phase {
        let random = &mut SmallRng::seed_from_u64(1);
        let cycle = Cycle::new(0..100, 5);
        Phase::Update(Updates::new((lookup, update), cycle, random))
    }

    #[test]
    fn updates_have_their_percentage_and_put_every_key_back() {
        for (update, lookups) in [(Update::Blind, 21_000), (Update::ReadFirst, 30_000)] {
            let subject = Exact::holding(100, &keys(), 0..100);
            let tally = subject.perform_exactly(30_000, &keys(), &mut updates(70, update));
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
    fn every_key_is_looked_up_and_updated() {
        let subject = Exact::holding(100, &keys(), 0..50);
        let tally = subject.perform_exactly(10_000, &keys(), &mut updates(100, Update::Blind));
        assert_eq!(tally.missing, 5_000);
        let tally = subject.perform_exactly(10_000, &keys(), &mut updates(0, Update::Blind));
        assert_eq!(tally.missing, 5_000);
        // What another thread has removed, that thread puts back.
        let [inserts, _, removes] = *subject.calls.lock().unwrap();
        assert_eq!((inserts, removes), (5_000, 10_000));
        assert_eq!(subject.count_found(&keys(), 0..50), 50);
        assert_eq!(subject.count_found(&keys(), 50..100), 0);
    }

    #[test]
    fn a_key_that_was_refused_is_owed_until_there_is_room() {
        let mut subject = Exact::holding(100, &keys(), 0..100);
        subject.room = 90;
        let mut phase = updates(0, Update::Blind);
        let tally = subject.perform_exactly(1_000, &keys(), &mut phase);
        // Ten are refused until so few are left; from then on each finds the room that it has left.
        assert_eq!((tally.refused, phase.left_out()), (10, 10));
        assert_eq!(subject.keys.lock().unwrap().len(), 90);
        subject.room = 100;
        subject.perform_exactly(1_000, &keys(), &mut phase);
        assert_eq!(phase.left_out(), 0);
        assert_eq!(subject.count_found(&keys(), 0..100), 100);
    }
}
