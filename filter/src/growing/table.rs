//! One table of a growing filter, and how it takes over what an older one held.

use arrayvec::ArrayVec;
use kcas::sync::{AtomicU64, Ordering};
use kcas::{Op, OutOfMemory, WordArray};

use super::schedule::{Format, PAIRING_BITS};
use crate::buckets::{BucketTable, Buckets};
use crate::hashing::{self, Geometry, Location};
use crate::layout::{Layout, Shape};
use crate::lookup;
use crate::path::MAX_CHAIN;
use crate::update::{self, Refused};

/// Set in the word of a bucket of a table that took over from another one, once the bucket has what is its share. Then
/// the word counts; before that it is 0, and what the bucket holds stands in the older table.
const BORN: u64 = 1 << 62;

/// Set in the word of a bucket that has been taken over: it never changes again. In a table that cannot be split, of a
/// bucket that was sealed: nothing is added to it any more, but copies are still removed.
const FROZEN: u64 = 1 << 61;

/// Bits of a word that are neither slots nor timestamp.
const FLAGS: u64 = BORN | FROZEN;

/// An operation is under way on the word ([`WordArray::peek`]).
const TAG: u64 = 1 << WordArray::VALUE_BITS;

/// Marks a word that was found in the older table, where no operation does.
const INHERITED: u64 = TAG;

/// The bits of a fingerprint that choose the other bucket.
const PAIRING: u64 = (1 << PAIRING_BITS) - 1;

/// Most slots of a bucket.
const MAX_SLOTS: usize = 4;

/// How many buckets are taken over at a time.
const CHUNK: usize = if cfg!(kcas_loom) { 1 } else { 16 };

/// What the tables of a filter need to know of a key; the same for all of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    /// The low bits of its fingerprints, and its buckets within a slice.
    pub(crate) short: Location,
    /// More of the hash: first the number of the slice, then the high bits of the fingerprint. A table that has
    /// twice as many slices takes a bit for that which its fingerprints no longer have.
    pub(crate) tail: u64,
}

impl Key {
    /// The key whose hash this is, in a filter of slices of so many buckets.
    #[inline]
    pub(crate) fn new(hash: u64, slice: usize) -> Key {
        Key {
            short: hashing::locate(hash, PAIRING, slice),
            tail: hash >> PAIRING_BITS,
        }
    }
}

/// Where keys live in a table, and what their words look like: what lookups need to know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    shape: Shape,
    /// Buckets of a slice.
    slice: usize,
    /// There are 2^`slice_bits` slices.
    slice_bits: u32,
    /// The bits that fingerprints have above those that choose the other bucket.
    extension: u64,
}

impl Plan {
    /// Where a key may live.
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

    /// Whether one of two words holds the fingerprint.
    #[inline]
    pub(crate) fn matches(&self, [first, second]: [u64; 2], fingerprint: u64) -> bool {
        self.shape.contains(first, fingerprint) | self.shape.contains(second, fingerprint)
    }
}

/// What a bucket hands on.
#[derive(Debug)]
struct Contents {
    /// 0 where a slot is empty, or there is none.
    slots: [u64; MAX_SLOTS],
    timestamp: u64,
}

