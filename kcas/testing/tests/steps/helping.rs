//! Threads that meet an operation that was stopped: they help it, or give it up.

use std::array;
use std::sync::Arc;

use kcas::engines::MISMATCH;
use kcas::steps::Access;
use kcas::storage::Pieces;
use kcas::{Entry, WordArray, thread_id};
use kcas_testing::steps::{Frozen, freeze, freeze_where, with_hook, within};

use crate::stalls::{KCAS, WORDS, contents, operations, run_on};

/// An operation is never taken for the value that it stands for, at whichever step its thread stops.
#[test]
fn exchange_raw_gives_up_on_operation() {
    let mut met = 0;
    for step in 0.. {
        let words = Arc::new(WordArray::new(2));
        let theirs = Arc::clone(&words);
        let operation = move || theirs.kcas(&[0, 1].map(|index| Entry::new(index, 0, 2)));
        let Ok(frozen) = freeze(step, operation) else {
            break;
        };
        let (stands_at, raw) = (words.load(0), words.load_raw(0));
        let exchanged = words.exchange_raw(0, 0, 5);
        assert_eq!(exchanged, raw == 0, "step {step}");
        met += u32::from(stands_at == 0 && raw != 0);
        let left = if exchanged { [5, 0] } else { [2, 2] };
        let expected = (!exchanged).then_some(()).ok_or(MISMATCH);
        assert_eq!(frozen.thaw(), expected, "step {step}");
        assert_eq!([0, 1].map(|index| words.load(index)), left, "step {step}");
    }
    assert!(met > 0, "no step left an operation that was not decided");
}

/// Runs `action` in a thread that has an id, up to its first exchange.
fn in_turns<R: Send + 'static>(action: impl FnOnce() -> R + Send + 'static) -> Frozen<R> {
    let is_exchange = |access: Access| access == Access::Exchange;
    let begun = freeze_where(is_exchange, 0, || {
        with_hook(|_| (), || thread_id::register().unwrap());
        action()
    });
    begun.map_err(|_| "it has no exchange").unwrap()
}

/// The owner stops after it has decided, before it takes its tag out. Two other threads that meet
/// the operation take turns, in every rhythm of a few exchanges: they do not undo each other's work
/// forever.
#[test]
fn two_helpers_in_any_rhythm() {
    const MAX_TURNS: u64 = 5;
    const ROUNDS: u32 = 20;
    let mut rhythms = 0;
    for (lead, turns) in (0..=MAX_TURNS).flat_map(|lead| {
        (1..=MAX_TURNS).flat_map(move |one| (1..=MAX_TURNS).map(move |other| (lead, [one, other])))
    }) {
        let words = Arc::new(WordArray::new(2));
        let owner = {
            let words = Arc::clone(&words);
            in_turns(move || words.kcas(&[Entry::new(0, 0, 1), Entry::new(1, 9, 1)]))
        };
        // It has one word, not the other, and has decided.
        assert!(owner.advance(3));
        assert!(words.load_raw(0) >> WordArray::VALUE_BITS == 1);
        let helpers = [(); 2].map(|()| {
            let words = Arc::clone(&words);
            in_turns(move || words.load_helping(0))
        });
        helpers[0].advance(lead);
        let mut round = 0;
        // Both, in each round.
        while helpers[1].advance(turns[1]) | helpers[0].advance(turns[0]) {
            round += 1;
            assert!(round < ROUNDS, "no end: {lead} exchanges, then {turns:?}");
        }
        assert_eq!(helpers.map(Frozen::thaw), [0, 0]);
        assert_eq!(owner.thaw(), Err(MISMATCH));
        assert_eq!([0, 1].map(|index| words.load(index)), [0, 0]);
        rhythms += 1;
    }
    println!("two helpers: {rhythms} rhythms");
}

