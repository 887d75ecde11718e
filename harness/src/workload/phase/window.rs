//! The phase with a sliding window, in which new keys replace the oldest.

use std::sync::{Arc, OnceLock};

use crossbeam_utils::CachePadded;
use rand::rngs::SmallRng;
use subject::Subject;

use super::schedule::Schedule;
use super::{Pool, Tally, after};
use crate::workload::keys::KeyList;
use crate::workload::latency;

/// The pools of threads that look each other's keys up, each on lines of its own. A thread sets its
/// pool as soon as it has filled its part of the table.
pub type Pools = Arc<[CachePadded<OnceLock<Pool>>]>;

/// Returns room for the pools of so many threads.
pub fn pools(threads: usize) -> Pools {
    (0..threads).map(|_| CachePadded::default()).collect()
}

/// Lookups and slides of a window in a fixed, shuffled order, repeated cyclically.
///
/// A *slide* removes the oldest key and inserts a new one, as one operation. Each thread slides a
/// window of its own, so that the load factor stays constant, and looks up keys in all windows that
/// it knows, its own or those of all threads. A key must be found unless its owner has begun to
/// remove keys since it was chosen.
#[derive(Debug)]
pub struct Window {
    schedule: Schedule<Kind>,
    pools: Pools,
    /// Which of the pools is the thread's own.
    own: usize,
    /// Number of keys in the filter at first, and after every slide.
    size: usize,
    /// For each lookup, whose key it asks for, and its age: how many keys that thread has inserted
    /// after it.
    ages: Vec<(usize, usize)>,
    next_age: usize,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Lookup,
    Slide,
}

impl Window {
    /// Creates the phase, and sets the thread's own pool. Of 100 operations, `lookup` look up the
    /// key whose age is the next of `ages`, and the others slide the window. An age counts the newer
    /// keys of all threads, which are taken to slide in turns. With an empty pool operations are
    /// omitted, and not counted.
    pub fn new(
        lookup: u8,
        (pools, own): (Pools, usize),
        pool: Pool,
        ages: &[usize],
        random: &mut SmallRng,
    ) -> Self {
        let lookups = usize::from(lookup) * 100;
        let threads = pools.len();
        let size = pools[own].get_or_init(|| pool).live();
        Self {
            schedule: Schedule::shuffled(&[(Kind::Lookup, lookups)], Kind::Slide, random),
            ages: (ages
                .iter()
                .map(|age| ((own + age) % threads, age / threads)))
            .collect(),
            pools,
            own,
            size,
            next_age: 0,
        }
    }

    /// Returns what the operation does that is this many places after the next.
    pub(super) fn coming(&self, ahead: usize) -> latency::Kind {
        match self.schedule.coming(ahead) {
            Kind::Lookup => latency::Kind::Lookup,
            Kind::Slide => latency::Kind::Update,
        }
    }

    pub(super) fn perform_batch<S: Subject, L: KeyList + ?Sized>(
        &mut self,
        subject: &S,
        keys: &L,
        length: usize,
        tally: &mut Tally,
    ) {
        let Some(own) = self.pools[self.own].get() else {
            return;
        };
        for at in self.schedule.next_batch(length) {
            match self.schedule.kinds[at] {
                Kind::Lookup => {
                    let (thread, age) = self.ages[self.next_age];
                    self.next_age = after(self.next_age, self.ages.len());
                    // One that still fills its part has no window yet.
                    let pool = self.pools[thread].get().unwrap_or(own);
                    let taken = pool.taken();
                    let Some(index) = pool.of_age(age) else {
                        continue;
                    };
                    let found = subject.contains(keys.get(index));
                    tally.missing += u64::from(!found & (pool.taken() == taken));
                }
                Kind::Slide => {
                    if self.size == 0 {
                        continue;
                    }
                    if let Some(index) = own.take_oldest() {
                        tally.missing += u64::from(!subject.remove(keys.get(index)));
                    }
                    // More than one if earlier ones were refused.
                    while own.live() < self.size
                        && let Some(index) = own.next_in()
                    {
                        if !subject.insert(keys.get(index)) {
                            tally.refused += 1;
                            break;
                        }
                        own.accept();
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
        let phase = Phase::Window(Window::new(80, (pools(1), 0), pool, &ages, random));
        (subject, keys, phase)
    }

    /// Two threads of 50 keys each; keys of even numbers are those of the first.
    #[test]
    fn the_newest_keys_are_those_of_all_threads() {
        let keys = Keys::Numbers((0..150).collect());
        let subject = Exact::holding(100, &keys, 0..100);
        let pools = pools(2);
        let ask = |own: usize, ages: &[usize]| {
            let pool = Pool::new((own..150).step_by(2).collect(), 50);
            let random = &mut SmallRng::seed_from_u64(1);
            let window = Window::new(100, (Arc::clone(&pools), own), pool, ages, random);
            (subject.perform_exactly(10, &keys, &mut Phase::Window(window))).missing
        };
        // The newest key of the other thread is 99, the newest of its own 98.
        subject.hold(&keys, 0..99);
        assert_eq!(ask(0, &[1]), 0, "the other has no window yet");
        assert_eq!(ask(1, &[0]), 10);
        assert_eq!((ask(0, &[0]), ask(0, &[1]), ask(0, &[2])), (0, 10, 0));
        subject.hold(&keys, 0..97);
        assert_eq!((ask(0, &[2]), ask(0, &[3])), (0, 10), "96 and 97");
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
