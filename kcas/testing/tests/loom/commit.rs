//! Models of `kcas/src/commit.rs` that start in the middle of an operation, so that a few
//! preemptions reach far.

use std::sync::Arc;

use kcas::engines::Entries;
use kcas::internals::{Installed, KcasTag, Own, Placed, State, Word, begin_install, begin_kcas};
use kcas::internals::{decide, finish_own, install, place, words};
use kcas::sync::Ordering;
use kcas::{Entry, WordArray, thread_id};
use kcas_testing::conformance::{Checks, check};
use kcas_testing::model::{explore_test, spawn_with};
use loom::thread::JoinHandle;

use crate::as_me;

/// Two helpers of one operation at the same word: one reads "undecided" for its installation and
/// sleeps; the other installs late, after the operation was decided and released and its result
/// undone. When the first helper wakes, it must not take the other's installation for its own.
#[test]
fn installation_is_finished_only_as_itself() {
    explore_test(2, 13_000, || {
        begin_at_second_word();
        let (array, entries, own) = begun_in(2);
        let helpers = [(); 2].map(|()| spawn_helper(&array, own));
        assert!(finish(&array, own, &entries));
        assert_eq!(array.compare_exchange(1, 1, 0), Ok(1));
        for helper in helpers {
            let outcome = helper.join().unwrap();
            assert!(!matches!(outcome, Installed::Blocked(_)));
        }
        assert_eq!((array.load(0), array.load(1)), (1, 0));
    });
}

/// A failed operation, a helper that installs late, and the owner's record in use again: the owner
/// sees word 1 differ; the other thread repairs word 1 and begins an installation there; the owner
/// decides "failed" and goes on to its next operation. The word must not be left with the tag of an
/// operation that no longer exists. (The model also found the record of an installation that had
/// not been acquired.)
#[test]
fn late_installation_and_reused_record() {
    explore_test(5, 55_000, || {
        begin_at_second_word();
        let (array, entries, own) = begun_with_differing_word(3);
        let helper = spawn_with(&array, move |array| {
            array.compare_exchange(1, 9, 0).unwrap();
            confirm(array, 1, own, 0)
        });
        let first = finish(&array, own, &entries);
        let second = array.kcas(&[Entry::new(1, 0, 5), Entry::new(2, 0, 5)]);
        helper.join().unwrap();
        let contents = [0, 1, 2].map(|index| array.load(index));
        match (first, second.is_ok()) {
            (true, false) => assert_eq!(contents, [1, 1, 0]),
            (false, true) => assert_eq!(contents, [0, 5, 5]),
            (false, false) => assert_eq!(contents, [0, 0, 0]),
            results => panic!("no order of the operations explains {results:?}"),
        }
    });
}

/// A thread ends and the next one takes over its id while a helper is still working on the first
/// one's operation. The second thread runs as many operations as the first: if its sequence numbers
/// started afresh, the helper would take one of them for the operation it is helping.
#[test]
fn thread_id_is_reused() {
    explore_test(3, 63_000, || {
        begin_at_second_word();
        let (array, entries, own) = begun_in(4);
        let helper = spawn_helper(&array, own);
        assert!(finish(&array, own, &entries));
        assert_eq!(array.compare_exchange(1, 1, 0), Ok(1));
        thread_id::end_of_thread();
        let successor = spawn_with(&array, move |array| {
            [0, 1].map(|n| array.kcas(&[Entry::new(2, n, n + 1), Entry::new(3, n, n + 1)]))
        });
        assert_eq!(successor.join().unwrap(), [Ok(()), Ok(())]);
        helper.join().unwrap();
        assert_eq!([0, 1, 2, 3].map(|index| array.load(index)), [1, 0, 2, 2]);
    });
}

/// The owner is late: a helper decides before the owner has put its tag into the second word, and
/// the result there is undone, so that the tag goes in after all. It must be out again by the time
/// the record is used for the next operation.
#[test]
fn late_owner() {
    explore_test(2, 16_000, || {
        let (array, entries, own) = begun_in(3);
        let helper = spawn_with(&array, move |array| {
            assert!([1, 2].contains(&array.load_helping(0)));
            assert_eq!(array.compare_exchange(1, 1, 0), Ok(1));
        });
        assert!(finish(&array, own, &entries));
        let next = array.kcas(&[Entry::new(0, 1, 2), Entry::new(2, 0, 2)]);
        assert_eq!(next, Ok(()));
        helper.join().unwrap();
        assert_eq!([0, 1, 2].map(|index| array.load(index)), [2, 0, 2]);
    });
}

