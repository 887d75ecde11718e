//! The phase with a sliding window, in which new keys replace the oldest.

use rand::rngs::SmallRng;
use subject::Subject;

use super::schedule::Schedule;
use super::{Pool, Tally, after};
use crate::workload::keys::KeyList;

/// Lookups and slides of a window in a fixed, shuffled order, repeated cyclically.
///
/// A *slide* removes the oldest key and inserts a new one, as one operation. Each thread has its
/// own window, so the answer to every lookup and remove is known in advance. The load factor stays
/// constant.
#[derive(Debug)]
pub struct Window {
    schedule: Schedule<Kind>,
    pool: Pool,
    /// Number of keys in the filter at first, and after every slide.
    size: usize,
    /// For each lookup, the age of its key: how many keys were inserted after it.
    ages: Vec<usize>,
    next_age: usize,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Lookup,
    Slide,
}

impl Window {
    /// Creates the phase. Of 100 operations, `lookup` look up the key of the pool whose age is the
    /// next of `ages`, and the others slide the window. With an empty pool they are omitted, and
    /// not counted.
    pub fn new(lookup: u8, pool: Pool, ages: Vec<usize>, random: &mut SmallRng) -> Self {
        let lookups = usize::from(lookup) * 100;
        Self {
            schedule: Schedule::shuffled(&[(Kind::Lookup, lookups)], Kind::Slide, random),
            size: pool.live(),
            pool,
            ages,
            next_age: 0,
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
                Kind::Lookup => {
                    let Some(index) = self.pool.of_age(self.ages[self.next_age]) else {
                        continue;
                    };
                    self.next_age = after(self.next_age, self.ages.len());
                    tally.missing += u64::from(!subject.contains(keys.get(index)));
                }
                Kind::Slide => {
                    if self.size == 0 {
                        continue;
                    }
                    if let Some(index) = self.pool.take_oldest() {
                        tally.missing += u64::from(!subject.remove(keys.get(index)));
                    }
                    // More than one if earlier ones were refused.
                    while self.pool.live() < self.size
                        && let Some(index) = self.pool.next_in()
                    {
                        if !subject.insert(keys.get(index)) {
                            tally.refused += 1;
                            break;
                        }
                        self.pool.accept();
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

    /// Returns an exact set with room for `room` keys, and a window of 100 of 150 keys with 80 %
    /// lookups of these ages.
    fn window(room: usize, ages: Vec<usize>) -> (Exact, Keys, Phase) {
        let keys = Keys::Numbers((0..150).collect());
        let subject = Exact::holding(room, &keys, 0..100);
        let pool = Pool::new((0..150).collect(), 100);
        let random = &mut SmallRng::seed_from_u64(1);
        let phase = Phase::Window(Window::new(80, pool, ages, random));
        (subject, keys, phase)
    }

    #[test]
    fn a_window_slides_on_and_keeps_its_size() {
        let (subject, keys, mut phase) = window(100, vec![0, 99, 50]);
        let tally = subject.perform_exactly(30_000, &keys, &mut phase);
        let right = Tally {
            operations: 30_000,
            ..Tally::default()
        };
        assert_eq!(tally, right);
        assert_eq!(*subject.calls.lock().unwrap(), [6_000, 24_000, 6_000]);
        assert_eq!(*subject.fewest_and_most.lock().unwrap(), (99, 100));
    }

    #[test]
    fn lookups_ask_for_keys_of_the_age_drawn() {
        // The key of age 20 is key 79 at first. It is absent, so lookups miss until the window has
        // slid once.
        let (subject, keys, mut phase) = window(100, vec![20]);
        subject.hold(&keys, 80..100);
        let tally = subject.perform_exactly(10_000, &keys, &mut phase);
        // The 80 removes of the keys below 80, which are absent, miss; so do the lookups before the
        // first slide.
        let removes = 80;
        assert!(tally.missing > removes, "{tally:?}");
        let (subject, keys, mut phase) = window(100, vec![19]);
        subject.hold(&keys, 80..100);
        let tally = subject.perform_exactly(10_000, &keys, &mut phase);
        assert_eq!(tally.missing, removes, "the age 19 is that of key 80");
    }

    #[test]
    fn a_window_grows_back_when_there_is_room_again() {
        let (mut subject, keys, mut phase) = window(100, vec![0]);
        subject.room = 90;
        let tally = subject.perform_exactly(10_000, &keys, &mut phase);
        assert!(tally.refused > 0 && tally.missing == 0, "{tally:?}");
        subject.room = 100;
        let tally = subject.perform_exactly(10_000, &keys, &mut phase);
        assert_eq!((tally.refused, tally.missing), (0, 0));
        assert_eq!(subject.keys.lock().unwrap().len(), 100);
    }
}
