//! Packing a bucket of an expiring filter into one 63-bit word: its slots, their ages, and its
//! timestamp.
//!
//! ```text
//! bit 62 …                        … SLOTS × BITS                 … 0
//!     timestamp | age of slot SLOTS−1 … age of slot 0 | the slots
//! ```
//!
//! The slots are where a filter without ages has them ([`layout`](crate::layout)), so whatever only
//! reads fingerprints need not know of ages: a lookup takes them for a part of the timestamp. An age
//! is the number of the period in which its key was inserted or renewed, modulo 2^`AGE_BITS`. In an
//! empty slot it means nothing.

use crate::layout::Layout;

/// How a bucket's word is divided: `SLOTS` fingerprints of `BITS` bits, an age of `AGE_BITS` bits for
/// each, and the timestamp in the rest of the 63 bits. It is checked at compile time, when it is used:
/// ages of 1 to 8 bits, and at least 7 bits of timestamp.
#[derive(Clone, Copy, Debug)]
pub struct AgedLayout<const SLOTS: usize, const BITS: usize, const AGE_BITS: usize>(pub(crate) ());

impl<const SLOTS: usize, const BITS: usize, const AGE_BITS: usize>
    AgedLayout<SLOTS, BITS, AGE_BITS>
{
    /// Number of periods for which a key is remembered, the one in which it was inserted included.
    pub const PERIODS: u64 = {
        assert!(
            AGE_BITS >= 1 && AGE_BITS <= 8,
            "an age has one to eight bits"
        );
        (1 << AGE_BITS) - 1
    };

    /// Where the ages begin.
    const AT: usize = SLOTS * BITS;

    /// Where the timestamp begins.
    const TIMESTAMP_AT: usize = {
        assert!(
            SLOTS * (BITS + AGE_BITS) + 7 <= 63,
            "the slots and their ages leave fewer than 7 bits of 63 for the timestamp"
        );
        SLOTS * (BITS + AGE_BITS)
    };

    /// Returns the age of a slot (below `SLOTS`).
    #[inline]
    pub(super) fn age(word: u64, slot: usize) -> u64 {
        word >> (Self::AT + slot * AGE_BITS) & Self::PERIODS
    }

    /// Returns the word with another age for a slot. The timestamp stays: nothing was added.
    #[inline]
    pub(super) fn with_age(word: u64, slot: usize, age: u64) -> u64 {
        let at = Self::AT + slot * AGE_BITS;
        word & !(Self::PERIODS << at) | (age & Self::PERIODS) << at
    }

    /// Returns what moves with a fingerprint: itself, and the age above it.
    #[inline]
    pub(super) fn held(word: u64, slot: usize) -> u64 {
        Layout::<SLOTS, BITS>::fingerprint(word, slot) | Self::age(word, slot) << BITS
    }

    /// Returns the word with this in a slot, whatever was there, and the timestamp advanced.
    #[inline]
    pub(super) fn place(word: u64, slot: usize, held: u64) -> u64 {
        let fingerprint = held & Layout::<SLOTS, BITS>::MAX_FINGERPRINT;
        let cleared = Layout::<SLOTS, BITS>::clear(word, slot);
        let placed = cleared | fingerprint << (slot * BITS);
        Self::advance(Self::with_age(placed, slot, held >> BITS))
    }

    /// Returns the word with the timestamp advanced. It wraps.
    #[inline]
    pub(super) fn advance(word: u64) -> u64 {
        word.wrapping_add(1 << Self::TIMESTAMP_AT) & (u64::MAX >> 1)
    }

    /// Returns the word with all slots of this age emptied.
    #[inline]
    pub(super) fn without(word: u64, age: u64) -> u64 {
        let of_age = |&slot: &usize| Self::age(word, slot) == age & Self::PERIODS;
        (0..SLOTS)
            .filter(of_age)
            .fold(word, Layout::<SLOTS, BITS>::clear)
    }

    /// Returns what is saved of a word in this period: the slots, and instead of each age how many
    /// periods ago it was (0 for an empty slot).
    pub(super) fn contents(word: u64, period: u64) -> u64 {
        Self::map_ages(word, |age| period.wrapping_sub(age))
    }

    /// Returns a word that is [saved](Self::contents) like this in this period.
    pub(super) fn of_contents(contents: u64, period: u64) -> u64 {
        Self::map_ages(contents, |ago| period.wrapping_sub(ago))
    }

    /// True if some word is saved like this.
    pub(crate) fn is_possible(contents: u64) -> bool {
        Self::of_contents(Self::contents(contents, 0), 0) == contents
    }

    /// Maps the age of each slot that is not empty, and sets everything else to zero.
    fn map_ages(word: u64, map: impl Fn(u64) -> u64) -> u64 {
        (0..SLOTS)
            .filter(|&slot| Layout::<SLOTS, BITS>::fingerprint(word, slot) != 0)
            .fold(Layout::<SLOTS, BITS>::slots(word), |mapped, slot| {
                Self::with_age(mapped, slot, map(Self::age(word, slot)))
            })
    }
}

