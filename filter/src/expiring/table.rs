//! The table of an expiring filter: inserting with an age, and clearing the oldest age.
//!
//! ```text
//! insert:   read both buckets
//!           read the clock                           which period it is
//!           the key is there → exchange its age      (or leave it: `insert_if_absent`)
//!           else K-CAS, which puts it in with the period's age, and compares both buckets
//! sweep:    for each bucket:  read it
//!                             read the clock         stop if the period is over, or the run is done
//!                             exchange: empty the slots of the oldest age, advance the timestamp,
//!                                       even if no slot is of that age
//! advance:  finish the sweep of this period
//!           exchange the clock for the next period
//!           sweep
//! ```
//!
//! With ages of 2 bits there are four, and period q has the age q mod 4. In period q the keys of q, q−1
//! and q−2 are remembered, and those of q−3, the *oldest* age, are being swept. That age is the one
//! of period q+1 as well.
//!
//! **A key is forgotten by the exchange that empties its slot**, as if it was removed, and not by the
//! clock. A lookup therefore need not know which period it is: it is the lookup of a filter of fixed size.
//! And whoever finds a key that is due to be forgotten may renew it: it was there all the time. (If
//! lookups compared ages with the clock, a key would be forgotten at the exchange of the clock; a
//! renewal that read the clock before that, and exchanges the age after it, would say "it was there" about
//! a key that others have already missed.)
//!
//! **No slot has the age of a period that begins.** Let period q be swept, and look at a bucket after
//! its exchange by the sweep, while the period is q. Whoever puts an age into a bucket, or moves one
//! there, has read the bucket first and the clock then, and exchanges what it read. If it
//! succeeds after the sweep's exchange, it has read the bucket after that exchange (which advanced
//! the timestamp); so it found period q on the clock, and the age is one of those that q remembers.
//! So when the clock leaves q, no slot has the oldest age, which is the next period's.
//!
//! The same order is why a sweep that comes late empties no new slot. If its exchange succeeds, the
//! bucket is as it read it, which was before it found period q on the clock: what has the oldest age
//! then was inserted in q−3.
//!
//! **A chain** moves slots with their ages. Its words are from before a second look at the clock, which
//! must show the same period. A bucket with a slot of the oldest age ends a chain, since that slot
//! counts as empty: no slot of the oldest age is ever moved, which could take it from a bucket that
//! is still to be swept to one that has been.
//!
//! **In a file that processes share**, the clock is in the file. A run counts as swept only after its buckets: if a
//! process is killed in a sweep, the clock shows what is left, and the next call sweeps it.
//!
//! All this is modulo the width of the timestamp, like everything else
//! ([`layout`](crate::layout#when-a-timestamp-wraps)); a sweep advances each timestamp once for each thread that
//! is in the same run at the same time. The clock is the one thing that an exchange does not compare. Suppose a
//! thread loses its core between its look at the clock and its exchange, for a period or more, while the bucket
//! wraps its timestamp a whole number of times and holds the same again. Then the thread acts on the old clock: a
//! sweep takes a key that was inserted again, a renewal makes a key older, an insert makes it younger. The
//! test `late_sweep_drops_new_key_only_after_wrap` (`filter/tests/steps/expiring_hostile.rs`) shows that a whole wrap
//! has this effect on a sweep, and that nothing less has. It did not occur in 300 million calls on a few hot
//! buckets, of which 140,000 lost their core for three periods and more.

use kcas::Entry;
use kcas::storage::Block;
use kcas::sync::{AtomicU64, Ordering};

use super::ages::AgedLayout;
use crate::buckets::{BucketTable, Buckets};
use crate::geometry::{Geometry, Location};
use crate::insert_error::InsertError;
use crate::layout::Layout;
use crate::memory::Memory;
use crate::path::{self, Chain, MAX_CHAIN, Moves, Step};
use crate::snapshot::{Table, Watched, each_different};
use crate::update::{Root, roomier, roots};

/// Least number of buckets that are swept from one exchange of the clock to the next. Threads that sweep at once
/// may sweep the same run.
const RUN: usize = if cfg!(any(kcas_loom, feature = "__steps")) {
    2
} else {
    1 << 12
};

/// Bits of the clock that count runs.
const RUN_BITS: u32 = 21;

/// Returns the length of a run in a table of this many buckets.
fn run_of(buckets: usize) -> usize {
    RUN.max(buckets.div_ceil((1 << RUN_BITS) - 1))
}

/// The last period. None later is loaded, and so none begins.
pub(super) const MAX_PERIOD: u64 = (1 << (63 - RUN_BITS)) - 1;

/// Which period it is, and how far its sweep has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Clock {
    pub(super) period: u64,
    /// Number of runs, from the beginning of the table, that have been swept in this period.
    swept: u64,
}

