//! Words that are changed k at a time, by one K-CAS or under one mutex: what K-CAS itself costs
//! where cores are simulated. (The study `kcas` measures it on threads.) They hold no keys: a key
//! chooses the words.

use std::hash::{BuildHasher, Hash};

use anyhow::Result;
use filter::FixedState;
use kcas::WordArray;
use subject::layout::geometry;
use subject::{Operations, SLOTS_PER_BUCKET, Subject};

use crate::subjects::Reused;
use crate::subjects::engines::{Change, Locked, Words};

/// Names of the subjects that add to words, and hold no keys.
pub const NAMES: [&str; 6] = [
    "kcas-2", "kcas-4", "kcas-8", "mutex-2", "mutex-4", "mutex-8",
];

/// Buckets for each word, so that a small table is a few lines, which all threads change.
const BUCKETS_PER_WORD: usize = 16;

/// Returns `K` different words that a key chooses, ascending.
#[inline]
fn chosen<const K: usize>(key: &(impl Hash + ?Sized), len: usize) -> [usize; K] {
    let hash = FixedState.hash_one(key) as usize;
    let gap = 1 + (hash >> 32) % (len / K);
    let mut words = std::array::from_fn(|at| (hash as u32 as usize + at * gap) % len);
    words.sort_unstable();
    words
}

/// An engine by which the words are changed.
pub trait Adds: Words {
    /// Names of the subjects of 2, 4 and 8 words at a time.
    const NAMES: [&'static str; 3];
    const DESCRIPTION: &'static str;
    const GUARANTEES: &'static str;
}

impl Adds for Reused {
    const NAMES: [&'static str; 3] = [NAMES[0], NAMES[1], NAMES[2]];
    const DESCRIPTION: &'static str =
        "words changed two, four or eight at a time by K-CAS: what it costs by itself";
    const GUARANTEES: &'static str = "linearizable; lock-free; it holds no keys";
}

impl Adds for Locked {
    const NAMES: [&'static str; 3] = [NAMES[3], NAMES[4], NAMES[5]];
    const DESCRIPTION: &'static str = "the words of kcas-2, -4 and -8 under one mutex";
    const GUARANTEES: &'static str = "linearizable; blocking; it holds no keys";
}

/// Words that an insert increases and a remove reduces, `K` at one moment.
pub struct AddsTo<W, const K: usize> {
    words: W,
    len: usize,
}

pub type KcasWords<const K: usize> = AddsTo<Reused, K>;

pub type MutexWords<const K: usize> = AddsTo<Locked, K>;

impl<W: Adds, const K: usize> AddsTo<W, K> {
    #[inline]
    fn add(&self, key: &(impl Hash + ?Sized), by: i64) -> bool {
        let changes = chosen::<K>(key, self.len).map(|index| Change { index, by });
        while !self.words.try_change(&changes) {}
        true
    }
}

impl<W: Adds, const K: usize> Subject for AddsTo<W, K> {
    const NAME: &'static str = W::NAMES[K.ilog2() as usize - 1];
    const DESCRIPTION: &'static str = W::DESCRIPTION;
    const GUARANTEES: &'static str = W::GUARANTEES;
    const OPERATIONS: Operations = Operations::UPDATES;
    const HOLDS_KEYS: bool = false;

    fn with_buckets(buckets: usize) -> Result<Self> {
        // Enough for any operation.
        let len = (geometry(buckets)?.buckets() / BUCKETS_PER_WORD).max(WordArray::MAX_ENTRIES);
        let words = W::new(len)?;
        Ok(Self { words, len })
    }

    #[inline]
    fn insert<Key: Hash + ?Sized>(&self, key: &Key) -> bool {
        self.add(key, 1)
    }

    #[inline]
    fn remove<Key: Hash + ?Sized>(&self, key: &Key) -> bool {
        self.add(key, -1)
    }

    fn slots(&self, _: usize) -> usize {
        self.len * BUCKETS_PER_WORD * SLOTS_PER_BUCKET
    }

    fn memory_bytes(&self) -> usize {
        self.len * size_of::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::subjects::engines::START;

    /// Threads insert and remove keys; what each key adds to its words is known.
    fn adds_up<W: Adds, const K: usize>() {
        const BUCKETS: usize = 400;
        let subject = AddsTo::<W, K>::with_buckets(BUCKETS).unwrap();
        thread::scope(|scope| {
            for keys in [0..3_000_u64, 1_000..4_000] {
                let subject = &subject;
                scope.spawn(move || {
                    for key in keys {
                        assert!(subject.insert(&key));
                        assert!(key % 3 > 0 || subject.remove(&key));
                    }
                });
            }
        });
        let len = BUCKETS / BUCKETS_PER_WORD;
        let mut expected = vec![START; len];
        let keys = (0..3_000_u64).chain(1_000..4_000);
        for key in keys.filter(|key| key % 3 != 0) {
            let words = chosen::<K>(&key, len);
            assert!(words.is_sorted_by(|one, other| one < other), "{words:?}");
            words.into_iter().for_each(|word| expected[word] += 1);
        }
        assert!(expected.iter().all(|&value| value > START));
        let found = (0..len).map(|word| subject.words.value(word));
        assert!(found.eq(expected.into_iter().map(Some)));
    }

    #[test]
    fn words_hold_what_was_added_to_them() {
        adds_up::<Reused, 2>();
        adds_up::<Reused, 8>();
        adds_up::<Locked, 4>();
    }
}
