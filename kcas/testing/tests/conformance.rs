//! Real threads that take turns at every access, in random order: each of their writes is an action of the proof, each
//! of their answers was true at a moment since the call began, and some call ends within a bounded number of steps.
//! Some threads are killed in the middle of a call.

use std::mem;
use std::sync::{Arc, Mutex};

use kcas::CompareExchangeError::Differs;
use kcas::steps::Access;
use kcas::{Entry, WordArray};
use kcas_testing::conformance::{Watched, actions};
use kcas_testing::killed::{Mortal, killed_before, mortal, take_over};
use kcas_testing::steps::{Frozen, freeze_where};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

const THREADS: usize = 4;
const WORDS: usize = 4;

/// Steps of all threads together, unless `CONFORMANCE_STEPS` asks for more. The rarest action comes eleven times in so
/// many (by `kcas/proof/actions.csv`): with fewer, it would depend on the seed whether all are seen.
const STEPS: u64 = 200_000;

/// After this many calls the threads end, and others take over their ids.
const CALLS: u64 = 400;

/// Some call ends within this many steps, even if most threads sleep. (To help three operations of three words takes
/// hundreds.)
const CALL: u64 = 500;

/// Half of the calls are killed before this many accesses, if they have as many. (Most calls have fewer than 30.) The
/// others live, or no call could wait for longer than [`CALL`].
const LIFE: u64 = 300;

/// Whether the thread that went on last has stopped before an exchange.
static AT_EXCHANGE: Mutex<bool> = Mutex::new(false);

/// Counts each step, and notes what it is.
fn noted(access: Access) -> bool {
    *AT_EXCHANGE.lock().unwrap() = access == Access::Exchange;
    true
}

/// Runs threads that change up to three words at a time, until they have made this many steps.
fn run(seed: u64, steps: u64) -> Watched {
    let watched = Watched::default();
    let words = watched.watch(|| Arc::new(mortal(WORDS)));
    let mut rng = StdRng::seed_from_u64(seed);
    let mut taken = 0;
    while taken < steps {
        let ended = Arc::new(Mutex::new(0));
        let threads = (0..THREADS).map(|_| {
            let (watched, words) = (watched.clone(), Arc::clone(&words));
            let (ended, mut rng) = (Arc::clone(&ended), StdRng::seed_from_u64(rng.random()));
            let watching = watched.clone();
            let calls = move || {
                while *ended.lock().unwrap() < CALLS {
                    let life = draw_life(&mut rng);
                    let mut ended_call = killed_before(life, || call(&words, &watched, &mut rng));
                    while ended_call.is_none() {
                        ended_call = killed_before(draw_life(&mut rng), || take_over(&words));
                    }
                    *ended.lock().unwrap() += 1;
                }
            };
            freeze_where(noted, 0, move || watching.watch(calls)).expect("a call has steps")
        });
        taken += take_turns(threads.collect(), &ended, &mut rng);
        watched.lock().forget();
    }
    watched
}

/// Returns the number of accesses before which a call is killed.
fn draw_life(rng: &mut StdRng) -> u64 {
    match rng.random_range(0..2 * LIFE) {
        life @ 0..LIFE => life,
        _ => u64::MAX,
    }
}

/// Lets the threads go on, a step at a time, until all are done; `ended` counts calls. Returns the number of steps.
fn take_turns(mut threads: Vec<Frozen<()>>, ended: &Mutex<u64>, rng: &mut StdRng) -> u64 {
    let (mut steps, mut since, mut seen) = (0, 0, 0);
    let (mut awake, mut until) = (0..THREADS, 0);
    while !threads.is_empty() {
        let hot = *AT_EXCHANGE.lock().unwrap() || rng.random_range(0..8) == 0;
        if steps >= until && hot {
            // The others sleep for a while, wherever they are; now and then all but one, and for longer than a call
            // takes.
            let first = rng.random_range(0..THREADS);
            let (number, length) = match rng.random_range(0..100) {
                0..3 => (1, 2 * CALL),
                _ => (rng.random_range(1..=2), rng.random_range(1..40)),
            };
            (awake, until) = (first..first + number, steps + length);
        }
        let next = rng.random_range(awake.clone()) % threads.len();
        if !threads[next].advance(1) {
            threads.swap_remove(next).thaw();
        }
        (steps, since) = (steps + 1, since + 1);
        let ended = *ended.lock().unwrap();
        if mem::replace(&mut seen, ended) < ended {
            since = 0;
        }
        assert!(since < CALL, "no call has ended in {since} steps");
    }
    steps
}

