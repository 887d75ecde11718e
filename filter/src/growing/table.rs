//! One table of a growing filter, and how it takes over the contents of an older one.

use arrayvec::ArrayVec;
use kcas::sync::{AtomicU64, Ordering};
use kcas::{Entry, OutOfMemory, WordArray};

use super::schedule::{Format, PAIRING_BITS};
use crate::buckets::{BucketTable, Buckets};
use crate::hashing::{self, Geometry, Location};
use crate::layout::{Layout, Shape};
use crate::lookup;
use crate::path::MAX_CHAIN;
use crate::update::{self, Refused};

/// Set in a bucket's word, in a table that took over from another one, once the bucket has its
/// share of the older table's contents. From then on the word counts; before that it is 0, and the
/// contents of the bucket are in the older table.
const MIGRATED: u64 = 1 << 62;

/// Set in a bucket's word before its contents are migrated: the word never changes again. In a table
/// that cannot be split, set when the bucket is sealed: nothing is added to it any more, but copies
/// are still removed.
const FROZEN: u64 = 1 << 61;

/// Bits of a word that belong neither to the slots nor to the timestamp.
const FLAGS: u64 = MIGRATED | FROZEN;

/// Set while an operation is under way on the word ([`WordArray::load_raw`]).
const TAG: u64 = 1 << WordArray::VALUE_BITS;

/// Marks a word that was read from the older table: [`WordArray::load`] never returns this bit set.
const INHERITED: u64 = TAG;

/// The bits of a fingerprint that choose the other bucket.
const PAIRING: u64 = (1 << PAIRING_BITS) - 1;

/// Maximum number of slots per bucket.
const MAX_SLOTS: usize = 4;

/// Number of buckets that a thread migrates at a time.
const CHUNK: usize = if cfg!(kcas_loom) { 1 } else { 16 };

/// What the tables of a filter need to know about a key; the same for all of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    /// The low bits of its fingerprints, and its buckets within a slice.
    pub(crate) short: Location,
    /// More of the hash: first the slice number, then the high bits of the fingerprint. A table
    /// with twice as many slices uses one bit for the slice number that its fingerprints lose.
    pub(crate) tail: u64,
}

impl Key {
    /// Makes the key with this hash, in a filter whose slices have this many buckets.
    #[inline]
    pub(crate) fn new(hash: u64, slice: usize) -> Key {
        Key {
            short: hashing::locate(hash, PAIRING, slice),
            tail: hash >> PAIRING_BITS,
        }
    }
}

/// Where keys may be in a table, and what its words look like: all that lookups need to know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    shape: Shape,
    /// Buckets per slice.
    slice: usize,
    /// There are 2^`slice_bits` slices.
    slice_bits: u32,
    /// Mask of the fingerprint bits above those that choose the other bucket.
    extension: u64,
}

impl Plan {
    /// Returns where a key may be.
    #[inline]
    pub(crate) fn locate(&self, key: Key) -> Location {
        let slice = key.tail & !(u64::MAX << self.slice_bits);
        let start = slice as usize * self.slice;
        let extension = key.tail >> self.slice_bits << PAIRING_BITS & self.extension;
        Location {
            fingerprint: key.short.fingerprint | extension,
            first: key.short.first + start,
            second: key.short.second + start,
        }
    }

    /// True if one of two words holds the fingerprint.
    #[inline]
    pub(crate) fn matches(&self, [first, second]: [u64; 2], fingerprint: u64) -> bool {
        self.shape.contains(first, fingerprint) | self.shape.contains(second, fingerprint)
    }
}

/// The contents of a bucket that it hands on to the next table.
#[derive(Debug)]
struct Contents {
    /// 0 where a slot is empty or does not exist.
    slots: [u64; MAX_SLOTS],
    timestamp: u64,
}

