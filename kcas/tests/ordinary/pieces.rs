//! Arrays that grow in pieces, and their side words.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use kcas::storage::Pieces;
use kcas::{Entry, Error, WordArray};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

const ROUNDS: u64 = if cfg!(miri) { 50 } else { 100_000 };

/// A word that has not been made yet, between one that has and a side word.
#[test]
fn kcas_index_out_of_range_changes_nothing() {
    let words = WordArray::<Pieces>::try_growing(4).unwrap();
    let entries = [0, 1_000, words.side(0)].map(|index| Entry::new(index, 0, 1));
    let refused = catch_unwind(AssertUnwindSafe(|| words.kcas(&entries)));
    let after = catch_unwind(AssertUnwindSafe(|| words.compare_exchange(0, 0, 2)));
    assert_eq!(after.ok(), Some(Ok(0)), "the first word cannot be used");
    let refused = refused.expect("an error and no panic").unwrap_err();
    let is_right =
        matches!(refused, Error::IndexOutOfRange { index, len, .. } if (index, len) == (1_000, 4));
    assert!(is_right, "{refused}");
}

/// Threads make words, several pieces of them at a time, and change each with older words and a side word.
#[test]
fn growing_array_loses_no_word_or_change() {
    let words = WordArray::<Pieces>::try_growing(4).unwrap();
    let work = |seed: u64| {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut changed = vec![0; 4 + ROUNDS as usize];
        for round in 0..ROUNDS as usize {
            // All threads come to the same words at about the same time.
            let newest = 4 + round / 32 * 32;
            words.grow_to(newest + 1).unwrap();
            let older = rng.random_range(0..newest);
            let entries = [older, newest, words.side(0)].map(|index| {
                let expected = words.load(index);
                Entry::new(index, expected, expected + 1)
            });
            if words.kcas(&entries).is_ok() {
                changed[older] += 1;
                changed[newest] += 1;
            }
        }
        changed
    };
    let changed = thread::scope(|scope| {
        let threads = [0, 1, 2, 3].map(|seed| scope.spawn(move || work(seed)));
        threads.map(|thread| thread.join().unwrap())
    });
    let mut all = 0;
    for index in 0..words.len().min(4 + ROUNDS as usize) {
        let sum: u64 = changed.iter().map(|changed| changed[index]).sum();
        assert_eq!(words.load(index), sum, "word {index}");
        all += sum;
    }
    assert_eq!(words.load(words.side(0)) * 2, all);
    assert!(all >= 2 * ROUNDS / changed.len() as u64, "{all}");
}
