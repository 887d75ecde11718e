//! No thread blocks another: threads are stopped before every single atomic access of every operation,
//! for as long as the others work, and the others do not notice.
//!
//! Lock-freedom is more: running threads must not make each other repeat forever, either.
//!
//! "Do not notice" is counted in steps, not in time: a thread that waits for a stopped one goes
//! round and round and exceeds any bound.

use std::sync::Arc;

use kcas::{Entry, Error, WordArray};
use kcas_testing::steps::{freeze, within};

pub(super) const WORDS: usize = WordArray::MAX_ENTRIES;

/// How often the others do their work while a thread is stopped: each time a K-CAS over all words,
/// and an exchange of each.
const ROUNDS: u64 = 3;

/// Steps of a load while nobody moves: the word; if an installation is found there, the record,
/// what it is for, what it replaces, and its number; then, of the operation, the record, its
/// length, the indices, and the two values; the record again, and the state.
const LOAD: u64 = 1 + (1 + 3) + (1 + 1 + WORDS as u64 + 2) + (1 + 1);

/// More steps than any K-CAS takes here, even with two stopped operations to help, each over eight
/// words with a few attempts per word.
pub(super) const KCAS: u64 = 2_000;

/// An operation on words that were all 0 when it was planned.
#[derive(Clone, Debug)]
pub(super) enum Operation {
    Load(usize),
    CompareExchange(usize, u64),
    /// Adds one to each of these words.
    Kcas(&'static [usize]),
    /// The same, but the expectation of one of them is wrong.
    Mismatch(&'static [usize], usize),
    /// Adds one to the first word on condition that the others are unchanged.
    Condition(&'static [usize]),
}

use Operation::{CompareExchange, Condition, Kcas, Load, Mismatch};

impl Operation {
    /// Runs it; returns how much was added to each word.
    fn run(&self, words: &WordArray) -> [u64; WORDS] {
        let mut added = [0; WORDS];
        let entries: Vec<Entry> = match self {
            &Load(index) => {
                words.load(index);
                return added;
            }
            &CompareExchange(index, current) => {
                if words.compare_exchange(index, current, current + 1).is_ok() {
                    added[index] = 1;
                }
                return added;
            }
            Kcas(indices) => indices.iter().map(|&word| Entry::new(word, 0, 1)).collect(),
            Mismatch(indices, at) => (indices.iter())
                .map(|word| (*word, 9 * u64::from(word == at)))
                .map(|(word, expected)| Entry::new(word, expected, expected + 1))
                .collect(),
            Condition(indices) => (indices.iter().enumerate())
                .map(|(at, &index)| Entry::new(index, 0, u64::from(at == 0)))
                .collect(),
        };
        match words.kcas(&entries) {
            Ok(()) => {
                (entries.iter()).for_each(|entry| added[entry.index] = entry.new - entry.expected);
            }
            Err(error) => assert!(matches!(error, Error::Mismatch { .. })),
        }
        added
    }
}

/// Every kind of operation: with one to eight words, succeeding, failing at the first word, failing
/// at the last.
pub(super) fn operations() -> Vec<Operation> {
    vec![
        Load(0),
        CompareExchange(0, 0),
        CompareExchange(0, 9),
        Kcas(&[0, 1]),
        Kcas(&[7, 3, 0]),
        Kcas(&[0, 1, 2, 3, 4, 5, 6, 7]),
        Mismatch(&[0, 1, 2], 0),
        Mismatch(&[0, 1, 2], 2),
        Condition(&[0, 1, 2]),
        Condition(&[2, 1, 0]),
    ]
}

pub(super) fn contents(words: &WordArray) -> [u64; WORDS] {
    std::array::from_fn(|index| within(LOAD, || words.load(index)))
}

/// What the others do: they read, add one to every word `ROUNDS` times, all together and one by
/// one, and read what they wrote. Only what the `stopped` threads had begun can intervene, once for
/// each of them.
fn work(words: &WordArray, stopped: usize) {
    let mut refused = 0;
    let mut add_one = |indices: &[usize]| {
        loop {
            let before = contents(words);
            // Nobody moves.
            assert_eq!(contents(words), before, "a word changed");
            let done = match indices {
                &[index] => {
                    let (current, new) = (before[index], before[index] + 1);
                    within(KCAS, || words.compare_exchange(index, current, new)).is_ok()
                }
                _ => {
                    let add_one = |&index| Entry::new(index, before[index], before[index] + 1);
                    let entries: Vec<Entry> = indices.iter().map(add_one).collect();
                    within(KCAS, || words.kcas(&entries)).is_ok()
                }
            };
            if done {
                break;
            }
            refused += 1;
            assert!(refused <= stopped, "refused without a reason");
        }
    };
    let all: [usize; WORDS] = std::array::from_fn(|index| index);
    for _ in 0..ROUNDS {
        add_one(&all);
        for index in all {
            add_one(&[index]);
        }
    }
}

/// Everything that the stopped threads and the others added is there, exactly once.
fn accounts_balance(words: &WordArray, added: &[[u64; WORDS]]) {
    let sum = |index: usize| added.iter().map(|added| added[index]).sum::<u64>();
    let expected: [u64; WORDS] = std::array::from_fn(|index| 2 * ROUNDS + sum(index));
    assert_eq!(contents(words), expected);
}

pub(super) fn run_on(
    words: &Arc<WordArray>,
    operation: &Operation,
) -> impl FnOnce() -> [u64; WORDS] + use<> {
    let (words, operation) = (Arc::clone(words), operation.clone());
    move || operation.run(&words)
}

#[test]
fn one_thread_stopped_at_every_step() {
    let mut steps = 0;
    for operation in operations() {
        for step in 0..KCAS {
            assert!(step + 1 < KCAS, "{operation:?} has no end");
            let words = Arc::new(WordArray::new(WORDS));
            let Ok(frozen) = freeze(step, run_on(&words, &operation)) else {
                assert!(step > 0, "{operation:?} has no steps");
                println!("{operation:?}: stopped at each of {step} steps");
                steps += step;
                break;
            };
            // Stopped before or after it takes effect, but not in between.
            let seen = contents(&words);
            work(&words, 1);
            let added = frozen.thaw();
            let is_whole = seen == [0; WORDS] || seen == added;
            assert!(is_whole, "{operation:?}: {seen:?}");
            accounts_balance(&words, &[added]);
        }
    }
    println!("one thread stopped: {steps} steps, all survived");
}

/// The second operation meets the first, stopped at each of its steps, helps it, and is itself
/// stopped at each step of doing so.
#[test]
fn two_threads_stopped_at_every_pair_of_steps() {
    let pairs: &[(Operation, Operation)] = &[
        (Kcas(&[0, 1, 2]), Kcas(&[2, 1, 0])),
        (Kcas(&[0, 1]), Kcas(&[1, 2])),
        (Kcas(&[1, 2]), Kcas(&[0, 1])),
        (Mismatch(&[0, 1, 2], 2), Kcas(&[0, 1])),
        (Kcas(&[0, 1]), Mismatch(&[0, 1, 2], 2)),
        (Kcas(&[0, 1]), CompareExchange(1, 0)),
        (Condition(&[0, 1]), Condition(&[1, 0])),
    ];
    let mut count = 0;
    for (first, second) in pairs {
        let before = count;
        'first: for first_step in 0.. {
            for second_step in 0..KCAS {
                assert!(second_step + 1 < KCAS, "{second:?} has no end");
                let words = Arc::new(WordArray::new(WORDS));
                let Ok(one) = freeze(first_step, run_on(&words, first)) else {
                    // It may have taken more steps before: when other tests claim ids at the same time.
                    if second_step == 0 {
                        break 'first;
                    }
                    break;
                };
                let Ok(other) = freeze(second_step, run_on(&words, second)) else {
                    one.thaw();
                    break;
                };
                count += 1;
                work(&words, 2);
                // It may matter who goes on first.
                let added = if count % 2 == 0 {
                    [one.thaw(), other.thaw()]
                } else {
                    let other = other.thaw();
                    [one.thaw(), other]
                };
                accounts_balance(&words, &added);
            }
        }
        println!("{first:?} with {second:?}: {} pairs", count - before);
    }
    println!("two threads stopped: {count} pairs of steps, all survived");
}
