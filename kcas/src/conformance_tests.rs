//! Real threads that take turns at every access, in random order: each of their writes is an action of the proof.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::conformance::{Watch, unwatch, watch};
use crate::steps::with_hook;
use crate::{Entry, WordArray};

const THREADS: usize = 4;
const WORDS: usize = 5;

/// Steps of all threads together, unless `CONFORMANCE_STEPS` asks for more.
const STEPS: u64 = 50_000;

/// Whose turn it is.
struct Turns {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    current: usize,
    live: Vec<usize>,
    /// Which of them take turns for now.
    awake: Range<usize>,
    rng: StdRng,
    steps: u64,
    /// A thread has made a write that is no action: the others need not go on, and may not be able to.
    failed: bool,
}

impl Turns {
    /// Gives the turn to any thread, and waits until it comes back.
    fn pass(&self, me: usize) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.steps += 1;
        let failed = state.failed;
        assert!(!failed, "another thread has failed");
        if state.steps % 40 == 0 {
            // The others sleep for a while, wherever they are.
            let first = state.rng.random_range(0..THREADS);
            state.awake = first..first + state.rng.random_range(1..3);
        }
        let awake = state.awake.clone();
        let next = state.rng.random_range(awake) % state.live.len();
        state.current = state.live[next];
        if state.current != me {
            self.changed.notify_all();
            drop(
                self.changed
                    .wait_while(state, |state| state.current != me)
                    .unwrap(),
            );
        }
    }

    fn wait_for_the_first(&self, me: usize) {
        drop(
            self.changed
                .wait_while(self.state.lock().unwrap(), |state| state.current != me)
                .unwrap(),
        );
    }
}

/// A thread that takes turns; the others go on when it ends, even by a panic.
struct Turn(Arc<Turns>, usize);

impl Drop for Turn {
    fn drop(&mut self) {
        let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.failed |= thread::panicking();
        state.live.retain(|&thread| thread != self.1);
        state.current = state.live.first().copied().unwrap_or_default();
        self.0.changed.notify_all();
    }
}

/// Runs threads that change up to three words at a time, until they have made so many steps. Returns how often each action was
/// seen.
fn run(seed: u64, steps: u64) -> HashMap<&'static str, u64> {
    let watched = Arc::new(Mutex::new(Watch::default()));
    watch(Arc::clone(&watched));
    let words = Arc::new(WordArray::new(WORDS));
    let turns = Arc::new(Turns {
        state: Mutex::new(State {
            current: 0,
            live: (0..THREADS).collect(),
            awake: 0..THREADS,
            rng: StdRng::seed_from_u64(seed),
            steps: 0,
            failed: false,
        }),
        changed: Condvar::new(),
    });
    let threads = [0, 1, 2, 3].map(|me| {
        let (watched, words, turns) =
            (Arc::clone(&watched), Arc::clone(&words), Arc::clone(&turns));
        thread::spawn(move || {
            watch(watched);
            turns.wait_for_the_first(me);
            let _turn = Turn(Arc::clone(&turns), me);
            let mut rng = StdRng::seed_from_u64(seed ^ me as u64);
            let passing = Arc::clone(&turns);
            with_hook(
                move |_| passing.pass(me),
                || {
                    while turns.state.lock().unwrap().steps < steps {
                        work(&words, &mut rng);
                    }
                },
            );
        })
    });
    for thread in threads {
        thread.join().expect("each write is an action of the proof");
    }
    drop(words);
    unwatch();
    Arc::try_unwrap(watched)
        .expect("no thread is left")
        .into_inner()
        .unwrap()
        .seen
}

/// One operation. Values are few, so that they return.
fn work(words: &WordArray, rng: &mut StdRng) {
    let first = rng.random_range(0..WORDS);
    let entries: Vec<_> = (0..rng.random_range(1..=3))
        .map(|at| {
            let index = (first + at) % WORDS;
            let expected = match rng.random_range(0..8) {
                0 => rng.random_range(0..2),
                _ => words.load(index),
            };
            Entry {
                index,
                expected,
                new: rng.random_range(0..2),
            }
        })
        .collect();
    let _ = words.kcas(&entries);
}

/// The actions that must be seen, if the schedule is long enough.
const ACTIONS: [&str; 14] = [
    "exchange one word",
    "place the owner's tag",
    "owner decides for success",
    "decide for failure",
    "give up at the first word",
    "install over the owner tag",
    "install over the value",
    "finish: confirm",
    "finish: put back",
    "helper decides for success",
    "release the confirmed tag",
    "release the owner's tag",
    "withdraw: end an installation",
    "reuse the record",
];

#[test]
fn each_write_is_an_action_of_the_proof() {
    let given = std::env::var("CONFORMANCE_STEPS").ok();
    let steps = given.map_or(STEPS, |steps| steps.parse().expect("a number of steps"));
    let seen = run(1, steps);
    println!("{steps} steps: {seen:#?}");
    let proof = include_str!("../proof/kcas.py");
    for action in ACTIONS {
        assert!(
            proof.contains(&format!("\"{action}\"")),
            "{action} is no action of the proof"
        );
        assert!(seen.contains_key(action), "{action} was never seen");
    }
}
