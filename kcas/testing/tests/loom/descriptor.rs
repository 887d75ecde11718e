//! Models of `kcas/src/descriptor.rs`: a record is read while its owner reuses it, and passes from thread to thread
//! with an [id](kcas::thread_id).

use std::collections::BTreeSet;
use std::sync::Arc;

use kcas::internals::{KcasTag, State, begin_install, begin_kcas, decide, finish_own, place};
use kcas::internals::{read_entry, read_install, read_kcas, state, words};
use kcas::sync::{AtomicU64, Ordering};
use kcas::thread_id::{self, MAX_THREADS, SpareId, ThreadId};
use kcas::{Entry, WordArray};
use kcas_testing::conformance::{Checks, check};
use kcas_testing::model::{explore_test, spawn, spawn_with};

use crate::as_me;

/// The records are those of the process, whatever the words are.
const ANY: &[AtomicU64] = &[];

/// A reader gets what the owner wrote for an operation, whole, or nothing. Each field of the next
/// operation differs, so that none can pass for the first one's.
#[test]
fn operation_is_read_whole_or_not() {
    let operation = Entry::new(0, 1, 2);
    let readings: [fn(KcasTag) -> Option<bool>; 2] = [
        |tag| Some(read_kcas(ANY, tag)?.0.as_slice() == [Entry::new(0, 1, 2)]),
        |tag| Some([1, 2].contains(&read_entry(ANY, tag, 0, State::confirmed)?)),
    ];
    for is_right in readings {
        explore_test(3, 3_000, move || {
            // It is decided though no word has its tag: not watched.
            check(Checks::None);
            let tag = begun(&[operation]);
            let reader = spawn(move || is_right(tag));
            decide(ANY, tag, State::SucceededByOwner);
            begun(&[Entry::new(2, 3, 4), Entry::new(3, 5, 6)]);
            let read = reader.join().unwrap();
            assert_ne!(read, Some(false), "two operations were mixed");
        });
    }
}

/// The same for an installation.
#[test]
fn installation_is_read_whole_or_not() {
    explore_test(None, 1_900, || {
        let target = begun(&[Entry::new(0, 1, 2)]);
        let tag = as_me(|me| begin_install(ANY, me, target, 0, 1));
        let reader = spawn(move || read_install(ANY, tag));
        let next = begun(&[Entry::new(0, 3, 4)]);
        as_me(|me| begin_install(ANY, me, next, 0, 3));
        let found = reader.join().unwrap();
        assert!(found.is_none() || found == Some((target, 1)), "{found:?}");
    });
}

/// A thread that finds an operation over finds its tag gone from the word, at the first look. (With
/// a relaxed load: loom does not let a `SeqCst` one return an older value.)
#[test]
fn finished_operation_has_left_its_words() {
    explore_test(4, 950, || {
        let array = Arc::new(WordArray::new(2));
        let entries = [Entry::new(0, 0, 1), Entry::new(1, 0, 1)];
        let own = as_me(|me| begin_kcas(words(&array), me, &entries));
        let tag = own.tag;
        let reader = spawn_with(&array, move |array| {
            let over = state(ANY, tag).is_none();
            let held = words(array)[0].load(Ordering::Relaxed) == tag.owner_raw();
            assert!(!(over && held), "an operation that is over owns a word");
        });
        as_me(|me| {
            place(words(&array), me, own, &entries[0]);
            assert!(finish_own(words(&array), me, own, &entries));
        });
        begun(&entries);
        reader.join().unwrap();
    });
}

/// The same for an installation.
#[test]
fn finished_installation_has_left_its_word() {
    explore_test(4, 3_600, || {
        let array = Arc::new(WordArray::new(1));
        let target = begun(&[Entry::new(0, 0, 1)]);
        let tag = as_me(|me| begin_install(ANY, me, target, 0, 0));
        let exchange = |current, new| {
            words(&array)[0].compare_exchange(current, new, Ordering::SeqCst, Ordering::SeqCst)
        };
        let reader = spawn_with(&array, move |array| {
            let over = read_install(ANY, tag).is_none();
            let held = words(array)[0].load(Ordering::Relaxed) == tag.raw();
            assert!(!(over && held), "an installation that is over is there");
        });
        exchange(0, tag.raw()).unwrap();
        exchange(tag.raw(), target.raw()).unwrap();
        as_me(|me| begin_install(ANY, me, target, 0, 0));
        reader.join().unwrap();
    });
}

/// A thread gives its id back, and another one, which nothing else synchronises with it, claims it:
/// it continues the sequence numbers where the first one left off. If they started afresh, two
/// operations or two installations would get the same tag.
#[test]
fn id_handover_includes_its_data() {
    explore_test(4, 10_000, || {
        let begin = || {
            let entry = Entry::new(0, 0, 1);
            let begin = |id: &ThreadId| {
                let tag = begin_kcas(ANY, id, &[entry]).tag;
                (tag, begin_install(ANY, id, tag, 0, 0))
            };
            SpareId::claim().unwrap().lend(|| as_me(begin))
        };
        let other = spawn(begin);
        let mine = begin();
        let others = other.join().unwrap();
        assert_ne!(mine.0, others.0, "two operations have one tag");
        assert_ne!(mine.1, others.1, "two installations have one tag");
    });
}

/// All ids but one are held, so two threads share the last one, each for one call. A call claims it with whatever is
/// kept under it, or finds it held. No thread uses it after its call.
#[test]
fn id_for_one_call_changes_hands() {
    explore_test(3, 5_000, || {
        let held = (2..MAX_THREADS).map(|_| SpareId::claim().unwrap());
        let held: Vec<_> = held.collect();
        let call = || thread_id::with(|id| begin_kcas(ANY, id, &[Entry::new(0, 0, 1)]).tag.raw());
        let calls = move || [call().ok(), call().ok()];
        let threads = [(); 2].map(|()| spawn(calls));
        let tags = threads.map(|thread| thread.join().unwrap());
        let tags: Vec<_> = tags.into_iter().flatten().flatten().collect();
        let different: BTreeSet<_> = tags.iter().collect();
        assert_eq!(different.len(), tags.len(), "two operations have one tag");
        assert!(!tags.is_empty(), "each found it held by the other");
        assert!(spawn(call).join().unwrap().is_ok(), "nobody gave it back");
        drop(held);
    });
}

/// All ids are held when one is given back: a thread that is promised an id finds it at once,
/// rather than searching for a bit that it cannot see yet.
#[test]
fn promised_id_is_found() {
    explore_test(None, 10, || {
        let held = (1..MAX_THREADS).map(|_| SpareId::claim().unwrap());
        let mut held: Vec<_> = held.collect();
        let claimer = spawn(|| drop(SpareId::claim()));
        held.remove(0);
        // In time or not, it gets a clear answer.
        claimer.join().unwrap();
    });
}

fn begun(entries: &[Entry]) -> KcasTag {
    as_me(|me| begin_kcas(ANY, me, entries).tag)
}
