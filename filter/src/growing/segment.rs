//! One table of a growing filter.

use kcas::sync::{AtomicU64, Ordering};
use kcas::thread_id::ThreadId;
use kcas::{OutOfMemory, WordArray};

use super::schedule::{PAIRING_BITS, TIERS, Tier, tier};
use crate::buckets::Buckets;
use crate::hashing::{self, Geometry, Location};
use crate::layout::{Layout, Shape};
use crate::length::Length;
use crate::lookup;
use crate::update::{self, Refused};

/// What the segments of a filter need to know of a key; the same for all of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    /// The low bits of its fingerprints, and its buckets within a slice.
    short: Location,
    /// More of the hash: first the number of the slice, then the high bits of the fingerprint. A segment that has
    /// more slices takes bits for them that a smaller one has in its fingerprints.
    tail: u64,
}

/// The low bits of fingerprints, which choose the other bucket.
const PAIRING: u64 = (1 << PAIRING_BITS) - 1;

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

/// Below so many copies, every remove looks whether it was the last: up to 64 threads, which look at every 64th of
/// their own until then, cannot pass it by.
const FEW: usize = 64 * LOOK_EVERY as usize;

/// How many copies a thread removes between two looks at how many are left.
const LOOK_EVERY: u64 = 64;

/// Declares the tables there are, in the order of [`TIERS`], and each function of a segment as one `match`.
macro_rules! tables {
    ($($place:literal $variant:ident: $slots:literal $bits:literal,)+) => {
        /// A table, whose layout follows from its size.
        #[derive(Debug)]
        enum Table {
            $($variant(Buckets<$slots, $bits>),)+
        }

        /// The same expression for whatever table it is.
        macro_rules! each {
            ($table:expr, $buckets:ident => $call:expr) => {
                match $table {
                    $(Table::$variant($buckets) => $call,)+
                }
            };
        }

        impl Table {
            /// A table of slices, all empty, and the shape of its buckets.
            fn try_new(slice: usize, slices: usize) -> Result<(Table, Shape), OutOfMemory> {
                match tier(slice * slices) {
                    $($place => {
                        let geometry = Geometry::sliced(slice, slices, PAIRING);
                        let table = Table::$variant(Buckets::try_new(geometry)?);
                        Ok((table, Layout::<$slots, $bits>::SHAPE))
                    })+
                    other => unreachable!("there are {} tiers, none is {other}", TIERS.len()),
                }
            }
        }
    };
}

tables! {
    0 W2x23: 2 23,
    1 W2x21: 2 21,
    2 W2x19: 2 19,
    3 W3x17: 3 17,
    4 W3x15: 3 15,
    5 W4x13: 4 13,
}

/// A table, one of several that hold a filter's keys.
#[derive(Debug)]
pub(crate) struct Segment {
    table: Table,
    shape: Shape,
    /// Buckets of a slice.
    slice: usize,
    /// There are 2^`slice_bits` slices.
    slice_bits: u32,
    /// The bits that fingerprints have above those that choose the other bucket.
    extension: u64,
    length: Length,
    /// Twice the number of times it was opened again, and one more when it is closed.
    state: AtomicU64,
    /// 1 once few copies are left.
    few: AtomicU64,
}

impl Segment {
    /// An empty table of 2^`slice_bits` slices.
    pub(crate) fn try_new(slice: usize, slice_bits: u32) -> Result<Segment, OutOfMemory> {
        let (table, shape) = Table::try_new(slice, 1 << slice_bits)?;
        Ok(Segment {
            table,
            shape,
            slice,
            slice_bits,
            extension: shape.max_fingerprint & !PAIRING,
            length: Length::starting_at(0),
            state: AtomicU64::new(0),
            few: AtomicU64::new(0),
        })
    }

    /// Where a key may live here.
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

    #[inline]
    fn words(&self) -> &WordArray {
        each!(&self.table, buckets => buckets.words())
    }

