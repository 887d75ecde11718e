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
//! The subject's **first stage is sized for a hundredth of the keys asked for**, so that it has
//! seven stages when they are all in. The price of growing is one more hash every four stages, and
//! lookups that search several stages, from the newest, which has most keys, to the oldest.
//!
//! # Threads
//!
//! There is no lock. A key sets its bits in the newest stage and is counted, by each thread in a counter of its own
//! ([`Length`]). (That it is not there yet is not asked: in filters that take copies, it is not, either.) Only a few
//! inserts, chosen by their hash, check the sum of the counters, so a stage takes about one part in
//! a thousand more keys than it is sized for, plus those that arrive while the next one is being
//! made. If two threads make it, one wins, and the other drops its own. A stage, once added, stays.
//!
//! A lookup cannot miss a key whose insert is known to have returned: a thread that knows this also
//! sees the stage. A key is refused only when the newest stage is full and a larger one is
//! impossible, for lack of memory or beyond the sizes of [`DoubleHashing`], or when it comes from
//! more threads than [K-CAS](thread_id::MAX_THREADS) has room for.

use std::hash::{BuildHasher, Hash};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use filter::FixedState;
use filter::internals::length::Length;
use kcas::thread_id;
use once_cell::race::OnceBox;
use subject::layout::{FALSE_POSITIVE_RATE, slots};
use subject::sync::AtomicU64;
use subject::{Operations, Subject};

use crate::bloom::Bloom;
use crate::double_hashing::DoubleHashing;

/// About one in this many keys of a stage checks whether it is full.
const LOOKS: usize = 1_024;

/// The first stage of the subject is sized for the requested keys divided by this.
const STARTS_WITH: usize = 100;

/// A growing Bloom filter shared by threads.
#[derive(Debug)]
pub struct ScalableBloom {
    stages: Box<[Stage]>,
    /// Index of the newest stage.
    newest: AtomicU64,
    /// Whether a stage could not be made: every insert then checks. Relaxed: only a hint.
    stuck: AtomicBool,
    /// The number of keys that were added.
    keys: Length,
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

    /// The one that it recommends where much is.
    pub const MUCH_GROWTH: usize = 4;

    /// The middle of the range that the paper recommends.
    pub const TIGHTENING: f64 = 0.85;

    /// Creates an empty filter with a first stage for `first_capacity` keys. It finds at most
    /// `false_positive_rate` of absent keys however much it grows. Each stage is sized for `growth`
    /// times as many keys as the one before, at `tightening` times its rate. Fails if the first
    /// stage is impossible.
    pub fn new(
        first_capacity: usize,
        false_positive_rate: f64,
        growth: usize,
        tightening: f64,
    ) -> Result<Self> {
        let first = (first_capacity, false_positive_rate * (1.0 - tightening));
        // Explains what is wrong with the first stage when no stage is possible.
        DoubleHashing::sized(first.0, first.1)?;
        Self::with_stages(planned(first, growth, tightening))
    }

    /// Creates an empty filter that may grow to these stages, and makes the first of them.
    fn with_stages(stages: Box<[Stage]>) -> Result<Self> {
        stages[0].make()?;
        Ok(Self {
            stages,
            newest: AtomicU64::new(0),
            stuck: AtomicBool::new(false),
            keys: Length::starting_at(0),
        })
    }

    pub fn stages(&self) -> usize {
        self.newest() + 1
    }

    #[inline]
    fn newest(&self) -> usize {
        // Acquire: pairs with the release in `grow`, for a thread that follows another that saw the
        // stage here.
        self.newest.load(Ordering::Acquire) as usize
    }

    #[inline]
    fn newest_first(&self) -> impl Iterator<Item = &Bloom> {
        let stages = self.stages[..=self.newest()].iter().rev();
        stages.filter_map(|stage| stage.bloom.get())
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

    /// Makes the stage after this full one, if there is none. Returns whether there is one.
    #[cold]
    fn grow(&self, full: usize) -> bool {
        let next = full + 1;
        let made = (self.stages.get(next)).is_some_and(|stage| stage.make().is_ok());
        if made {
            // Release: pairs with the acquire in `newest`. It fails if another thread was faster.
            let (success, failure) = (Ordering::Release, Ordering::Relaxed);
            let _ = (self.newest).compare_exchange(full as u64, next as u64, success, failure);
        }
        self.stuck.store(!made, Ordering::Relaxed);
        made
    }
}

impl Stage {
    /// Makes the stage, unless it exists.
    fn make(&self) -> Result<&Bloom> {
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
        let first = slots(buckets)?.div_ceil(STARTS_WITH);
        Self::new(first, FALSE_POSITIVE_RATE, Self::GROWTH, Self::TIGHTENING)
    }

    #[inline]
    fn insert<K: Hash + ?Sized>(&self, key: &K) -> bool {
        let hash = FixedState.hash_one(key);
        // A thread that has no counter, as there are too many threads, is refused before anything
        // changes.
        if !self.has_room(hash) || thread_id::with(|id| self.keys.change(id, 1)).is_err() {
            return false;
        }
        let newest = self.newest_first().next();
        newest.inspect(|bloom| bloom.insert_hash(hash)).is_some()
    }

    #[inline(always)]
    fn contains<K: Hash + ?Sized>(&self, key: &K) -> bool {
        self.contains_hash(FixedState.hash_one(key))
    }

    fn memory_bytes(&self) -> usize {
        let stages: usize = self.newest_first().map(Subject::memory_bytes).sum();
        stages + size_of_val(&*self.stages) + self.keys.memory_bytes() + size_of::<Self>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No stage is added by a thread that found the one before it full long ago.
    #[test]
    fn subject_grows_from_hundredth_to_seven_stages() {
        let filter = ScalableBloom::with_buckets(25_000).unwrap();
        assert_eq!(filter.stages(), 1);
        assert!((0..100_000_u64).all(|key| filter.insert(&key)));
        assert!(filter.grow(0));
        assert_eq!((filter.stages(), filter.keys.sum()), (7, 100_000));
        let last = filter.stages.last().unwrap().capacity;
        assert!(DoubleHashing::sized(last * ScalableBloom::GROWTH, 0.1).is_err());
    }

    /// A filter that cannot grow keeps what it has and takes no more keys, whichever insert checks.
    #[test]
    fn when_it_cannot_grow_it_refuses() {
        let mut stages = planned((4_096, 0.001), 2, 0.85).into_vec();
        stages.truncate(2);
        let filter = ScalableBloom::with_stages(stages.into()).unwrap();
        let (taken, refused): (Vec<u64>, Vec<u64>) =
            (0..20_000).partition(|key| filter.insert(key));
        assert!(taken.iter().all(|key| filter.contains(key)));
        let keys = filter.keys.sum();
        assert!((3 * 4_096..3 * 4_096 + 200).contains(&keys), "{keys}");
        assert!(taken.len() == keys && refused.len() > 7_000);
    }
}