/// A helper has taken a failed operation out of its first words, but not of the later ones, when it stops. Another thread
/// changes the second word, so the owner finds that it differs. The owner leaves no tag behind, though its record is used again.
#[test]
fn failed_operation_leaves_no_tag_behind() {
    let mut changed = 0;
    for stops in 0.. {
        let words = Arc::new(WordArray::new(6));
        let run = |words: &WordArray, entries: [(usize, u64); 4]| {
            words.kcas(&entries.map(|(index, expected)| Entry::new(index, expected, 1)))
        };
        let theirs = Arc::clone(&words);
        let owner = in_turns(move || {
            let failed = run(&theirs, [(0, 0), (1, 0), (2, 0), (3, 9)]);
            assert_eq!(
                theirs.kcas(&[4, 5].map(|index| Entry::new(index, 0, 1))),
                Ok(())
            );
            failed
        });
        // It has the first word.
        assert!(owner.advance(1));
        let theirs = Arc::clone(&words);
        let helper = in_turns(move || theirs.load_helping(0));
        if !helper.advance(stops) {
            assert!(changed > 0, "no step left the second word alone");
            return;
        }
        let is_free = words.load_raw(1) == 0;
        if is_free {
            assert_eq!(words.compare_exchange(1, 0, 5), Ok(0));
            changed += u32::from(words.load_raw(2) != 0);
        }
        assert_eq!(owner.thaw(), Err(MISMATCH));
        for (index, held) in [0, if is_free { 5 } else { 0 }, 0, 0]
            .into_iter()
            .enumerate()
        {
            let exchanged = within(KCAS, || words.compare_exchange(index, held, 7));
            assert_eq!(
                exchanged,
                Ok(held),
                "word {index}, {stops} exchanges of a helper"
            );
        }
        helper.thaw();
    }
}

/// Readers that help leave nothing of an operation, and make it succeed if it can.
#[test]
fn operation_stopped_anywhere_is_helped_to_end() {
    let mut helped = 0;
    for operation in operations() {
        for step in 0.. {
            let words = Arc::new(WordArray::new(WORDS));
            // Nothing is under way.
            assert_eq!(within(1, || words.load_helping(0)), 0);
            let Ok(frozen) = freeze(step, run_on(&words, &operation)) else {
                break;
            };
            let before = contents(&words);
            let read: [u64; WORDS] =
                array::from_fn(|index| within(KCAS, || words.load_helping(index)));
            let left: [u64; WORDS] = array::from_fn(|index| words.load_raw(index));
            assert_eq!(left, read, "{operation:?}, step {step}");
            let added = frozen.thaw();
            let explained = [before, added].contains(&read);
            assert!(explained, "{operation:?}, step {step}: {read:?}");
            assert_eq!(contents(&words), added);
            helped += u32::from(before != read);
        }
    }
    assert!(helped > 0, "no reader made an operation succeed");
}

/// A thread is stopped while it makes words, and changes them with older ones and a side word; others do
/// the same, and make more.
#[test]
fn thread_stopped_during_array_growth() {
    const ROUNDS: u64 = 3;
    fn indices(words: &WordArray<Pieces>) -> [usize; 4] {
        [1, 9, 19, words.side(0)]
    }
    fn add_one(words: &WordArray<Pieces>, len: usize) -> u64 {
        words.grow_to(len).unwrap();
        let entries = indices(words).map(|index| {
            let expected = words.load(index);
            Entry::new(index, expected, expected + 1)
        });
        u64::from(words.kcas(&entries).is_ok())
    }
    for step in 0.. {
        let words = Arc::new(WordArray::<Pieces>::try_growing(4).unwrap());
        let stopped = Arc::clone(&words);
        let Ok(frozen) = freeze(step, move || add_one(&stopped, 20)) else {
            assert!(step > 20, "{step} steps");
            println!("stopped at each of {step} steps");
            break;
        };
        let rounds = 1..=ROUNDS as usize;
        let added = rounds.map(|round| within(KCAS, || add_one(&words, 20 * round)));
        let added = added.sum::<u64>();
        assert!(added + 1 >= ROUNDS, "refused for nothing at step {step}");
        let added = added + frozen.thaw();
        assert_eq!(indices(&words).map(|index| words.load(index)), [added; 4]);
    }
}
