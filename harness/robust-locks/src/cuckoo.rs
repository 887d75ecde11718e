//! The filter: our table under striped robust mutexes, made as fast as we know how. It does not count its copies, as
//! ours does.
//!
//! - **Lookups take no lock and never wait**, as in `striped-timestamps`: three loads, which compare the timestamps of
//!   our layout. A sequence number for each stripe would need another cache line, and would stay odd when its writer is
//!   killed.
//! - **As few locks as correctness allows**, as in `segment-lock`: an insert or a remove locks one stripe, a move of a
//!   fingerprint two, in ascending order. Chains are searched without locks, and moved from their end backwards.
//! - **A killed owner leaves nothing half done.** An insert or a remove is one store. A move is two, which a journal
//!   makes one: first the new words, then a mark at both mutexes, then the stores. Whoever locks a stripe and finds a
//!   mark repairs: if both marks are there, no other thread has had either stripe since, so both words can be stored
//!   again.

use std::hash::Hash;
use std::hint::select_unpredictable;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use filter::internals::Location;
use filter::internals::path::{self, Chain, MAX_CHAIN, Step};
use subject::SLOTS_PER_BUCKET;
use subject::layout::{Geometry, Layout, geometry, locate};
use subject::sync::Backoff;

use crate::RobustFile;

/// Mutexes of a table. More push it out of the nearest caches.
const STRIPES: usize = 1 << 10;

/// The words of a mutex: the mark of a move that is under way, which is never 0, as its two buckets differ; and at the
/// bucket that the fingerprint leaves, the new words of this bucket and of the other.
const MARK: usize = 0;
const SOURCE: usize = 1;
const TARGET: usize = 2;

/// A cuckoo filter in a file that processes share, under robust mutexes.
pub struct RobustCuckooFilter {
    file: RobustFile<STRIPES>,
    geometry: Geometry,
}

impl RobustCuckooFilter {
    /// Opens the filter in this file, and makes the file if there is none.
    ///
    /// # Errors
    /// If the system refuses, or the file is another one.
    pub fn open_or_create(path: &Path, buckets: usize) -> io::Result<Self> {
        if !path.exists() {
            RobustFile::<STRIPES>::create(path, buckets)
                .or_else(|error| if path.exists() { Ok(()) } else { Err(error) })?;
        }
        let file = RobustFile::open(path)?;
        let geometry = geometry(file.words().len()).map_err(io::Error::other)?;
        Ok(Self { file, geometry })
    }

    /// Returns whether a key may be present. Writes nothing.
    #[inline(always)]
    pub fn contains<K: Hash + ?Sized>(&self, key: &K) -> bool {
        let location = locate(&self.geometry, key);
        loop {
            let words = [self.read(location.first), self.read(location.second)];
            let is_unchanged = self.read(location.first) == words[0];
            let holds = |word| Layout::contains(word, location.fingerprint);
            let found = holds(words[0]) | holds(words[1]);
            if is_unchanged | found {
                return found;
            }
        }
    }

    /// Adds a copy of a key; false if there is no room.
    #[inline]
    pub fn insert<K: Hash + ?Sized>(&self, key: &K) -> bool {
        let location = locate(&self.geometry, key);
        self.place(location) || self.evict(location)
    }

    /// Removes a copy of a key; false if there is none.
    #[inline]
    pub fn remove<K: Hash + ?Sized>(&self, key: &K) -> bool {
        let location = locate(&self.geometry, key);
        let buckets = [location.first, location.second];
        let matches = |bucket| Layout::matches(self.read(bucket), location.fingerprint);
        let take_from = |bucket| {
            let (word, matches) = (self.read(bucket), matches(bucket));
            if matches != 0 {
                store(self.word(bucket), Layout::take(word, matches));
            }
            matches != 0
        };
        let [in_first, in_second] = buckets.map(matches);
        // Which of the two it is cannot be predicted.
        let bucket = select_unpredictable(in_first != 0, buckets[0], buckets[1]);
        (in_first | in_second != 0 && self.with([bucket; 2], || take_from(bucket)))
            || self.with(buckets, || take_from(buckets[0]) || take_from(buckets[1]))
    }

    #[inline(always)]
    fn word(&self, bucket: usize) -> &AtomicU64 {
        &self.file.words()[bucket]
    }

    #[inline(always)]
    fn read(&self, bucket: usize) -> u64 {
        // Acquire: pairs with the release in `store`, for lookups and searches without a lock.
        self.word(bucket).load(Ordering::Acquire)
    }

    /// Runs an action under the stripes of two buckets, which may be the same.
    #[inline]
    fn under<R>(&self, buckets: [usize; 2], action: impl FnOnce() -> R) -> R {
        let [one, other] = buckets.map(|bucket| bucket % STRIPES);
        self.file.locked(one.min(other), || {
            if one == other {
                action()
            } else {
                self.file.locked(one.max(other), action)
            }
        })
    }

