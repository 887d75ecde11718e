//! Which layout a segment has, by its size; and what that makes of the false positive rate.

use crate::cuckoo::buckets_for;
use crate::hashing::MAX_BUCKETS;
use crate::layout::Layout;

/// Bits of a fingerprint that segments of all sizes store: they choose the other bucket.
pub(crate) const PAIRING_BITS: u32 = 12;

/// Each segment has 2^`GROWTH_BITS` times as many buckets as the one before it: four times as many.
///
/// Twice as many would make twice as many segments of the same set, and lookups of absent keys go through all of
/// them; eight times as many would leave a table seven eighths empty for longer.
pub(crate) const GROWTH_BITS: u32 = 2;

/// Most segments that a filter can have: from one bucket to [`MAX_BUCKETS`].
pub(crate) const MAX_SEGMENTS: usize = (MAX_BUCKETS.ilog2() / GROWTH_BITS) as usize + 1;

/// The layout of segments of a certain size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tier {
    /// The least number of buckets.
    pub(crate) least: usize,
    /// Slots of a bucket.
    pub(crate) slots: usize,
    /// Bits of a fingerprint.
    pub(crate) bits: u32,
    /// [`Layout::FALSE_POSITIVE_RATE`].
    pub(crate) false_positive_rate: f64,
    /// How many buckets so many keys need.
    buckets_for: fn(usize) -> usize,
}

impl Tier {
    const fn new<const SLOTS: usize, const BITS: usize>(least: usize) -> Tier {
        Tier {
            least,
            slots: SLOTS,
            bits: BITS as u32,
            false_positive_rate: Layout::<SLOTS, BITS>::FALSE_POSITIVE_RATE,
            buckets_for: buckets_for::<SLOTS, BITS>,
        }
    }
}

/// Each begins where the one before it has grown once, and has two bits less: so many as the bucket's number has more.
/// So a larger segment tells keys apart at least as well as a smaller one of the same filter ([`super`] tells why it
/// must), and only the largest, where the memory is, have short fingerprints.
pub(crate) const TIERS: [Tier; 6] = [
    Tier::new::<2, 23>(1),
    Tier::new::<2, 21>(1 << 12),
    Tier::new::<2, 19>(1 << 14),
    Tier::new::<3, 17>(1 << 16),
    Tier::new::<3, 15>(1 << 18),
    Tier::new::<4, 13>(1 << 20),
];

/// The place in [`TIERS`] of a segment of so many buckets.
pub(crate) fn tier(buckets: usize) -> usize {
    let smaller = TIERS.iter().take_while(|tier| tier.least <= buckets);
    smaller.count() - 1
}

/// How many buckets the first segment needs for so many keys. More than [`MAX_BUCKETS`], when none is large enough.
pub(crate) fn first_buckets(keys: usize) -> usize {
    let ends = TIERS[1..].iter().map(|next| next.least).chain([usize::MAX]);
    (TIERS.iter().zip(ends))
        .map(|(tier, end)| ((tier.buckets_for)(keys).max(tier.least), end))
        .find_map(|(buckets, end)| (buckets < end).then_some(buckets))
        .unwrap_or(usize::MAX)
}

/// The false positive rate of a filter of as many segments as there can ever be, all of them full.
pub(crate) const MAX_FALSE_POSITIVE_RATE: f64 = {
    // In the first tier, as many as would fit from one bucket on; in the last, up to the greatest table; in each of
    // the others, one.
    let mut rate = 0.0;
    let mut place = 0;
    while place < TIERS.len() {
        let last = if place + 1 < TIERS.len() {
            TIERS[place + 1].least / 2
        } else {
            MAX_BUCKETS
        };
        let doublings = last.ilog2() - TIERS[place].least.ilog2();
        rate += TIERS[place].false_positive_rate * (doublings / GROWTH_BITS + 1) as f64;
        place += 1;
    }
    rate
};

#[cfg(all(test, not(kcas_loom)))]
mod tests {
    use super::*;

    /// What a fingerprint and a number of a slice tell of a key, together, never becomes less.
    #[test]
    fn larger_segments_tell_keys_apart_at_least_as_well() {
        for first in (1..100_000).chain([1 << 17, (1 << 20) + 1]) {
            let mut told = 0;
            let mut slice_bits = 0;
            while first << slice_bits <= MAX_BUCKETS {
                let bits = TIERS[tier(first << slice_bits)].bits;
                let now = bits - PAIRING_BITS + slice_bits;
                assert!(now >= told, "{first} buckets, 2^{slice_bits} slices");
                told = now;
                slice_bits += GROWTH_BITS;
            }
        }
    }

    #[test]
    fn a_first_segment_has_room_and_no_more_than_it_needs() {
        for keys in [
            1,
            10,
            1_000,
            3_000,
            6_000,
            40_000,
            500_000,
            1_000_000,
            100_000_000,
        ] {
            let buckets = first_buckets(keys);
            let chosen = TIERS[tier(buckets)];
            assert!((chosen.buckets_for)(keys) <= buckets, "{keys}");
            assert!(buckets * chosen.slots < keys * 2 + 100, "{keys}: {buckets}");
        }
        assert!(first_buckets(usize::MAX) > MAX_BUCKETS);
    }

    /// As the docs say.
    #[test]
    fn the_bound_is_below_three_quarters_of_a_percent() {
        assert!((0.0070..0.0075).contains(&MAX_FALSE_POSITIVE_RATE));
        assert_eq!(MAX_SEGMENTS, 17);
    }
}
