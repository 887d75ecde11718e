//! Real threads that take turns at every access, in random order: each of their writes is an action of the proof, each of their
//! answers was true at a moment since the call began, and some call ends within a bounded number of steps.

use std::array;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::conformance::{Watched, actions, tell, unwatch, watch};
use crate::steps::{Access, with_access_hook};
use crate::{Entry, WordArray};

const THREADS: usize = 4;
const WORDS: usize = 4;

/// Steps of all threads together, unless `CONFORMANCE_STEPS` asks for more.
const STEPS: u64 = 50_000;

/// After this many steps the threads end, and others take over their ids.
const LIFE: u64 = 10_000;

/// Some call ends within this many steps, even if most threads sleep. (To help three operations of three words takes hundreds.)
const CALL: u64 = 500;

/// Whose turn it is.
struct Turns {
    state: Mutex<State>,
    changed: [Condvar; THREADS],
}

struct State {
    current: usize,
    live: Vec<usize>,
    /// Which of them take turns for now, and until when.
    awake: Range<usize>,
    until: u64,
    rng: StdRng,
    steps: u64,
    /// When a call ended last.
    ended: u64,
    /// A thread has made a write that is no action: the others need not go on, and may not be able to.
    failed: bool,
}

impl Turns {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the turn to any thread, and waits until it comes back.
    fn pass(&self, me: usize, before: Access) {
        let mut state = self.state();
        state.steps += 1;
        let (failed, since) = (state.failed, state.steps - state.ended);
        assert!(!failed, "another thread has failed");
        assert!(since < CALL, "no call has ended in {since} steps");
        let hot = before == Access::Exchange || state.rng.random_range(0..8) == 0;
        if state.steps >= state.until && hot {
            // The others sleep for a while, wherever they are; now and then all but one, and for longer than a call takes.
            let first = state.rng.random_range(0..THREADS);
            let (awake, steps) = match state.rng.random_range(0..100) {
                0..3 => (1, 2 * CALL),
                _ => (state.rng.random_range(1..=2), state.rng.random_range(1..40)),
            };
            (state.awake, state.until) = (first..first + awake, state.steps + steps);
        }
        let awake = state.awake.clone();
        let next = state.rng.random_range(awake) % state.live.len();
        state.current = state.live[next];
        if state.current != me {
            self.changed[state.current].notify_one();
            self.wait(state, me);
        }
    }

    fn wait(&self, state: MutexGuard<State>, me: usize) {
        let turn = self.changed[me].wait_while(state, |state| state.current != me);
        drop(turn.unwrap_or_else(PoisonError::into_inner));
    }
}

/// A thread that takes turns; the others go on when it ends, even by a panic.
struct Turn(Arc<Turns>, usize);

impl Drop for Turn {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.failed |= thread::panicking();
        state.live.retain(|&thread| thread != self.1);
        state.current = state.live.first().copied().unwrap_or_default();
        self.0.changed[state.current].notify_one();
    }
}

/// Runs threads that change up to three words at a time, until they have made this many steps.
fn run(seed: u64, steps: u64) -> Watched {
    let watched = Watched::default();
    watch(&watched);
    let words = Arc::new(WordArray::new(WORDS));
    let turns = Arc::new(Turns {
        state: Mutex::new(State {
            current: 0,
            live: Vec::new(),
            awake: 0..THREADS,
            until: 0,
            rng: StdRng::seed_from_u64(seed),
            steps: 0,
            ended: 0,
            failed: false,
        }),
        changed: array::from_fn(|_| Condvar::new()),
    });
    for end in (0..steps).step_by(LIFE as usize).map(|begin| begin + LIFE) {
        turns.state().live = (0..THREADS).collect();
        let threads: [_; THREADS] = array::from_fn(|me| {
            let (watched, words) = (Arc::clone(&watched), Arc::clone(&words));
            let turns = Arc::clone(&turns);
            thread::spawn(move || {
                watch(&watched);
                turns.wait(turns.state(), me);
                let _turn = Turn(Arc::clone(&turns), me);
                let mut rng = StdRng::seed_from_u64(seed ^ end ^ me as u64);
                let passing = Arc::clone(&turns);
                let hook = move |_, access| passing.pass(me, access);
                with_access_hook(hook, || {
                    while turns.state().steps < end {
                        call(&words, &watched, &mut rng);
                        let mut state = turns.state();
                        state.ended = state.steps;
                    }
                });
            })
        });
        for thread in threads {
            thread.join().expect("each write is an action of the proof");
        }
        watched.lock().unwrap().forget();
    }
    unwatch();
    watched
}

/// One call. Values are few, so that they return.
fn call(words: &WordArray, watched: &Watched, rng: &mut StdRng) {
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
                Err(now) => {
                    assert_ne!(now, single.expected);
                    (true, vec![Entry::new(first, now, now)])
                }
            }
        }),
        _ => {
            let entries: Vec<_> = (1..1 + kind % 3).map(&mut entry).chain([single]).collect();
            check(watched, || (words.kcas(&entries).is_ok(), entries));
        }
    }
}

type Load = fn(&WordArray, usize) -> u64;

fn load(words: &WordArray, watched: &Watched, index: usize, load: Load) -> u64 {
    let mut value = 0;
    check(watched, || {
        value = load(words, index);
        (true, vec![Entry::new(index, value, value)])
    });
    let mut watched = watched.lock().unwrap();
    watched.saw("reader begins");
    watched.saw("reader loads, or loads again");
    value
}

/// Checks the answer of a call: either these words changed like this, at one moment since it began, or one of them differed.
fn check(watched: &Watched, call: impl FnOnce() -> (bool, Vec<Entry>)) {
    let since = watched.lock().unwrap().moments.len() - 1;
    let (succeeded, entries) = call();
    let moments = &watched.lock().unwrap().moments[since..];
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
fn each_write_is_an_action_of_the_proof() {
    let given = |name| Some(std::env::var(name).ok()?.parse().expect("a number"));
    let steps = given("CONFORMANCE_STEPS").unwrap_or(STEPS);
    let watched = run(given("CONFORMANCE_SEED").unwrap_or(1), steps);
    tell("random steps of four threads", &watched);
    let seen = &watched.lock().unwrap().seen;
    println!("{steps} steps: {seen:#?}");
    let actions = actions();
    let unknown = seen.keys().find(|action| !actions.contains(action));
    assert_eq!(unknown, None, "the proof has no such action");
    let unseen = actions.iter().find(|action| !seen.contains_key(*action));
    assert_eq!(unseen, None, "this action of the proof was never seen");
}
