//! Packing: a bucket's slots and its timestamp in one 63-bit word.
//!
//! ```text
//! bit 62 … SLOTS × BITS                 …  2 × BITS … BITS        … 0
//!     timestamp          slot SLOTS−1   …  slot 1     slot 0
//! ```
//!
//! An empty slot is zero, so a fingerprint never is. All slots are matched at once by arithmetic on the
//! word: no loop, no SIMD.
//!
//! # When a timestamp wraps
//!
//! A lookup that finds nothing trusts that its first bucket's word has not changed, and that is said modulo
//! 2^[`TIMESTAMP_BITS`](Layout::TIMESTAMP_BITS) additions. To be fooled, it must be interrupted between its two
//! reads of that bucket while a whole number of turns of additions are made there and leave the very same
//! fingerprints in the very same slots, and while the key's copy moves in before the read of the second
//! bucket and out again after it.
//!
//! | Layout | Timestamp bits | Additions to one bucket within one lookup | Least time for them, at 30 ns each |
//! |---|---:|---:|---:|
//! | 4×8 | 31 | 2,147,483,648 | 1 min |
//! | 4×12, 3×16, 2×24 | 15 | 32,768 | 1 ms |
//! | 4×13 | 11 | 2,048 | 60 µs |
//! | 8×7, 2×28 (the least allowed) | 7 | 128 | 4 µs |
//!
//! A lookup takes some nanoseconds; only one that loses its core in the middle can see so many. While it
//! is away, for some milliseconds say, threads would have to spend their time on that one bucket (where m
//! buckets are used alike, each of them brings 32,768 / m additions to one in 1 ms) and stop at exactly a whole turn. So it takes a
//! handful of buckets or one key hammered without pause, and then still a coincidence: with 7 bits, one key
//! hopping to and fro, its bucket hammered, and three times as many threads as cores, none of 8.2·10^9 lookups
//! in a minute was fooled. That is no proof. Where even that is too much, take a layout with more timestamp bits.
//! `filter/tests/timestamp_wrap.rs` makes that run, and shows with threads stopped at chosen steps that a whole
//! turn fools a lookup and nothing less does.

/// Width of a word: bit 63 belongs to `kcas`.
const WORD_BITS: usize = 63;

/// The least number of timestamp bits that a layout must leave.
const MIN_TIMESTAMP_BITS: usize = 7;