/// Declares the possible tables, one for each fingerprint length, and each function of a table as
/// one `match`.
macro_rules! tables {
    ($($variant:ident: $slots:literal $bits:literal,)+) => {
        /// Buckets whose layout follows from the fingerprint length.
        #[derive(Debug)]
        enum AnyBuckets {
            $($variant(Buckets<$slots, $bits>),)+
        }

        /// Evaluates the same expression for buckets of any layout.
        macro_rules! each {
            ($any:expr, $buckets:ident => $call:expr) => {
                match $any {
                    $(AnyBuckets::$variant($buckets) => $call,)+
                }
            };
        }

        /// Returns the layout of tables with fingerprints of this many bits.
        pub(crate) fn format(bits: u32) -> Format {
            match bits {
                $($bits => Format::of::<$slots, $bits>(),)+
                other => unreachable!("no table has fingerprints of {other} bits"),
            }
        }

        impl AnyBuckets {
            /// Makes a table of slices, with all words zero, and the shape of its words.
            fn try_new(bits: u32, slice: usize, slices: usize) -> Result<(Self, Shape), OutOfMemory> {
                match bits {
                    $($bits => {
                        let geometry = Geometry::sliced(slice, slices, PAIRING);
                        // The last word counts timestamp wraps.
                        let buckets = AnyBuckets::$variant(Buckets::try_with_more(geometry, 1)?);
                        Ok((buckets, Layout::<$slots, $bits>::SHAPE))
                    })+
                    other => unreachable!("no table has fingerprints of {other} bits"),
                }
            }
        }
    };
}

// The one with the shortest fingerprints cannot be split; each other one is split into the one
// before it.
tables! {
    Of12: 4 12,
    Of13: 4 13,
    Of14: 4 14,
    Of15: 3 15,
    Of16: 3 16,
    Of17: 3 17,
    Of18: 3 18,
    Of19: 2 19,
    Of20: 2 20,
    Of21: 2 21,
    Of22: 2 22,
    Of23: 2 23,
    Of24: 2 24,
    Of25: 2 25,
}

/// A table of a growing filter.
#[derive(Debug)]
pub(crate) struct Table {
    buckets: AnyBuckets,
    plan: Plan,
    bits: u32,
    /// [`MIGRATED`] if it took over from another table; otherwise 0, and every word counts.
    migrated: u64,
    /// Number of chunks of buckets that no thread has begun to migrate.
    unclaimed: AtomicU64,
    /// Number of chunks of buckets that are not known to have been migrated.
    unfinished: AtomicU64,
}

impl Table {
    /// Makes an empty table of 2^`slice_bits` slices, with fingerprints of this many bits.
    pub(crate) fn try_new(bits: u32, slice: usize, slice_bits: u32) -> Result<Table, OutOfMemory> {
        let (buckets, shape) =
            AnyBuckets::try_new(bits, slice, 1 << slice_bits).map_err(|_| OutOfMemory {
                len: slice << slice_bits,
            })?;
        Ok(Table {
            buckets,
            plan: Plan {
                shape,
                slice,
                slice_bits,
                extension: shape.max_fingerprint & !PAIRING,
            },
            bits,
            migrated: 0,
            unclaimed: AtomicU64::new(0),
            unfinished: AtomicU64::new(0),
        })
    }

    /// Makes a table of twice as many buckets, to take over from this one: slice numbers have one
    /// bit more, and fingerprints one bit less. `None` if fingerprints have no bit to spare.
    pub(crate) fn try_split(&self) -> Option<Result<Table, OutOfMemory>> {
        if self.bits == PAIRING_BITS {
            return None;
        }
        let split = Table::try_new(self.bits - 1, self.plan.slice, self.plan.slice_bits + 1);
        Some(split.map(|table| {
            let chunks = table.number_of_buckets().div_ceil(CHUNK) as u64;
            Table {
                migrated: MIGRATED,
                unclaimed: AtomicU64::new(chunks),
                unfinished: AtomicU64::new(chunks),
                ..table
            }
        }))
    }

    #[inline]
    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Returns the number of buckets per slice.
    pub(crate) fn slice(&self) -> usize {
        self.plan.slice
    }

    pub(crate) fn slice_bits(&self) -> u32 {
        self.plan.slice_bits
    }

    pub(crate) fn number_of_buckets(&self) -> usize {
        self.plan.slice << self.plan.slice_bits
    }

    pub(crate) fn format(&self) -> Format {
        format(self.bits)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.words().len() * size_of::<u64>() + size_of::<Self>()
    }

    #[inline]
    fn words(&self) -> &WordArray {
        each!(&self.buckets, buckets => buckets.words())
    }

