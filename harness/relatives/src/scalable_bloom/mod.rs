//! The scalable Bloom filter (Almeida, Baquero, Preguiça, Hutchison, *Scalable Bloom Filters*,
//! 2007): a Bloom filter for when the number of keys is not known in advance. It is a list of
//! [`Bloom`] filters, the *stages*. When the newest holds the keys that it is sized for, a larger
//! one is added, and new keys go there.
//!
//! With a first stage for n keys at a false positive rate of ε0, *growth* s and *tightening* r,
//! stage i is sized for n s^i keys at a rate of ε0 r^i. An absent key is found if any stage finds
//! it:
//!
//! ```text
//! false positive rate  =  1 − Π (1 − ε0 r^i)  ≤  Σ ε0 r^i  <  ε0 / (1 − r)
//! ```
//!
//! so that, with ε0 = ε (1 − r), it stays below ε however many stages there are.
//!
//! The paper recommends a growth of 2 where moderate growth is expected and 4 where much is, and
//! finds that a tightening of 0.8 to 0.9 takes the least memory over a wide range of growth. As a
//! subject the filter has a growth of [2](ScalableBloom::GROWTH), a tightening of
//! [0.85](ScalableBloom::TIGHTENING), the middle of that range, and, like [`Bloom`], a compound
//! rate of 1 in 512. **Its first stage is sized for a hundredth of the keys asked for**, so that it
//! has seven stages when they are all in. The price of growing is one more hash every four stages,
//! and lookups that search several stages.
//!
//! # Threads
//!
//! There is no lock. A key that is already found, in whichever stage, is not added. Any other key
//! sets its bits in the newest stage and is counted, by each thread in a counter of its own
//! ([`Length`]). The sum of the counters shows when a stage is full. Only a few inserts, chosen by
//! their hash, check it, so a stage takes about one part in a thousand more keys than it is sized
//! for, plus those that arrive while the next one is being made. A thread that finds a stage full
//! makes the next; if two threads do, one wins, and the other drops its own. A stage, once added,
//! stays for good.
//!
//! A lookup goes from the newest stage to the oldest, as most keys are in the newest. It cannot
//! miss a key whose insert is known to have returned: a thread that knows this also sees the stage.
//!
//! The filter cannot remove keys. It refuses a key only when the newest stage is full and a larger
//! one is impossible: for lack of memory, because it would be sized for more than 2^34 keys, or
//! because its rate would be below 2^-64. It also refuses keys from more threads than
//! [K-CAS](thread_id::MAX_THREADS) has room for.

pub mod theory;

use std::hash::{BuildHasher, Hash};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anyhow::{Result, ensure};
use filter::FixedState;
use filter::internals::length::Length;
use kcas::steps::step;
use kcas::thread_id;
use once_cell::race::OnceBox;
use subject::layout::{FALSE_POSITIVE_RATE, slots};
use subject::{Operations, Subject};

use crate::bloom::Bloom;
use crate::double_hashing::DoubleHashing;

/// About one in this many keys of a stage checks whether it is full.
const LOOKS: usize = 1_024;

/// As a subject, the filter's first stage is sized for the keys asked for divided by this.
const STARTS_WITH: usize = 100;

/// A growing Bloom filter shared by threads.
#[derive(Debug)]
pub struct ScalableBloom {
    stages: Box<[Stage]>,
    /// Index of the newest stage.
    newest: AtomicUsize,
    /// Whether a stage could not be made when it was needed. From then on every insert checks.
    /// Relaxed: only a hint.
    stuck: AtomicBool,
    /// The number of keys in all stages.
    keys: Length,
    /// The number of keys asked for, as a subject.
    slots: usize,
}

/// A stage, made or only planned.
#[derive(Debug)]
struct Stage {
    capacity: usize,
    false_positive_rate: f64,
    /// The number of keys in all stages at which this one is full.
    full_at: usize,
    /// An insert checks whether the stage is full if these bits of its hash are zero.
    look: u64,
    bloom: OnceBox<Bloom>,
}

