//! The scalable Bloom filter (Almeida, Baquero, Preguiça, Hutchison, *Scalable Bloom Filters*, 2007): a Bloom filter for
//! who does not know how many keys will come. It is a list of [`Bloom`] filters, the *stages*; when the newest has the
//! keys that it is sized for, a larger one is added, and new keys go there.
//!
//! With a first stage for n keys at a false positive rate of ε0, *growth* s and *tightening* r, stage i is for n s^i
//! keys at ε0 r^i. An absent key is found if any stage finds it:
//!
//! ```text
//! false positive rate  =  1 − Π (1 − ε0 r^i)  ≤  Σ ε0 r^i  <  ε0 / (1 − r)
//! ```
//!
//! so that, with ε0 = ε (1 − r), it stays below ε however many stages there are.
//!
//! The paper recommends a growth of 2 where moderate growth is expected and 4 where much is, and finds that
//! a tightening of 0.8 to 0.9 takes the least memory over a wide range of growth. As a subject it has
//! [2](ScalableBloom::GROWTH) and [0.85](ScalableBloom::TIGHTENING), the middle; a compound rate of 1 in 512 as
//! [`Bloom`]; and **it starts with a hundredth of the keys asked for**, so that it reaches seven stages when they are
//! in. A hash more every four stages, and lookups that ask several stages, are what growing costs.
//!
//! # Threads
//!
//! There is no lock. A key that is found already is not added, in whichever stage it is. Others set their bits in
//! the newest stage, and are counted, each thread in a counter of its own ([`Length`]). The sum is what tells that a stage
//! is full; few inserts look at it, chosen by their hash, so that a stage takes about one part in a thousand more keys than
//! it is sized for, and what comes while the next one is being made. Who finds a stage full makes the next; of two
//! threads that do, one wins, and the other drops its own. A stage that is there stays for good.
//!
//! A lookup goes from the newest stage to the oldest, as most keys are in the newest. It cannot miss a key whose
//! insert it knows to have returned: whoever knows of that knows of the stage, too.
//!
//! It cannot remove. It refuses a key only when the newest stage is full and a larger one is impossible: for want
//! of memory, or as it would be for more than 2^34 keys, or at a rate below 2^-64; and to more threads than
//! [K-CAS](thread_id::MAX_THREADS) has room for.

pub mod theory;

use std::hash::{BuildHasher, Hash};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anyhow::{Result, ensure};
use filter::FixedState;
use filter::length::Length;
use kcas::steps::step;
use kcas::thread_id;
use once_cell::race::OnceBox;
use subject::layout::{FALSE_POSITIVE_RATE, slots};
use subject::{Operations, Subject};

use crate::bloom::Bloom;
use crate::double_hashing::DoubleHashing;

/// Of so many keys of a stage about one looks whether it is full.
const LOOKS: usize = 1_024;

/// As a subject, it starts with one in so many of the keys asked for.
const STARTS_WITH: usize = 100;

/// A Bloom filter that grows, and that threads share.
#[derive(Debug)]
pub struct ScalableBloom {
    stages: Box<[Stage]>,
    /// Index of the newest stage that is there.
    newest: AtomicUsize,
    /// Whether a stage could not be made when it was needed; from then on every insert looks. Relaxed: a hint.
    stuck: AtomicBool,
    /// The keys in all stages.
    keys: Length,
    /// The keys it was asked for, as a subject.
    slots: usize,
}

/// A stage, there or to come.
#[derive(Debug)]
struct Stage {
    capacity: usize,
    false_positive_rate: f64,
    /// The number of keys in all stages at which this one is full.
    full_at: usize,
    /// An insert looks whether it is full if these bits of its hash are zero.
    look: u64,
    bloom: OnceBox<Bloom>,
}

impl ScalableBloom {
    /// The growth that the paper recommends where moderate growth is expected.
    pub const GROWTH: usize = 2;

    /// The middle of what the paper recommends.
    pub const TIGHTENING: f64 = 0.85;