/// The owner sees a word differ; the word then gets the expected value, and a helper decides for
/// success. The owner learns of that when its own decision comes too late, and must find the tags
/// that were put there meanwhile.
#[test]
fn owner_learns_of_success() {
    explore_test(3, 16_000, || {
        let (array, entries, own) = begun_with_differing_word(2);
        let helper = spawn_with(&array, move |array| {
            array.compare_exchange(1, 9, 0).unwrap();
            array.load_helping(0)
        });
        let succeeded = finish(&array, own, &entries);
        if succeeded {
            let left = words(&array)[1].load(Ordering::Acquire);
            assert_ne!(Word::from(left), Word::Kcas(own));
        }
        let succeeded = u64::from(succeeded);
        assert_eq!(helper.join().unwrap(), succeeded);
        assert_eq!([0, 1].map(|index| array.load(index)), [succeeded; 2]);
    });
}

/// A tag that the owner puts into a word after a helper has decided changes nothing there, neither
/// for a reader nor for a thread that takes it out.
#[test]
fn late_owner_tag_means_expected_value() {
    explore_test(4, 2_500, || {
        let (array, entries, own) = begun_in(2);
        run_by_helper(&array);
        let other = spawn_with(&array, move |array| {
            (array.load(1), array.compare_exchange(1, 0, 5))
        });
        assert!(finish(&array, own, &entries));
        assert_eq!(other.join().unwrap(), (0, Ok(0)));
        assert_eq!([0, 1].map(|index| array.load(index)), [1, 5]);
    });
}

/// The same while a helper's installation is over the tag.
#[test]
fn installation_over_late_tag_means_expected_value() {
    explore_test(None, 1, || {
        let (array, entries, own) = begun_in(2);
        run_by_helper(&array);
        put(&array, own, &entries[1]);
        let late = own.owner_raw();
        let mine = as_me(|me| begin_install(words(&array), me, own, 1, late)).raw();
        // SeqCst, both: as in `install`.
        let put = words(&array)[1].compare_exchange(late, mine, Ordering::SeqCst, Ordering::SeqCst);
        assert_eq!(put, Ok(late));
        assert_eq!(array.load(1), 0);
        assert!(finish(&array, own, &entries));
        assert_eq!([0, 1].map(|index| array.load(index)), [1, 0]);
    });
}

/// A helper that began before the decision installs over a late tag of the owner. It will put the
/// tag back, or its own, unless the owner finishes the installation before reusing its record.
#[test]
fn installation_over_late_owner_tag() {
    explore_test(4, 2_800, || {
        let (array, entries, own) = begun_in(3);
        run_by_helper(&array);
        let helper = spawn_helper(&array, own);
        assert!(finish(&array, own, &entries));
        let next = array.kcas(&[Entry::new(0, 1, 2), Entry::new(2, 0, 2)]);
        assert_eq!(next, Ok(()));
        let outcome = helper.join().unwrap();
        assert!(matches!(outcome, Installed::Decided));
        assert_eq!([0, 1, 2].map(|index| array.load(index)), [2, 0, 2]);
    });
}

/// The owner leaves a word in which it found an installation, but the helper has meanwhile
/// confirmed its tag and gone on to the next word: the installation can no longer be read, and the
/// tag is there.
#[test]
fn installation_no_longer_readable() {
    explore_test(4, 17_000, || {
        let (array, entries, own) = begun_in(3);
        put(&array, own, &entries[1]);
        let helper = spawn_with(&array, move |array| {
            for index in [0, 1] {
                confirm(array, index, own, 0);
            }
        });
        assert!(finish(&array, own, &entries));
        let next = array.kcas(&[Entry::new(0, 1, 2), Entry::new(2, 0, 2)]);
        assert_eq!(next, Ok(()));
        helper.join().unwrap();
        assert_eq!([0, 1, 2].map(|index| array.load(index)), [2, 1, 2]);
    });
}