impl Clock {
    /// Returns the clock of a table of this many buckets that has been swept in this period.
    pub(super) fn when_swept(buckets: usize, period: u64) -> Clock {
        Clock {
            period,
            swept: buckets.div_ceil(run_of(buckets)) as u64,
        }
    }

    fn from_word(word: u64) -> Clock {
        Clock {
            period: word >> RUN_BITS,
            swept: word & ((1 << RUN_BITS) - 1),
        }
    }

    pub(super) fn word(self) -> u64 {
        self.period << RUN_BITS | self.swept
    }
}

/// A table, and its clock.
#[derive(Debug)]
pub(super) struct Aged<
    const SLOTS: usize,
    const BITS: usize,
    const AGE_BITS: usize,
    W: Memory = Block,
> {
    pub(super) buckets: Buckets<SLOTS, BITS, W>,
    /// Unless the words have it.
    clock: AtomicU64,
    /// Number of runs in the table; kept, so that no insert has to divide.
    runs: u64,
}

impl<const SLOTS: usize, const BITS: usize, const AGE_BITS: usize> Aged<SLOTS, BITS, AGE_BITS> {
    /// Makes a table of what was [saved](AgedLayout::contents), in this period. It counts as swept unless a slot is of
    /// the oldest age.
    pub(super) fn of_contents(mut contents: Vec<u64>, period: u64) -> Self {
        let mut old = false;
        for word in &mut contents {
            *word = AgedLayout::<SLOTS, BITS, AGE_BITS>::of_contents(*word, period);
            let left = AgedLayout::<SLOTS, BITS, AGE_BITS>::without(*word, period + 1);
            old |= Layout::<SLOTS, BITS>::occupied(left) < Layout::<SLOTS, BITS>::occupied(*word);
        }
        let table = Self::swept(Buckets::from_words(contents), period);
        if old {
            table.exchange(table.clock(), Clock { period, swept: 0 });
        }
        table
    }
}

impl<const SLOTS: usize, const BITS: usize, const AGE_BITS: usize, W: Memory>
    Aged<SLOTS, BITS, AGE_BITS, W>
{
    /// Makes a table that has been swept in this period, unless the words have a clock.
    pub(super) fn swept(buckets: Buckets<SLOTS, BITS, W>, period: u64) -> Self {
        let clock = Clock::when_swept(buckets.geometry().buckets(), period);
        Aged {
            runs: clock.swept,
            clock: AtomicU64::new(clock.word()),
            buckets,
        }
    }

    /// True if nothing is left of the oldest age in the period of this clock.
    pub(super) fn is_swept(&self, clock: Clock) -> bool {
        clock.swept >= self.runs
    }

    #[inline]
    fn clock_word(&self) -> &AtomicU64 {
        W::clock(self.buckets.words(), &self.clock)
    }

    pub(super) fn clock(&self) -> Clock {
        // Acquire: with the exchanges of the clock. Whoever finds a run swept finds its buckets swept.
        Clock::from_word(self.clock_word().load(Ordering::Acquire))
    }

    /// Exchanges the clock; false if it has moved.
    fn exchange(&self, current: Clock, new: Clock) -> bool {
        // Release: with the Acquire in `clock`. What others have swept is published, too: this thread has loaded
        // the current clock there.
        self.clock_word()
            .compare_exchange(
                current.word(),
                new.word(),
                Ordering::Release,
                Ordering::Relaxed,
            )
            .is_ok()
    }

    /// Begins the period of this number, which must be greater than that of the present one. The present one must
    /// have been swept. False if another thread has begun one.
    pub(super) fn begin(&self, swept: Clock, period: u64) -> bool {
        assert!(period <= MAX_PERIOD, "there is no period {period}");
        self.exchange(swept, Clock { period, swept: 0 })
    }

    /// Returns what finds the slots that are empty, or of the oldest age by this clock.
    fn free(&self, clock: Clock) -> Free<'_, SLOTS, BITS, AGE_BITS> {
        Free {
            geometry: self.geometry(),
            oldest: (!self.is_swept(clock)).then_some(clock.period + 1),
        }
    }
}

