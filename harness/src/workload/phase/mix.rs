//! The phase that mixes lookups, inserts and removes in a fixed proportion.

use rand::rngs::SmallRng;
use subject::Subject;

use super::schedule::Schedule;
use super::{Cycle, Pool, Tally, after};
use crate::workload::keys::KeyList;
use crate::workload::latency;

/// Operations in a fixed, shuffled order, repeated cyclically.
///
/// The thread inserts and removes keys of its own pool, and removes and inserts alternate. So the
/// load factor stays constant, and every answer about a key in the pool is known in advance.
#[derive(Debug)]
pub struct Mix {
    schedule: Schedule<Kind>,
    /// Keys that stay in the filter, for lookups that hit.
    stable: Vec<usize>,
    next_stable: usize,
    absent: Cycle,
    pool: Pool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    LookupResident,
    LookupAbsent,
    Insert,
    Remove,
}

impl Mix {
    /// Creates a mix. Of 100 operations `lookup` look a key up, and the rest are removes and
    /// inserts in equal numbers. Of 100 lookups, `hit` ask for a `stable` key, all of which must be
    /// in the filter, and the others walk through `absent` keys. Without stable keys, no lookup
    /// hits. With an empty pool, nothing is inserted or removed: such operations are omitted, and
    /// not counted.
    pub fn new(
        (lookup, hit): (u8, u8),
        stable: Vec<usize>,
        absent: Cycle,
        pool: Pool,
        random: &mut SmallRng,
    ) -> Self {
        let lookups = usize::from(lookup) * 100;
        let hits = usize::from(lookup) * usize::from(hit);
        let mut schedule = Schedule::shuffled(
            &[
                (Kind::LookupResident, hits),
                (Kind::LookupAbsent, lookups - hits),
            ],
            Kind::Remove,
            random,
        );
        // Every second remove becomes an insert.
        for kind in (schedule.kinds.iter_mut())
            .filter(|kind| **kind == Kind::Remove)
            .skip(1)
            .step_by(2)
        {
            *kind = Kind::Insert;
        }
        Self {
            schedule,
            stable,
            next_stable: 0,
            absent,
            pool,
        }
    }

    /// Returns what the operation does that is this many places after the next.
    pub(super) fn coming(&self, ahead: usize) -> latency::Kind {
        match self.schedule.coming(ahead) {
            Kind::LookupResident | Kind::LookupAbsent => latency::Kind::Lookup,
            Kind::Insert => latency::Kind::Insert,
            Kind::Remove => latency::Kind::Remove,
        }
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
                Kind::LookupResident => {
                    let Some(&index) = self.stable.get(self.next_stable) else {
                        continue;
                    };
                    self.next_stable = after(self.next_stable, self.stable.len());
                    tally.missing += u64::from(!subject.contains(keys.get(index)));
                }
                Kind::LookupAbsent => {
                    let index = self.absent.next_key();
                    tally.absent += 1;
                    tally.false_positives += u64::from(subject.contains(keys.get(index)));
                }
                Kind::Remove => {
                    let Some(index) = self.pool.take_oldest() else {
                        continue;
                    };
                    tally.missing += u64::from(!subject.remove(keys.get(index)));
                }
                Kind::Insert => {
                    let Some(index) = self.pool.next_in() else {
                        continue;
                    };
                    if subject.insert(keys.get(index)) {
                        self.pool.accept();
                    } else {
                        tally.refused += 1;
                    }
                }
            }
            tally.operations += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::super::Phase;
    use super::super::exact::Exact;
    use super::*;
    use crate::workload::keys::Keys;

    /// Returns an exact set with room for `room` keys that holds the keys 0..150, 100 of them
    /// stable.
    fn mixed(room: usize) -> (Exact, Keys, Mix) {
        let keys = Keys::Numbers((0..400).collect());
        let subject = Exact::holding(room, &keys, 0..150);
        let (stable, pool) = ((0..100).collect(), (100..200).collect());
        let random = &mut SmallRng::seed_from_u64(1);
        let absent = Cycle::new(200..400, 7);
        let mix = Mix::new((90, 30), stable, absent, Pool::new(pool, 50), random);
        (subject, keys, mix)
    }

    #[test]
    fn a_mix_has_its_percentages_and_holds_its_load() {
        let (subject, keys, mix) = mixed(150);
        let tally = subject.perform_exactly(30_000, &keys, &mut Phase::Mix(mix));
        assert_eq!(*subject.calls.lock().unwrap(), [1_500, 27_000, 1_500]);
        assert_eq!(*subject.fewest_and_most.lock().unwrap(), (149, 150));
        let expected = Tally {
            operations: 30_000,
            absent: 18_900,
            ..Tally::default()
        };
        assert_eq!(
            tally, expected,
            "70 % of lookups are absent, and no answer is wrong"
        );
    }

    #[test]
    fn a_refused_key_stays_next_in_line() {
        let (mut subject, keys, mix) = mixed(150);
        subject.room = 140;
        let tally = subject.perform_exactly(30_000, &keys, &mut Phase::Mix(mix));
        // Ten inserts are refused until removes have made room; all other answers are as if nothing
        // had happened.
        assert_eq!(
            (tally.operations, tally.refused, tally.missing),
            (30_000, 10, 0)
        );
        assert_eq!(*subject.fewest_and_most.lock().unwrap(), (139, 150));
    }
}
