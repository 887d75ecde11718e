//! Which layout a table has, by the length of its fingerprints; and with how long ones a generation begins.

use crate::cuckoo::buckets_for;
use crate::layout::Layout;

/// Bits of a fingerprint that all tables of a filter store: they choose the other bucket. Tables with
/// fingerprints of so many bits cannot be split.
pub(crate) const PAIRING_BITS: u32 = 12;

/// Bits of the fingerprints of a small first table: long enough for 13 splits. (In models, so few that
/// a table can be split once.)
const LONGEST: u32 = if cfg!(kcas_loom) { 13 } else { 25 };

/// Bits of the fingerprints of a large first table: the most that three slots have room for. Two slots would take half
/// as much memory again.
const LONGEST_OF_LARGE: u32 = if cfg!(kcas_loom) { LONGEST } else { 18 };

/// The number of buckets, as a power of two, up to which a table is small.
const SMALL: u32 = 10;

/// Most generations that a filter can have: the first one of a single bucket, of 25 bits, is split until it has 2^13;
/// the next, of 21 bits, from 2^14 to 2^23; one from 2^24 to 2^30; and one of 2^31 or 2^32.
pub(crate) const MAX_GENERATIONS: usize = 4;

/// The layout of tables whose fingerprints have so many bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Format {
    /// Bits of a fingerprint.
    pub(crate) bits: u32,
    /// Slots of a bucket.
    pub(crate) slots: usize,
    /// [`Layout::FALSE_POSITIVE_RATE`].
    pub(crate) false_positive_rate: f64,
    /// How many buckets so many keys need.
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

/// Bits of the fingerprints of a generation's first table, if it has so many buckets. In small tables long
/// fingerprints cost little, and let it be split often.
pub(crate) fn first_bits(buckets: usize) -> u32 {
    let doublings = buckets.ilog2().saturating_sub(SMALL);
    LONGEST.saturating_sub(doublings).max(LONGEST_OF_LARGE)
}

/// How many buckets the first table needs for so many keys. More than [`MAX_BUCKETS`], when no table is large enough.
pub(crate) fn first_buckets(keys: usize, format: impl Fn(u32) -> Format) -> usize {
    let fits = |bits: u32| {
        // All tables from `least` to below `end` begin with fingerprints of so many bits.
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

/// The false positive rate of a filter of as many generations as there can ever be, all of them full and at their
/// shortest fingerprints.
pub(crate) const MAX_FALSE_POSITIVE_RATE: f64 =
    MAX_GENERATIONS as f64 * Layout::<4, { PAIRING_BITS as usize }>::FALSE_POSITIVE_RATE;

#[cfg(all(test, not(kcas_loom)))]
mod tests {
    use super::*;
    use crate::growing::table::format;
    use crate::hashing::MAX_BUCKETS;

    #[test]
    fn a_first_table_has_room_and_no_more_than_it_needs() {
        for exponent in 0..60 {
            let keys = (1.6_f64.powi(exponent)) as usize;
            let buckets = first_buckets(keys, format);
            if buckets > MAX_BUCKETS {
                assert!(keys > 12_000_000_000, "{keys}");
                continue;
            }
            let format = format(first_bits(buckets));
            assert!((format.buckets_for)(keys) <= buckets, "{keys}");
            assert!(buckets * format.slots < keys * 2 + 100, "{keys}: {buckets}");
        }
    }

    #[test]
    fn there_are_no_more_generations_than_are_counted() {
        for exponent in 0..=32 {
            let (mut buckets, mut generations) = (1_u64 << exponent, 0);
            while buckets <= MAX_BUCKETS as u64 {
                generations += 1;
                // All its splits, and the table of the next generation.
                buckets <<= first_bits(buckets as usize) - PAIRING_BITS + 1;
            }
            assert!(generations <= MAX_GENERATIONS, "2^{exponent}");
        }
    }
    /// The table in the docs of `growing`.
    #[test]
    fn formats_are_as_they_are_told() {
        let rows = include_str!("mod.rs")
            .lines()
            .skip_while(|line| !line.starts_with("//! | Bits of a fingerprint |"));
        let rows = rows.skip(2).map_while(|line| line.strip_prefix("//! | "));
        let number = |text: &str| -> f64 {
            let digits: String = text.chars().filter(char::is_ascii_digit).collect();
            let unit = if text.contains("million") { 1e6 } else { 1.0 };
            digits.parse::<f64>().unwrap() * unit
        };
        let mut told = Vec::new();
        for row in rows {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            let [bits, slots, bits_a_key, rates, ..] = cells[..] else {
                panic!("{row}");
            };
            let ends = |text: &'static str| {
                let (first, last) = text.split_once(" to ").unwrap_or((text, text));
                [first, last].map(number)
            };
            let [longest, shortest] = ends(bits).map(|bits| bits as u32);
            let wrong = ends(rates.strip_prefix("1 in ").unwrap());
            for (bits, one_in) in [longest, shortest].into_iter().zip(wrong) {
                let off = one_in * format(bits).false_positive_rate;
                assert!((0.98..1.02).contains(&off), "{bits} bits: {off}");
            }
            for bits in (shortest..=longest).rev() {
                let format = format(bits);
                assert_eq!(format.slots as f64, number(slots));
                let taken = (format.buckets_for)(1_000_000_000) as f64 * 64.0 / 1e9;
                assert_eq!(taken.round(), number(bits_a_key));
                told.push(bits);
            }
        }
        assert!(told.into_iter().eq((PAIRING_BITS..=LONGEST).rev()));
    }
}
