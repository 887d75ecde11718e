//! The snapshots of a table in words that processes share.

use std::fmt::Debug;

use kcas::storage::Storage;
use kcas::{Entry, WordArray};

use super::{Announced, Backup, SnapshotError, filled, kept_in};
use crate::buckets::{MAX_WORD, commit, replace};

/// The right to make a snapshot, which one caller has at a time.
#[derive(Debug)]
pub struct Right<W, H> {
    /// Gets it, and makes sure that there is memory for places.
    pub hold: fn(&WordArray<W>) -> Result<H, SnapshotError>,
    /// False in a forked child of the process that got it.
    pub is_mine: fn(&H) -> bool,
}

impl<W, H> Clone for Right<W, H> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W, H> Copy for Right<W, H> {}

/// The one snapshot that may be under way of a table in words that processes share. The array has the table's words,
/// then from a whole cache line on the word that announces the snapshot, then a place for each bucket, filled as those
/// in memory.
#[derive(Debug)]
pub struct InFile<'a, W, H> {
    words: &'a WordArray<W>,
    /// The number of the word that announces: a number in the higher bits, odd while a snapshot is under way, and the
    /// number of buckets that it has behind it.
    announcement: usize,
    right: Right<W, H>,
}

/// [`Backup`] in a file.
#[derive(Debug)]
pub struct BackupInFile<'a, W, H> {
    snapshots: InFile<'a, W, H>,
    number: u64,
    /// For whoever makes the snapshot.
    hold: Option<H>,
}

/// Bits of a number of buckets. The other 30 are those of a snapshot's number: a thread would have to be stopped while
/// a whole multiple of 2^29 snapshots are made.
const BEHIND_BITS: u32 = 33;
const BEHIND: u64 = (1 << BEHIND_BITS) - 1;

impl<W, H> Clone for InFile<'_, W, H> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W, H> Copy for InFile<'_, W, H> {}

impl<'a, W: Storage, H> InFile<'a, W, H> {
    /// Returns the number of words of an array for this many buckets, and how many of them are no places.
    pub fn words(buckets: usize) -> (usize, usize) {
        let places = buckets.next_multiple_of(8) + 1;
        (places + buckets, places)
    }

    /// Makes the snapshots of a table with this many buckets in an array with [these words](Self::words).
    #[inline]
    pub fn new(words: &'a WordArray<W>, buckets: usize, right: Right<W, H>) -> Self {
        InFile {
            words,
            announcement: buckets.next_multiple_of(8),
            right,
        }
    }

    /// True if a snapshot is announced.
    pub fn is_under_way(self) -> bool {
        self.announced() >> BEHIND_BITS & 1 == 1
    }

    fn announced(self) -> u64 {
        self.words.load(self.announcement)
    }

    /// Sets a word whose value no other thread changes.
    fn set(self, index: usize, value: u64) {
        while !self.words.is_damaged() {
            let found = self.words.load(index);
            if found == value || replace(self.words, index, found, value) {
                return;
            }
        }
    }

    /// Ends the snapshot that is announced, if there is one: that of a process that was killed. The caller has the
    /// right to make one. Returns the number, which is even.
    pub fn end_announced(self) -> u64 {
        let ended = ended(self.announced() >> BEHIND_BITS);
        self.set(self.announcement, ended);
        ended >> BEHIND_BITS
    }
}

impl<'a, W: Storage, H: Debug> Announced for InFile<'a, W, H> {
    type Backup = BackupInFile<'a, W, H>;

    #[inline]
    fn are_none(self) -> bool {
        let word = self.words.load_raw(self.announcement);
        // (While an operation is under way on it, perhaps there is none. That is found out later.)
        word <= MAX_WORD && word >> BEHIND_BITS & 1 == 0
    }

    fn each(self, mut each: impl FnMut(&Self::Backup)) {
        let number = self.announced() >> BEHIND_BITS;
        if number % 2 == 1 {
            each(&BackupInFile {
                snapshots: self,
                number,
                hold: None,
            });
        }
    }

    fn announce(self, buckets: usize) -> Result<Self::Backup, SnapshotError> {
        let hold = (self.right.hold)(self.words)?;
        let number = self.end_announced() + 1;
        (1..=buckets).for_each(|nth| self.set(self.announcement + nth, 0));
        self.set(self.announcement, number << BEHIND_BITS);
        Ok(BackupInFile {
            snapshots: self,
            number,
            hold: Some(hold),
        })
    }

    fn end(self, own: &Self::Backup) {
        own.announce(ended(own.number));
    }
}

/// Returns what announces no snapshot, after that of this number.
fn ended(number: u64) -> u64 {
    (number + number % 2) << BEHIND_BITS & MAX_WORD
}

impl<W: Storage, H: Debug> BackupInFile<'_, W, H> {
    fn place_of(&self, bucket: usize) -> usize {
        self.snapshots.announcement + 1 + bucket
    }

    fn is_needed(&self, bucket: usize, announced: u64) -> bool {
        announced >> BEHIND_BITS == self.number && bucket as u64 >= announced & BEHIND
    }

    /// Replaces the announcement of this snapshot, for whoever makes it. If another one stands there, what was kept may
    /// be lost: only a process that writes anything can do that.
    fn announce(&self, announcement: u64) {
        let InFile {
            words,
            announcement: index,
            right,
        } = self.snapshots;
        // A forked child has a copy of the snapshot, but not the right to it.
        if !self.hold.as_ref().is_some_and(right.is_mine) {
            return;
        }
        loop {
            let found = words.load(index);
            if found >> BEHIND_BITS != self.number {
                return words.note_damage();
            }
            if words.is_damaged() || replace(words, index, found, announcement) {
                return;
            }
        }
    }
}

impl<W: Storage, H: Debug> Backup for BackupInFile<'_, W, H> {
    fn get(&self, bucket: usize) -> Option<u64> {
        kept_in(self.snapshots.words.load(self.place_of(bucket)))
    }

    fn needs(&self, bucket: usize) -> bool {
        self.is_needed(bucket, self.snapshots.announced())
    }

    fn fill(&self, bucket: usize, slots: u64) {
        let words = self.snapshots.words;
        loop {
            let announced = self.snapshots.announced();
            let is_needed = self.is_needed(bucket, announced) && self.get(bucket).is_none();
            let entries = [
                Entry::new(self.snapshots.announcement, announced, announced),
                Entry::new(self.place_of(bucket), 0, filled(slots)),
            ];
            // If it fails, another thread has filled the place, or the snapshot has come further or is over.
            if !is_needed || words.is_damaged() || commit(words, &entries) {
                return;
            }
        }
    }

    fn pass(&self, buckets: usize) {
        self.announce(self.number << BEHIND_BITS | buckets as u64);
    }
}