    /// The same, once it has repaired what killed owners of these stripes have left there.
    #[inline]
    fn with<R>(&self, buckets: [usize; 2], action: impl Fn() -> R) -> R {
        loop {
            let done = self.under(buckets, || {
                // Relaxed, here and below: the mutexes order the words of the journal.
                let marks = buckets.map(|at| self.file.own_words(at)[MARK].load(Ordering::Relaxed));
                let mark = marks.into_iter().find(|mark| *mark != 0);
                mark.map_or_else(|| Ok(action()), Err)
            });
            match done {
                Ok(result) => return result,
                // It may need another stripe, so none is held here.
                Err(mark) => self.repair(mark),
            }
        }
    }

    /// Completes a move whose owner was killed, or forgets it if its stores had not begun.
    #[cold]
    fn repair(&self, mark: u64) {
        self.under(ends(mark), || {
            let marks = ends(mark).map(|bucket| &self.file.own_words(bucket)[MARK]);
            // Another process may have repaired it meanwhile, and marked a move of its own.
            let is_marked = marks.map(|place| place.load(Ordering::Relaxed) == mark);
            if is_marked == [true; 2] {
                self.complete(mark);
            } else {
                let left = marks
                    .into_iter()
                    .zip(is_marked)
                    .filter(|(_, is_marked)| *is_marked);
                left.for_each(|(place, _)| store(place, 0));
            }
        });
    }

    /// Stores the words of a marked move, first that of the bucket that the fingerprint goes to. Removes the marks in
    /// the order in which they were set: a mark at its source alone is of a move that has not begun.
    fn complete(&self, mark: u64) {
        let [source, target] = ends(mark);
        let journal = self.file.own_words(source);
        let [left, filled] = [SOURCE, TARGET].map(|at| journal[at].load(Ordering::Relaxed));
        store(self.word(target), filled);
        store(self.word(source), left);
        for bucket in ends(mark) {
            store(&self.file.own_words(bucket)[MARK], 0);
        }
    }

    /// Places a fingerprint into the first of its buckets that has room.
    #[inline(always)]
    fn place(&self, location: Location) -> bool {
        [location.first, location.second].into_iter().any(|bucket| {
            let add = || {
                let word = self.read(bucket);
                let has_room = Layout::has_room(word);
                if has_room {
                    store(self.word(bucket), Layout::add(word, location.fingerprint));
                }
                has_room
            };
            Layout::has_room(self.read(bucket)) && self.with([bucket; 2], add)
        })
    }

    /// Inserts into two full buckets; false if no chain of moves makes room.
    #[cold]
    fn evict(&self, location: Location) -> bool {
        let backoff = Backoff::new();
        while !self.place(location) {
            let roots = [location.first, location.second].map(|bucket| (bucket, self.read(bucket)));
            let read = |_, buckets: &mut [usize; SLOTS_PER_BUCKET]| buckets.map(|at| self.read(at));
            let mut chain = Chain::new();
            if !path::search(&self.geometry, &roots, MAX_CHAIN, read, &mut chain) {
                return false;
            }
            let mut moves = chain.windows(2).rev();
            let replacement = |at| {
                if at == chain[0].bucket {
                    location.fingerprint
                } else {
                    0
                }
            };
            if moves.all(|pair| self.shift(&pair[0], &pair[1], replacement(pair[0].bucket))) {
                return true;
            }
            backoff.snooze();
        }
        true
    }

    /// Moves the fingerprint of one step to the bucket of the next, and puts `replacement` (0: nothing) in its slot;
    /// false, with nothing changed, if the fingerprint has gone or there is no room.
    fn shift(&self, from: &Step, to: &Step, replacement: u64) -> bool {
        let buckets = [from.bucket, to.bucket];
        self.with(buckets, || {
            let moved = Layout::fingerprint(from.word, from.slot);
            let [source, target] = buckets.map(|bucket| self.read(bucket));
            let is_there = Layout::fingerprint(source, from.slot) == moved;
            let Some(empty) = Layout::find_empty(target).filter(|_| is_there) else {
                return false;
            };
            let left = match replacement {
                0 => Layout::clear(source, from.slot),
                fingerprint => Layout::place(source, from.slot, fingerprint),
            };
            let journal = self.file.own_words(from.bucket);
            store(&journal[SOURCE], left);
            store(&journal[TARGET], Layout::place(target, empty, moved));
            let mark = (from.bucket as u64) << 32 | to.bucket as u64;
            for bucket in buckets {
                store(&self.file.own_words(bucket)[MARK], mark);
            }
            self.complete(mark);
            true
        })
    }
}

/// Returns the bucket that a fingerprint leaves, and the one that it goes to.
fn ends(mark: u64) -> [usize; 2] {
    [(mark >> 32) as usize, mark as u32 as usize]
}

#[inline(always)]
fn store(word: &AtomicU64, value: u64) {
    #[cfg(test)]
    tests::die_if_due();
    // Release: pairs with the acquire in `read`. A thread that sees that a move has emptied a slot sees the other
    // bucket filled; and what is left of a killed owner's stores is a beginning of them.
    word.store(value, Ordering::Release);
}

#[cfg(test)]
mod tests;
