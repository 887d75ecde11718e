//! Lock-freedom: threads are stopped before every single atomic access of every operation, for as
//! long as the others work, and the others do not notice.
//!
//! "Do not notice" is counted in steps, not in time: a thread that waits for a stopped one goes
//! round and round and exceeds any bound.

use std::sync::Arc;

use kcas::steps::{freeze, within};
use kcas::{Entry, Error, Pieces, WordArray};

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
    /// Adds one to each of these words; 9 stands for a wrong expectation.
    Kcas(&'static [(usize, u64)]),
    /// Adds one to the first word on condition that the others are unchanged.
    Condition(&'static [usize]),
}

use Operation::{CompareExchange, Condition, Kcas, Load};

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
            Kcas(entries) => (entries.iter())
                .map(|&(index, expected)| Entry::new(index, expected, expected + 1))
                .collect(),
            Condition(indices) => (indices.iter().enumerate())
                .map(|(at, &index)| Entry::new(index, 0, u64::from(at == 0)))
                .collect(),
        };
        match words.kcas(&entries) {
            Ok(()) => (entries.iter()).for_each(|of| added[of.index] = of.new - of.expected),
            Err(error) => assert_eq!(error, Error::Mismatch),
        }
        added
    }
}

const ALL: &[(usize, u64)] = &[
    (0, 0),
    (1, 0),
    (2, 0),
    (3, 0),
    (4, 0),
    (5, 0),
    (6, 0),
    (7, 0),
];

/// Every kind of operation: with one to eight words, succeeding, failing at the first word, failing
/// at the last.
fn operations() -> Vec<Operation> {
    vec![
        Load(0),
        CompareExchange(0, 0),
        CompareExchange(0, 9),
        Kcas(&[(0, 0), (1, 0)]),
        Kcas(&[(7, 0), (3, 0), (0, 0)]),
        Kcas(ALL),
        Kcas(&[(0, 9), (1, 0), (2, 0)]),
        Kcas(&[(0, 0), (1, 0), (2, 9)]),
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

/// Everything that the stopped threads and the others added is there, exactly once.
fn accounts_balance(words: &WordArray, added: &[[u64; WORDS]]) {
    let sum = |index: usize| added.iter().map(|added| added[index]).sum::<u64>();
    let expected: [u64; WORDS] = std::array::from_fn(|index| 2 * ROUNDS + sum(index));
    assert_eq!(contents(words), expected);
}

fn run_on(words: &Arc<WordArray>, operation: &Operation) -> impl FnOnce() -> [u64; WORDS] + use<> {
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
        (
            Kcas(&[(0, 0), (1, 0), (2, 0)]),
            Kcas(&[(2, 0), (1, 0), (0, 0)]),
        ),
        (Kcas(&[(0, 0), (1, 0)]), Kcas(&[(1, 0), (2, 0)])),
        (Kcas(&[(1, 0), (2, 0)]), Kcas(&[(0, 0), (1, 0)])),
        (Kcas(&[(0, 0), (1, 0), (2, 9)]), Kcas(&[(0, 0), (1, 0)])),
        (Kcas(&[(0, 0), (1, 0)]), Kcas(&[(0, 0), (1, 0), (2, 9)])),
        (Kcas(&[(0, 0), (1, 0)]), CompareExchange(1, 0)),
        (Condition(&[0, 1]), Condition(&[1, 0])),
    ];
    let mut count = 0;
    for (first, second) in pairs {
        let before = count;
        'pair: for first_step in 0.. {
            for second_step in 0..KCAS {
                assert!(second_step + 1 < KCAS, "{second:?} has no end");
                let words = Arc::new(WordArray::new(WORDS));
                let Ok(one) = freeze(first_step, run_on(&words, first)) else {
                    assert_eq!(second_step, 0, "alone, it does the same each time");
                    break 'pair;
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

/// Readers that help leave nothing of an operation, and make it succeed if it can.
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
                std::array::from_fn(|index| within(KCAS, || words.load_helping(index)));
            let left: [u64; WORDS] = std::array::from_fn(|index| words.load_raw(index));
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

/// A thread is stopped while it makes words of an array that grows, and changes them with older ones and a side word; others do
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
