//! Words that are changed k at a time, by one K-CAS or under one mutex: what K-CAS itself costs
//! where cores are simulated. (The study `kcas` measures it on threads.) They hold no keys: a key
//! chooses the words.

use std::hash::{BuildHasher, Hash};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use anyhow::Result;
use filter::FixedState;
use kcas::{Entry, WordArray};
use subject::layout::{geometry, zeroed};
use subject::sync::{AtomicU64, Mutex};
use subject::{Operations, SLOTS_PER_BUCKET, Subject};

/// Names of the subjects that add to words, and hold no keys.
pub const NAMES: [&str; 6] = [
    "kcas-2", "kcas-4", "kcas-8", "mutex-2", "mutex-4", "mutex-8",
];

/// Buckets for each word, so that a small table is a few lines, which all threads change.
const BUCKETS_PER_WORD: usize = 16;

/// Returns how many words stand for this many buckets: enough for any operation.
fn count(buckets: usize) -> Result<usize> {
    Ok((geometry(buckets)?.buckets() / BUCKETS_PER_WORD).max(WordArray::MAX_ENTRIES))
}

/// Returns `K` different words that a key chooses, ascending.
#[inline]
fn chosen<const K: usize>(key: &(impl Hash + ?Sized), len: usize) -> [usize; K] {
    let hash = FixedState.hash_one(key) as usize;
    let apart = 1 + (hash >> 32) % (len / K);
    let mut words = std::array::from_fn(|at| (hash as u32 as usize + at * apart) % len);
    words.sort_unstable();
    words
}

/// Declares a subject of `K` words at a time: its type, the names for 2, 4 and 8, what it is, and
/// what its users may rely on.
macro_rules! words {
    ($words:ident, $names:expr, $what:literal, $guarantees:literal) => {
        impl<const K: usize> Subject for $words<K> {
            const NAME: &'static str = match K {
                2 => $names[0],
                4 => $names[1],
                _ => $names[2],
            };
            const DESCRIPTION: &'static str = $what;
            const GUARANTEES: &'static str = $guarantees;
            const OPERATIONS: Operations = Operations::UPDATES;
            const HOLDS_KEYS: bool = false;

            fn with_buckets(buckets: usize) -> Result<Self> {
                Self::with_words(count(buckets)?)
            }

            #[inline]
            fn insert<Key: Hash + ?Sized>(&self, key: &Key) -> bool {
                self.add(key, 1);
                true
            }

            /// Never called.
            fn contains<Key: Hash + ?Sized>(&self, _: &Key) -> bool {
                false
            }

            #[inline]
            fn remove<Key: Hash + ?Sized>(&self, key: &Key) -> bool {
                self.add(key, -1);
                true
            }

            fn slots(&self) -> usize {
                self.len() * BUCKETS_PER_WORD * SLOTS_PER_BUCKET
            }

            fn memory_bytes(&self) -> usize {
                self.len() * size_of::<u64>()
            }
        }
    };
}

/// Words that an insert increases and a remove reduces, `K` at one moment, by K-CAS.
pub struct KcasWords<const K: usize>(WordArray);

words!(
    KcasWords,
    [NAMES[0], NAMES[1], NAMES[2]],
    "words changed two, four or eight at a time by K-CAS: what it costs by itself",
    "linearizable; lock-free; it holds no keys"
);

impl<const K: usize> KcasWords<K> {
    fn with_words(words: usize) -> Result<Self> {
        Ok(Self(WordArray::new(words)))
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    #[inline]
    fn add(&self, key: &(impl Hash + ?Sized), by: i64) {
        let words = chosen::<K>(key, self.0.len());
        loop {
            let entries = words.map(|index| {
                let expected = self.0.load(index);
                let new = expected.wrapping_add_signed(by);
                Entry {
                    index,
                    expected,
                    new,
                }
            });
            if self.0.kcas(&entries).is_ok() {
                return;
            }
        }
    }
}

/// The same words under one mutex.
pub struct MutexWords<const K: usize> {
    held: Mutex<()>,
    words: Box<[AtomicU64]>,
}

words!(
    MutexWords,
    [NAMES[3], NAMES[4], NAMES[5]],
    "the words of kcas-2, -4 and -8 under one mutex",
    "linearizable; blocking; it holds no keys"
);

impl<const K: usize> MutexWords<K> {
    fn with_words(words: usize) -> Result<Self> {
        Ok(Self {
            held: Mutex::new(()),
            words: zeroed(words)?,
        })
    }

    fn len(&self) -> usize {
        self.words.len()
    }

    #[inline]
    fn add(&self, key: &(impl Hash + ?Sized), by: i64) {
        let words = chosen::<K>(key, self.words.len());
        let _held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        for index in words {
            // Relaxed: the mutex orders them.
            let value = self.words[index].load(Ordering::Relaxed);
            self.words[index].store(value.wrapping_add_signed(by), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// Threads insert and remove keys; what each key adds to its words is known.
    fn adds_up<const K: usize>() {
        const BUCKETS: usize = 400;
        let (kcas, mutex) = (
            KcasWords::<K>::with_buckets(BUCKETS).unwrap(),
            MutexWords::<K>::with_buckets(BUCKETS).unwrap(),
        );
        let len = BUCKETS / BUCKETS_PER_WORD;
        thread::scope(|scope| {
            for keys in [0..3_000_u64, 1_000..4_000] {
                let (kcas, mutex) = (&kcas, &mutex);
                scope.spawn(move || {
                    for key in keys {
                        assert!(kcas.insert(&key) && mutex.insert(&key));
                        if key % 3 == 0 {
                            assert!(kcas.remove(&key) && mutex.remove(&key));
                        }
                    }
                });
            }
        });
        let mut expected = vec![0; len];
        for key in (0..3_000_u64)
            .chain(1_000..4_000)
            .filter(|key| key % 3 != 0)
        {
            let words = chosen::<K>(&key, len);
            assert!(words.is_sorted_by(|one, other| one < other), "{words:?}");
            words.into_iter().for_each(|word| expected[word] += 1);
        }
        assert!(expected.iter().all(|&added| added > 0));
        let of_kcas: Vec<_> = (0..len).map(|word| kcas.0.load(word)).collect();
        let of_mutex: Vec<_> = (mutex.words.iter())
            .map(|word| word.load(Ordering::Relaxed))
            .collect();
        assert_eq!((&of_kcas, &of_mutex), (&expected, &expected));
    }

    #[test]
    fn words_hold_what_was_added_to_them() {
        adds_up::<2>();
        adds_up::<4>();
        adds_up::<8>();
    }
}
