//! Subjects that are wrong on purpose, for tests of what measurements and `check` notice.

use std::hash::{BuildHasher, Hash};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, ThreadId};
use std::time::Duration;

use anyhow::Result;
use filter::{Class, FixedState, InsertError};
use subject::{Operations, Subject};

/// The flaw of a subject.
pub(crate) type Flaw = u8;

/// A false negative, once in a thousand lookups that find a key.
pub(crate) const FALSE_NEGATIVE: Flaw = 1;
/// Occasionally removes a copy to put it elsewhere, so that for a moment it is nowhere.
pub(crate) const MOVES: Flaw = 2;
/// Refuses a key although there is room.
pub(crate) const REFUSES: Flaw = 3;
/// Accepts a key and drops it, once in a thousand inserts.
pub(crate) const DROPS: Flaw = 4;
/// Looks for a copy first and takes it afterwards: it may say yes to two threads.
pub(crate) const TAKES_TWICE: Flaw = 5;
/// Leaves a copy behind.
pub(crate) const LEAVES: Flaw = 6;
/// Panics when it is used.
pub(crate) const PANICS: Flaw = 7;
/// Finds nothing for the thread that made it, which looks only before and after the others.
pub(crate) const FINDS_NONE_AT_THE_END: Flaw = 8;
/// Lets that thread remove as many copies as it inserted, but none of the others'.
pub(crate) const KEEPS_AT_THE_END: Flaw = 9;
/// Is slow to look a key up.
pub(crate) const SLOW: Flaw = 10;
/// Claims to remove an absent key; at the end finds nothing: only the sum of copies shows it.
pub(crate) const REMOVES_NOTHING: Flaw = 11;
/// Accepts a key that it holds, and adds no copy.
pub(crate) const LOSES_COPIES: Flaw = 12;
/// Refuses every key.
pub(crate) const REFUSES_ALL: Flaw = 13;
/// Looks for a key before it inserts it uniquely: it may say yes to two threads.
pub(crate) const LOOKS_FIRST: Flaw = 14;
/// Accepts a key and drops it, once in 50 inserts.
pub(crate) const DROPS_MANY: Flaw = 15;
/// Finds every key.
pub(crate) const FINDS_ALL: Flaw = 16;
/// Finds no key.
pub(crate) const FINDS_NONE: Flaw = 17;
/// Claims to remove, but does not.
pub(crate) const KEEPS: Flaw = 18;
/// Refuses some keys, and finds none while it is measured, by other threads than its maker.
pub(crate) const MISSES_MEANWHILE: Flaw = 19;
/// Takes one absent key, the first that is looked up, for another.
pub(crate) const FINDS_ONE: Flaw = 20;

/// A filter or a set with a flaw, which reveals classes or does not.
pub(crate) struct Flawed<S, const FLAW: Flaw, const NAMED: bool>(S, AtomicU64, ThreadId);

impl<S, const FLAW: Flaw, const NAMED: bool> Flawed<S, FLAW, NAMED> {
    /// Returns true for the thread that made it.
    fn is_maker(&self) -> bool {
        thread::current().id() == self.2
    }

    /// Returns true once in so many calls.
    fn now(&self, one_in: u64) -> bool {
        self.1.fetch_add(1, Ordering::Relaxed) % one_in == one_in - 1
    }
}

impl<S: Subject, const FLAW: Flaw, const NAMED: bool> Subject for Flawed<S, FLAW, NAMED> {
    const NAME: &'static str = "flawed";
    const DESCRIPTION: &'static str = "a filter with a flaw";
    const GUARANTEES: &'static str = "none";
    const OPERATIONS: Operations = Operations {
        unique: FLAW == LOOKS_FIRST || FLAW == REFUSES_ALL,
        ..Operations::ALL
    };
    const GROWS: bool = S::GROWS;
    const TAKES_ALL: bool = S::TAKES_ALL;
    const SET: bool = S::SET;

    fn with_buckets(buckets: usize) -> Result<Self> {
        let flawless = S::with_buckets(buckets)?;
        Ok(Self(flawless, AtomicU64::new(0), thread::current().id()))
    }

    fn insert<K: Hash + ?Sized>(&self, key: &K) -> bool {
        match FLAW {
            PANICS => panic!("this subject panics on purpose"),
            REFUSES_ALL => return false,
            REFUSES if self.now(100) => return false,
            MISSES_MEANWHILE if self.now(50) => return false,
            DROPS if self.now(1_000) => return true,
            DROPS_MANY if self.now(50) => return true,
            LOSES_COPIES if self.0.contains(key) => return true,
            MOVES if self.now(20) && self.0.remove(key) => {
                thread::yield_now();
                self.0.insert(key);
            }
            KEEPS_AT_THE_END if self.is_maker() => {
                let done = self.0.insert(key);
                self.1.fetch_add(u64::from(done), Ordering::Relaxed);
                return done;
            }
            _ => {}
        }
        self.0.insert(key)
    }

    fn insert_unique<K: Hash + ?Sized>(&self, key: &K) -> Result<bool, InsertError> {
        if self.0.contains(key) {
            return Ok(false);
        }
        thread::yield_now();
        self.insert(key).then_some(true).ok_or(InsertError::Full)
    }

    fn contains<K: Hash + ?Sized>(&self, key: &K) -> bool {
        if FLAW == SLOW {
            thread::sleep(Duration::from_millis(20));
        }
        match FLAW {
            FINDS_ALL => true,
            FINDS_NONE => false,
            FINDS_NONE_AT_THE_END | REMOVES_NOTHING if self.is_maker() => false,
            MISSES_MEANWHILE if !self.is_maker() => false,
            FALSE_NEGATIVE => self.0.contains(key) && !self.now(1_000),
            FINDS_ONE => {
                self.0.contains(key) || {
                    let (hash, relaxed) = (FixedState.hash_one(key), Ordering::Relaxed);
                    let first = self.1.compare_exchange(0, hash, relaxed, relaxed);
                    first.is_ok() || first == Err(hash)
                }
            }
            _ => self.0.contains(key),
        }
    }

    fn remove<K: Hash + ?Sized>(&self, key: &K) -> bool {
        match FLAW {
            KEEPS => true,
            REMOVES_NOTHING => {
                self.0.remove(key);
                true
            }
            LEAVES if self.now(1_000) => self.0.contains(key),
            TAKES_TWICE if self.now(2) => {
                let found = self.0.contains(key);
                thread::yield_now();
                self.0.remove(key);
                found
            }
            KEEPS_AT_THE_END if self.is_maker() => {
                let left = self.1.load(Ordering::Relaxed);
                self.1.store(left.saturating_sub(1), Ordering::Relaxed);
                left > 0 && self.0.remove(key)
            }
            _ => self.0.remove(key),
        }
    }

    fn class<K: Hash + ?Sized>(&self, key: &K) -> Option<Class> {
        self.0.class(key).filter(|_| NAMED)
    }

    subject::delegate! { self.0: count memory_bytes }
}
