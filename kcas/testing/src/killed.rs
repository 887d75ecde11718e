//! Threads that are killed in the middle of a call, and arrays that allow it.
//!
//! Nothing of the call happens from the chosen access on, like in a process that is killed. The thread itself goes on
//! as the next holder of its id.

use std::cell::Cell;
use std::ops::Index;
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
use std::rc::Rc;
#[cfg(not(kcas_loom))]
use std::thread::{self, ThreadId};

use kcas::internals::{Words, array, words};
use kcas::steps::{self, Access, Event, Observer, with_observer};
use kcas::storage::Storage;
use kcas::sync::{AtomicU64, zeros};
use kcas::{Entry, WordArray, thread_id};
#[cfg(kcas_loom)]
use loom::thread::{self, ThreadId};

/// Words whose threads can be killed: as in shared memory, but with the ids and the records of the process.
#[derive(Debug)]
pub struct Mortal(Box<[AtomicU64]>);

impl Index<usize> for Mortal {
    type Output = AtomicU64;

    fn index(&self, index: usize) -> &AtomicU64 {
        &self.0[index]
    }
}

impl Words for Mortal {
    const SHARED: bool = true;

    fn has_word(&self, index: usize) -> bool {
        index < self.0.len()
    }

    fn note_damage(&self) {
        panic!("words that no other process can write are taken for damaged");
    }
}

impl Storage for Mortal {
    type Words = Mortal;

    fn words(&self) -> &Mortal {
        self
    }

    fn number(&self) -> usize {
        self.0.len()
    }

    fn has(&self, index: usize) -> bool {
        index < self.0.len()
    }

    fn has_all(&self, entries: &[Entry]) -> bool {
        entries.last().is_none_or(|last| self.has(last.index))
    }

    fn each_piece(&self, mut each: impl FnMut(&[AtomicU64])) {
        each(&self.0);
    }
}

/// Makes an array of `len` words, all zero, whose threads can be killed.
///
/// # Panics
/// When there is no memory.
pub fn mortal(len: usize) -> WordArray<Mortal> {
    array(Mortal::new(len))
}

impl Mortal {
    /// Makes `len` words, all zero.
    ///
    /// # Panics
    /// When there is no memory.
    pub fn new(len: usize) -> Mortal {
        Mortal(zeros(len).expect("there is memory"))
    }
}

/// Finishes what this thread has left unfinished when it was killed.
///
/// # Panics
/// When no id is left.
pub fn take_over(array: &WordArray<impl Storage<Words = Mortal>>) {
    thread_id::with(|me| kcas::internals::take_over(words(array), me)).expect("an id is left");
}

struct Killed;

/// Kills a thread before one of its accesses. Under loom, it sees those of other threads as well.
struct Killer {
    victim: ThreadId,
    left: Cell<u64>,
    other: Option<Rc<dyn Observer>>,
}

impl Observer for Killer {
    fn step(&self, access: Access, address: usize) {
        if let Some(other) = &self.other {
            other.step(access, address);
        }
        if thread::current().id() == self.victim {
            match self.left.get() {
                // Without a message.
                0 => resume_unwind(Box::new(Killed)),
                left => self.left.set(left - 1),
            }
        }
    }

    fn learn(&self, event: Event, by: &Location) {
        if let Some(other) = &self.other {
            other.learn(event, by);
        }
    }
}

/// Runs `action`, and kills it before its access with this number, from 0. Returns the result of the action if it has
/// no such access.
pub fn killed_before<R>(access: u64, action: impl FnOnce() -> R) -> Option<R> {
    let killer = Killer {
        victim: thread::current().id(),
        left: Cell::new(access),
        other: steps::observer(),
    };
    let run = AssertUnwindSafe(|| with_observer(Rc::new(killer), action));
    match catch_unwind(run) {
        Ok(result) => Some(result),
        Err(panic) if panic.is::<Killed>() => None,
        Err(panic) => resume_unwind(panic),
    }
}