impl ScalableBloom {
    /// The growth that the paper recommends where moderate growth is expected.
    pub const GROWTH: usize = 2;

    /// The middle of the range that the paper recommends.
    pub const TIGHTENING: f64 = 0.85;

    /// Creates an empty filter with a first stage for `first_capacity` keys. It finds at most
    /// `false_positive_rate` of absent keys however much it grows. Each stage is sized for `growth`
    /// times as many keys as the one before, at `tightening` times its rate.
    ///
    /// # Errors
    ///
    /// If the first stage is impossible, the growth is not from 2 to 16, or the tightening is not
    /// from 0.5 to 0.95.
    pub fn new(
        first_capacity: usize,
        false_positive_rate: f64,
        growth: usize,
        tightening: f64,
    ) -> Result<Self> {
        ensure!(
            (2..=16).contains(&growth),
            "growth: {growth}; a stage can have 2 to 16 times as many keys as the one before"
        );
        ensure!(
            (0.5..=0.95).contains(&tightening),
            "tightening: {tightening}; a stage can have 0.5 to 0.95 times the rate of the one before"
        );
        let first = (first_capacity, false_positive_rate * (1.0 - tightening));
        // Explains what is wrong with the first stage when no stage is possible.
        DoubleHashing::sized(first.0, first.1)?;
        Self::of(planned(first, growth, tightening), first_capacity)
    }

    /// Creates an empty filter that may grow to these stages, and makes the first of them.
    fn of(stages: Box<[Stage]>, slots: usize) -> Result<Self> {
        stages[0].make()?;
        Ok(Self {
            stages,
            newest: AtomicUsize::new(0),
            stuck: AtomicBool::new(false),
            keys: Length::starting_at(0),
            slots,
        })
    }

    /// Returns the number of stages made so far.
    pub fn stages(&self) -> usize {
        self.newest() + 1
    }

    /// Returns how many keys were added; those that were already found do not count.
    pub fn keys(&self) -> usize {
        self.keys.sum()
    }

    /// Maps keys to their cells in a stage, if the stage has been made.
    pub(crate) fn shape(&self, stage: usize) -> Option<&DoubleHashing> {
        self.stages.get(stage)?.bloom.get().map(Bloom::shape)
    }

    /// Returns the number of inserts of which one checks whether this stage, which may be only
    /// planned, is full.
    pub(crate) fn looks_every(&self, stage: usize) -> u64 {
        self.stages[stage].look + 1
    }

    #[inline]
    fn newest(&self) -> usize {
        step();
        // Acquire: pairs with the release in `grow`, for a thread that follows another that saw the
        // stage here.
        self.newest.load(Ordering::Acquire)
    }

    /// Returns the stages made so far, the newest first.
    #[inline]
    fn newest_first(&self) -> impl Iterator<Item = &Bloom> {
        let there = self.stages[..=self.newest()].iter().rev();
        there.filter_map(|stage| stage.bloom.get())
    }

    #[inline]
    fn contains_hash(&self, hash: u64) -> bool {
        self.newest_first().any(|bloom| bloom.contains_hash(hash))
    }

    /// Returns whether there is room in the newest stage, or by now in the next one, as far as an
    /// insert of this hash checks.
    #[inline]
    fn has_room(&self, hash: u64) -> bool {
        let newest = self.newest();
        let stage = &self.stages[newest];
        let looks = hash & stage.look == 0 || self.stuck.load(Ordering::Relaxed);
        !looks || self.keys.sum() < stage.full_at || self.grow(newest)
    }

    /// Makes the stage after this full one, unless another thread already has. Returns whether
    /// there is one.
    #[cold]
    fn grow(&self, full: usize) -> bool {
        let next = full + 1;
        let made = (self.stages.get(next)).is_some_and(|stage| stage.make().is_ok());
        if made {
            step();
            // Release: pairs with the acquire in `newest`.
            self.newest.fetch_max(next, Ordering::Release);
        }
        self.stuck.store(!made, Ordering::Relaxed);
        made
    }
}

