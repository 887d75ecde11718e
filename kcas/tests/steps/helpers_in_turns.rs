//! Two helpers of one operation that take turns never undo each other's work for ever.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};

use kcas::steps::{Access, with_access_hook};
use kcas::{Entry, Error, WordArray, thread_id};

/// A thread that runs for a given number of exchanges and stops before the next one.
struct InTurns<R> {
    thread: JoinHandle<R>,
    go_on: Sender<u32>,
    stops: Receiver<()>,
}

impl<R: Send + 'static> InTurns<R> {
    /// Runs `action` up to its first exchange.
    fn begin(action: impl FnOnce() -> R + Send + 'static) -> Self {
        let (stopped, stops) = mpsc::channel();
        let (go_on, goes_on) = mpsc::channel();
        let mut left = 0;
        let hook = move |_, access| {
            if access == Access::Exchange {
                while left == 0 {
                    // An error means that it should run to its end.
                    let _ = stopped.send(());
                    left = goes_on.recv().unwrap_or(u32::MAX);
                }
                left -= 1;
            }
        };
        let thread = thread::spawn(move || {
            thread_id::register().unwrap();
            with_access_hook(hook, action)
        });
        let turns = InTurns {
            thread,
            go_on,
            stops,
        };
        turns.stopped();
        turns
    }

    /// True if it has stopped again, false if it has finished.
    fn stopped(&self) -> bool {
        self.stops.recv().is_ok()
    }

    /// Lets it run for this many exchanges; false if it has finished.
    fn go_on(&self, exchanges: u32) -> bool {
        self.go_on.send(exchanges).is_ok() && self.stopped()
    }

    fn end(self) -> R {
        drop(self.go_on);
        self.thread.join().unwrap()
    }
}

/// The owner stops after it has decided, before it takes its tag out. Two other threads that meet
/// the operation take turns, in every rhythm of a few exchanges: they do not undo each other's work
/// for ever.
#[test]
fn two_helpers_in_any_rhythm() {
    const LONGEST: u32 = 5;
    const ROUNDS: u32 = 20;
    let mut rhythms = 0;
    for (lead, turns) in (0..=LONGEST).flat_map(|lead| {
        (1..=LONGEST).flat_map(move |one| (1..=LONGEST).map(move |other| (lead, [one, other])))
    }) {
        let words = Arc::new(WordArray::new(2));
        let owner = {
            let words = Arc::clone(&words);
            InTurns::begin(move || words.kcas(&[Entry::new(0, 0, 1), Entry::new(1, 9, 1)]))
        };
        assert!(
            owner.go_on(3),
            "it has one word, not the other, and has decided"
        );
        assert!(words.load_raw(0) >> WordArray::VALUE_BITS == 1);
        let helpers = [(); 2].map(|()| {
            let words = Arc::clone(&words);
            InTurns::begin(move || words.load_helping(0))
        });
        helpers[0].go_on(lead);
        let mut round = 0;
        // Both, in each round.
        while helpers[1].go_on(turns[1]) | helpers[0].go_on(turns[0]) {
            round += 1;
            assert!(
                round < ROUNDS,
                "{lead} exchanges, then {turns:?} in turn: no end"
            );
        }
        assert_eq!(helpers.map(InTurns::end), [0, 0]);
        assert_eq!(owner.end(), Err(Error::Mismatch));
        assert_eq!([0, 1].map(|index| words.load(index)), [0, 0]);
        rhythms += 1;
    }
    println!("two helpers: {rhythms} rhythms");
}
