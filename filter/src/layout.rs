//! Packing a bucket of a fixed-size filter into the 63-bit value of one word: its slots and its timestamp.
//!
//! ```text
//! bit 62 … SLOTS × BITS                 …  2 × BITS … BITS        … 0
//!     timestamp          slot SLOTS−1   …  slot 1     slot 0
//! ```
//!
//! An empty slot is zero.
//!
//! # Layouts
//!
//! | Slots × bits | Wrong about one absent key in | Bits per key | Timestamp bits |
//! |---|---:|---:|---:|
//! | 8×7 | 7.9 | 8.2 | 7 |
//! | 7×8 | 18.1 | 9.4 | 7 |
//! | 6×8 | 21.2 | 11.0 | 15 |
//! | 6×9 | 42.5 | 11.0 | 9 |
//! | 5×10 | 102 | 13.3 | 13 |
//! | 5×11 | 205 | 13.3 | 8 |
//! | 4×8 | 31.8 | 16.8 | 31 |
//! | 4×12, the default | 512 | 16.8 | 15 |
//! | 4×13 | 1,024 | 16.8 | 11 |
//! | 4×14 | 2,048 | 16.8 | 7 |
//! | 3×16 | 10,900 | 23.2 | 15 |
//! | 3×18 | 43,700 | 23.2 | 9 |
//! | 2×24 | 4,190,000 | 38.6 | 15 |
//! | 2×28 | 67,100,000 | 38.6 | 7 |
//!
//! The error rate is that of a full table; it falls with the load. Bits per key are those at the [load to plan
//! for](Layout::WORKABLE_LOAD); small tables take more. Shorter fingerprints save no memory, but leave more timestamp
//! bits.
//!
//! [`Builder::layout`](crate::Builder::layout) accepts others.
//! [`Builder::false_positive_rate`](crate::Builder::false_positive_rate) chooses among these, except 4×8.
//!
//! # When a timestamp wraps
//!
//! A lookup that finds nothing relies on its first bucket being unchanged between two reads. It misses a present key
//! only if, in between,
//!
//! - the additions to the bucket are an exact multiple of 2^[`TIMESTAMP_BITS`](Layout::TIMESTAMP_BITS) and leave the
//!   same fingerprints in the same slots;
//! - the key moves into this bucket before the second bucket is read, and out again afterwards.
//!
//! A clone or save counts as one addition to every bucket, or as one for each thread that keeps a bucket's old contents
//! at the same time. It leaves the fingerprints in place, so clones or saves alone can be enough. It relies on
//! timestamps, too: if an update that moves a key is suspended while its first bucket's timestamp wraps to the same
//! word, the copy may lack that key or have it twice. The filter itself is correct.
//!
//! At 30 ns per addition, a wrap takes at least 1 min with 31 bits, 1 ms with 15, 60 µs with 11, and 4 µs with 7, as in
//! [4×12 with ages](crate::expiring). Only a suspended lookup takes that long. `filter/tests/steps/timestamp_wrap.rs`
//! shows that one less does not mislead it.

/// Width of a word: bit 63 belongs to `kcas`.
const WORD_BITS: usize = 63;

/// The minimum number of timestamp bits of a layout.
const MIN_TIMESTAMP_BITS: usize = 7;

/// The division of a bucket's word: `SLOTS` fingerprints of `BITS` bits, and the timestamp in the rest of the 63 bits.
///
/// A layout has at least one slot, fingerprints of 2 to 32 bits, and at least 7 timestamp bits. This is checked at
/// compile time, when the layout is used. Measured constants, such as [`WORKABLE_LOAD`](Self::WORKABLE_LOAD), may
/// change in a later release.
#[derive(Clone, Copy, Debug)]
pub struct Layout<const SLOTS: usize, const BITS: usize>(pub(crate) ());

impl<const SLOTS: usize, const BITS: usize> Layout<SLOTS, BITS> {
    const USED: usize = {
        assert!(SLOTS >= 1, "a bucket needs a slot");
        assert!(BITS >= 2 && BITS <= 32, "a fingerprint has 2 to 32 bits");
        assert!(
            SLOTS * BITS + MIN_TIMESTAMP_BITS <= WORD_BITS,
            "the slots leave fewer than 7 bits of 63 for the timestamp"
        );
        SLOTS * BITS
    };

    /// Number of timestamp bits.
    pub const TIMESTAMP_BITS: usize = WORD_BITS - Self::USED;

    /// The greatest fingerprint; the least is 1.
    #[doc(hidden)]
    pub const MAX_FINGERPRINT: u64 = (1 << BITS) - 1;