    /// An empty filter with a first stage for `first_capacity` keys, which finds at most `false_positive_rate` of absent
    /// keys however much it grows. Each stage is for `growth` times as many keys as the one before, at
    /// `tightening` times its rate.
    ///
    /// # Errors
    ///
    /// A first stage that is not possible; a growth that is not 2 to 16; a tightening that is not 0.5 to 0.95.
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
        // Tells what is wrong with it if no stage is possible.
        DoubleHashing::sized(first.0, first.1)?;
        Self::of(planned(first, growth, tightening), first_capacity)
    }

    /// An empty filter that may have these stages, the first of which it has.
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

    /// Number of stages that are there.
    pub fn stages(&self) -> usize {
        self.newest() + 1
    }

    /// How many keys were added; those that were found already are not.
    pub fn keys(&self) -> usize {
        self.keys.sum()
    }

    /// Which cells of a stage are a key's, if it is there.
    pub(crate) fn shape(&self, stage: usize) -> Option<&DoubleHashing> {
        self.stages.get(stage)?.bloom.get().map(Bloom::shape)
    }

    /// One in so many inserts looks whether this stage, which may be planned only, is full.
    pub(crate) fn looks_every(&self, stage: usize) -> u64 {
        self.stages[stage].look + 1
    }

    #[inline]
    fn newest(&self) -> usize {
        step();
        // Acquire: pairs with the release in `grow`, for who follows a thread that saw the stage here.
        self.newest.load(Ordering::Acquire)
    }

    /// The stages that are there, the newest first.
    #[inline]
    fn newest_first(&self) -> impl Iterator<Item = &Bloom> {
        let there = self.stages[..=self.newest()].iter().rev();
        there.filter_map(|stage| stage.bloom.get())
    }

    #[inline]
    fn contains_hash(&self, hash: u64) -> bool {
        self.newest_first().any(|bloom| bloom.contains_hash(hash))
    }

    /// Whether there is room in the newest stage, or now is in the next one, as far as the insert of this hash looks.
    #[inline]
    fn has_room(&self, hash: u64) -> bool {
        let newest = self.newest();
        let stage = &self.stages[newest];
        let looks = hash & stage.look == 0 || self.stuck.load(Ordering::Relaxed);
        !looks || self.keys.sum() < stage.full_at || self.grow(newest)
    }

    /// Makes the stage after this one, which is full, unless another thread has: whether there is one.
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
    /// Makes it, unless it is there.
    fn make(&self) -> Result<&Bloom> {
        step();
        let new = || Bloom::new(self.capacity, self.false_positive_rate).map(Box::new);
        self.bloom.get_or_try_init(new)
    }
}

/// All stages that a filter may ever have.
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
        // A thread that cannot count, since there are too many, is refused before anything is done.
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

    /// Refused: other keys may share the bits.
    fn remove<K: Hash + ?Sized>(&self, _: &K) -> bool {
        false
    }

    /// The number of keys it was asked for.
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
        // All but those few that were found before they came.
        let (least, keys) = (100_000 * 511 / 512, filter.keys());
        assert!((least..100_000).contains(&keys), "{keys}");
        // What is found already is added nowhere.
        assert!((0..100_000_u64).all(|key| filter.insert(&key)));
        assert_eq!((filter.keys(), filter.stages()), (keys, 7));
    }

    /// When it cannot grow, it keeps what it has, and takes no more, whoever looks.
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
        // All but those that are found.
        assert!(taken.len() < filter.keys() + 50, "{}", taken.len());
    }

    /// A thread that found a stage full long ago comes late.
    #[test]
    fn a_stage_that_is_there_is_not_added_again() {
        let filter = ScalableBloom::new(100, 0.01, 2, 0.85).unwrap();
        (0..1_000_u64).for_each(|key| assert!(filter.insert(&key)));
        assert_eq!(filter.stages(), 4);
        assert!(filter.grow(0));
        assert_eq!(filter.stages(), 4);
        (0..1_000_u64).for_each(|key| assert!(filter.contains(&key)));
    }

    /// Threads that add stages at the same time: keys are in one of them.
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