/// Declares the tables that there are, one for each length of fingerprints, and each function of a table as one `match`.
macro_rules! tables {
    ($($variant:ident: $slots:literal $bits:literal,)+) => {
        /// Buckets, whose layout follows from the length of the fingerprints.
        #[derive(Debug)]
        enum AnyBuckets {
            $($variant(Buckets<$slots, $bits>),)+
        }

        /// The same expression for whatever buckets it is.
        macro_rules! each {
            ($any:expr, $buckets:ident => $call:expr) => {
                match $any {
                    $(AnyBuckets::$variant($buckets) => $call,)+
                }
            };
        }

        /// The layout of tables with fingerprints of so many bits.
        pub(crate) fn format(bits: u32) -> Format {
            match bits {
                $($bits => Format::of::<$slots, $bits>(),)+
                other => unreachable!("no table has fingerprints of {other} bits"),
            }
        }

        impl AnyBuckets {
            /// A table of slices, and the shape of its words, which are all zero.
            fn try_new(bits: u32, slice: usize, slices: usize) -> Result<(Self, Shape), OutOfMemory> {
                match bits {
                    $($bits => {
                        let geometry = Geometry::sliced(slice, slices, PAIRING);
                        // The last word counts how often a timestamp wrapped.
                        let buckets = AnyBuckets::$variant(Buckets::try_with_more(geometry, 1)?);
                        Ok((buckets, Layout::<$slots, $bits>::SHAPE))
                    })+
                    other => unreachable!("no table has fingerprints of {other} bits"),
                }
            }
        }
    };
}

// The shortest cannot be split; each of the others hands on what it holds to the one before it.
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
    /// [`BORN`], if it took over from another table; otherwise 0, and every word counts.
    born: u64,
    /// Chunks of buckets that nobody has begun to take over.
    unclaimed: AtomicU64,
    /// Chunks of buckets that are not known to have been taken over.
    unfinished: AtomicU64,
}