#[cfg(all(test, not(kcas_loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn agrees_with_plain_slots<const S: usize, const B: usize, const A: usize>(
        word: u64,
        slot: usize,
        held: u64,
    ) {
        let (word, slot) = (word >> 1, slot % S);
        let max = Layout::<S, B>::MAX_FINGERPRINT;
        let (held, periods) = (held & ((1 << (B + A)) - 1), AgedLayout::<S, B, A>::PERIODS);
        let all = |word| (0..S).map(move |slot| AgedLayout::<S, B, A>::held(word, slot));
        let timestamp = |word: u64| word >> (S * (B + A));
        let turn = 1 << (63 - S * (B + A));

        let placed = AgedLayout::<S, B, A>::place(word, slot, held);
        let aged = AgedLayout::<S, B, A>::with_age(word, slot, held >> B);
        let without = AgedLayout::<S, B, A>::without(word, held >> B);
        for (other, before) in all(word).enumerate() {
            let [placed, aged, without] =
                [placed, aged, without].map(|word| AgedLayout::<S, B, A>::held(word, other));
            let age = before >> B;
            assert_eq!(placed, if other == slot { held } else { before });
            let now = before & max | held >> B << B;
            assert_eq!(aged, if other == slot { now } else { before });
            let gone = age == held >> B;
            assert_eq!(without & max, if gone { 0 } else { before & max });
        }
        assert_eq!(timestamp(placed), (timestamp(word) + 1) % turn);
        assert_eq!(timestamp(aged), timestamp(word));
        assert_eq!(timestamp(without), timestamp(word));

        let contents = AgedLayout::<S, B, A>::contents(word, held >> B);
        assert!(AgedLayout::<S, B, A>::is_possible(contents));
        for (now, then) in all(contents).zip(all(word)) {
            let ago = (held >> B).wrapping_sub(then >> B) & periods;
            let known = then & max | ago << B;
            assert_eq!(now, if then & max == 0 { 0 } else { known });
        }
        assert_eq!(timestamp(contents), 0);
        let back = AgedLayout::<S, B, A>::of_contents(contents, held >> B);
        for (back, then) in all(back).zip(all(word)) {
            assert_eq!(back, if then & max == 0 { 0 } else { then });
        }
        assert!(!AgedLayout::<S, B, A>::is_possible(contents | 1 << 62));
    }

    proptest! {
        #[test]
        fn every_division_agrees_with_plain_slots(word: u64, slot: usize, held: u64) {
            agrees_with_plain_slots::<4, 12, 2>(word, slot, held);
            agrees_with_plain_slots::<4, 11, 3>(word, slot, held);
            agrees_with_plain_slots::<3, 17, 1>(word, slot, held);
            agrees_with_plain_slots::<2, 4, 2>(word, slot, held);
            agrees_with_plain_slots::<7, 4, 4>(word, slot, held);
        }
    }
}