/// One call. Values are few, so that they return.
fn call(words: &WordArray<Mortal>, watched: &Watched, rng: &mut StdRng) {
    let kind = rng.random_range(0..8);
    let first = rng.random_range(0..WORDS);
    let mut entry = |at| {
        let index = (first + at) % WORDS;
        let expected = match rng.random_range(0..8) {
            0 => rng.random_range(0..2),
            _ => load(words, watched, index, WordArray::load),
        };
        Entry::new(index, expected, rng.random_range(0..2))
    };
    let single = entry(0);
    match kind {
        0 => drop(load(words, watched, first, WordArray::load_helping)),
        1 => check(watched, || {
            match words.compare_exchange(first, single.expected, single.new) {
                Ok(_) => (true, vec![single]),
                Err(Differs(now)) => {
                    assert_ne!(now, single.expected);
                    (true, vec![Entry::new(first, now, now)])
                }
                Err(error) => panic!("{error}"),
            }
        }),
        _ => {
            let entries: Vec<_> = (1..1 + kind % 3).map(&mut entry).chain([single]).collect();
            check(watched, || (words.kcas(&entries).is_ok(), entries));
        }
    }
}

type Load = fn(&WordArray<Mortal>, usize) -> u64;

fn load(words: &WordArray<Mortal>, watched: &Watched, index: usize, load: Load) -> u64 {
    let mut value = 0;
    check(watched, || {
        value = load(words, index);
        (true, vec![Entry::new(index, value, value)])
    });
    let mut watched = watched.lock();
    watched.saw("reader begins");
    watched.saw("reader loads, or loads again");
    value
}

/// Checks the answer of a call: either these words changed like this, at one moment since it began, or one of them
/// differed.
fn check(watched: &Watched, call: impl FnOnce() -> (bool, Vec<Entry>)) {
    let since = watched.lock().moments.len() - 1;
    let (succeeded, entries) = call();
    let moments = &watched.lock().moments[since..];
    let holds = |moment: &Vec<u64>, value: fn(&Entry) -> u64| {
        let mut entries = entries.iter();
        entries.all(|entry| moment[entry.index] == value(entry))
    };
    let right = (0..moments.len()).any(|at| {
        let as_expected = holds(&moments[at], |entry| entry.expected);
        let mut then = moments[at..].iter().take(2);
        as_expected == succeeded
            && (!succeeded || then.any(|moment| holds(moment, |entry| entry.new)))
    });
    assert!(right, "{entries:?}: {succeeded} at none of {moments:?}");
}

#[test]
fn each_write_is_proof_action() {
    let given = |name| Some(std::env::var(name).ok()?.parse().expect("a number"));
    let steps = given("CONFORMANCE_STEPS").unwrap_or(STEPS);
    let watched = run(given("CONFORMANCE_SEED").unwrap_or(1), steps);
    watched.tell("random steps of four threads");
    let seen = &watched.lock().seen;
    println!("{steps} steps: {seen:#?}");
    let actions = actions();
    let unknown = seen.keys().find(|action| !actions.contains(action));
    assert_eq!(unknown, None, "the proof has no such action");
    let unseen = actions.iter().find(|action| !seen.contains_key(*action));
    assert_eq!(unseen, None, "this action of the proof was never seen");
}
