//! The layout of each table, which follows from its fingerprint length, and the length that a
//! generation begins with.

use crate::builder::buckets_for;
use crate::layout::Layout;

/// Number of fingerprint bits that choose the other bucket. Every table of a filter stores them; a
/// table whose fingerprints have no more bits cannot be split.
pub(crate) const PAIRING_BITS: u32 = 12;

/// Fingerprint bits of a small first table: enough for 13 splits. (In models, so few that a table
/// can be split once.)
pub(crate) const LONGEST: u32 = if cfg!(kcas_loom) { 13 } else { 25 };

/// Fingerprint bits of a large first table: the most that three slots have room for. With two slots
/// it would take half as much memory again.
const LONGEST_OF_LARGE: u32 = if cfg!(kcas_loom) { LONGEST } else { 18 };

/// Base-2 logarithm of the number of buckets up to which a table is small.
const SMALL: u32 = 10;

/// Maximum number of generations of a filter. Starting from a single bucket, the first, of 25 bits,
/// is split until it has 2^13 buckets; the next, of 21 bits, goes from 2^14 to 2^23; the third from
/// 2^24 to 2^30; and the last has 2^31 or 2^32.
pub(crate) const MAX_GENERATIONS: usize = 4;

/// The layout of tables whose fingerprints have a given number of bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Format {
    /// Bits per fingerprint.
    pub(crate) bits: u32,
    /// Slots per bucket.
    pub(crate) slots: usize,
    /// [`Layout::FALSE_POSITIVE_RATE`].
    pub(crate) false_positive_rate: f64,
    /// Returns how many buckets this many keys need.
    buckets_for: fn(usize) -> usize,
}

impl Format {
    pub(crate) const fn of<const SLOTS: usize, const BITS: usize>() -> Format {
        Format {
            bits: BITS as u32,
            slots: SLOTS,
            false_positive_rate: Layout::<SLOTS, BITS>::FALSE_POSITIVE_RATE,
            buckets_for: buckets_for::<SLOTS, BITS>,
        }
    }
}

/// Returns the fingerprint bits of a generation's first table with this many buckets. In small
/// tables long fingerprints cost little, and allow many splits.
pub(crate) fn first_bits(buckets: usize) -> u32 {
    let doublings = buckets.ilog2().saturating_sub(SMALL);
    LONGEST.saturating_sub(doublings).max(LONGEST_OF_LARGE)
}

/// Returns the fingerprint bits of the table of 2^`slice_bits` slices, in a filter with slices of this
/// many buckets, and the logarithm of the number of slices that its generation begins with.
pub(crate) fn bits_at(slice: usize, slice_bits: u32) -> (u32, u32) {
    let mut begins = 0;
    loop {
        let first = first_bits(slice << begins);
        let splits = slice_bits - begins;
        if splits <= first - PAIRING_BITS {
            return (first - splits, begins);
        }
        begins += first - PAIRING_BITS + 1;
    }
}

/// Returns how many buckets the first table needs for this many keys: more than
/// [`MAX_BUCKETS`](crate::hashing::MAX_BUCKETS) if no table is large enough.
pub(crate) fn first_buckets(keys: usize, format: impl Fn(u32) -> Format) -> usize {
    let fits = |bits: u32| {
        // All tables with at least `least` and fewer than `end` buckets begin with this many bits.
        let doublings = SMALL + LONGEST - bits;
        let least = if bits == LONGEST { 1 } else { 1 << doublings };
        let end = match bits {
            LONGEST_OF_LARGE => usize::MAX,
            _ => 1 << (doublings + 1),
        };
        let buckets = (format(bits).buckets_for)(keys).max(least);
        (buckets < end).then_some(buckets)
    };
    (LONGEST_OF_LARGE..=LONGEST)
        .rev()
        .find_map(fits)
        .unwrap_or(usize::MAX)
}

/// The false positive rate of a filter with the maximum number of generations, all of them full and
/// at their shortest fingerprints.
pub(crate) const MAX_FALSE_POSITIVE_RATE: f64 =
    MAX_GENERATIONS as f64 * Layout::<4, { PAIRING_BITS as usize }>::FALSE_POSITIVE_RATE;

#[cfg(all(test, not(kcas_loom)))]
mod tests;