impl Stage {
    /// Makes the stage, unless it exists.
    fn make(&self) -> Result<&Bloom> {
        step();
        let new = || Bloom::new(self.capacity, self.false_positive_rate).map(Box::new);
        self.bloom.get_or_try_init(new)
    }
}

/// Plans all stages that a filter may ever have.
fn planned((mut capacity, mut rate): (usize, f64), growth: usize, tightening: f64) -> Box<[Stage]> {
    let mut full_at = 0_usize;
    let mut stages = Vec::new();
    while DoubleHashing::sized(capacity, rate).is_ok() {
        full_at = full_at.saturating_add(capacity);
        stages.push(Stage {
            capacity,
            false_positive_rate: rate,
            full_at,
            look: (capacity / LOOKS).max(1).next_power_of_two() as u64 - 1,
            bloom: OnceBox::new(),
        });
        capacity = capacity.saturating_mul(growth);
        rate *= tightening;
    }
    stages.into()
}

impl Subject for ScalableBloom {
    const NAME: &'static str = "scalable-bloom";
    const DESCRIPTION: &'static str = "scalable Bloom filter, of the same false positive rate; starts with a hundredth of the keys asked for and grows";
    const GUARANTEES: &'static str =
        "lock-free, lookups wait-free; what an insert that has returned wrote is found";
    const OPERATIONS: Operations = Operations::INSERT;

    fn with_buckets(buckets: usize) -> Result<Self> {
        let slots = slots(buckets)?;
        let first = slots.div_ceil(STARTS_WITH);
        let filter = Self::new(first, FALSE_POSITIVE_RATE, Self::GROWTH, Self::TIGHTENING)?;
        Ok(Self { slots, ..filter })
    }

    #[inline]
    fn insert<K: Hash + ?Sized>(&self, key: &K) -> bool {
        let hash = FixedState.hash_one(key);
        if self.contains_hash(hash) {
            return true;
        }
        // A thread that has no counter, as there are too many threads, is refused before anything
        // changes.
        if !self.has_room(hash) || thread_id::with(|id| self.keys.counter(id).change(1)).is_err() {
            return false;
        }
        let newest = self.newest_first().next();
        newest.inspect(|bloom| bloom.insert_hash(hash)).is_some()
    }

    #[inline(always)]
    fn contains<K: Hash + ?Sized>(&self, key: &K) -> bool {
        self.contains_hash(FixedState.hash_one(key))
    }

    /// Always refuses: other keys may share the bits.
    fn remove<K: Hash + ?Sized>(&self, _: &K) -> bool {
        false
    }

    /// Returns the number of keys asked for.
    fn slots(&self) -> usize {
        self.slots
    }

