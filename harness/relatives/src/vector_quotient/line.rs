//! The words of a block: one cache line, read and written word by word. Those who read it while a
//! thread writes find out by the version (module `block`).

use std::sync::atomic::{AtomicU64, Ordering};

use kcas::steps::step;

use super::mini_filter::TAG_WORDS;

/// A cache line.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub(super) struct Line {
    /// The slots, and then the version.
    pub(super) tags: [AtomicU64; TAG_WORDS],
    /// The slots of each bucket.
    pub(super) runs: [AtomicU64; 2],
}

impl Line {
    /// Returns a word of tags; the last one has the version, too.
    #[inline]
    pub(super) fn tags(&self, word: usize) -> u64 {
        read(&self.tags[word])
    }

    /// Returns the runs: exact if the caller holds the block, otherwise the halves may be from
    /// different moments.
    #[inline(always)]
    pub(super) fn runs(&self) -> u128 {
        let [low, high] = self.runs.each_ref().map(read);
        u128::from(low) | u128::from(high) << 64
    }
}

#[inline(always)]
pub(super) fn read(word: &AtomicU64) -> u64 {
    step();
    word.load(Ordering::Relaxed)
}

#[inline]
pub(super) fn write(word: &AtomicU64, value: u64) {
    step();
    word.store(value, Ordering::Relaxed);
}