    /// The load factor to plan for: 0.83 with two slots, 0.92 with three, 0.95 with four, 0.96 with five, 0.97 with
    /// six, and 0.975 with more. Not every layout reaches it dependably ([`DEPENDABLE`](Self::DEPENDABLE)).
    ///
    /// It is somewhat below the load at which an insert was first refused in tables of 2^18 buckets (`harness memory`;
    /// larger tables refuse a little earlier). Because searches are bounded, that load is somewhat below the
    /// theoretical threshold for two choices of buckets (0.897, 0.959, 0.980 and 0.990 with two to five slots).
    pub const WORKABLE_LOAD: f64 = match SLOTS {
        1 => 0.20,
        2 => 0.83,
        3 => 0.92,
        4 => 0.95,
        5 => 0.96,
        6 => 0.97,
        _ => 0.975,
    };

    /// Whether tables of every size reach the [`WORKABLE_LOAD`](Self::WORKABLE_LOAD), so that a filter can be built for
    /// a number of keys. Three kinds of layouts do not:
    ///
    /// - one slot per bucket: an eviction path has no branches, and three keys with the same two buckets are one too
    ///   many;
    /// - fingerprints of fewer than seven bits: they lead to few different buckets;
    /// - two slots and fewer than ten bits: five keys of one class are one too many, and a large table has such a class
    ///   by chance. With seven bits, one table in 20 for 10^7 keys has one; with nine bits, one in 9 of the greatest
    ///   tables, which have 2^32 buckets.
    ///
    /// In every dependable layout, fewer than one in 20 of the greatest tables has a class with too many keys. An
    /// [`ExpiringCuckooFilter`](crate::ExpiringCuckooFilter) has at most one copy of a class, so there two slots of at
    /// least seven bits are dependable.
    pub const DEPENDABLE: bool = Self::DEPENDABLE_FOR_SETS && !(SLOTS == 2 && BITS < 10);

    /// [`DEPENDABLE`](Self::DEPENDABLE) for a filter with at most one copy of a class: no class has too many.
    pub(crate) const DEPENDABLE_FOR_SETS: bool = SLOTS >= 2 && BITS >= 7;

    /// The fraction of absent keys that are reported as present if every slot is taken: about 2 × `SLOTS` / 2^`BITS`. A
    /// lookup compares 2 × `SLOTS` fingerprints, and each equals the key's once in 2^`BITS`, or a little more often
    /// because one fingerprint is twice as frequent as the others.
    ///
    /// It is an upper bound, because several slots may match at once: with 7 bits, 6 % fewer were measured. With four
    /// bits or fewer, it may be greater than 1. At a lower load the rate is proportionally lower: 95 % of this at a
    /// load of 0.95.
    ///
    /// All error rates in these docs are defined this way ([table](self#layouts)).
    pub const FALSE_POSITIVE_RATE: f64 = {
        let fingerprints = (1u64 << BITS) as f64;
        let alike = (1.0 + 2.0 / fingerprints) / fingerprints;
        2.0 * SLOTS as f64 * alike
    };

    /// Memory per key, in bits, in a table filled to the [`WORKABLE_LOAD`](Self::WORKABLE_LOAD).
    pub const BITS_PER_KEY: f64 = 64.0 / SLOTS as f64 / Self::WORKABLE_LOAD;

    /// One in the lowest bit of every slot.
    const LOWEST: u64 = {
        let mut ones = 0;
        let mut slot = 0;
        while slot < SLOTS {
            ones |= 1 << (slot * BITS);
            slot += 1;
        }
        ones
    };

    /// What is needed to find a fingerprint in a word of this layout.
    pub(crate) const SHAPE: Shape = Shape {
        lowest: Self::LOWEST,
        highest: Self::LOWEST << (BITS - 1),
        max_fingerprint: Self::MAX_FINGERPRINT,
    };
}

/// The words of buckets, for the crate itself and for the harness.
#[doc(hidden)]
impl<const SLOTS: usize, const BITS: usize> Layout<SLOTS, BITS> {
    /// Returns the number of empty slots of `word`.
    #[inline]
    pub const fn room(word: u64) -> u32 {
        // Exact in every slot: there is no carry from one to the next.
        let low = Self::SHAPE.lowest * (Self::MAX_FINGERPRINT >> 1);
        let nonzero = ((word & low) + low) | word;
        let empty = !nonzero & Self::SHAPE.highest;
        // (1 << 32 would overflow a `usize` of 32 bits.)
        if (SLOTS as u64) < 1 << BITS {
            // In the product, the highest slot is the sum of all.
            let sum = (empty >> (BITS - 1)).wrapping_mul(Self::LOWEST) >> ((SLOTS - 1) * BITS);
            (sum & Self::MAX_FINGERPRINT) as u32
        } else {
            empty.count_ones()
        }
    }