/// The same, but by the time the owner looks again another installation is in the word: one by the
/// same thread, for another operation. It must not be taken for the first one.
#[test]
fn installation_replacing_unreadable_installation() {
    explore_test(3, 37_000, || {
        let (array, entries, own) = begun_in(3);
        put(&array, own, &entries[1]);
        let helper = spawn_with(&array, move |array| {
            confirm(array, 0, own, 0);
            assert_eq!(array.load_helping(0), 1);
            assert_eq!(array.compare_exchange(0, 1, 9), Ok(1));
            let next = array.kcas_by_dcss(&[Entry::new(0, 9, 10), Entry::new(2, 0, 2)]);
            assert_eq!(next, Ok(()));
        });
        assert!(finish(&array, own, &entries));
        helper.join().unwrap();
        assert_eq!([0, 1, 2].map(|index| array.load(index)), [10, 1, 2]);
    });
}

/// The owner of a failed operation finds an installation of another operation in one of its words, and
/// leaves it there: its installer counts on it.
#[test]
fn installation_of_other_operation_is_left() {
    explore_test(3, 2_370, || {
        let (array, entries, own) = begun_with_differing_word(3);
        let other = spawn_with(&array, move |array| {
            array.kcas_by_dcss(&[Entry::new(1, 9, 5), Entry::new(2, 0, 5)])
        });
        assert!(!finish(&array, own, &entries));
        assert_eq!(other.join().unwrap(), Ok(()));
        assert_eq!([0, 1, 2].map(|index| array.load(index)), [0, 5, 5]);
    });
}

/// Before the owner has left a word, the word is released and its former value put back, and a helper
/// that comes late installs over that: the owner does not take it for a tag of its own in time.
#[test]
fn late_installation_over_value_is_undone() {
    explore_test(3, 5_500, || {
        let (array, entries, own) = begun_in(2);
        let helper = spawn_with(&array, move |array| {
            let undone = array.load_helping(1) == 1 && array.compare_exchange(1, 1, 0).is_ok();
            if undone {
                let late = as_me(|me| begin_install(words(array), me, own, 1, 0)).raw();
                let word = &words(array)[1];
                // SeqCst, both: as in `install`. It fails if the owner comes late, too.
                let _ = word.compare_exchange(0, late, Ordering::SeqCst, Ordering::SeqCst);
                assert_eq!(array.load_helping(1), 0);
            }
            undone
        });
        assert!(finish(&array, own, &entries));
        let second = u64::from(!helper.join().unwrap());
        assert_eq!([0, 1].map(|index| array.load(index)), [1, second]);
    });
}

/// A helper installs over an owner tag placed in time, and learns of the decision before it
/// confirms: the word stands for the new value throughout, as the other one does.
#[test]
fn installation_over_timely_owner_tag() {
    explore_test(5, 12_000, || {
        begin_at_second_word();
        let (array, entries, own) = begun_in(2);
        put(&array, own, &entries[1]);
        let helper = spawn_helper(&array, own);
        decide(words(&array), own, State::SucceededByOwner);
        assert_eq!([0, 1].map(|index| array.load(index)), [1, 1]);
        assert!(finish(&array, own, &entries));
        helper.join().unwrap();
        assert_eq!([0, 1].map(|index| array.load(index)), [1, 1]);
    });
}

/// A thread that meets a decided operation takes its tags out and installs nothing: helpers that
/// put installations over a tag of its owner in turn would keep meeting and undoing each other's
/// forever. (Such a loop takes more preemptions than can be explored; `two_helpers_in_any_rhythm`
/// in `kcas/testing/tests/steps/helping.rs` goes through it. Here it can be seen that nothing is
/// installed.)
#[test]
fn decided_operation_installs_nothing() {
    explore_test(4, 4_400, || {
        let (array, entries, own) = begun_in(2);
        put(&array, own, &entries[1]);
        decide(words(&array), own, State::SucceededByOwner);
        let helper = spawn_with(&array, move |array| array.compare_exchange(0, 1, 5));
        let seen = Word::from(array.load_raw(0));
        assert!(!matches!(seen, Word::Install(_)), "{seen:?}");
        assert!(finish(&array, own, &entries));
        assert_eq!(helper.join().unwrap(), Ok(1));
        assert_eq!([0, 1].map(|index| array.load(index)), [5, 1]);
    });
}

