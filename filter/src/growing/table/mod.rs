//! One table of a growing filter, and how it takes over the contents of an older one.

mod plan;

use kcas::sync::AtomicU64;
use kcas::{OutOfMemory, WordArray};

use crate::buckets::Buckets;
use crate::growing::schedule::{Format, PAIRING_BITS};
use crate::hashing::{Geometry, Location};
use crate::layout::{Layout, Shape};
use crate::lookup;
use crate::save::{LoadError, words};

/// Set in a bucket's word, in a table that took over from another one, once the bucket has its
/// share of the older table's contents. From then on the word counts; before that it is 0, and the
/// contents of the bucket are in the older table.
const MIGRATED: u64 = 1 << 62;

/// Set in a bucket's word before its contents are migrated: the word never changes again. Also set
/// when a bucket of an older generation is sealed: nothing is added to it any more, but copies are
/// still removed.
const FROZEN: u64 = 1 << 61;

/// Bits of a word that belong neither to the slots nor to the timestamp.
const FLAGS: u64 = MIGRATED | FROZEN;

/// Set while an operation is under way on the word ([`WordArray::load_raw`]).
const TAG: u64 = 1 << WordArray::VALUE_BITS;

/// Marks a word that was read from the older table: [`WordArray::load`] never returns this bit set.
const INHERITED: u64 = TAG;

/// Maximum number of slots per bucket.
const MAX_SLOTS: usize = 4;

/// Number of buckets that a thread migrates at a time.
const CHUNK: usize = if cfg!(kcas_loom) { 1 } else { 16 };

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

            /// Makes a table of slices with these words, one per bucket, and returns how many
            /// copies it holds.
            fn from_words(
                bits: u32,
                slice: usize,
                mut words: Vec<u64>,
            ) -> Result<(Self, Shape, usize), LoadError> {
                match bits {
                    $($bits => {
                        let copies = words::count::<$slots, $bits>(&words, PAIRING)?;
                        let geometry = Geometry::sliced(slice, words.len() / slice, PAIRING);
                        // The last word counts timestamp wraps.
                        words.push(0);
                        let buckets = AnyBuckets::$variant(Buckets::with_words(geometry, words));
                        Ok((buckets, Layout::<$slots, $bits>::SHAPE, copies))
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

// After the macro `each`, which it uses.
mod view;

use plan::PAIRING;
pub(crate) use plan::{Key, Plan};
pub(crate) use view::{Among, View};

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
        Ok(Table::of(buckets, shape, bits, slice, slice_bits))
    }

    /// Makes a table that was saved as these words, one per bucket, and returns how many copies it
    /// holds.
    pub(crate) fn from_words(
        bits: u32,
        slice: usize,
        slice_bits: u32,
        words: Vec<u64>,
    ) -> Result<(Table, usize), LoadError> {
        let (buckets, shape, copies) = AnyBuckets::from_words(bits, slice, words)?;
        let table = Table::of(buckets, shape, bits, slice, slice_bits);
        Ok((table, copies))
    }

    /// Copies the [frozen slots](Self::frozen_slots), and counts the copies in them.
    pub(crate) fn try_clone(&self) -> Result<(Table, usize), OutOfMemory> {
        let Plan {
            slice, slice_bits, ..
        } = self.plan;
        let len = self.number_of_buckets();
        let mut words = Vec::new();
        // One more, which counts timestamp wraps.
        words
            .try_reserve_exact(len + 1)
            .map_err(|_| OutOfMemory { len })?;
        words.extend(self.frozen_slots());
        let cloned = Table::from_words(self.bits, slice, slice_bits, words);
        Ok(cloned.expect("its words are those of a table"))
    }

    fn of(buckets: AnyBuckets, shape: Shape, bits: u32, slice: usize, slice_bits: u32) -> Table {
        Table {
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
        }
    }

    /// Freezes one bucket after another, and returns the slots of each as they were then, without
    /// timestamps and flags. Only for a table that is superseded, and takes over from none.
    pub(crate) fn frozen_slots(&self) -> impl Iterator<Item = u64> {
        fn mask<const SLOTS: usize, const BITS: usize>(_: &Buckets<SLOTS, BITS>) -> u64 {
            Layout::<SLOTS, BITS>::slots(u64::MAX)
        }
        let mask = each!(&self.buckets, buckets => mask(buckets));
        (0..self.number_of_buckets()).map(move |bucket| self.freeze(bucket) & mask)
    }

    /// Makes a table of twice as many buckets, to take over from this one: slice numbers have one
    /// bit more, and fingerprints one bit less. `None` if fingerprints have no bit to spare.
    pub(crate) fn try_split(&self) -> Option<Result<Table, OutOfMemory>> {
        (self.bits != PAIRING_BITS).then(|| self.try_successor(1))
    }

    /// Makes a table of the same size, to take over from this one, which is frozen by that.
    pub(crate) fn try_replacement(&self) -> Result<Table, OutOfMemory> {
        self.try_successor(0)
    }

    /// Makes a table with 2^`doublings` times as many buckets, to take over from this one.
    fn try_successor(&self, doublings: u32) -> Result<Table, OutOfMemory> {
        let Plan {
            slice, slice_bits, ..
        } = self.plan;
        let table = Table::try_new(self.bits - doublings, slice, slice_bits + doublings)?;
        let chunks = table.number_of_buckets().div_ceil(CHUNK) as u64;
        Ok(Table {
            migrated: MIGRATED,
            unclaimed: AtomicU64::new(chunks),
            unfinished: AtomicU64::new(chunks),
            ..table
        })
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
    /// trusted. They can if all count, no operation is under way on them, and the first word, and
    /// after it the number of wraps, were the same when read again. (A frozen word counted when it
    /// was frozen; the list had changed by then, which the caller finds out.)
    #[inline(always)]
    pub(crate) fn look_twice(&self, location: Location, among: Among) -> (bool, [u64; 2]) {
        let words = self.words();
        let wraps = words.load_raw(self.wraps_at());
        let [first, second] = lookup::load_both(words, location);
        let changed = words.load_raw(location.first) ^ first;
        let wrapped = words.load_raw(self.wraps_at()) ^ wraps;
        let counting = [first, second].map(|word| word ^ among.counting);
        // No count reaches a flag.
        let under_way = (counting[0] | counting[1] | wraps) & (TAG | among.counting);
        ((changed | wrapped | under_way) == 0, counting)
    }

    /// Freezes a bucket for ever, and returns the word that it had then, with or without the flag.
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

#[cfg(all(test, not(kcas_loom)))]
mod tests;
