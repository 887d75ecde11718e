//! Threads that are stopped while an array grows.

use std::sync::Arc;

use kcas::steps::{freeze, within};
use kcas::{Entry, Pieces, WordArray};

use crate::stalls::KCAS;

const ROUNDS: u64 = 3;

/// A thread is stopped while it makes words, and changes them with older ones and a side word; others do
/// the same, and make more.
#[test]
fn a_thread_stopped_while_the_array_grows() {
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
