//! Readers that help: what they read when an operation was stopped at any of its steps, and what
//! they leave behind.

use std::sync::Arc;

use kcas::steps::{freeze, within};
use kcas::{Entry, WordArray};

/// The greatest value of a word.
const GREATEST: u64 = (1 << WordArray::VALUE_BITS) - 1;

/// More steps than it takes to help an operation on three words.
const HELP: u64 = 100;

fn entry(index: usize, expected: u64) -> Entry {
    Entry::new(index, expected, expected + 1)
}

/// Stops an operation at every step. Returns how often a reader met it when it had been stopped
/// before it was decided.
fn helped(entries: [Entry; 3], outcome: bool) -> usize {
    let mut helped = 0;
    for step in 0.. {
        let words = Arc::new(WordArray::new(3));
        let run = {
            let words = Arc::clone(&words);
            move || words.kcas(&entries).is_ok()
        };
        let Ok(frozen) = freeze(step, run) else { break };
        for index in [2, 1, 0] {
            let met = words.load_raw(index) > GREATEST;
            let undecided = words.load(index) == 0;
            let read = within(HELP, || words.load_helping(index));
            assert_eq!(
                words.load_raw(index),
                read,
                "nothing is left of the operation"
            );
            assert_eq!(words.load(index), read);
            helped += usize::from(met && undecided && read == 1);
        }
        assert_eq!(frozen.thaw(), outcome, "step {step}");
        let contents = [0, 1, 2].map(|index| words.load_helping(index));
        assert_eq!(contents, [u64::from(outcome); 3], "step {step}");
    }
    helped
}

#[test]
fn an_operation_is_helped_to_its_end_wherever_it_was_stopped() {
    let succeeding = helped([entry(0, 0), entry(1, 0), entry(2, 0)], true);
    assert!(succeeding > 0, "readers met it and made it succeed");
    assert_eq!(helped([entry(0, 0), entry(1, 0), entry(2, 9)], false), 0);
}

#[test]
fn where_nothing_is_under_way_it_is_one_load() {
    let words = WordArray::from_values(vec![5]);
    assert_eq!(within(1, || words.load_helping(0)), 5);
}