    /// Both buckets as they stand ([`WordArray::peek`]).
    #[inline]
    pub(crate) fn peek(&self, location: Location) -> [u64; 2] {
        lookup::peek(self.words(), location)
    }

    /// Both buckets.
    pub(crate) fn read(&self, location: Location) -> [u64; 2] {
        [location.first, location.second].map(|bucket| self.words().load(bucket))
    }

    /// Whether one of two words holds the fingerprint.
    #[inline]
    pub(crate) fn matches(&self, [first, second]: [u64; 2], fingerprint: u64) -> bool {
        self.shape.contains(first, fingerprint) | self.shape.contains(second, fingerprint)
    }

    /// How many slots of the two words of a location hold its fingerprint.
    pub(crate) fn count(&self, words: [u64; 2], location: Location) -> usize {
        let different = match location.first == location.second {
            true => &words[..1],
            false => &words,
        };
        fn of<const SLOTS: usize, const BITS: usize>(
            _: &Buckets<SLOTS, BITS>,
            words: &[u64],
            fingerprint: u64,
        ) -> usize {
            let count = |word: &u64| Layout::<SLOTS, BITS>::count(*word, fingerprint);
            words.iter().map(count).sum()
        }
        each!(&self.table, buckets => of(buckets, different, location.fingerprint))
    }

    /// Whether every slot that the key may have holds a copy of its class.
    pub(crate) fn has_only_copies(&self, key: Key) -> bool {
        let location = self.locate(key);
        let buckets = 1 + usize::from(location.first != location.second);
        self.count(self.read(location), location) == buckets * self.tier().slots
    }

    /// Whether the key has a copy here. Linearization point: as in [`lookup`].
    pub(crate) fn contains(&self, key: Key) -> bool {
        let location = self.locate(key);
        each!(&self.table, buckets => lookup::contains(buckets, location))
    }

    /// [`update::insert_while`].
    #[inline]
    pub(crate) fn insert(
        &self,
        key: Key,
        id: &ThreadId,
        is_open: impl Fn() -> bool,
    ) -> Result<(), Refused> {
        let location = self.locate(key);
        each!(&self.table, buckets => update::insert_while(buckets, location, is_open))?;
        self.length.add(id, 1);
        Ok(())
    }

    /// [`update::insert_unique_while`].
    #[inline]
    pub(crate) fn insert_unique(
        &self,
        key: Key,
        id: &ThreadId,
        is_open: impl Fn() -> bool,
    ) -> Result<bool, Refused> {
        let location = self.locate(key);
        let inserted =
            each!(&self.table, buckets => update::insert_unique_while(buckets, location, is_open))?;
        self.length.add(id, u64::from(inserted));
        Ok(inserted)
    }

    /// Makes sure that the key never has a copy here again, in a segment that is known to be superseded; false when it
    /// has one.
    pub(crate) fn seal(&self, key: Key) -> bool {
        if self.is_closed() {
            return !self.contains(key);
        }
        let location = self.locate(key);
        each!(&self.table, buckets => update::seal(buckets, location))
    }

    /// Takes a copy out, and tells whether it may have been the last one of a closed segment; `None` if there is none.
    #[inline]
    pub(crate) fn remove(&self, key: Key, id: &ThreadId) -> Option<bool> {
        let location = self.locate(key);
        if !each!(&self.table, buckets => update::remove(buckets, location)) {
            return None;
        }
        let count = self.length.add(id, 1u64.wrapping_neg());
        // Relaxed: only a hint.
        let look = count.is_multiple_of(LOOK_EVERY) || self.few.load(Ordering::Relaxed) != 0;
        Some(look && self.is_closed() && self.is_empty())
    }

