//! Models of whole operations.

use std::fmt::Debug;
use std::sync::Arc;

use kcas::CompareExchangeError::Differs;
use kcas::engines::MISMATCH;
use kcas::{Entry, Error, WordArray};
use kcas_testing::model::{explore_test, spawn_with};

fn array(values: &[u64]) -> Arc<WordArray> {
    let words = WordArray::new(values.len());
    for (index, &value) in values.iter().enumerate() {
        if value != 0 {
            words.compare_exchange(index, 0, value).unwrap();
        }
    }
    Arc::new(words)
}

fn contents(words: &WordArray) -> Vec<u64> {
    (0..words.len()).map(|index| words.load(index)).collect()
}

const DONE: Result<(), Error> = Ok(());
const DIFFERS: Result<(), Error> = Err(MISMATCH);

/// Checks that some order of the calls gives these answers and leaves what the words hold.
fn explained<const N: usize, A: Debug + PartialEq>(
    words: &WordArray,
    answers: A,
    orders: &[(A, [u64; N])],
) {
    let contents = contents(words);
    let mut orders = orders.iter();
    let is_one = orders.any(|(given, left)| *given == answers && contents == left);
    assert!(is_one, "no order explains {answers:?} and {contents:?}");
}

/// Two operations on the same two words, named in opposite order: exactly one succeeds, and
/// completely.
#[test]
fn opposite_order() {
    explore_test(3, 9_300, || {
        let words = array(&[0, 0]);
        let other = spawn_with(&words, move |words| {
            words.kcas(&[Entry::new(1, 0, 2), Entry::new(0, 0, 2)])
        });
        let mine = words.kcas(&[Entry::new(0, 0, 1), Entry::new(1, 0, 1)]);
        let orders = [((DONE, DIFFERS), [1, 1]), ((DIFFERS, DONE), [2, 2])];
        explained(&words, (mine, other.join().unwrap()), &orders);
    });
}

/// A reader of both words, in either order, never sees the second one older than the first.
fn against_reader(switches: usize, at_least: u64, load: fn(&WordArray, usize) -> u64) {
    for [first, second] in [[0, 1], [1, 0]] {
        explore_test(switches, at_least, move || {
            let words = array(&[0, 0]);
            let writer = spawn_with(&words, move |words| {
                words.kcas(&[Entry::new(0, 0, 1), Entry::new(1, 0, 1)])
            });
            let (first, second) = (load(&words, first), load(&words, second));
            assert!(first <= second, "read {first}, then {second}");
            assert_eq!(writer.join().unwrap(), Ok(()));
            assert_eq!(contents(&words), [1, 1]);
        });
    }
}

#[test]
fn operation_against_reader() {
    against_reader(5, 1_400, WordArray::load);
}

#[test]
fn operation_against_helping_reader() {
    against_reader(4, 27_000, WordArray::load_helping);
}

/// Values that return to what they were: the owner undoes its own result while a helper that met
/// the operation is still working on it. The helper must not carry it out a second time.
#[test]
fn values_that_return() {
    explore_test(4, 97_000, || {
        let words = array(&[0, 0]);
        let helper = spawn_with(&words, move |words| words.compare_exchange(0, 0, 7));
        let first = words.kcas(&[Entry::new(0, 0, 1), Entry::new(1, 0, 1)]);
        if first.is_ok() {
            assert_eq!(words.compare_exchange(1, 1, 0), Ok(1));
        }
        let orders = [
            ((DONE, Err(Differs(1))), [1, 0]),
            ((DIFFERS, Ok(0)), [7, 0]),
        ];
        explained(&words, (first, helper.join().unwrap()), &orders);
    });
}

/// A failing operation, a helper that repairs the word it fails on, and the owner's record in use
/// again. (The hazard in it is explored further by `late_installation_and_reused_record` in
/// `commit`.)
#[test]
fn failed_operation_and_reused_record() {
    explore_test(2, 100_000, || {
        let words = array(&[0, 9, 0]);
        let helper = spawn_with(&words, move |words| {
            assert_eq!(words.compare_exchange(1, 9, 0), Ok(9));
            words.compare_exchange(0, 0, 3)
        });
        let first = words.kcas(&[Entry::new(0, 0, 1), Entry::new(1, 0, 1)]);
        let second = words.kcas(&[Entry::new(1, 0, 5), Entry::new(2, 0, 5)]);
        let orders = [
            ((DONE, DIFFERS, Err(Differs(1))), [1, 1, 0]),
            ((DIFFERS, DONE, Ok(0)), [3, 5, 5]),
            ((DIFFERS, DIFFERS, Ok(0)), [3, 0, 0]),
        ];
        explained(&words, (first, second, helper.join().unwrap()), &orders);
    });
}

