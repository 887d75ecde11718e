//! The small filter in words whose threads can be killed, with the snapshots of a filter in a file.

use std::sync::Arc;

use filter::internals::in_file::{self, Announced, Backup, InFile, Memory, Right};
use filter::internals::length::Length;
use filter::{Class, CuckooFilter, SnapshotError};
use kcas::storage::Storage;
use kcas::sync::AtomicU64;
use kcas::thread_id::TooManyThreads;
use kcas::{Entry, WordArray};
use kcas_testing::killed::{self, Mortal};

use super::{BITS, BUCKETS, Identity, SLOTS, Small, Tested, put_into};

#[derive(Debug)]
pub(crate) struct Words(Mortal);

impl Storage for Words {
    type Words = Mortal;

    fn words(&self) -> &Mortal {
        &self.0
    }

    fn number(&self) -> usize {
        self.0.number()
    }

    fn has(&self, index: usize) -> bool {
        self.0.has(index)
    }

    fn has_all(&self, entries: &[Entry]) -> bool {
        self.0.has_all(entries)
    }

    fn each_piece(&self, each: impl FnMut(&[AtomicU64])) {
        self.0.each_piece(each);
    }
}

impl Memory for Words {
    type Beside = Length;
    type Snapshots<'a> = InFile<'a, Words, ()>;

    fn with_counter<R>(
        _: &WordArray<Words>,
        length: &Length,
        action: impl FnOnce(&AtomicU64) -> R,
    ) -> Result<R, TooManyThreads> {
        length.with_counter(action)
    }

    fn count_at_once(
        _: &WordArray<Words>,
        length: &Length,
        change: impl FnOnce() -> Option<u64>,
    ) -> Option<u64> {
        length.count_at_once(change)
    }

    fn sum(_: &WordArray<Words>, length: &Length) -> usize {
        length.sum()
    }

    fn extra_bytes(_: &Length) -> usize {
        0
    }

    fn snapshots<'a>(
        words: &'a WordArray<Words>,
        _: &'a Length,
        buckets: usize,
    ) -> InFile<'a, Words, ()> {
        InFile::new(words, buckets, RIGHT)
    }
}

/// The tests make one snapshot at a time.
const RIGHT: Right<Words, ()> = Right {
    hold: |_| Ok(()),
    is_mine: |()| true,
};

/// Begins a copy, and comes as far as the last bucket, for a thread that is killed.
pub(crate) fn begin_copy(filter: &SmallInFile) {
    let snapshots = InFile::new(in_file::words(filter), BUCKETS, RIGHT);
    let kept = snapshots.announce(BUCKETS).unwrap();
    kept.pass(BUCKETS - 1);
}

pub(crate) type SmallInFile = CuckooFilter<Identity, SLOTS, BITS, Words>;

impl Tested for SmallInFile {
    const MAX: u64 = Small::MAX;
    const CLASS: fn(&Self, &u64) -> Class = Self::class;
    type Copy = Small;
    const TRY_CLONE: fn(&Self) -> Result<Small, SnapshotError> = Self::try_clone;
}

/// Makes a filter that holds these keys, each in its preferred bucket.
pub(crate) fn holding(keys: &[u64]) -> Arc<SmallInFile> {
    let (len, _) = InFile::<Words, ()>::words(BUCKETS);
    let words = kcas::internals::array(Words(Mortal::new(len)));
    let filter = in_file::filter(words, BUCKETS, Length::starting_at(0), Identity::default());
    put_into(&filter, keys);
    Arc::new(filter)
}

/// Runs an operation. Otherwise, [`take_over`] might find one that the last holder of the thread's id has begun in a
/// larger array of another test, and never finished.
pub(crate) fn forget_last_holder() {
    let entries = [Entry::new(0, 0, 1), Entry::new(1, 0, 1)];
    killed::mortal(2).kcas(&entries).unwrap();
}

/// Finishes what this thread has left unfinished when it was killed.
pub(crate) fn take_over(filter: &SmallInFile) {
    killed::take_over(in_file::words(filter));
}
