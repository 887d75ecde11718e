//! An exchange that is tried once beside an operation.

use std::sync::Arc;

use kcas::steps::freeze;
use kcas::{Entry, Error, WordArray};

/// An operation is never taken for the value that it stands for, at whichever step its thread stops.
#[test]
fn exchange_raw_gives_up_on_an_operation() {
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
        let expected = if exchanged {
            Err(Error::Mismatch)
        } else {
            Ok(())
        };
        assert_eq!(frozen.thaw(), expected, "step {step}");
        assert_eq!([0, 1].map(|index| words.load(index)), left, "step {step}");
    }
    assert!(met > 0, "no step left an operation that was not decided");
}
