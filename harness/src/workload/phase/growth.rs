//! The phase that fills a table, with lookups in between.

use std::ops::Range;

use rand::rngs::SmallRng;
use subject::Subject;

use super::schedule::Schedule;
use super::{Cycle, Tally, after};
use crate::workload::keys::KeyList;
use crate::workload::latency;

/// Inserts and lookups in a fixed, shuffled order, repeated until all keys are in.
///
/// Lookups walk over the keys that the thread has inserted so far, and over keys that are never
/// inserted.
#[derive(Debug)]
pub struct Growth {
    schedule: Schedule<Kind>,
    /// Keys still to be inserted.
    coming: Range<usize>,
    /// Keys that are in the filter, with room for all.
    inside: Vec<usize>,
    next_inside: usize,
    absent: Cycle,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Insert,
    LookupResident,
    LookupAbsent,
}

impl Growth {
    /// Creates the phase. Of 100 operations, `insert` insert one of the keys `coming`, and the
    /// others look a key up. Of 100 lookups, `hit` ask for a present key: one already `inside`, or
    /// inserted since. While there is none, they ask for an absent one.
    pub fn new(
        (insert, hit): (u8, u8),
        mut inside: Vec<usize>,
        coming: Range<usize>,
        absent: Cycle,
        random: &mut SmallRng,
    ) -> Self {
        inside.reserve_exact(coming.len());
        let hits = (100 - usize::from(insert)) * usize::from(hit);
        let counts = [
            (Kind::Insert, usize::from(insert) * 100),
            (Kind::LookupResident, hits),
        ];
        Self {
            schedule: Schedule::shuffled(&counts, Kind::LookupAbsent, random),
            coming,
            inside,
            next_inside: 0,
            absent,
        }
    }

    /// Returns what the operation does that is this many places after the next.
    pub(super) fn coming(&self, ahead: usize) -> latency::Kind {
        match self.schedule.coming(ahead) {
            Kind::Insert => latency::Kind::Insert,
            Kind::LookupResident | Kind::LookupAbsent => latency::Kind::Lookup,
        }
    }

    pub(super) fn perform_batch<S: Subject, L: KeyList + ?Sized>(
        &mut self,
        subject: &S,
        keys: &L,
        length: usize,
        tally: &mut Tally,
    ) -> bool {
        for at in self.schedule.next_batch(length) {
            match self.schedule.kinds[at] {
                Kind::Insert => {
                    let Some(index) = self.coming.next() else {
                        break;
                    };
                    if subject.insert(keys.get(index)) {
                        self.inside.push(index);
                    } else {
                        tally.refused += 1;
                    }
                }
                Kind::LookupResident if !self.inside.is_empty() => {
                    let index = self.inside[self.next_inside];
                    self.next_inside = after(self.next_inside, self.inside.len());
                    tally.missing += u64::from(!subject.contains(keys.get(index)));
                }
                Kind::LookupResident | Kind::LookupAbsent => {
                    let index = self.absent.next_key();
                    tally.absent += 1;
                    tally.false_positives += u64::from(subject.contains(keys.get(index)));
                }
            }
            tally.operations += 1;
        }
        !self.coming.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use rand::SeedableRng;

    use super::super::exact::Exact;
    use super::super::{Measured, Phase, Watch};
    use super::*;
    use crate::workload::keys::Keys;

    #[test]
    fn a_growth_has_its_percentages_and_ends_when_all_keys_are_in() {
        let keys = Keys::Numbers((0..10_000).collect());
        let subject = Exact::holding(9_000, &keys, 0..1_500);
        let random = &mut SmallRng::seed_from_u64(1);
        let absent = Cycle::new(9_000..10_000, 0);
        let inside = (0..1_500).collect();
        // Three schedules of 2,500 inserts each.
        let growth = Growth::new((25, 40), inside, 1_500..9_000, absent, random);
        let watch = &Watch {
            deadline: None,
            stop: &AtomicBool::new(false),
            progress: None,
        };
        let tally = Measured::perform(&subject, &keys, &mut Phase::Grow(growth), watch);
        let [inserts, lookups, removes] = *subject.calls.lock().unwrap();
        assert_eq!((inserts, removes), (7_500, 0));
        // The third schedule ends with its last insert.
        assert_eq!(tally.operations as usize, inserts + lookups);
        assert!((22_400..=22_500).contains(&lookups), "{lookups}");
        let absent = lookups as u64 * 60 / 100;
        assert!(tally.absent.abs_diff(absent) < 50, "{tally:?}");
        assert_eq!((tally.refused, tally.missing), (0, 0));
        assert_eq!(tally.false_positives, 0);
        assert_eq!(subject.keys.lock().unwrap().len(), 9_000);
    }

    #[test]
    fn keys_that_were_refused_are_not_looked_up() {
        let keys = Keys::Numbers((0..2_000).collect());
        let subject = Exact::holding(600, &keys, 0..0);
        let random = &mut SmallRng::seed_from_u64(1);
        let absent = Cycle::new(1_000..2_000, 0);
        let growth = Growth::new((50, 100), Vec::new(), 0..1_000, absent, random);
        let tally = subject.perform_exactly(3_000, &keys, &mut Phase::Grow(growth));
        assert_eq!((tally.refused, tally.missing), (400, 0));
    }
}
