//! Real threads: the results they got add up to what the words say.

use std::thread;

use kcas::{Entry, Error, WordArray};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// How often each thread does its work. (Miri takes its time.)
const ROUNDS: u64 = if cfg!(miri) { 50 } else { 100_000 };

/// Every word counts the successful operations that changed it, with single exchanges and entries that only compare
/// mixed in.
#[test]
fn successes_are_counted_once() {
    const WORDS: usize = WordArray::MAX_ENTRIES;
    let words = &WordArray::new(WORDS);
    let reported = thread::scope(|scope| {
        let threads = [0, 1, 2, 3].map(|seed| scope.spawn(move || count(words, seed)));
        threads.map(|thread| thread.join().unwrap())
    });
    for index in 0..WORDS {
        let reported: u64 = reported.iter().map(|counts| counts[index]).sum();
        assert_eq!(words.load(index), reported, "word {index}");
        assert!(reported > 0);
    }

    fn count(words: &WordArray, seed: u64) -> [u64; WORDS] {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut reported = [0; WORDS];
        for _ in 0..ROUNDS {
            let [chosen, added] = [(); 2].map(|()| rng.random_range(0..1 << WORDS));
            let entries: Vec<Entry> = (0..WORDS)
                .filter(|index| chosen >> index & 1 == 1)
                .map(|index| {
                    let expected = words.load(index);
                    Entry::new(index, expected, expected + (added >> index & 1))
                })
                .collect();
            match words.kcas(&entries) {
                Ok(()) => (entries.iter()).for_each(|e| reported[e.index] += e.new - e.expected),
                Err(error) => assert!(matches!(error, Error::Mismatch { .. })),
            }
        }
        reported
    }
}