impl<const SLOTS: usize, const BITS: usize, const AGE_BITS: usize, W: Memory>
    BucketTable<SLOTS, BITS> for Aged<SLOTS, BITS, AGE_BITS, W>
{
    #[inline]
    fn geometry(&self) -> &Geometry<SLOTS, BITS> {
        self.buckets.geometry()
    }

    #[inline]
    fn read(&self, bucket: usize) -> u64 {
        self.buckets.read(bucket)
    }

    #[inline]
    fn read_all<const N: usize>(&self, buckets: [usize; N]) -> [u64; N] {
        self.buckets.read_all(buckets)
    }

    #[inline]
    fn replace(&self, bucket: usize, current: u64, new: u64) -> bool {
        self.buckets.replace(bucket, current, new)
    }

    #[inline]
    fn is_damaged(&self) -> bool {
        self.buckets.is_damaged()
    }

    fn commit(&self, entries: &[Entry]) -> bool {
        self.buckets.commit(entries)
    }

    fn held(word: u64, slot: usize) -> u64 {
        AgedLayout::<SLOTS, BITS, AGE_BITS>::held(word, slot)
    }

    fn place(word: u64, slot: usize, held: u64) -> u64 {
        AgedLayout::<SLOTS, BITS, AGE_BITS>::place(word, slot, held)
    }
}

impl<const SLOTS: usize, const BITS: usize, const AGE_BITS: usize, W: Memory> Table
    for Aged<SLOTS, BITS, AGE_BITS, W>
{
    fn made(&self) -> usize {
        self.geometry().buckets()
    }

    fn freeze(&self, bucket: usize) -> Option<u64> {
        let word = self.read(bucket);
        // After the word, as everywhere.
        let period = self.clock().period;
        let frozen = self.replace(
            bucket,
            word,
            AgedLayout::<SLOTS, BITS, AGE_BITS>::advance(word),
        );
        // As in a filter of fixed size.
        (frozen || self.is_damaged())
            .then(|| AgedLayout::<SLOTS, BITS, AGE_BITS>::contents(word, period))
    }

    fn checked(&self, slots: Option<u64>) -> u64 {
        let is_possible = AgedLayout::<SLOTS, BITS, AGE_BITS>::is_possible;
        self.buckets.possible(slots, is_possible)
    }

    fn each_affected(&self, entry: &Entry, mut each: impl FnMut(usize)) {
        // Also by a sweep that forgets nothing: otherwise no copy need end while periods begin.
        each(entry.index);
        each_different(self, entry, each);
    }
}

/// Slots that are empty, or count as empty since they are of the oldest age.
struct Free<'a, const SLOTS: usize, const BITS: usize, const AGE_BITS: usize> {
    geometry: &'a Geometry<SLOTS, BITS>,
    /// The oldest age, unless all of its slots have been emptied.
    oldest: Option<u64>,
}

impl<const SLOTS: usize, const BITS: usize, const AGE_BITS: usize> Free<'_, SLOTS, BITS, AGE_BITS> {
    /// Returns the word with those slots empty.
    #[inline]
    fn emptied(&self, word: u64) -> u64 {
        match self.oldest {
            None => word,
            Some(oldest) => AgedLayout::<SLOTS, BITS, AGE_BITS>::without(word, oldest),
        }
    }
}

impl<const SLOTS: usize, const BITS: usize, const AGE_BITS: usize> Moves<SLOTS>
    for Free<'_, SLOTS, BITS, AGE_BITS>
{
    #[inline]
    fn others(&self, bucket: usize, word: u64) -> [usize; SLOTS] {
        self.geometry.others(bucket, word)
    }

    #[inline]
    fn find_empty(&self, word: u64) -> Option<usize> {
        Layout::<SLOTS, BITS>::find_empty(self.emptied(word))
    }
}

/// A table whose updates keep what snapshots need.
pub(super) type WatchedAged<
    'a,
    const SLOTS: usize,
    const BITS: usize,
    const AGE_BITS: usize,
    W = Block,
> = Watched<'a, Aged<SLOTS, BITS, AGE_BITS, W>, <W as Memory>::Snapshots<'a>>;

/// What an insert did.
pub(super) enum Inserted {
    /// It added a copy.
    New {
        /// Whether the copy took the place of one that counted as forgotten.
        instead: bool,
    },
    /// The class had its copy.
    There,
}