    /// Returns how many times a timestamp has wrapped. A thread that gets the same number before
    /// reading a bucket and after reading it again, and read the same word twice, knows that
    /// nothing was added there in between.
    #[inline]
    pub(crate) fn wraps(&self) -> u64 {
        self.words().load(self.wraps_at())
    }

    #[inline]
    fn wraps_at(&self) -> usize {
        self.words().len() - 1
    }

    /// Returns the words of both buckets, read after the number of wraps, and whether they can be
    /// trusted. They can if all count, no operation is under way on them, nothing was or is still
    /// to be migrated, and the first word, and after it the number of wraps, were the same when
    /// read again.
    #[inline]
    pub(crate) fn look_twice(&self, location: Location, among: Among) -> (bool, [u64; 2]) {
        let words = self.words();
        let wraps = words.load_raw(self.wraps_at());
        let [first, second] = lookup::load_both(words, location);
        let changed = words.load_raw(location.first) ^ first;
        let wrapped = words.load_raw(self.wraps_at()) ^ wraps;
        let counting = [first, second].map(|word| word ^ among.counting);
        // No count reaches a flag.
        let under_way = (counting[0] | counting[1] | wraps) & (TAG | FROZEN | among.counting);
        ((changed | wrapped | under_way) == 0, counting)
    }

    /// Freezes a bucket, and returns the word that it had then, with or without the flag; in a
    /// table that can be split, the bucket stays frozen for ever.
    fn freeze(&self, bucket: usize) -> u64 {
        let words = self.words();
        loop {
            let word = words.load(bucket);
            if word & FROZEN != 0 || words.compare_exchange(bucket, word, word | FROZEN).is_ok() {
                return word;
            }
        }
    }

    /// Makes sure that the key never has a copy here again, in a table that cannot be split and is
    /// known to be superseded. False if the key has a copy; then perhaps nothing was done.
    ///
    /// Both its buckets are frozen. A thread that has read one of them before finds it changed; one
    /// that reads it afterwards learns that the table is superseded before it adds anything
    /// ([`update::insert_while`]). So true holds for ever.
    ///
    /// Progress: lock-free; it tries again only when another thread changed one of the buckets.
    /// Linearization point: the exchange that freezes the second bucket, or the load that finds it
    /// frozen; for false, the read that found a copy.
    pub(crate) fn seal(&self, key: Key) -> bool {
        debug_assert_eq!(self.bits, PAIRING_BITS);
        let location = self.plan.locate(key);
        let buckets = [location.first, location.second];
        let fingerprint = location.fingerprint;
        let words = self.words();
        // If the key is there, no exchange is made.
        !self
            .plan
            .matches(buckets.map(|bucket| words.load(bucket)), fingerprint)
            && !self
                .plan
                .matches(buckets.map(|bucket| self.freeze(bucket)), fingerprint)
    }

    /// Accepts additions again in all buckets that were [`seal`](Self::seal)ed. The caller must
    /// have the filter to itself.
    pub(crate) fn unseal(&self) {
        let words = self.words();
        for bucket in 0..self.number_of_buckets() {
            let word = words.load(bucket);
            if word & FROZEN != 0 {
                let unsealed = words.compare_exchange(bucket, word, word & !FROZEN);
                unsealed.expect("nobody else changes it");
            }
        }
    }

    fn contents(&self, word: u64) -> Contents {
        fn of<const SLOTS: usize, const BITS: usize>(
            _: &Buckets<SLOTS, BITS>,
            word: u64,
        ) -> Contents {
            let fingerprint = |slot| Layout::<SLOTS, BITS>::fingerprint(word, slot);
            Contents {
                slots: std::array::from_fn(|slot| if slot < SLOTS { fingerprint(slot) } else { 0 }),
                timestamp: Layout::<SLOTS, BITS>::timestamp(word),
            }
        }
        each!(&self.buckets, buckets => of(buckets, word & !FLAGS))
    }
}

/// Which words of a table count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Among {
    /// [`MIGRATED`] while the table is taking over from another one; otherwise 0.
    counting: u64,
}

/// A table, and the one that it is taking over from, if any.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'a> {
    pub(crate) table: &'a Table,
    pub(crate) older: Option<&'a Table>,
}

