//! Tests of the schedule. They ask the tables which formats there are; the schedule itself does not
//! know the tables, which depend on it: its callers pass the formats.

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

/// Checks the table in the docs of `growing`.
#[test]
fn formats_match_the_docs() {
    let rows = include_str!("../design.md")
        .lines()
        .skip_while(|line| !line.starts_with("| Fingerprint bits |"));
    let rows = rows.skip(2).map_while(|line| line.strip_prefix("| "));
    let number = |text: &str| -> f64 {
        let digits: String = text.chars().filter(char::is_ascii_digit).collect();
        let unit = if text.contains("million") { 1e6 } else { 1.0 };
        digits.parse::<f64>().unwrap() * unit
    };
    let mut documented = Vec::new();
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
            documented.push(bits);
        }
    }
    assert!(documented.into_iter().eq((PAIRING_BITS..=LONGEST).rev()));
}