/// Each operation writes one word on condition that the other is unchanged: if both succeeded, the
/// comparisons would be worth nothing (write skew); if neither did, one failed without a reason.
#[test]
fn compare_only_entries() {
    explore_test(3, 9_900, || {
        let words = array(&[0, 0]);
        let other = spawn_with(&words, move |words| {
            words.kcas(&[Entry::new(0, 0, 0), Entry::new(1, 0, 2)])
        });
        let mine = words.kcas(&[Entry::new(0, 0, 1), Entry::new(1, 0, 0)]);
        let orders = [((DONE, DIFFERS), [1, 0]), ((DIFFERS, DONE), [0, 2])];
        explained(&words, (mine, other.join().unwrap()), &orders);
    });
}

/// An operation compares word 0 and writes word 1, while another thread writes word 0 and then reads
/// word 1. If the comparison succeeded, it came before the write, and so must the operation's own
/// write: the reader sees it. (A reader does not help. So comparing a word again just before the
/// decision is not enough: the word must be held until then.)
#[test]
fn compare_only_entry_and_reading_writer() {
    explore_test(3, 11_100, || {
        let words = array(&[0, 0]);
        let other = spawn_with(&words, move |words| {
            let written = words.compare_exchange(0, 0, 5);
            assert_eq!(written, Ok(0), "nobody else writes it");
            words.load(1)
        });
        let mine = words.kcas(&[Entry::new(0, 0, 0), Entry::new(1, 0, 1)]);
        let orders = [((DONE, 1), [5, 1]), ((DIFFERS, 0), [5, 0])];
        explained(&words, (mine, other.join().unwrap()), &orders);
    });
}

/// An operation is decided and has released its first word; the next operation takes that word
/// before it meets the first one's tag in the second word. Helping must release that word, not wait
/// for the owner of the first word, which is the helper itself. (Found by the model: both
/// operations helped each other forever.)
#[test]
fn helping_decided_operation() {
    explore_test(3, 13_000, || {
        let words = array(&[0, 0]);
        let other = spawn_with(&words, move |words| {
            words.kcas(&[Entry::new(0, 0, 0), Entry::new(1, 0, 2)])
        });
        let mine = words.kcas(&[Entry::new(0, 0, 0), Entry::new(1, 2, 3)]);
        let orders = [((DONE, DONE), [0, 3]), ((DIFFERS, DONE), [0, 2])];
        explained(&words, (mine, other.join().unwrap()), &orders);
    });
}

/// A reader, and an owner that goes on to its next operation, which fails: the reader gets what
/// some word held, never what the next operation merely expected or what another word holds.
#[test]
fn reader_of_reused_record() {
    explore_test(4, 29_000, || {
        let words = array(&[0, 5]);
        let owner = spawn_with(&words, move |words| {
            let first = words.kcas(&[Entry::new(0, 0, 1), Entry::new(1, 5, 6)]);
            assert_eq!(first, Ok(()));
            let next = words.kcas(&[Entry::new(0, 7, 8), Entry::new(1, 6, 9)]);
            assert_eq!(next, DIFFERS);
        });
        let read = (words.load(0), words.load(1));
        let possible = [(0, 5), (0, 6), (1, 6)];
        assert!(possible.contains(&read), "no moment explains {read:?}");
        owner.join().unwrap();
        assert_eq!(contents(&words), [1, 6]);
    });
}