impl View<'_> {
    /// Says which words count, for [`Table::look_twice`].
    #[inline]
    pub(crate) fn among(&self) -> Among {
        let counting = if self.older.is_some() { MIGRATED } else { 0 };
        Among { counting }
    }

    /// Returns how many times timestamps have wrapped, in either table.
    pub(crate) fn wraps(&self) -> [u64; 2] {
        [self.table.wraps(), self.older.map_or(0, Table::wraps)]
    }

    /// Returns the raw words of both buckets of a location, from whichever table they count in.
    /// They may be out of date if the list of tables has changed.
    pub(crate) fn look(&self, location: Location) -> [u64; 2] {
        each!(&self.table.buckets, buckets => {
            let typed = self.typed(buckets);
            [location.first, location.second].map(|bucket| typed.look(bucket))
        })
    }

    /// Converts what [`look`](Self::look) returned to the layout of this table.
    pub(crate) fn seen(&self, location: Location, looks: [u64; 2]) -> [u64; 2] {
        each!(&self.table.buckets, buckets => {
            let typed = self.typed(buckets);
            [typed.seen(location.first, looks[0]), typed.seen(location.second, looks[1])]
        })
    }

    /// Returns how many slots of the two words of a location hold its fingerprint.
    pub(crate) fn count(&self, words: [u64; 2], location: Location) -> usize {
        fn of<const SLOTS: usize, const BITS: usize>(
            _: &Buckets<SLOTS, BITS>,
            words: [u64; 2],
            location: Location,
        ) -> usize {
            lookup::count_in::<SLOTS, BITS>(location, words)
        }
        each!(&self.table.buckets, buckets => of(buckets, words, location))
    }

    /// [`update::insert_while`].
    pub(crate) fn insert(&self, key: Key, is_open: impl Fn() -> bool) -> Result<(), Refused> {
        let location = self.table.plan.locate(key);
        each!(&self.table.buckets, buckets => {
            update::insert_while(&self.typed(buckets), location, is_open)
        })
    }

    /// [`update::insert_unique_while`].
    pub(crate) fn insert_unique(
        &self,
        key: Key,
        is_open: impl Fn() -> bool,
    ) -> Result<bool, Refused> {
        let location = self.table.plan.locate(key);
        each!(&self.table.buckets, buckets => {
            update::insert_unique_while(&self.typed(buckets), location, is_open)
        })
    }

    /// [`update::remove_while`]; also returns `None` when it cannot say whether there was a copy.
    pub(crate) fn remove(&self, key: Key, is_open: impl Fn() -> bool) -> Option<bool> {
        let location = self.table.plan.locate(key);
        each!(&self.table.buckets, buckets => {
            let typed = self.typed(buckets);
            // From here on the words are this table's, whose number of wraps is checked.
            typed.ensure_migrated(location.first);
            typed.ensure_migrated(location.second);
            let wraps = self.table.wraps();
            match update::remove_while(&typed, location, is_open) {
                Some(false) if self.table.wraps() != wraps => None,
                removed => removed,
            }
        })
    }

    /// Migrates a few buckets that no thread has migrated yet; true if they were the last of all.
    ///
    /// Progress: wait-free, unless other threads change the very same buckets of the older table.
    pub(crate) fn take_over_some(&self) -> bool {
        let unclaimed = &self.table.unclaimed;
        // Relaxed, here and below: it only divides the work.
        let left = unclaimed.load(Ordering::Relaxed);
        if left == 0 {
            return false;
        }
        let claimed =
            unclaimed.compare_exchange(left, left - 1, Ordering::Relaxed, Ordering::Relaxed);
        if claimed.is_err() {
            // Another thread has claimed some.
            return false;
        }
        let start = (left as usize - 1) * CHUNK;
        let end = self.table.number_of_buckets().min(start + CHUNK);
        self.take_over(start..end);
        // Release: with the Acquire of the last thread, which lets all threads know that every
        // bucket has been migrated.
        self.table.unfinished.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Migrates all buckets that are left.
    pub(crate) fn take_over_all(&self) {
        self.take_over(0..self.table.number_of_buckets());
    }

    fn take_over(&self, range: std::ops::Range<usize>) {
        each!(&self.table.buckets, buckets => {
            let typed = self.typed(buckets);
            range.for_each(|bucket| typed.ensure_migrated(bucket));
        });
    }

    #[inline]
    fn typed<'b, const SLOTS: usize, const BITS: usize>(
        &'b self,
        buckets: &'b Buckets<SLOTS, BITS>,
    ) -> TypedView<'b, SLOTS, BITS> {
        TypedView {
            buckets,
            migrated: self.table.migrated,
            older: self.older,
        }
    }
}

