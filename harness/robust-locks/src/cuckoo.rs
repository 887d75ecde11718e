//! The filter: our table under striped robust mutexes, made as fast as we know how.
//!
//! - **Lookups take no lock and never wait**: as in `striped-timestamps`, three loads, which compare the timestamps of our layout.
//!   A sequence number for each stripe would take one more cache line, and would stay odd when its writer is killed.
//! - **As few locks as correctness allows**, as in `segment-lock`: an insert or a remove locks one stripe, a move of a fingerprint
//!   two, in ascending order. Chains are searched without locks, and moved from their end backwards.
//! - **A killed owner leaves nothing half done.** An insert or a remove is one store. A move is two, which a journal next to the
//!   mutexes makes one: first the two new words, then the move's mark next to both mutexes, then the stores. Whoever locks a
//!   stripe and finds a mark repairs: if both marks are there, no other thread has had either stripe since, so both words can be
//!   stored again.
//!
//! It does not count its copies, as ours does.

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

/// The words next to a mutex: the mark of a move that is under way, and its two new words, next to the mutex of the bucket that
/// the fingerprint leaves. A mark is never 0, since the two buckets of a move differ.
const MARK: usize = 0;
const SOURCE: usize = 1;
const TARGET: usize = 2;

/// A cuckoo filter in a file that processes share, under robust mutexes.
#[derive(Debug)]
pub struct RobustCuckooFilter {
    file: RobustFile,
    geometry: Geometry,
}

impl RobustCuckooFilter {
    /// Makes the file of an empty filter.
    ///
    /// # Errors
    /// Those of [`RobustFile::create`].
    pub fn create(path: &Path, buckets: usize) -> io::Result<()> {
        geometry(buckets).map_err(io::Error::other)?;
        RobustFile::create(path, STRIPES.min(buckets.next_power_of_two()), buckets)
    }

