//! Steps: tests can see each access to shared memory, and stop the thread before it. `kcas/testing` has what drives
//! threads so; the harness stops them to check histories, and simulates cores.
//!
//! An [`Observer`] sees nothing without the feature `__steps`, which slows every access down. Then [`step`] does
//! nothing. (A feature, and no `--cfg` as for the model checker, since the harness asks for it in builds that people
//! run: a flag of the compiler would build all dependencies again, and features of the harness could not imply it.)
//!
//! A *step* is one access to an atomic of [`sync`](crate::sync) (a use of memory that is made once counts as
//! one), or a call of [`step`] by other code. A thread that its observer has stopped has done all steps before this
//! one, and nothing of this one.

use std::ops::Range;
use std::panic::Location;
use std::rc::Rc;

use crate::entry::Entry;
use crate::sync::AtomicU64;

/// What a step does to shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reads.
    Load,
    /// Writes, whatever was there.
    Store,
    /// Reads and writes at one moment: a compare-and-swap, whether it succeeds or fails, or another
    /// read-modify-write.
    Exchange,
    /// Known only to the other code, which called [`step`].
    Other,
}

/// What the protocol does, for an observer that checks it (`kcas/testing`).
pub enum Event<'a> {
    /// An array of these words is made (true), or is no more.
    Array(EachWord<'a>, bool),
    /// A thread with this id and status begins an operation with these entries.
    Begins(usize, &'a AtomicU64, &'a [Entry]),
    /// A thread takes over this id from one that has been killed.
    TakesOver(usize),
    /// A thread with this id and number of installations begins one, of this tag over what is there.
    Installs(usize, &'a AtomicU64, u64, u64),
    /// A store of this value.
    Store(&'a AtomicU64, u64),
    /// An operation on a single word is about to exchange it: the current value, and the new one.
    ExchangesOne(&'a AtomicU64, u64, u64),
    /// A compare-and-swap: the current value, the new one, and the result.
    Exchange(&'a AtomicU64, u64, u64, Result<u64, u64>),
}

/// Calls a function for each word of an array, in the order of their indices.
pub type EachWord<'a> = &'a dyn Fn(&mut dyn FnMut(&AtomicU64));

/// Learns what a thread does to shared memory.
pub trait Observer {
    /// Called before a step. The address is 0 for [`Access::Other`].
    fn step(&self, _: Access, _: usize) {}

    /// Called after a compare-and-swap that failed.
    fn failed(&self) {}

    /// Called when the memory at these addresses gets a name.
    fn name(&self, _: &'static str, _: Range<usize>) {}

    /// Called after an event, of which this is the place in the code.
    fn learn(&self, _: Event, _: &Location) {}
}

/// One step of the current thread: its observer sees it, if it has one.
#[inline(always)]
pub fn step() {
    access(Access::Other, 0);
}

pub use observers::*;

#[cfg(not(any(kcas_loom, feature = "__steps")))]
mod observers {
    use super::{Access, Event, Observer, Rc};

    /// A [`step`](super::step) of a known kind, at an address.
    #[inline(always)]
    pub(crate) fn access(_: Access, _: usize) {}

    /// Reports an event to an observer.
    #[inline(always)]
    pub(crate) fn report<'a>(_: impl FnOnce() -> Event<'a>) {}

    /// Names memory for an observer.
    #[inline(always)]
    pub fn name<T>(_: &'static str, _: &[T]) {}

    /// Panics, since `action` cannot run under this observer.
    pub fn with_observer<R>(_: Rc<dyn Observer>, _: impl FnOnce() -> R) -> R {
        panic!("nothing observes steps in this build: it needs the feature `__steps` of kcas")
    }
}

#[cfg(any(kcas_loom, feature = "__steps"))]
mod observers {
    use std::cell::RefCell;

    use super::{Access, Event, Location, Observer, Rc};

    std::thread_local! {
        static OBSERVER: RefCell<Option<Rc<dyn Observer>>> = const { RefCell::new(None) };
    }

    /// Returns the observer of this thread. A thread that is being torn down no longer has one. The observer is not
    /// borrowed while it acts: it may let other code run on this thread, which it observes as well.
    #[inline]
    pub fn observer() -> Option<Rc<dyn Observer>> {
        OBSERVER
            .try_with(|observer| observer.borrow().clone())
            .ok()?
    }

    /// A [`step`](super::step) of a known kind, at an address.
    #[inline]
    pub(crate) fn access(access: Access, address: usize) {
        if let Some(observer) = observer() {
            observer.step(access, address);
        }
    }

    /// Reports that the last exchange has failed.
    #[inline]
    pub(crate) fn failed() {
        if let Some(observer) = observer() {
            observer.failed();
        }
    }

    /// Reports an event.
    #[inline]
    #[track_caller]
    pub(crate) fn report<'a>(event: impl FnOnce() -> Event<'a>) {
        if let Some(observer) = observer() {
            observer.learn(event(), Location::caller());
        }
    }

    /// Names memory for the observer of this thread.
    pub fn name<T>(what: &'static str, elements: &[T]) {
        if let Some(observer) = observer() {
            let bytes = elements.as_ptr_range();
            observer.name(what, bytes.start.addr()..bytes.end.addr());
        }
    }

    /// Runs `action` under this observer. If the thread already had one, that is suspended meanwhile.
    pub fn with_observer<R>(observer: Rc<dyn Observer>, action: impl FnOnce() -> R) -> R {
        struct Restore(Option<Rc<dyn Observer>>);
        impl Drop for Restore {
            fn drop(&mut self) {
                OBSERVER.set(self.0.take());
            }
        }
        let _restore = Restore(OBSERVER.replace(Some(observer)));
        action()
    }
}