/// A [`View`] with a layout known at compile time.
struct TypedView<'a, const SLOTS: usize, const BITS: usize> {
    buckets: &'a Buckets<SLOTS, BITS>,
    migrated: u64,
    older: Option<&'a Table>,
}

impl<const SLOTS: usize, const BITS: usize> TypedView<'_, SLOTS, BITS> {
    /// The flags hidden from inserts and removes, which must leave a seal as it is.
    const HIDDEN: u64 = if BITS as u32 == PAIRING_BITS {
        MIGRATED
    } else {
        FLAGS
    };

    /// The bit that a timestamp carries into when it wraps. (In models, it does so after few
    /// additions.)
    const CARRY: u64 = if cfg!(kcas_loom) {
        1 << (SLOTS * BITS + 2)
    } else {
        FROZEN
    };

    /// Mask of the timestamp.
    const TIMESTAMP: u64 = Self::CARRY - (1 << (SLOTS * BITS));

    /// Returns the bucket's share of the contents of its origin in the older table: those
    /// fingerprints whose next bit says so. Without flags.
    fn share(&self, bucket: usize, contents: &Contents) -> u64 {
        let is_upper = u64::from(bucket >= self.buckets.geometry().buckets() / 2);
        // Without a branch, since nothing predicts whose share a fingerprint is.
        let (mut slots, mut end) = (0, 0);
        for &fingerprint in &contents.slots {
            let ours = (fingerprint != 0) & (fingerprint >> PAIRING_BITS & 1 == is_upper);
            let shorter = fingerprint >> (PAIRING_BITS + 1) << PAIRING_BITS | fingerprint & PAIRING;
            slots |= (shorter * u64::from(ours)) << end;
            end += BITS as u32 * u32::from(ours);
        }
        // The timestamp may have fewer bits here.
        slots | contents.timestamp << (SLOTS * BITS) & Self::TIMESTAMP
    }

    /// Returns the bucket of the older table that this one comes from. Slices are numbered so that
    /// the new bit of the number is its highest.
    fn origin(&self, bucket: usize) -> usize {
        let half = self.buckets.geometry().buckets() / 2;
        if bucket < half { bucket } else { bucket - half }
    }

    /// Returns the word as it stands, if it counts.
    #[inline]
    fn counting(&self, bucket: usize) -> Option<u64> {
        let word = self.buckets.read(bucket);
        (word & self.migrated == self.migrated).then_some(word)
    }

    /// Returns the raw word that counts: the older table's until this one is migrated.
    #[inline]
    fn look(&self, bucket: usize) -> u64 {
        match self.counting(bucket) {
            Some(word) => word,
            None => self.inherited(bucket),
        }
    }

    /// Returns the older table's word, unless this one has been migrated by now.
    #[cold]
    fn inherited(&self, bucket: usize) -> u64 {
        let older = self.older().words().load(self.origin(bucket));
        // Once migrated, it stays so.
        self.counting(bucket).unwrap_or(older | INHERITED)
    }

    fn older(&self) -> &Table {
        self.older
            .expect("all words count where there is no older table")
    }

    /// Converts what [`look`](Self::look) returned to the word that inserts and removes work on.
    #[inline]
    fn seen(&self, bucket: usize, look: u64) -> u64 {
        match look & INHERITED {
            0 => look & !Self::HIDDEN,
            _ => self.share(bucket, &self.older().contents(look & !INHERITED)),
        }
    }

    /// Makes sure that the word of this bucket counts.
    #[inline]
    fn ensure_migrated(&self, bucket: usize) {
        if self.older.is_some() && self.counting(bucket).is_none() {
            self.take_over(bucket);
        }
    }

    /// Freezes the bucket that this one comes from, and stores this bucket's share of it. Every
    /// thread computes the same share; the first one stored counts.
    #[cold]
    fn take_over(&self, bucket: usize) {
        if let Some(older) = self.older {
            let frozen = older.freeze(self.origin(bucket));
            let share = self.share(bucket, &older.contents(frozen));
            self.buckets.replace(bucket, 0, share | self.migrated);
        }
    }

    /// Returns a change as it is to be stored; `None` if the timestamp would wrap. Then the
    /// timestamp is turned over instead, at the same moment at which the table's number of wraps
    /// advances, which lookups check; and the caller must read the bucket again.
    #[inline]
    fn stored(&self, entry: Entry) -> Option<Entry> {
        if (entry.expected ^ entry.new) & Self::CARRY != 0 {
            self.turn_over(entry.index, entry.expected);
            return None;
        }
        Some(Entry {
            expected: entry.expected | self.migrated,
            new: entry.new | self.migrated,
            ..entry
        })
    }

    #[cold]
    fn turn_over(&self, bucket: usize, word: u64) {
        let words = self.buckets.words();
        let wraps_at = words.len() - 1;
        let wraps = words.load(wraps_at);
        // If it fails, another thread has changed one of them.
        self.buckets.commit(&[
            Entry {
                index: bucket,
                expected: word | self.migrated,
                new: word & !Self::TIMESTAMP | self.migrated,
            },
            Entry {
                index: wraps_at,
                expected: wraps,
                new: wraps + 1,
            },
        ]);
    }
}