    fn memory_bytes(&self) -> usize {
        let stages: usize = self.newest_first().map(Subject::memory_bytes).sum();
        stages + size_of_val(&*self.stages) + self.keys.memory_bytes() + size_of::<Self>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_are_those_of_the_paper() {
        let filter = ScalableBloom::new(1_000, 0.01, 4, 0.5).unwrap();
        let stages: Vec<_> = (filter.stages.iter().take(3))
            .map(|stage| (stage.capacity, stage.false_positive_rate, stage.full_at))
            .collect();
        let expected = [
            (1_000, 0.005, 1_000),
            (4_000, 0.0025, 5_000),
            (16_000, 0.00125, 21_000),
        ];
        assert_eq!((stages, filter.stages()), (expected.into(), 1));
        let last = filter.stages.last().unwrap();
        assert!(DoubleHashing::sized(4 * last.capacity, 0.1).is_err());
    }

    #[test]
    fn what_cannot_be_is_refused_by_name() {
        let refusal = |capacity, rate, growth, tightening| {
            let error = ScalableBloom::new(capacity, rate, growth, tightening).unwrap_err();
            error.to_string()
        };
        assert!(refusal(0, 0.01, 2, 0.85).contains("capacity: "));
        assert!(refusal(1_000, 0.0, 2, 0.85).contains("false positive rate: "));
        for growth in [0, 1, 17] {
            assert!(refusal(1_000, 0.01, growth, 0.85).contains("growth: "));
        }
        for tightening in [0.4, 1.0, f64::NAN] {
            assert!(refusal(1_000, 0.01, 2, tightening).contains("tightening: "));
        }
    }

    #[test]
    fn as_a_subject_it_grows_from_a_hundredth_to_seven_stages() {
        let filter = ScalableBloom::with_buckets(25_000).unwrap();
        assert_eq!((filter.slots(), filter.stages()), (100_000, 1));
        assert!((0..100_000_u64).all(|key| filter.insert(&key)));
        assert!((0..100_000_u64).all(|key| filter.contains(&key)));
        assert_eq!(filter.stages(), 7);
        // All but the few that were already found when they arrived.
        let (least, keys) = (100_000 * 511 / 512, filter.keys());
        assert!((least..100_000).contains(&keys), "{keys}");
        // A key that is already found is not added to any stage.
        assert!((0..100_000_u64).all(|key| filter.insert(&key)));
        assert_eq!((filter.keys(), filter.stages()), (keys, 7));
    }

    /// A filter that cannot grow keeps what it has and takes no more keys, whichever insert checks.
    #[test]
    fn when_it_cannot_grow_it_refuses() {
        let mut stages = planned((4_096, 0.001), 2, 0.85).into_vec();
        stages.truncate(2);
        let filter = ScalableBloom::of(stages.into(), 4_096).unwrap();
        let keys = 0..20_000_u64;
        let (taken, refused): (Vec<_>, Vec<_>) = keys.partition(|key| filter.insert(key));
        assert!(taken.iter().all(|key| filter.contains(key)));
        assert!(
            (3 * 4_096..3 * 4_096 + 200).contains(&filter.keys()),
            "{}",
            filter.keys()
        );
        assert!(refused.len() > 7_000 && refused.is_sorted());
        // All but those that are already found.
        assert!(taken.len() < filter.keys() + 50, "{}", taken.len());
    }

    /// A thread that found a stage full long ago arrives late.
    #[test]
    fn a_stage_that_is_there_is_not_added_again() {
        let filter = ScalableBloom::new(100, 0.01, 2, 0.85).unwrap();
        (0..1_000_u64).for_each(|key| assert!(filter.insert(&key)));
        assert_eq!(filter.stages(), 4);
        assert!(filter.grow(0));
        assert_eq!(filter.stages(), 4);
        (0..1_000_u64).for_each(|key| assert!(filter.contains(&key)));
    }

    /// Threads add stages at the same time, and every key is in one of them.
    #[test]
    fn threads_grow_it_together() {
        for round in 0..20_u64 {
            let filter = ScalableBloom::new(8, 0.001, 2, 0.85).unwrap();
            std::thread::scope(|scope| {
                for thread in 0..4 {
                    let filter = &filter;
                    scope.spawn(move || {
                        for key in 0..500_u64 {
                            let key = (round, thread, key);
                            assert!(filter.insert(&key) && filter.contains(&key));
                        }
                    });
                }
            });
            let keys = filter.keys();
            assert!((1_900..=2_000).contains(&keys), "{keys}");
            // 8 (2^7 − 1) = 1,016 and 8 (2^8 − 1) = 2,040.
            assert_eq!(filter.stages(), 8);
            for (thread, key) in (0..4).flat_map(|t| (0..500_u64).map(move |k| (t, k))) {
                assert!(filter.contains(&(round, thread, key)));
            }
        }
    }
}