    /// True if some slot of `word` is empty.
    #[inline]
    pub const fn has_room(word: u64) -> bool {
        Self::contains(word, 0)
    }

    /// True if some slot of `word` holds `fingerprint`.
    #[inline]
    pub const fn contains(word: u64, fingerprint: u64) -> bool {
        Self::SHAPE.contains(word, fingerprint)
    }

    /// Returns the lowest slot of `word` that holds `fingerprint`.
    #[inline]
    pub const fn find(word: u64, fingerprint: u64) -> Option<usize> {
        match Self::SHAPE.matches(word, fingerprint) {
            0 => None,
            found => Some(found.trailing_zeros() as usize / BITS),
        }
    }

    /// Returns the lowest empty slot of `word`.
    #[inline]
    pub const fn find_empty(word: u64) -> Option<usize> {
        Self::find(word, 0)
    }

    /// Returns the contents of slot `slot` (below `SLOTS`) of `word`: a fingerprint, or 0 if it is
    /// empty.
    #[inline]
    pub const fn fingerprint(word: u64, slot: usize) -> u64 {
        word >> (slot * BITS) & Self::MAX_FINGERPRINT
    }

    /// Returns `word` with slot `slot` (below `SLOTS`) emptied. The timestamp stays, since lookups
    /// need not notice removals.
    #[inline]
    pub const fn clear(word: u64, slot: usize) -> u64 {
        word & !(Self::MAX_FINGERPRINT << (slot * BITS))
    }

    /// Returns `word` with `fingerprint` (1 to [`MAX_FINGERPRINT`](Self::MAX_FINGERPRINT)) in slot
    /// `slot` (below `SLOTS`), whatever was there, and the timestamp advanced, since a fingerprint
    /// was added to the bucket. The timestamp wraps.
    #[inline]
    pub const fn place(word: u64, slot: usize, fingerprint: u64) -> u64 {
        Self::advance(Self::clear(word, slot) | fingerprint << (slot * BITS))
    }

    /// Returns `word` with `fingerprint` in its lowest empty slot, which must exist, and the
    /// timestamp advanced.
    #[inline]
    pub const fn add(word: u64, fingerprint: u64) -> u64 {
        Self::advance(word | fingerprint << Self::place_of(Self::SHAPE.matches(word, 0)))
    }

    /// Returns the highest bit of the lowest slot that holds `fingerprint`, and perhaps of some above it.
    #[inline]
    pub const fn matches(word: u64, fingerprint: u64) -> u64 {
        Self::SHAPE.matches(word, fingerprint)
    }

    /// Returns `word` with one slot emptied: the lowest of those that [`matches`](Self::matches) found, of
    /// which there must be at least one.
    #[inline]
    pub const fn take(word: u64, matches: u64) -> u64 {
        word & !(Self::MAX_FINGERPRINT << Self::place_of(matches))
    }

    /// Returns where the lowest of these slots begins.
    #[inline]
    const fn place_of(matches: u64) -> u32 {
        (matches.trailing_zeros() - (BITS as u32 - 1)) % 64
    }

    /// Returns `word` with the timestamp advanced. The timestamp wraps.
    #[inline]
    pub const fn advance(word: u64) -> u64 {
        word.wrapping_add(1 << Self::USED) & (u64::MAX >> 1)
    }

    /// Returns `word` without its timestamp.
    #[inline]
    pub const fn slots(word: u64) -> u64 {
        word & ((1 << Self::USED) - 1)
    }

    /// Returns the timestamp of `word`: how often it was advanced since the table was made, by additions to the bucket
    /// and by [copies](self#when-a-timestamp-wraps), modulo 2^[`TIMESTAMP_BITS`](Self::TIMESTAMP_BITS).
    #[inline]
    pub const fn timestamp(word: u64) -> u64 {
        word >> Self::USED
    }

    /// Returns the number of slots of `word` that hold `fingerprint` (0: that are empty).
    pub const fn count(word: u64, fingerprint: u64) -> usize {
        let mut count = 0;
        let mut slot = 0;
        while slot < SLOTS {
            count += (Self::fingerprint(word, slot) == fingerprint) as usize;
            slot += 1;
        }
        count
    }

    /// Returns the number of occupied slots of `word`.
    pub const fn occupied(word: u64) -> usize {
        SLOTS - Self::room(word) as usize
    }
}

/// What is needed to find a fingerprint in a word of some layout: a value, for a layout known only
/// at run time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// One in the lowest bit of every slot.
    lowest: u64,
    /// One in the highest bit of every slot.
    highest: u64,
    /// [`Layout::MAX_FINGERPRINT`].
    pub(crate) max_fingerprint: u64,
}