impl<const SLOTS: usize, const BITS: usize> BucketTable<SLOTS, BITS>
    for TypedView<'_, SLOTS, BITS>
{
    #[inline]
    fn geometry(&self) -> &Geometry<SLOTS, BITS> {
        self.buckets.geometry()
    }

    /// Never writes. Linearization point: the load of the word that counts.
    #[inline]
    fn read(&self, bucket: usize) -> u64 {
        self.seen(bucket, self.look(bucket))
    }

    #[inline]
    fn replace(&self, bucket: usize, current: u64, new: u64) -> bool {
        self.ensure_migrated(bucket);
        let entry = Entry {
            index: bucket,
            expected: current,
            new,
        };
        self.stored(entry)
            .is_some_and(|entry| self.buckets.replace(bucket, entry.expected, entry.new))
    }

    /// With this many copies of each class, the table can be filled well: at least half of its
    /// slots, unless three keys have all their buckets in common. With more, copies of two keys
    /// with the same buckets might not fit into them.
    fn most_copies(&self) -> usize {
        SLOTS
    }

    /// Where a table can be split, splitting is soon cheaper than longer searches. Measured with
    /// 60,000 keys, starting from the smallest table: inserts took 3.1 times as long as in a
    /// fixed-size filter; with the longest chains, 3.5 times, for no less memory; with chains of 4,
    /// twice as much memory.
    fn longest_chain(&self) -> usize {
        if BITS as u32 == PAIRING_BITS {
            MAX_CHAIN
        } else {
            5
        }
    }

    fn commit(&self, entries: &[Entry]) -> bool {
        entries
            .iter()
            .for_each(|entry| self.ensure_migrated(entry.index));
        let stored: Option<ArrayVec<Entry, { WordArray::MAX_ENTRIES }>> =
            entries.iter().map(|&entry| self.stored(entry)).collect();
        stored.is_some_and(|entries| self.buckets.commit(&entries))
    }
}