impl Table {
    /// An empty table of 2^`slice_bits` slices, with fingerprints of so many bits.
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
            born: 0,
            unclaimed: AtomicU64::new(0),
            unfinished: AtomicU64::new(0),
        })
    }

    /// A table of twice as many buckets, to take over from this one: with one bit more for the number of the slice, and
    /// one less in the fingerprints. Nothing when they have no bit to spare.
    pub(crate) fn try_split(&self) -> Option<Result<Table, OutOfMemory>> {
        if self.bits == PAIRING_BITS {
            return None;
        }
        let split = Table::try_new(self.bits - 1, self.plan.slice, self.plan.slice_bits + 1);
        Some(split.map(|table| {
            let chunks = table.number_of_buckets().div_ceil(CHUNK) as u64;
            Table {
                born: BORN,
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

    /// Buckets of a slice.
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

    /// How often a timestamp has wrapped. Whoever is told the same before reading a bucket and after reading it again, and
    /// read the same word twice, knows that nothing was added there in between.
    #[inline]
    pub(crate) fn wraps(&self) -> u64 {
        self.words().load(self.wraps_at())
    }

    #[inline]
    fn wraps_at(&self) -> usize {
        self.words().len() - 1
    }

    /// The words of both buckets, after how often a timestamp has wrapped; and whether they can be trusted: all count, nothing
    /// is under way there, nor was anything taken over or is still to be, and the first one, and then the number of wraps, were
    /// the same when they were read again.
    #[inline]
    pub(crate) fn look_twice(&self, location: Location, among: Among) -> (bool, [u64; 2]) {
        let words = self.words();
        let wraps = words.peek(self.wraps_at());
        let [first, second] = lookup::peek(words, location);
        let changed = words.peek(location.first) ^ first;
        let wrapped = words.peek(self.wraps_at()) ^ wraps;
        let counting = [first, second].map(|word| word ^ among.counting);
        // No count reaches a flag.
        let under_way = (counting[0] | counting[1] | wraps) & (TAG | FROZEN | among.counting);
        ((changed | wrapped | under_way) == 0, counting)
    }

    /// Freezes a bucket, and returns its word as it was then; in a table that can be split, for ever.
    fn freeze(&self, bucket: usize) -> u64 {
        let words = self.words();
        loop {
            let word = words.load(bucket);
            if word & FROZEN != 0 || words.compare_exchange(bucket, word, word | FROZEN).is_ok() {
                return word;
            }
        }
    }

    /// Makes sure that the key never has a copy here again, in a table that cannot be split and is known to be superseded;
    /// false, and perhaps nothing done, when it has one.
    ///
    /// Both its buckets are frozen: whoever read one before finds it changed; whoever reads one after learns that the
    /// table is superseded before it adds anything ([`update::insert_while`]). So true holds for ever.
    ///
    /// Progress: lock-free; it tries again only when another thread changed one of the buckets. Linearization point: the
    /// exchange that freezes the second bucket, or the load that finds it frozen; for false, the read that found a copy.
    pub(crate) fn seal(&self, key: Key) -> bool {
        debug_assert_eq!(self.bits, PAIRING_BITS);
        let location = self.plan.locate(key);
        let buckets = [location.first, location.second];
        let fingerprint = location.fingerprint;
        let words = self.words();
        // A key that is there shall cost no exchange.
        !self
            .plan
            .matches(buckets.map(|bucket| words.load(bucket)), fingerprint)
            && !self
                .plan
                .matches(buckets.map(|bucket| self.freeze(bucket)), fingerprint)
    }

    /// Takes additions again in all buckets that were [`seal`](Self::seal)ed. For who has the filter alone.
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
    /// [`BORN`], if it still takes over; otherwise 0.
    counting: u64,
}

/// A table, and the one that it takes over from, if there still is one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'a> {
    pub(crate) table: &'a Table,
    pub(crate) older: Option<&'a Table>,
}

impl View<'_> {
    /// Which words count, for [`Table::peek`].
    #[inline]
    pub(crate) fn among(&self) -> Among {
        let counting = if self.older.is_some() { BORN } else { 0 };
        Among { counting }
    }

    /// How often timestamps have wrapped, in either table.
    pub(crate) fn wraps(&self) -> [u64; 2] {
        [self.table.wraps(), self.older.map_or(0, Table::wraps)]
    }

    /// The words of both buckets of a location as they stand, wherever they count. They may be out of date if the list of
    /// tables has changed.
    pub(crate) fn look(&self, location: Location) -> [u64; 2] {
        each!(&self.table.buckets, buckets => {
            let typed = self.typed(buckets);
            [location.first, location.second].map(|bucket| typed.look(bucket))
        })
    }

    /// What [`look`](Self::look) saw, in the layout of this table.
    pub(crate) fn seen(&self, location: Location, looks: [u64; 2]) -> [u64; 2] {
        each!(&self.table.buckets, buckets => {
            let typed = self.typed(buckets);
            [typed.seen(location.first, looks[0]), typed.seen(location.second, looks[1])]
        })
    }

    /// How many slots of the two words of a location hold its fingerprint.
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

    /// [`update::remove_while`]; `None` also when it cannot be told whether there was a copy.
    pub(crate) fn remove(&self, key: Key, is_open: impl Fn() -> bool) -> Option<bool> {
        let location = self.table.plan.locate(key);
        each!(&self.table.buckets, buckets => {
            let typed = self.typed(buckets);
            // From here on words are this table's, whose number of wraps is looked at.
            typed.bear(location.first);
            typed.bear(location.second);
            let wraps = self.table.wraps();
            match update::remove_while(&typed, location, is_open) {
                Some(false) if self.table.wraps() != wraps => None,
                removed => removed,
            }
        })
    }

    /// Takes over a few buckets that nobody has taken over yet; true when those were the last of all.
    ///
    /// Progress: wait-free, but for others who change the very same buckets of the older table.
    pub(crate) fn take_over_some(&self) -> bool {
        let unclaimed = &self.table.unclaimed;
        // Relaxed, twice: it only divides the work.
        let left = unclaimed.load(Ordering::Relaxed);
        if left == 0 {
            return false;
        }
        let claimed =
            unclaimed.compare_exchange(left, left - 1, Ordering::Relaxed, Ordering::Relaxed);
        if claimed.is_err() {
            // Another one does something.
            return false;
        }
        let start = (left as usize - 1) * CHUNK;
        let end = self.table.number_of_buckets().min(start + CHUNK);
        self.take_over(start..end);
        // Release: with the acquire of the last one, who tells all that every bucket has been taken over.
        self.table.unfinished.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Takes over all that is left.
    pub(crate) fn take_over_all(&self) {
        self.take_over(0..self.table.number_of_buckets());
    }

    fn take_over(&self, range: std::ops::Range<usize>) {
        each!(&self.table.buckets, buckets => {
            let typed = self.typed(buckets);
            range.for_each(|bucket| typed.bear(bucket));
        });
    }

    #[inline]
    fn typed<'b, const SLOTS: usize, const BITS: usize>(
        &'b self,
        buckets: &'b Buckets<SLOTS, BITS>,
    ) -> TypedView<'b, SLOTS, BITS> {
        TypedView {
            buckets,
            born: self.table.born,
            older: self.older,
        }
    }
}

/// A [`View`] whose layout is known.
struct TypedView<'a, const SLOTS: usize, const BITS: usize> {
    buckets: &'a Buckets<SLOTS, BITS>,
    born: u64,
    older: Option<&'a Table>,
}

