//! A lock in each word, its highest bit: the strongest blocking rival that we know how to make. (What
//! `word-lock` is for the filter.)
//!
//! An operation locks its words in ascending order, so that threads cannot wait in a circle, and a store both
//! changes a word and unlocks it: k exchanges for k words, where K-CAS makes 2k + 1.

use std::sync::atomic::Ordering;

use anyhow::Result;
use subject::layout::zeroed;
use subject::sync::{AtomicU64, Backoff};

use super::{Change, EngineInfo, START, Words, boxed};

pub(super) const ENGINE: EngineInfo = EngineInfo {
    name: "lock bits",
    description: "a lock bit in each word, taken in ascending order: k exchanges",
    guarantees: "linearizable; blocking, readers too",
    counted: false,
    build: |len, _| boxed::<Locks>(len),
};

const LOCK: u64 = 1 << 63;

struct Locks(Box<[AtomicU64]>);

impl Words for Locks {
    fn new(len: usize) -> Result<Self> {
        let words = zeroed(len)?;
        let set = |word: &AtomicU64| word.store(START, Ordering::Relaxed);
        words.iter().for_each(set);
        Ok(Self(words))
    }

    /// Always succeeds: nobody changes a word that it has locked.
    #[inline]
    fn try_change(&self, changes: &[Change]) -> bool {
        for change in changes {
            lock(&self.0[change.index]);
        }
        for &change in changes {
            let word = &self.0[change.index];
            // Relaxed: this thread holds the lock. Release: pairs with the acquire in `lock`.
            let value = word.load(Ordering::Relaxed) & !LOCK;
            word.store(change.apply(value), Ordering::Release);
        }
        true
    }

    fn value(&self, index: usize) -> Option<u64> {
        let value = self.0[index].load(Ordering::Acquire);
        (value & LOCK == 0).then_some(value)
    }
}

#[inline]
fn lock(word: &AtomicU64) {
    // Acquire: pairs with the release of whoever unlocked it.
    if word.fetch_or(LOCK, Ordering::Acquire) & LOCK != 0 {
        wait_and_lock(word);
    }
}

#[cold]
fn wait_and_lock(word: &AtomicU64) {
    let backoff = Backoff::new();
    while word.load(Ordering::Relaxed) & LOCK != 0
        || word.fetch_or(LOCK, Ordering::Acquire) & LOCK != 0
    {
        backoff.snooze();
    }
}
