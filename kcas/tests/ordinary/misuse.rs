//! Misuse is reported by a typed error or a documented panic, before any word changes.

use std::panic::{AssertUnwindSafe, catch_unwind};

use kcas::{CompareExchangeError, Entry, WordArray};

const WIDE: u64 = 1 << 63;

#[test]
fn kcas_misuse_is_error_and_changes_nothing() {
    let words = WordArray::new(10);
    let new = Entry::new;
    let wide = "value 0x8000000000000000 is wider than 63 bits";
    let past = "index 10 is past the end of an array of 10 words";
    let too_many = (0..=WordArray::MAX_ENTRIES).map(|i| new(i, 0, 1));
    for (entries, error) in [
        (
            too_many.collect(),
            "9 entries in one operation; at most 8 are possible",
        ),
        (
            vec![new(4, 0, 1), new(1, 0, 1), new(4, 0, 2)],
            "index 4 is named twice in one operation",
        ),
        (vec![new(1, 0, 1), new(10, 0, 1)], past),
        (vec![new(10, 0, 1)], past),
        (vec![new(1, 0, 1), new(2, 0, WIDE)], wide),
        (vec![new(1, WIDE, 1), new(2, 0, 1)], wide),
        // The same bit twice.
        (vec![new(1, 0, 1), new(2, WIDE, WIDE)], wide),
        (
            vec![new(1, 0, 1), new(2, 7, 1)],
            "a word does not hold its expected value",
        ),
    ] {
        let refused = words.kcas(&entries).unwrap_err();
        assert_eq!(refused.to_string(), error, "{entries:?}");
        let unchanged = (0..words.len()).all(|index| words.load(index) == 0);
        assert!(unchanged, "{entries:?}");
    }
}

#[test]
fn compare_exchange_misuse_changes_nothing() {
    let words = WordArray::new(1);
    for (current, new) in [(WIDE, 1), (0, WIDE)] {
        let refused = words.compare_exchange(0, current, new);
        assert_eq!(refused, Err(CompareExchangeError::ValueTooWide));
    }
    assert_eq!(words.load(0), 0);
    let outside = || words.compare_exchange(1, 0, 1).is_ok();
    assert!(catch_unwind(AssertUnwindSafe(outside)).is_err());
    assert!(catch_unwind(AssertUnwindSafe(|| words.load(1))).is_err());
}

#[test]
fn sizes_from_nothing_to_absurd() {
    let empty = WordArray::new(0);
    assert!(empty.is_empty());
    assert_eq!(empty.kcas(&[]), Ok(()));
    assert!(empty.kcas(&[Entry::new(0, 0, 1)]).is_err());
    // On a machine of 32 bits, there is no such number.
    let more_than_all_memory = 1_usize.checked_shl(55).unwrap_or(usize::MAX);
    for absurd in [usize::MAX, usize::MAX / 8, more_than_all_memory] {
        assert!(WordArray::try_new(absurd).is_err());
        assert!(catch_unwind(|| WordArray::new(absurd)).is_err());
    }
}