/// A helper loses a word at the last moment to an operation of a thread that has had none before.
/// Helping that operation first, it reads what the operation consists of, not what its record held
/// before.
#[test]
fn helper_too_late_for_word() {
    explore_test(3, 7_800, || {
        let (array, entries, own) = begun_in(3);
        let other = spawn_with(&array, move |array| {
            array.kcas(&[Entry::new(1, 0, 5), Entry::new(2, 0, 5)])
        });
        array.load_helping(0);
        let mine = finish(&array, own, &entries);
        let contents = match (mine, other.join().unwrap().is_ok()) {
            (true, false) => [1, 1, 0],
            (false, true) => [0, 5, 5],
            results => panic!("no order of the operations explains {results:?}"),
        };
        assert_eq!([0, 1, 2].map(|index| array.load(index)), contents);
    });
}

/// Like `two_writers_loading_each_others_word`, with an operation that a
/// helper completes, or of which the owner finds a word confirmed.
#[test]
fn two_writers_of_whom_one_is_helped() {
    for confirmed in [false, true] {
        explore_test(3, 170, move || {
            let array = Arc::new(WordArray::new(3));
            (0..3).for_each(|index| assert_eq!(array.compare_exchange(index, 0, 1), Ok(0)));
            let entries = Entries::from_iter([Entry::new(0, 1, 2), Entry::new(1, 1, 2)]);
            let own = begun(&array, &entries);
            if confirmed {
                let installed = confirm(&array, 0, own, 1);
                assert!(matches!(installed, Installed::Yes));
            }
            let other = spawn_with(&array, move |array| {
                array.compare_exchange(2, 1, 2).unwrap();
                array.load(0)
            });
            let finish = || assert!(finish(&array, own, &entries));
            if confirmed {
                finish();
            } else {
                assert_eq!(array.load_helping(0), 2);
            }
            let seen = (array.load(2), other.join().unwrap());
            assert_ne!(seen, (1, 1), "each write was missed by the other's writer");
            if !confirmed {
                finish();
            }
        });
    }
}

/// A helper confirms a word that is only compared before it decides, as it does any other. If it
/// left the word out, or only looked at it, the operation could succeed after another thread changed
/// the word and still found the operation undone: no order of the calls explains that.
#[test]
fn helper_confirms_compare_only_entry() {
    explore_test(2, 11_000, || {
        let array = Arc::new(WordArray::new(2));
        let entries = Entries::from_iter([Entry::new(0, 0, 1), Entry::new(1, 0, 0)]);
        let own = begun(&array, &entries);
        let helper = spawn_with(&array, move |array| array.load_helping(0));
        let writer = spawn_with(&array, move |array| {
            array.compare_exchange(1, 0, 9).unwrap();
            array.load(0)
        });
        let succeeded = u64::from(finish(&array, own, &entries));
        assert_eq!(helper.join().unwrap(), succeeded);
        assert_eq!(writer.join().unwrap(), succeeded);
        assert_eq!([0, 1].map(|index| array.load(index)), [succeeded, 9]);
    });
}

/// A helper finds the tag of another operation's owner in its way. That operation is decided and
/// not yet released: the word stands for its new value, which is the one expected, and does not
/// differ.
#[test]
fn decided_operation_met_by_helper() {
    explore_test(3, 2_300, || {
        let array = Arc::new(WordArray::new(3));
        let entries = Entries::from_iter([Entry::new(1, 0, 1), Entry::new(2, 0, 1)]);
        let decided = begun(&array, &entries);
        put(&array, decided, &entries[1]);
        decide(words(&array), decided, State::SucceededByOwner);
        let other = spawn_with(&array, move |array| {
            array.kcas(&[Entry::new(0, 0, 5), Entry::new(1, 1, 5)])
        });
        let seen = array.load_helping(0);
        assert_eq!(other.join().unwrap(), Ok(()));
        assert!([0, 5].contains(&seen));
        assert!(finish(&array, decided, &entries));
        assert_eq!([0, 1, 2].map(|index| array.load(index)), [5, 5, 1]);
    });
}

