//! Lock-freedom: threads are stopped before every single atomic access of every operation, for as
//! long as the others work, and the others do not notice.
//!
//! "Do not notice" is counted in steps, not in time: a thread that waits for a stopped one goes
//! round and round and exceeds any bound.

use std::sync::Arc;

use kcas::{Entry, Error, WordArray};
use kcas_testing::steps::{Frozen, freeze, within};

const WORDS: usize = WordArray::MAX_ENTRIES;

/// How often the others do their work while a thread is stopped: each time a K-CAS over all words,
/// and an exchange of each.
const ROUNDS: u64 = 3;

/// Steps of a load while nobody moves: the word; if an installation is found there, the record,
/// what it is for, what it replaces, and its number; then, of the operation, the record, its
/// length, the indices, and the two values; the record again, and the state.
const LOAD: u64 = 1 + (1 + 3) + (1 + 1 + WORDS as u64 + 2) + (1 + 1);

/// More steps than any K-CAS takes here, even with two stopped operations to help, each over eight
/// words with a few attempts per word.
const KCAS: u64 = 2_000;

/// An operation on words that were all 0 when it was planned.
#[derive(Clone, Debug)]
enum Operation {
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
fn operations() -> Vec<Operation> {
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

fn contents(words: &WordArray) -> [u64; WORDS] {
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

/// Stops threads in these operations, each before its step, while the others work. Then everything that was added is there,
/// exactly once. False if an operation has no such step.
fn is_stopped<const N: usize>(calls: [(&Operation, u64); N], in_order: bool) -> bool {
    let words = Arc::new(WordArray::new(WORDS));
    let mut stopped = Vec::new();
    for (operation, step) in calls {
        assert!(step < KCAS, "{operation:?} has no end");
        let Ok(frozen) = freeze(step, run_on(&words, operation)) else {
            stopped
                .into_iter()
                .for_each(|frozen: Frozen<_>| _ = frozen.thaw());
            return false;
        };
        stopped.push(frozen);
    }
    let seen = contents(&words);
    work(&words, N);
    // It may matter who goes on first.
    if !in_order {
        stopped.reverse();
    }
    let added: Vec<_> = stopped.into_iter().map(Frozen::thaw).collect();
    // Stopped before or after it takes effect, but not in between.
    let is_whole = N > 1 || seen == [0; WORDS] || seen == added[0];
    assert!(is_whole, "{calls:?}: {seen:?}");
    let sum = |index: usize| added.iter().map(|added| added[index]).sum::<u64>();
    let expected: [u64; WORDS] = std::array::from_fn(|index| 2 * ROUNDS + sum(index));
    assert_eq!(contents(&words), expected);
    true
}

fn run_on(words: &Arc<WordArray>, operation: &Operation) -> impl FnOnce() -> [u64; WORDS] + use<> {
    let (words, operation) = (Arc::clone(words), operation.clone());
    move || operation.run(&words)
}

#[test]
fn one_thread_stopped_at_every_step() {
    for operation in operations() {
        let is_stopped = |step: &u64| is_stopped([(&operation, *step)], true);
        let steps = (0..).take_while(is_stopped).count();
        assert!(steps > 0, "{operation:?} has no steps");
        println!("{operation:?}: stopped at each of {steps} steps");
    }
}

/// The second operation meets the first, stopped at each of its steps, helps it, and is itself
/// stopped at each step of doing so.
#[test]
fn two_threads_stopped_at_every_pair_of_steps() {
    for (first, second) in [
        (Kcas(&[0, 1, 2]), Kcas(&[2, 1, 0])),
        (Kcas(&[0, 1]), Kcas(&[1, 2])),
        (Kcas(&[1, 2]), Kcas(&[0, 1])),
        (Mismatch(&[0, 1, 2], 2), Kcas(&[0, 1])),
        (Kcas(&[0, 1]), Mismatch(&[0, 1, 2], 2)),
        (Kcas(&[0, 1]), CompareExchange(1, 0)),
        (Condition(&[0, 1]), Condition(&[1, 0])),
    ] {
        let stops = (0..).map(|first_step| {
            let is_stopped = |second_step: &u64| {
                let calls = [(&first, first_step), (&second, *second_step)];
                is_stopped(calls, (first_step + second_step).is_multiple_of(2))
            };
            (0..).take_while(is_stopped).count()
        });
        let pairs: usize = stops.take_while(|stops| *stops > 0).sum();
        println!("{first:?} with {second:?}: {pairs} pairs of steps");
    }
}
