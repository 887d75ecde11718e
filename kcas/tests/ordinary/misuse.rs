//! Misuse is reported by a typed error or a documented panic, before any word changes.

use std::panic::{AssertUnwindSafe, catch_unwind};

use kcas::{Entry, Error, WordArray};

const WIDE: u64 = 1 << 63;

#[test]
fn kcas_misuse_is_an_error_and_changes_nothing() {
    let words = WordArray::new(10);
    let new = Entry::new;
    let outside = |index| Error::IndexOutOfRange { index, len: 10 };
    let wide = |value| Error::ValueTooWide { value };
    let twice = Error::DuplicateIndex { index: 4 };
    let too_many = (0..=WordArray::MAX_ENTRIES).map(|i| new(i, 0, 1));
    for (entries, error) in [
        (too_many.collect(), Error::TooManyEntries { given: 9 }),
        (vec![new(4, 0, 1), new(1, 0, 1), new(4, 0, 2)], twice),
        (vec![new(1, 0, 1), new(10, 0, 1)], outside(10)),
        (vec![new(usize::MAX, 0, 1)], outside(usize::MAX)),
        (vec![new(1, 0, 1), new(2, 0, WIDE)], wide(WIDE)),
        (vec![new(1, WIDE | 5, 1), new(2, 0, 1)], wide(WIDE | 5)),
        // The same bit twice.
        (vec![new(1, 0, 1), new(2, WIDE, WIDE)], wide(WIDE)),
        (vec![new(1, 0, 1), new(2, 7, 1)], Error::Mismatch),
    ] {
        assert_eq!(words.kcas(&entries), Err(error), "{entries:?}");
        let unchanged = (0..words.len()).all(|index| words.load(index) == 0);
        assert!(unchanged, "{entries:?}");
    }
}

#[test]
fn errors_say_what_is_wrong() {
    let words = WordArray::new(1);
    let message = |entry| words.kcas(&[entry]).unwrap_err().to_string();
    let past = "index 3 is past the end of an array of 1 words";
    assert_eq!(message(Entry::new(3, 0, 1)), past);
    let wide = "value 0x8000000000000000 is wider than 63 bits";
    assert_eq!(message(Entry::new(0, 0, WIDE)), wide);
}

#[test]
fn compare_exchange_misuse_panics_and_changes_nothing() {
    let words = WordArray::new(1);
    for (index, current, new) in [(1, 0, 1), (0, WIDE, 1), (0, 0, WIDE)] {
        let call = || words.compare_exchange(index, current, new);
        assert!(catch_unwind(AssertUnwindSafe(call)).is_err());
        assert_eq!(words.load(0), 0);
    }
    assert!(catch_unwind(AssertUnwindSafe(|| words.load(1))).is_err());
}

#[test]
fn sizes_from_nothing_to_absurd() {
    let empty = WordArray::new(0);
    assert!(empty.is_empty());
    assert_eq!(empty.kcas(&[]), Ok(()));
    let outside = Error::IndexOutOfRange { index: 0, len: 0 };
    assert_eq!(empty.kcas(&[Entry::new(0, 0, 1)]), Err(outside));
    // On a machine of 32 bits, there is no such number.
    let more_than_all_memory = 1_usize.checked_shl(55).unwrap_or(usize::MAX);
    for absurd in [usize::MAX, usize::MAX / 8, more_than_all_memory] {
        assert!(WordArray::try_new(absurd).is_err());
        assert!(catch_unwind(|| WordArray::new(absurd)).is_err());
    }
}