impl<const SLOTS: usize, const BITS: usize> TypedView<'_, SLOTS, BITS> {
    /// The flags that inserts and removes do not see. That a bucket was sealed, they must leave as it is.
    const HIDDEN: u64 = if BITS as u32 == PAIRING_BITS {
        BORN
    } else {
        FLAGS
    };

    /// What a timestamp carries into when it wraps. (In models, after few additions.)
    const CARRY: u64 = if cfg!(kcas_loom) {
        1 << (SLOTS * BITS + 2)
    } else {
        FROZEN
    };

    /// The timestamp.
    const TIMESTAMP: u64 = Self::CARRY - (1 << (SLOTS * BITS));

    /// The share of a bucket in what a bucket of the older table held: those whose next bit says so. Without flags.
    fn share(&self, bucket: usize, contents: &Contents) -> u64 {
        let is_upper = u64::from(bucket >= self.buckets.geometry().buckets() / 2);
        // Without a branch: whose share it is, nothing foretells.
        let (mut slots, mut end) = (0, 0);
        for &fingerprint in &contents.slots {
            let ours = (fingerprint != 0) & (fingerprint >> PAIRING_BITS & 1 == is_upper);
            let shorter = fingerprint >> (PAIRING_BITS + 1) << PAIRING_BITS | fingerprint & PAIRING;
            slots |= (shorter * u64::from(ours)) << end;
            end += BITS as u32 * u32::from(ours);
        }
        // It may have fewer bits here.
        slots | contents.timestamp << (SLOTS * BITS) & Self::TIMESTAMP
    }

    /// The bucket of the older table that this one comes from: slices are numbered so that the number's new bit is its
    /// highest.
    fn origin(&self, bucket: usize) -> usize {
        let half = self.buckets.geometry().buckets() / 2;
        if bucket < half { bucket } else { bucket - half }
    }

    /// The word as it stands, if it counts.
    #[inline]
    fn counting(&self, bucket: usize) -> Option<u64> {
        let word = self.buckets.read(bucket);
        (word & self.born == self.born).then_some(word)
    }

    /// The word that counts, as it stands: the older table's as long as this one's is not born.
    #[inline]
    fn look(&self, bucket: usize) -> u64 {
        match self.counting(bucket) {
            Some(word) => word,
            None => self.inherited(bucket),
        }
    }

    /// The older table's word, unless this one's is born by now.
    #[cold]
    fn inherited(&self, bucket: usize) -> u64 {
        let older = self.older().words().load(self.origin(bucket));
        // Once it is born, it stays so.
        self.counting(bucket).unwrap_or(older | INHERITED)
    }

    fn older(&self) -> &Table {
        self.older
            .expect("all words count where there is no older table")
    }

    /// What [`look`](Self::look) saw, as inserts and removes see it.
    #[inline]
    fn seen(&self, bucket: usize, look: u64) -> u64 {
        match look & INHERITED {
            0 => look & !Self::HIDDEN,
            _ => self.share(bucket, &self.older().contents(look & !INHERITED)),
        }
    }

    /// Makes sure that the bucket's word counts.
    #[inline]
    fn bear(&self, bucket: usize) {
        if self.older.is_some() && self.counting(bucket).is_none() {
            self.take_over(bucket);
        }
    }

    /// Freezes what the bucket comes from, and puts in what is its share. Whoever does it, it is the same; the first one's
    /// counts.
    #[cold]
    fn take_over(&self, bucket: usize) {
        if let Some(older) = self.older {
            let frozen = older.freeze(self.origin(bucket));
            let share = self.share(bucket, &older.contents(frozen));
            self.buckets.replace(bucket, 0, share | self.born);
        }
    }

    /// A change as it is stored; `None` if the timestamp would wrap. Then it is turned over instead, at one moment with the
    /// table's number of wraps, which lookups look at, and whoever asked for the change must look again.
    #[inline]
    fn stored(&self, op: Op) -> Option<Op> {
        if (op.expected ^ op.new) & Self::CARRY != 0 {
            self.turn_over(op.index, op.expected);
            return None;
        }
        Some(Op {
            expected: op.expected | self.born,
            new: op.new | self.born,
            ..op
        })
    }

    #[cold]
    fn turn_over(&self, bucket: usize, word: u64) {
        let words = self.buckets.words();
        let wraps_at = words.len() - 1;
        let wraps = words.load(wraps_at);
        // If it fails, someone else has changed one of them.
        self.buckets.commit(&[
            Op {
                index: bucket,
                expected: word | self.born,
                new: word & !Self::TIMESTAMP | self.born,
            },
            Op {
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
        self.bear(bucket);
        let op = Op {
            index: bucket,
            expected: current,
            new,
        };
        self.stored(op)
            .is_some_and(|op| self.buckets.replace(bucket, op.expected, op.new))
    }

    /// With so many copies of each class, it can be filled well: half at least of the slots, where no three keys have all
    /// their buckets in common. With more, two keys of the same buckets would be too many for them.
    fn most_copies(&self) -> usize {
        SLOTS
    }

    /// Where a table can be split, that is soon cheaper than longer searches. Measured among 60,000 keys, beginning with the
    /// smallest table: 3.1 times the time of a fixed filter's inserts, 3.5 with the longest chains, and no more memory; with 4,
    /// twice as much.
    fn longest_chain(&self) -> usize {
        if BITS as u32 == PAIRING_BITS {
            MAX_CHAIN
        } else {
            5
        }
    }

    fn commit(&self, ops: &[Op]) -> bool {
        ops.iter().for_each(|op| self.bear(op.index));
        let stored: Option<ArrayVec<Op, { WordArray::MAX_OPS }>> =
            ops.iter().map(|&op| self.stored(op)).collect();
        stored.is_some_and(|ops| self.buckets.commit(&ops))
    }
}

#[cfg(all(test, not(kcas_loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_length_has_the_layout_that_is_told_of_it() {
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

    /// All that a table held is where the table that took over from it looks for it, down to the shortest fingerprints.
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
            // Half of it before the others.
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

    /// A word that was changed in the older table, and so could be taken for unchanged, has another timestamp.
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
        // Nothing is added to what was taken over.
        assert_eq!(older.remove(key, || true), Some(false));
        let tries = std::cell::Cell::new(0);
        let refused = older.insert(key, || tries.replace(tries.get() + 1) < 100);
        assert_eq!(refused, Err(Refused::Closed));
    }
    /// However often a bucket was sealed between the reading and the exchange of an insert that took the table for open.
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
            // What is there can be taken.
            assert!(table.seal(key) && !table.seal(other));
            assert_eq!(view.remove(other, || true), Some(true));
            assert!(table.seal(other));
        }
    }

    /// Where a filter goes on with a generation that was superseded.
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
