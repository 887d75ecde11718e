//! Real threads: the results they got add up to what the words say.

use std::thread;

use kcas::{Entry, Error, WordArray};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

const THREADS: usize = 4;

/// How often each thread does its work. (Miri takes its time.)
const ROUNDS: u64 = if cfg!(miri) { 50 } else { 100_000 };

/// Accounts that pay each other by operations of two to eight words: the total never changes,
/// neither at the end nor for any reader that sees all words at one moment (a compare-only
/// operation).
#[test]
fn transfers_conserve_the_sum() {
    const ACCOUNTS: usize = 10;
    const START: u64 = 1_000;
    let words = WordArray::new(ACCOUNTS);
    for account in 0..ACCOUNTS {
        words.compare_exchange(account, 0, START).unwrap();
    }
    let payments: u64 = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS as u64)
            .map(|thread| {
                let words = &words;
                scope.spawn(move || pay(words, thread))
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).sum()
    });
    let total: u64 = (0..ACCOUNTS).map(|account| words.load(account)).sum();
    assert_eq!(total, ACCOUNTS as u64 * START);
    assert!(payments > 0);

    fn pay(words: &WordArray, seed: u64) -> u64 {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut payments = 0;
        for _ in 0..ROUNDS {
            let parties = 2 + rng.random_range(0..WordArray::MAX_ENTRIES - 1);
            let first = rng.random_range(0..ACCOUNTS);
            let mut entries: Vec<Entry> = (0..parties)
                .map(|i| {
                    let index = (first + i * 3) % ACCOUNTS;
                    let expected = words.load(index);
                    Entry::new(index, expected, expected)
                })
                .collect();
            // The first party pays one to each of the others it can afford.
            for payee in 1..parties {
                if entries[0].new > 0 && rng.random_range(0..4) > 0 {
                    entries[0].new -= 1;
                    entries[payee].new += 1;
                }
            }
            match words.kcas(&entries) {
                Ok(()) => payments += 1,
                Err(error) => assert_eq!(error, Error::Mismatch),
            }
        }
        payments
    }
}

/// Every word counts the successful operations that named it, with single exchanges mixed in.
#[test]
fn successes_are_counted_once() {
    const WORDS: usize = 4;
    let words = WordArray::new(WORDS);
    let reported: Vec<[u64; WORDS]> = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS as u64)
            .map(|thread| {
                let words = &words;
                scope.spawn(move || count(words, 100 + thread))
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    for index in 0..WORDS {
        let reported: u64 = reported.iter().map(|counts| counts[index]).sum();
        assert_eq!(words.load(index), reported, "word {index}");
    }

    fn count(words: &WordArray, seed: u64) -> [u64; WORDS] {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut reported = [0; WORDS];
        for _ in 0..ROUNDS {
            let chosen = 1 + rng.random_range(0..(1 << WORDS) - 1);
            let indices: Vec<usize> = (0..WORDS).filter(|i| chosen >> i & 1 == 1).collect();
            let entries: Vec<Entry> = indices
                .iter()
                .map(|&index| {
                    let expected = words.load(index);
                    Entry::new(index, expected, expected + 1)
                })
                .collect();
            if words.kcas(&entries).is_ok() {
                indices.iter().for_each(|&index| reported[index] += 1);
            }
        }
        reported
    }
}

/// Readers run beside a writer that always advances two words together: no reader ever sees the
/// second word behind the first.
#[test]
fn readers_never_see_half_an_operation() {
    const STEPS: u64 = 2 * ROUNDS;
    let words = WordArray::new(2);
    thread::scope(|scope| {
        let readers = [(); 2].map(|()| {
            scope.spawn(|| {
                loop {
                    let (second, first) = (words.load(1), words.load(0));
                    assert!(second <= first, "read {second}, then {first}");
                    if second == STEPS {
                        break;
                    }
                }
            })
        });
        for step in 0..STEPS {
            let entries = [0, 1].map(|index| Entry::new(index, step, step + 1));
            words.kcas(&entries).unwrap();
        }
        // Joined one by one, because ThreadSanitizer does not see what the end of a scope waits
        // for.
        for reader in readers {
            reader.join().unwrap();
        }
    });
}
