//! Readers that help, when an operation was stopped at any of its steps.

use std::array;
use std::sync::Arc;

use kcas::WordArray;
use kcas::steps::{freeze, within};

use crate::stalls::{KCAS, WORDS, contents, operations, run_on};

/// They leave nothing of it, and make it succeed if it can.
#[test]
fn an_operation_is_helped_to_its_end_wherever_it_was_stopped() {
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
