//! An array under one mutex: the baseline without any of this.

use std::sync::atomic::Ordering::Relaxed;

use anyhow::Result;
use crossbeam_utils::CachePadded;
use subject::layout::zeroed;
use subject::sync::{AtomicU64, Mutex};

use super::{Change, EngineInfo, START, Words, boxed};

pub(super) const ENGINE: EngineInfo = EngineInfo {
    name: "mutex",
    description: "an array under one mutex, which is held while the words are read and written",
    guarantees: "linearizable; blocking",
    counted: false,
    build: |len, _| boxed::<Locked>(len),
};

/// Words that one mutex protects. Accesses are relaxed: the mutex orders them.
pub struct Locked {
    /// On a cache line of its own: what it protects is found without a look at the line that all threads write.
    mutex: CachePadded<Mutex<()>>,
    words: Box<[AtomicU64]>,
}

impl Words for Locked {
    fn new(len: usize) -> Result<Self> {
        let words = zeroed(len)?;
        words.iter().for_each(|word| word.store(START, Relaxed));
        let mutex = CachePadded::new(Mutex::new(()));
        Ok(Self { mutex, words })
    }

    /// Always succeeds: no other thread can interfere.
    #[inline]
    fn try_change(&self, changes: &[Change]) -> bool {
        self.mutex.with(
            #[inline(always)]
            |()| {
                for &change in changes {
                    let word = &self.words[change.index];
                    word.store(change.apply(word.load(Relaxed)), Relaxed);
                }
            },
        );
        true
    }

    fn value(&self, index: usize) -> Option<u64> {
        Some(self.words[index].load(Relaxed))
    }
}
