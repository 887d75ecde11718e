//! Threads that meet an operation that was stopped: they help it, or give it up.

use std::sync::Arc;

use kcas::engines::MISMATCH;
use kcas::steps::Access;
use kcas::{Entry, WordArray, thread_id};
use kcas_testing::steps::{Frozen, freeze, freeze_where, with_hook};

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
