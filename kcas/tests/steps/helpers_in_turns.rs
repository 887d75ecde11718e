//! Two helpers of one operation that take turns never undo each other's work for ever.

use std::sync::Arc;

use kcas::steps::{Access, Frozen, freeze_where, with_hook};
use kcas::{Entry, Error, WordArray, thread_id};

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
/// for ever.
#[test]
fn two_helpers_in_any_rhythm() {
    const LONGEST: u64 = 5;
    const ROUNDS: u32 = 20;
    let mut rhythms = 0;
    for (lead, turns) in (0..=LONGEST).flat_map(|lead| {
        (1..=LONGEST).flat_map(move |one| (1..=LONGEST).map(move |other| (lead, [one, other])))
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
        assert_eq!(owner.thaw(), Err(Error::Mismatch));
        assert_eq!([0, 1].map(|index| words.load(index)), [0, 0]);
        rhythms += 1;
    }
    println!("two helpers: {rhythms} rhythms");
}