    /// Whether a closed segment is empty, and so for ever.
    ///
    /// Exact: nothing is counted up any more, and all that was is seen by whoever sees that the segment is closed; a
    /// copy is gone before it is counted down. So what the sum misses makes it too great.
    fn is_empty(&self) -> bool {
        let left = self.length.sum();
        if left <= FEW {
            // Relaxed: only a hint.
            self.few.store(1, Ordering::Relaxed);
        }
        left == 0
    }

    /// How often it was opened again.
    pub(crate) fn turn(&self) -> u64 {
        // Relaxed: it changes only while one thread has the filter alone, which the others synchronise with.
        self.state.load(Ordering::Relaxed) / 2
    }

    /// Says that nothing will be added here any more, unless it was opened again since it had this turn.
    pub(crate) fn close(&self, turn: u64) {
        let (open, closed) = (2 * turn, 2 * turn + 1);
        // Release: with the acquire of `is_closed`. All additions happened before.
        let _ = (self.state).compare_exchange(open, closed, Ordering::Release, Ordering::Relaxed);
    }

    /// Whether nothing will be added here any more.
    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        // Acquire: with the release of `close`: whoever learns of it sees everything that was added.
        self.state.load(Ordering::Acquire) % 2 == 1
    }

    /// Takes additions again. For who has the filter alone.
    pub(crate) fn reopen(&self) {
        // Relaxed: what hands the filter on synchronises.
        self.state.store(2 * (self.turn() + 1), Ordering::Relaxed);
    }

    /// Whether it is closed and has no copy, and so for ever.
    pub(crate) fn is_spent(&self) -> bool {
        self.is_closed() && self.is_empty()
    }

    /// Copies held, as [`Length::sum`].
    pub(crate) fn len(&self) -> usize {
        self.length.sum()
    }

    pub(crate) fn buckets(&self) -> usize {
        self.slice << self.slice_bits
    }

    pub(crate) fn slice_bits(&self) -> u32 {
        self.slice_bits
    }

    pub(crate) fn tier(&self) -> Tier {
        TIERS[tier(self.buckets())]
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.buckets() * size_of::<u64>() + self.length.memory_bytes() + size_of::<Self>()
    }
}

#[cfg(all(test, not(kcas_loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_tier_has_the_table_that_its_layout_says() {
        for tier in TIERS {
            let segment = Segment::try_new(tier.least, 0).unwrap();
            let (slots, max_fingerprint) = each!(&segment.table, buckets => shape(buckets));
            assert_eq!((slots, max_fingerprint), (tier.slots, (1 << tier.bits) - 1));
            assert_eq!(segment.shape.max_fingerprint, max_fingerprint);
        }
        fn shape<const SLOTS: usize, const BITS: usize>(_: &Buckets<SLOTS, BITS>) -> (usize, u64) {
            (SLOTS, Layout::<SLOTS, BITS>::MAX_FINGERPRINT)
        }
    }

    /// What makes removes safe: two keys that a larger segment cannot tell apart, a smaller one cannot either.
    #[test]
    fn a_larger_segment_refines_a_smaller_one() {
        const SLICE: usize = 3;
        let segments: Vec<Segment> = (0..4)
            .map(|level| Segment::try_new(SLICE, 2 * level).unwrap())
            .collect();
        let class = |segment: &Segment, key| crate::Class::from(segment.locate(key));
        let mut alike = 0;
        for n in 0..200_000_u64 {
            // The same fingerprint and slice but for one bit at most, in any two buckets of a slice.
            let (hash, random) = (crate::hashing::mix(n), crate::hashing::mix(!n));
            let flipped = 1 << (random % 64);
            let other = (hash ^ flipped) & 0xfff_ffff_ffff | random & !0xfff_ffff_ffff;
            let [one, other] = [hash, other].map(|hash| Key::new(hash, SLICE));
            for pair in segments.windows(2) {
                if class(&pair[1], one) == class(&pair[1], other) {
                    alike += 1;
                    assert_eq!(class(&pair[0], one), class(&pair[0], other));
                }
            }
        }
        assert!(alike > 0);
    }
}