impl Shape {
    /// Returns the highest bit of every slot that holds `fingerprint` (0: is empty), and perhaps of
    /// slots above the lowest such slot: subtracting 1 from each slot borrows through a slot only
    /// if it is zero.
    #[inline]
    pub(crate) const fn matches(self, word: u64, fingerprint: u64) -> u64 {
        let difference = word ^ fingerprint.wrapping_mul(self.lowest);
        difference.wrapping_sub(self.lowest) & !difference & self.highest
    }

    /// [`Layout::contains`].
    #[inline]
    pub(crate) const fn contains(self, word: u64, fingerprint: u64) -> bool {
        self.matches(word, fingerprint) != 0
    }
}

#[cfg(all(test, not(kcas_loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Runs the same checks for one layout, against a plain array of slots.
    fn agrees_with_plain_slots<const SLOTS: usize, const BITS: usize>(
        slots: &[u64],
        timestamp: u64,
        slot: usize,
        wanted: u64,
    ) {
        type L<const S: usize, const B: usize> = Layout<S, B>;
        let max = L::<SLOTS, BITS>::MAX_FINGERPRINT;
        let turn = 1u64 << L::<SLOTS, BITS>::TIMESTAMP_BITS;
        let mut plain: Vec<u64> = slots[..SLOTS].iter().map(|s| s % (max + 1)).collect();
        let (timestamp, slot) = (timestamp % turn, slot % SLOTS);
        let wanted = 1 + wanted % max;
        let pack = |plain: &[u64], timestamp: u64| {
            let slots = plain.iter().enumerate();
            slots.fold(timestamp << (SLOTS * BITS), |word, (i, f)| {
                word | f << (i * BITS)
            })
        };
        let word = pack(&plain, timestamp);

        assert_eq!(word >> 63, 0);
        assert_eq!(L::<SLOTS, BITS>::timestamp(word), timestamp);
        assert_eq!(L::<SLOTS, BITS>::slots(word), pack(&plain, 0));
        for wanted in [wanted, plain[slot].max(1), max, 1] {
            let position = plain.iter().position(|&f| f == wanted);
            let count = plain.iter().filter(|&&f| f == wanted).count();
            assert_eq!(L::<SLOTS, BITS>::count(word, wanted), count);
            assert_eq!(L::<SLOTS, BITS>::find(word, wanted), position);
            assert_eq!(L::<SLOTS, BITS>::contains(word, wanted), position.is_some());
        }
        let empty = plain.iter().position(|&f| f == 0);
        assert_eq!(L::<SLOTS, BITS>::find_empty(word), empty);
        let occupied = plain.iter().filter(|&&f| f != 0).count();
        assert_eq!(L::<SLOTS, BITS>::occupied(word), occupied);
        assert_eq!(L::<SLOTS, BITS>::count(word, 0), SLOTS - occupied);
        assert_eq!(L::<SLOTS, BITS>::fingerprint(word, slot), plain[slot]);

        plain[slot] = 0;
        assert_eq!(L::<SLOTS, BITS>::clear(word, slot), pack(&plain, timestamp));
        plain[slot] = wanted;
        let later = pack(&plain, (timestamp + 1) % turn);
        assert_eq!(L::<SLOTS, BITS>::place(word, slot, wanted), later);
    }

    proptest! {
        #[test]
        fn layouts_agree_with_plain_slots(
            // Small numbers, so that slots are often empty or equal.
            slots in proptest::collection::vec(prop_oneof![0u64..3, any::<u64>()], 8),
            timestamp in prop_oneof![any::<u64>(), Just(u64::MAX)],
            slot in any::<usize>(),
            wanted in prop_oneof![0u64..3, any::<u64>()],
        ) {
            agrees_with_plain_slots::<4, 12>(&slots, timestamp, slot, wanted);
            agrees_with_plain_slots::<4, 8>(&slots, timestamp, slot, wanted);
            agrees_with_plain_slots::<4, 13>(&slots, timestamp, slot, wanted);
            agrees_with_plain_slots::<3, 16>(&slots, timestamp, slot, wanted);
            agrees_with_plain_slots::<2, 24>(&slots, timestamp, slot, wanted);
            agrees_with_plain_slots::<2, 28>(&slots, timestamp, slot, wanted);
            agrees_with_plain_slots::<1, 2>(&slots, timestamp, slot, wanted);
            agrees_with_plain_slots::<1, 32>(&slots, timestamp, slot, wanted);
            agrees_with_plain_slots::<8, 7>(&slots, timestamp, slot, wanted);
        }
    }
}