#[cfg(all(test, not(kcas_loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_length_has_the_documented_layout() {
        for bits in 12..=25 {
            let table = Table::try_new(bits, 3, 0).unwrap();
            let (slots, max_fingerprint) = each!(&table.buckets, buckets => shape(buckets));
            let format = table.format();
            assert_eq!((format.slots, format.bits), (slots, bits));
            assert_eq!(max_fingerprint, (1 << bits) - 1);
            assert!(slots <= MAX_SLOTS);
        }
        fn shape<const SLOTS: usize, const BITS: usize>(_: &Buckets<SLOTS, BITS>) -> (usize, u64) {
            const { assert!(Layout::<SLOTS, BITS>::TIMESTAMP_BITS >= 5 + FLAGS.count_ones() as usize) };
            (SLOTS, Layout::<SLOTS, BITS>::MAX_FINGERPRINT)
        }
    }

    /// Everything that a table held is found in the table that took over from it, down to the
    /// shortest fingerprints.
    #[test]
    fn what_is_taken_over_is_where_it_is_looked_for() {
        const SLICE: usize = 100;
        let mut table = Table::try_new(25, SLICE, 0).unwrap();
        fn view(table: &Table) -> View<'_> {
            View { table, older: None }
        }
        let keys: Vec<Key> = (0..150).map(|n| Key::new(hashing::mix(n), SLICE)).collect();
        for key in &keys {
            view(&table).insert(*key, || true).unwrap();
        }
        while let Some(split) = table.try_split() {
            let split = split.unwrap();
            let both = View {
                table: &split,
                older: Some(&table),
            };
            let count = |view: &View, key: &Key| {
                let location = view.table.plan.locate(*key);
                view.count(view.seen(location, view.look(location)), location)
            };
            let before: Vec<usize> = keys.iter().map(|key| count(&both, key)).collect();
            assert!(before.iter().all(|&copies| copies == 1));
            // The first half of the migration.
            (0..split.number_of_buckets().div_ceil(2 * CHUNK)).for_each(|_| {
                assert!(!both.take_over_some());
            });
            assert!(keys.iter().all(|key| count(&both, key) == 1));
            while !both.take_over_some() {}
            assert!(keys.iter().all(|key| count(&view(&split), key) == 1));
            let occupied = each!(&split.buckets, buckets => buckets.occupied());
            assert_eq!(occupied, keys.len());
            table = split;
        }
        assert_eq!(table.bits, PAIRING_BITS);
    }

    /// A word that changed in the older table, and could otherwise be taken for unchanged, has
    /// another timestamp.
    #[test]
    fn what_is_added_before_is_seen_after() {
        let table = Table::try_new(20, 10, 0).unwrap();
        let split = table.try_split().unwrap().unwrap();
        let (older, both) = (
            View {
                table: &table,
                older: None,
            },
            View {
                table: &split,
                older: Some(&table),
            },
        );
        let key = Key::new(hashing::mix(7), 10);
        let location = split.plan.locate(key);
        let read = |view: &View| view.seen(location, view.look(location));
        let before = read(&both);
        older.insert(key, || true).unwrap();
        assert_eq!(older.remove(key, || true), Some(true));
        let after = read(&both);
        assert_ne!(before, after);
        both.take_over_all();
        assert_eq!(read(&both), after);
        // Nothing is added to what was migrated.
        assert_eq!(older.remove(key, || true), Some(false));
        let tries = std::cell::Cell::new(0);
        let refused = older.insert(key, || tries.replace(tries.get() + 1) < 100);
        assert_eq!(refused, Err(Refused::Closed));
    }

    /// Nothing is added, however many times a bucket was sealed between the read and the exchange
    /// of an insert that took the table for open.
    #[test]
    fn nothing_is_added_to_what_was_sealed() {
        let (key, other) = (Key::new(hashing::mix(7), 10), Key::new(hashing::mix(8), 10));
        for seals in [1, 1 << 13] {
            let table = Table::try_new(PAIRING_BITS, 10, 0).unwrap();
            let view = View {
                table: &table,
                older: None,
            };
            view.insert(other, || true).unwrap();
            let is_open = std::cell::Cell::new(true);
            let refused = view.insert(key, || {
                (0..seals).for_each(|_| assert!(table.seal(key)));
                is_open.replace(false)
            });
            assert_eq!(refused, Err(Refused::Closed), "{seals} seals");
            // A copy that is there can be removed.
            assert!(table.seal(key) && !table.seal(other));
            assert_eq!(view.remove(other, || true), Some(true));
            assert!(table.seal(other));
        }
    }

    /// A filter may resume with a superseded generation.
    #[test]
    fn what_was_sealed_and_is_unsealed_is_as_before() {
        let table = Table::try_new(PAIRING_BITS, 10, 0).unwrap();
        let view = View {
            table: &table,
            older: None,
        };
        let key = Key::new(hashing::mix(7), 10);
        view.insert(key, || true).unwrap();
        assert_eq!(view.remove(key, || true), Some(true));
        let look = || table.look_twice(table.plan.locate(key), view.among());
        let (sure, before) = look();
        assert!(sure && table.seal(key) && !look().0);
        table.unseal();
        assert_eq!(look(), (true, before));
    }
}