/// A reader, and an owner that goes on to an operation in which the word comes first instead of
/// second: the reader does not get the value of the word now in its former place.
#[test]
fn reader_of_record_reused_for_other_words() {
    explore_test(4, 12_000, || {
        let words = array(&[1, 5, 2]);
        let owner = spawn_with(&words, move |words| {
            let first = words.kcas(&[Entry::new(0, 1, 3), Entry::new(1, 5, 6)]);
            let next = words.kcas(&[Entry::new(1, 6, 7), Entry::new(2, 2, 4)]);
            assert_eq!([first, next], [Ok(()), Ok(())]);
        });
        let read = words.load(1);
        assert!([5, 6, 7].contains(&read), "word 1 never held {read}");
        owner.join().unwrap();
        assert_eq!(contents(&words), [3, 7, 4]);
    });
}

/// A helper of an operation whose owner goes on to an operation on a larger array: the helper must
/// not take the new indices for indices of its own array.
#[test]
fn helper_of_record_reused_for_other_array() {
    explore_test(2, 23_000, || {
        let (small, large) = (array(&[0, 0]), array(&[0, 0, 0, 0]));
        let helper = spawn_with(&small, move |small| small.compare_exchange(0, 0, 7));
        let first = small.kcas(&[Entry::new(0, 0, 1), Entry::new(1, 0, 1)]);
        let second = large.kcas(&[Entry::new(2, 0, 1), Entry::new(3, 0, 1)]);
        assert_eq!(second, Ok(()));
        let orders = [
            ((DONE, Err(Differs(1))), [1, 1]),
            ((DIFFERS, Ok(0)), [7, 0]),
        ];
        explained(&small, (first, helper.join().unwrap()), &orders);
        assert_eq!(contents(&large), [0, 0, 1, 1]);
    });
}

/// Single exchanges: a thread that sees the second of another's two writes, by a load or by an
/// exchange that succeeds or fails, sees the first one, too.
#[test]
fn single_exchanges_in_order() {
    let looks: [fn(&WordArray) -> bool; 3] = [
        |words| words.load(1) == 1,
        |words| words.compare_exchange(1, 1, 2) == Ok(1),
        |words| words.compare_exchange(1, 5, 6) == Err(Differs(1)),
    ];
    for sees_the_second in looks {
        explore_test(None, 10, move || {
            let words = array(&[0, 0]);
            let writer = spawn_with(&words, move |words| {
                words.compare_exchange(0, 0, 1).unwrap();
                words.compare_exchange(1, 0, 1).unwrap();
            });
            if sees_the_second(&words) {
                let first = words.load(0);
                assert_eq!(first, 1, "the second write was seen before the first");
            }
            writer.join().unwrap();
        });
    }
}

/// Two threads that each change a word, by an exchange or by an operation on two words, and then
/// load the other's: at least one sees what the other did. With less than `SeqCst` both could miss
/// it (store buffering). The words are written once before, since loom knows no order among the
/// initial values of words.
#[test]
fn two_writers_loading_each_others_word() {
    for whole in [false, true] {
        explore_test(4, 10, move || {
            let words = array(&[1, 1, 1]);
            let other = spawn_with(&words, move |words| {
                words.compare_exchange(1, 1, 2).unwrap();
                words.load(0)
            });
            if whole {
                let done = words.kcas(&[Entry::new(0, 1, 2), Entry::new(2, 1, 2)]);
                done.unwrap();
            } else {
                words.compare_exchange(0, 1, 2).unwrap();
            }
            let seen = (words.load(1), other.join().unwrap());
            assert_ne!(seen, (1, 1), "each write was missed by the other's writer");
        });
    }
}

/// The checker itself: a load in one thread against a load followed by a write in another. The
/// write may come before the first load. (Loom by itself explores only one execution here, in which
/// it does not: with loom's atomics used directly in `sync`, this test fails.)
#[test]
fn writer_loading_first_hides_no_execution() {
    use std::sync::atomic::{AtomicU64, Ordering};

    let seen: &'static AtomicU64 = Box::leak(Box::new(AtomicU64::new(0)));
    let is_explored = explore_test(None, 1, move || {
        let words = array(&[0]);
        let writer = spawn_with(&words, move |words| {
            let value = words.load(0);
            words.compare_exchange(0, value, 1).unwrap();
        });
        seen.fetch_or(1 << words.load(0), Ordering::Relaxed);
        writer.join().unwrap();
    });
    let seen = seen.load(Ordering::Relaxed);
    assert!(!is_explored || seen == 0b11, "a result is missing");
}