/// How a bucket's word is divided: `SLOTS` fingerprints of `BITS` bits, and the timestamp in what is
/// left of 63 bits. Which layouts exist is checked when one is used, at compile time: at least one slot,
/// fingerprints of 2 to 32 bits, at least 7 bits of timestamp.
#[derive(Clone, Copy, Debug)]
pub struct Layout<const SLOTS: usize, const BITS: usize>;

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
    pub const MAX_FINGERPRINT: u64 = (1 << BITS) - 1;

    /// The load factor to plan for: some way below that at which an insert was first refused, which was
    /// measured in tables of 2^18 buckets (`harness layouts`; larger ones refuse a little earlier), and is
    /// itself some way below the threshold that theory gives for two choices of buckets of so many slots
    /// (0.897, 0.959, 0.980, 0.990 for two to five), because searches are bounded.
    ///
    /// Not every layout can be planned with: see [`DEPENDABLE`](Self::DEPENDABLE).
    pub const WORKABLE_LOAD: f64 = match SLOTS {
        1 => 0.20,
        2 => 0.83,
        3 => 0.92,
        4 => 0.95,
        5 => 0.96,
        6 => 0.97,
        _ => 0.975,
    };

    /// Whether tables of every size reach the [`WORKABLE_LOAD`](Self::WORKABLE_LOAD), so that a filter can be
    /// built for a number of keys. Not with one slot a bucket, where a chain of shifts has no branches and
    /// three keys of the same two buckets are one too many; nor with fingerprints of fewer than seven bits, which
    /// lead to few different buckets, and of which few are different.
    pub const DEPENDABLE: bool = SLOTS >= 2 && BITS >= 7;

    /// The share of absent keys that are taken for present ones when every slot is taken: a lookup compares with
    /// 2 × `SLOTS` fingerprints, each of which is the key's once in 2^`BITS` (a little more often, since
    /// one fingerprint is twice as frequent as the others). It is an upper bound, as several slots
    /// may match at once (with 7 bits, 6 % fewer were measured). At a lower load it is less in proportion: 95 % of it at a
    /// load of 0.95.
    ///
    /// This is what is meant wherever these docs give an error rate. For a table of all layouts see
    /// [`layouts`](crate::layouts).
    pub const FALSE_POSITIVE_RATE: f64 = {
        let fingerprints = (1u64 << BITS) as f64;
        let alike = (1.0 + 2.0 / fingerprints) / fingerprints;
        2.0 * SLOTS as f64 * alike
    };

    /// Memory for each key, in bits, of a table filled to the [`WORKABLE_LOAD`](Self::WORKABLE_LOAD).
    pub const BITS_A_KEY: f64 = 64.0 / SLOTS as f64 / Self::WORKABLE_LOAD;

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

    /// What is to be known of this layout to find a fingerprint.
    pub(crate) const SHAPE: Shape = Shape {
        lowest: Self::LOWEST,
        highest: Self::LOWEST << (BITS - 1),
        max_fingerprint: Self::MAX_FINGERPRINT,
    };

    /// How many slots of `word` are empty.
    #[inline]
    pub const fn room(word: u64) -> u32 {
        // Exact in every slot: nothing is carried from one to the next.
        let low = Self::SHAPE.lowest * (Self::MAX_FINGERPRINT >> 1);
        let nonzero = ((word & low) + low) | word;
        let empty = !nonzero & Self::SHAPE.highest;
        if SLOTS < 1 << BITS {
            // In the product, the highest slot is the sum of all.
            let sum = (empty >> (BITS - 1)).wrapping_mul(Self::LOWEST) >> ((SLOTS - 1) * BITS);
            (sum & Self::MAX_FINGERPRINT) as u32
        } else {
            empty.count_ones()
        }
    }

    /// True when some slot of `word` is empty.
    #[inline]
    pub const fn has_room(word: u64) -> bool {
        Self::contains(word, 0)
    }

    /// True when some slot of `word` holds `fingerprint`.
    #[inline]
    pub const fn contains(word: u64, fingerprint: u64) -> bool {
        Self::SHAPE.contains(word, fingerprint)
    }

    /// The lowest slot of `word` that holds `fingerprint`.
    #[inline]
    pub const fn find(word: u64, fingerprint: u64) -> Option<usize> {
        match Self::SHAPE.matches(word, fingerprint) {
            0 => None,
            found => Some(found.trailing_zeros() as usize / BITS),
        }
    }

    /// The lowest empty slot of `word`.
    #[inline]
    pub const fn find_empty(word: u64) -> Option<usize> {
        Self::find(word, 0)
    }

    /// What slot `slot` of `word` holds: a fingerprint, or 0 when it is empty.
    #[inline]
    pub const fn fingerprint(word: u64, slot: usize) -> u64 {
        word >> (slot * BITS) & Self::MAX_FINGERPRINT
    }

    /// `word` with slot `slot` emptied. The timestamp stays: a lookup need not hear of removals.
    #[inline]
    pub const fn clear(word: u64, slot: usize) -> u64 {
        word & !(Self::MAX_FINGERPRINT << (slot * BITS))
    }

    /// `word` with `fingerprint` in slot `slot`, whatever was there, and the timestamp advanced: a
    /// fingerprint was added to the bucket. The timestamp wraps.
    #[inline]
    pub const fn place(word: u64, slot: usize, fingerprint: u64) -> u64 {
        Self::advance(Self::clear(word, slot) | fingerprint << (slot * BITS))
    }

    /// `word` with `fingerprint` in its lowest empty slot, of which it has one, and the timestamp advanced.
    #[inline]
    pub(crate) const fn add(word: u64, fingerprint: u64) -> u64 {
        Self::advance(word | fingerprint << Self::place_of(Self::SHAPE.matches(word, 0)))
    }

    /// `word` with the lowest of the slots emptied that [`Shape::matches`] has told, at least one.
    #[inline]
    pub(crate) const fn take(word: u64, matches: u64) -> u64 {
        word & !(Self::MAX_FINGERPRINT << Self::place_of(matches))
    }

    /// Where the lowest of these slots begins.
    #[inline]
    const fn place_of(matches: u64) -> u32 {
        (matches.trailing_zeros() - (BITS as u32 - 1)) % 64
    }

    /// `word` with the timestamp advanced. The timestamp wraps.
    #[inline]
    pub const fn advance(word: u64) -> u64 {
        word.wrapping_add(1 << Self::USED) & (u64::MAX >> 1)
    }

    /// `word` without its timestamp.
    #[inline]
    pub const fn slots(word: u64) -> u64 {
        word & ((1 << Self::USED) - 1)
    }

    /// The timestamp of `word`: how many fingerprints were added to the bucket since the table was made, modulo
    /// 2^[`TIMESTAMP_BITS`](Self::TIMESTAMP_BITS).
    #[inline]
    pub const fn timestamp(word: u64) -> u64 {
        word >> Self::USED
    }

    /// How many slots of `word` hold `fingerprint` (0: are empty).
    pub const fn count(word: u64, fingerprint: u64) -> usize {
        let mut count = 0;
        let mut slot = 0;
        while slot < SLOTS {
            count += (Self::fingerprint(word, slot) == fingerprint) as usize;
            slot += 1;
        }
        count
    }

    /// How many slots of `word` are occupied.
    pub const fn occupied(word: u64) -> usize {
        SLOTS - Self::room(word) as usize
    }
}

/// What is to be known of a layout to find a fingerprint, as a value, where the layout is known at run time only.
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
    /// The highest bit of every slot that holds `fingerprint` (0: is empty), and perhaps of slots above
    /// the lowest such slot: subtracting 1 from each slot borrows through a slot only if it is zero.
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

    /// The same checks for one layout, against a plain array of slots.
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
            // Small numbers, so that slots are often empty or alike.
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
            agrees_with_plain_slots::<8, 7>(&slots, timestamp, slot, wanted);
        }
    }
}