/// A decided operation waits for nobody: its late owner, or a late helper, finds another operation in
/// its second word, whose thread has stopped, and leaves it as it is.
#[test]
fn decided_operation_helps_no_other() {
    for (owner_is_late, at_least) in [(true, 1), (false, 45_000)] {
        explore_test(3, at_least, move || {
            let (array, entries, own) = begun_in(3);
            let finish = || assert!(finish(&array, own, &entries));
            let helper = (!owner_is_late).then(|| {
                confirm(&array, 0, own, 0);
                spawn_with(&array, |array| array.load_helping(0))
            });
            if owner_is_late {
                run_by_helper(&array);
            } else {
                finish();
                assert_eq!(array.compare_exchange(1, 1, 0), Ok(1));
            }
            let stopped = spawn_with(&array, |array| {
                let entries = Entries::from_iter([Entry::new(1, 0, 5), Entry::new(2, 0, 5)]);
                begun(array, &entries)
            });
            let stopped = Word::Owner(stopped.join().unwrap());
            if owner_is_late {
                finish();
            }
            if let Some(helper) = helper {
                assert_eq!(helper.join().unwrap(), 1);
            }
            assert_eq!(Word::from(array.load_raw(1)), stopped);
            assert_eq!([0, 1, 2].map(|index| array.load(index)), [1, 0, 0]);
        });
    }
}

/// A helper has stopped after putting an installation over a value, for an operation that has
/// succeeded: readers do not wait for it.
#[test]
fn reader_passes_late_installation() {
    explore_test(2, 1, || {
        let (array, entries, own) = begun_in(2);
        assert!(finish(&array, own, &entries));
        assert_eq!(array.compare_exchange(1, 1, 0), Ok(1));
        let late = as_me(|me| begin_install(words(&array), me, own, 1, 0));
        let word = &words(&array)[1];
        word.compare_exchange(0, late.raw(), Ordering::SeqCst, Ordering::SeqCst)
            .unwrap();
        assert_eq!(array.load(1), 0);
        assert_eq!(array.load_helping(1), 0);
    });
}

/// Lets helpers begin at the second word, to save preemptions. In the code and the proof, they confirm the first
/// before.
fn begin_at_second_word() {
    check(Checks::AnyOrder);
}

/// Completes a K-CAS of the current thread; true if it succeeded.
fn finish(array: &WordArray, own: KcasTag, entries: &[Entry]) -> bool {
    let words = words(array);
    as_me(|me| finish_own(words, me, Own::new(words, own), entries))
}

/// Confirms a word of an operation, as a helper does.
fn confirm(array: &WordArray, index: usize, own: KcasTag, expected: u64) -> Installed {
    as_me(|me| install(words(array), me, own, index, expected))
}

/// Starts a K-CAS of the current thread, up to having its first word.
fn begun(array: &WordArray, entries: &[Entry]) -> KcasTag {
    let own = as_me(|me| begin_kcas(words(array), me, entries).tag);
    put(array, own, &entries[0]);
    own
}

/// Starts a K-CAS of the current thread that is to set the first two words of a new array to 1, up
/// to having the first of them.
fn begun_in(words: usize) -> (Arc<WordArray>, Entries, KcasTag) {
    begun_on(WordArray::new(words))
}

/// The same, but word 1 is 9 instead of 0, so the operation fails unless a thread sets it to 0 in
/// time.
fn begun_with_differing_word(words: usize) -> (Arc<WordArray>, Entries, KcasTag) {
    let array = WordArray::new(words);
    array.compare_exchange(1, 0, 9).unwrap();
    begun_on(array)
}

fn begun_on(array: WordArray) -> (Arc<WordArray>, Entries, KcasTag) {
    let entries = Entries::from_iter([Entry::new(0, 0, 1), Entry::new(1, 0, 1)]);
    let own = begun(&array, &entries);
    (Arc::new(array), entries, own)
}

/// Puts the owner's tag into one more word.
fn put(array: &WordArray, own: KcasTag, entry: &Entry) {
    let words = words(array);
    let put = as_me(|me| place(words, me, Own::new(words, own), entry));
    assert!(matches!(put, Placed::Yes));
}

/// Helps the operation whose tag is in the first word to completion, and undoes its result in the
/// second: its owner does not know of that yet. (Any thread can do this. This one has a record of
/// its own for installations.)
fn run_by_helper(array: &WordArray) {
    assert_eq!(array.load_helping(0), 1);
    assert_eq!(array.compare_exchange(1, 1, 0), Ok(1));
}

/// Starts a helper that puts an installation into the second word.
fn spawn_helper(array: &Arc<WordArray>, own: KcasTag) -> JoinHandle<Installed> {
    spawn_with(array, move |array| confirm(array, 1, own, 0))
}