/// Adds the class of `location` with the age of this period; or finds it there, and renews its age if
/// `renew` is true. A class has one copy at most.
///
/// Progress: lock-free; it tries again only if another thread changed one of the buckets it read, or
/// a period has begun. Linearization point: the K-CAS that adds the fingerprint, or the exchange of
/// the age. If the age is to stay, or is that of this period: the last read that found the fingerprint. For
/// `Full`: the read of the second bucket, at which both were full and neither had the fingerprint.
pub(super) fn insert<const SLOTS: usize, const BITS: usize, const AGE_BITS: usize, W: Memory>(
    table: &WatchedAged<'_, SLOTS, BITS, AGE_BITS, W>,
    location: Location,
    renew: bool,
) -> Result<Inserted, InsertError> {
    while !table.is_damaged() {
        let roots = roots(table, location);
        // After the roots.
        let clock = table.table.clock();
        if let Some((bucket, word, slot)) = holder::<SLOTS, BITS>(roots, location.fingerprint) {
            let renewed = AgedLayout::<SLOTS, BITS, AGE_BITS>::with_age(word, slot, clock.period);
            // If it was read before this period began, it may have been of the same age since one that is over,
            // and have been swept: so it is read again.
            let is_renewed = || {
                if renewed == word {
                    table.read(bucket) == word
                } else {
                    table.replace(bucket, word, renewed)
                }
            };
            if !renew || is_renewed() {
                return Ok(Inserted::There);
            }
            continue;
        }
        let free = table.table.free(clock);
        let emptied = roots.map(|(bucket, word)| (bucket, free.emptied(word)));
        let mut chain = Chain::new();
        let found = match roomier::<SLOTS, BITS>(emptied) {
            Some((bucket, emptied)) => {
                let (_, word) = if bucket == roots[0].0 {
                    roots[0]
                } else {
                    roots[1]
                };
                let slot = Layout::<SLOTS, BITS>::find_empty(emptied).expect("it has room");
                chain.push(Step { bucket, slot, word });
                true
            }
            None => {
                let read = |_, others: &mut _| table.read_all(*others);
                // One entry of the K-CAS is for the root that the chain does not begin with.
                let (roots, longest) = (location.different(&roots), MAX_CHAIN - 1);
                let found = path::search(&free, roots, longest, read, &mut chain);
                if table.table.clock().period != clock.period {
                    continue;
                }
                found
            }
        };
        if found {
            let held = location.fingerprint | (clock.period << BITS);
            // Unless one of the buckets has changed.
            if table.shift(&chain, held, &roots) {
                let last = chain.last().expect("it has a step");
                let instead = Layout::<SLOTS, BITS>::fingerprint(last.word, last.slot) != 0;
                return Ok(Inserted::New { instead });
            }
        } else if table.read(location.first) == roots[0].1 {
            // As in a filter of fixed size.
            return Err(InsertError::Full);
        }
    }
    Err(InsertError::Damaged)
}

/// Returns the root that holds a fingerprint, with the slot.
#[inline]
fn holder<const SLOTS: usize, const BITS: usize>(
    roots: [Root; 2],
    fingerprint: u64,
) -> Option<(usize, u64, usize)> {
    roots.into_iter().find_map(|(bucket, word)| {
        let slot = Layout::<SLOTS, BITS>::find(word, fingerprint)?;
        Some((bucket, word, slot))
    })
}

/// Finishes the sweep of the present period; returns its clock, and calls `emptied` with the number of
/// copies that were forgotten, several times.
///
/// Progress: lock-free; an exchange of a bucket fails only if another thread changed it, and one of the
/// clock only if others have swept the same run. Linearization points: a copy is forgotten by the
/// exchange that empties its slot.
pub(super) fn sweep<const SLOTS: usize, const BITS: usize, const AGE_BITS: usize, W: Memory>(
    table: &WatchedAged<'_, SLOTS, BITS, AGE_BITS, W>,
    mut emptied: impl FnMut(usize),
) -> Clock {
    loop {
        let clock = table.table.clock();
        if table.table.is_swept(clock) || table.is_damaged() {
            return clock;
        }
        let buckets = table.geometry().buckets();
        let run = run_of(buckets);
        let first = clock.swept as usize * run;
        let whole = (first..buckets.min(first + run))
            .try_for_each(|bucket| sweep_bucket(table, bucket, clock).map(&mut emptied));
        if whole.is_some() {
            let swept = clock.swept + 1;
            // If it fails, others have done the same.
            table.table.exchange(clock, Clock { swept, ..clock });
        }
    }
}

/// Empties the slots of the oldest age; returns how many, or `None` if the period is over, or the bucket has
/// been swept by others, or the table is damaged.
fn sweep_bucket<const SLOTS: usize, const BITS: usize, const AGE_BITS: usize, W: Memory>(
    table: &WatchedAged<'_, SLOTS, BITS, AGE_BITS, W>,
    bucket: usize,
    clock: Clock,
) -> Option<usize> {
    while !table.is_damaged() {
        let word = table.read(bucket);
        // After the word.
        if table.table.clock() != clock {
            return None;
        }
        let emptied = AgedLayout::<SLOTS, BITS, AGE_BITS>::without(word, clock.period + 1);
        if table.replace(
            bucket,
            word,
            AgedLayout::<SLOTS, BITS, AGE_BITS>::advance(emptied),
        ) {
            let occupied = Layout::<SLOTS, BITS>::occupied;
            return Some(occupied(word) - occupied(emptied));
        }
    }
    None
}