    /// Opens the filter in this file.
    ///
    /// # Errors
    /// Those of [`RobustFile::open`].
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = RobustFile::open(path)?;
        let geometry = geometry(file.words().len()).map_err(io::Error::other)?;
        Ok(Self { file, geometry })
    }

    /// Returns whether a key may be present. Writes nothing.
    #[inline(always)]
    pub fn contains<K: Hash + ?Sized>(&self, key: &K) -> bool {
        let location = locate(&self.geometry, key);
        let backoff = Backoff::new();
        loop {
            let words = [self.read(location.first), self.read(location.second)];
            let is_unchanged = self.read(location.first) == words[0];
            let holds = |word| Layout::contains(word, location.fingerprint);
            let found = holds(words[0]) | holds(words[1]);
            if is_unchanged | found {
                return found;
            }
            backoff.spin();
        }
    }

    /// Adds a copy of a key; false if there is no room.
    #[inline]
    pub fn insert<K: Hash + ?Sized>(&self, key: &K) -> bool {
        let location = locate(&self.geometry, key);
        self.place(location.first, location.fingerprint)
            || self.place(location.second, location.fingerprint)
            || self.evict(location)
    }

    /// Removes a copy of a key; false if there is none.
    #[inline]
    pub fn remove<K: Hash + ?Sized>(&self, key: &K) -> bool {
        let location = locate(&self.geometry, key);
        let buckets = [location.first, location.second];
        let matches = |bucket| Layout::matches(self.read(bucket), location.fingerprint);
        let take_from = |bucket| {
            let matches = matches(bucket);
            if matches != 0 {
                store(self.word(bucket), Layout::take(self.read(bucket), matches));
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
        self.file.word(bucket)
    }

    #[inline(always)]
    fn read(&self, bucket: usize) -> u64 {
        // Acquire: pairs with the release in `store`, for lookups and searches without a lock.
        self.word(bucket).load(Ordering::Acquire)
    }

    #[inline]
    fn stripe(&self, bucket: usize) -> usize {
        bucket & (self.file.mutexes() - 1)
    }

    fn mark(&self, stripe: usize) -> &AtomicU64 {
        &self.file.next_to(stripe)[MARK]
    }

    /// Runs an action under the stripes of two buckets, which may be the same.
    #[inline]
    fn under<R>(&self, [one, other]: [usize; 2], action: impl FnOnce() -> R) -> R {
        let (one, other) = (self.stripe(one), self.stripe(other));
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
                // Relaxed: the mutexes order marks.
                let marks = buckets.map(|of| self.mark(self.stripe(of)).load(Ordering::Relaxed));
                let mark = if marks[0] == 0 { marks[1] } else { marks[0] };
                if mark == 0 { Ok(action()) } else { Err(mark) }
            });
            match done {
                Ok(result) => return result,
                // It may need another stripe, so none is held here.
                Err(mark) => self.repair(mark),
            }
        }
    }

    /// Completes a move whose owner was killed, or forgets it if it had not begun.
    #[cold]
    fn repair(&self, mark: u64) {
        let (source, target) = ends(mark);
        self.under([source, target], || {
            let marks = [source, target].map(|bucket| self.mark(self.stripe(bucket)));
            let is_marked = |place: &AtomicU64| place.load(Ordering::Relaxed) == mark;
            if marks.iter().all(|place| is_marked(place)) && !is_flawed() {
                self.complete(mark);
            }
            // Another process may have repaired it meanwhile, and marked a move of its own.
            for place in marks.into_iter().filter(|place| is_marked(place)) {
                store(place, 0);
            }
        });
    }

    /// Stores the words of a marked move, first that of the bucket that the fingerprint goes to, and forgets it.
    fn complete(&self, mark: u64) {
        let (source, target) = ends(mark);
        let journal = self.file.next_to(self.stripe(source));
        let [left, filled] = [SOURCE, TARGET].map(|at| journal[at].load(Ordering::Relaxed));
        store(self.word(target), filled);
        store(self.word(source), left);
        // In this order: a mark next to the source's mutex alone is of a move that had not begun.
        for bucket in [source, target] {
            store(self.mark(self.stripe(bucket)), 0);
        }
    }

    /// Places a fingerprint into a bucket if it has room.
    #[inline(always)]
    fn place(&self, bucket: usize, fingerprint: u64) -> bool {
        Layout::has_room(self.read(bucket))
            && self.with([bucket; 2], || {
                let word = self.read(bucket);
                let has_room = Layout::has_room(word);
                if has_room {
                    store(self.word(bucket), Layout::add(word, fingerprint));
                }
                has_room
            })
    }

    /// Inserts into two full buckets; false if no chain of moves makes room.
    #[cold]
    fn evict(&self, location: Location) -> bool {
        let roots = [location.first, location.second];
        let backoff = Backoff::new();
        loop {
            let words = roots.map(|bucket| (bucket, self.read(bucket)));
            let read = |_, buckets: &mut [usize; SLOTS_PER_BUCKET]| buckets.map(|of| self.read(of));
            let mut chain = Chain::new();
            let has_room = words.iter().any(|(_, word)| Layout::has_room(*word));
            if !has_room && path::search(&self.geometry, &words, MAX_CHAIN, read, &mut chain) {
                let [root, next, ..] = &*chain else {
                    return false;
                };
                let mut later = chain[1..].windows(2).rev();
                if later.all(|pair| self.shift(&pair[0], &pair[1], 0))
                    && self.shift(root, next, location.fingerprint)
                {
                    return true;
                }
            } else if has_room {
                let mut places = roots.into_iter();
                if places.any(|bucket| self.place(bucket, location.fingerprint)) {
                    return true;
                }
            } else if self.with(roots, || {
                !roots.iter().any(|of| Layout::has_room(self.read(*of)))
            }) {
                return false;
            }
            backoff.snooze();
        }
    }

    /// Moves the fingerprint of one step to the bucket of the next, and puts `replacement` (0: nothing) in its slot; false, with
    /// nothing changed, if the fingerprint has gone or there is no room.
    fn shift(&self, from: &Step, to: &Step, replacement: u64) -> bool {
        self.with([from.bucket, to.bucket], || {
            let moved = Layout::fingerprint(from.word, from.slot);
            let (source, target) = (self.read(from.bucket), self.read(to.bucket));
            let is_there = Layout::fingerprint(source, from.slot) == moved;
            let Some(empty) = Layout::find_empty(target).filter(|_| is_there) else {
                return false;
            };
            let left = match replacement {
                0 => Layout::clear(source, from.slot),
                fingerprint => Layout::place(source, from.slot, fingerprint),
            };
            let journal = self.file.next_to(self.stripe(from.bucket));
            store(&journal[SOURCE], left);
            store(&journal[TARGET], Layout::place(target, empty, moved));
            let mark = (from.bucket as u64) << 32 | to.bucket as u64;
            for bucket in [from.bucket, to.bucket] {
                store(self.mark(self.stripe(bucket)), mark);
            }
            self.complete(mark);
            true
        })
    }
}

/// Returns the bucket that a fingerprint leaves, and the one that it goes to.
fn ends(mark: u64) -> (usize, usize) {
    ((mark >> 32) as usize, mark as u32 as usize)
}

#[inline(always)]
fn store(word: &AtomicU64, value: u64) {
    #[cfg(test)]
    tests::die_if_due();
    // Release: pairs with the acquire in `read`. A thread that sees that a move has emptied a slot sees the other bucket
    // filled; and whatever is left of a killed owner's stores is a beginning of them.
    word.store(value, Ordering::Release);
}

/// Whether repairs forget moves instead of completing them: a bug that a test must find.
fn is_flawed() -> bool {
    #[cfg(test)]
    return tests::is_flawed();
    #[cfg(not(test))]
    false
}

#[cfg(test)]
mod tests;
