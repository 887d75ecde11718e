//! Hooks before every atomic access: a test can stop the thread there, for ever if it likes, or do
//! something else first.
//!
//! They exist only with the feature `steps`, which is for tests and for `harness check`: it slows
//! every access down. Without it, [`step`] does nothing.
//!
//! A *step* is one access to an atomic of [`sync`](crate::sync) (a use of memory that is made once counts as
//! one), or a call of [`step`] by other code. A thread stopped by its hook has done all steps before this
//! one, and nothing of this one.
//!
//! A hook can ask for the kind of [`Access`] of a step; `count` counts the steps of each kind. An `Observer` also
//! learns the address, and sees the accesses of all code that it lets run.

use crate::entry::Entry;
use crate::sync::AtomicU64;

#[cfg(any(kcas_loom, feature = "steps"))]
pub use hooks::{
    Counts, Frozen, Observer, count, freeze, freeze_where, name, observer, with_access_hook,
    with_hook, with_observer, within,
};

#[cfg(any(kcas_loom, feature = "steps"))]
pub(crate) use hooks::{access, failed, report};

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
#[doc(hidden)]
pub enum Event<'a> {
    /// An array of these words is made (true), or is no more.
    Array(EachWord<'a>, bool),
    /// A thread with this id and status begins an operation with these entries.
    Begins(usize, &'a AtomicU64, &'a [Entry]),
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
#[doc(hidden)]
pub type EachWord<'a> = &'a dyn Fn(&mut dyn FnMut(&AtomicU64));

/// One step of the current thread: runs its hook, if it has one. Does nothing without the feature
/// `steps`.
#[inline(always)]
pub fn step() {
    access(Access::Other, 0);
}

/// [`step`] of a known kind, at an address.
#[cfg(not(any(kcas_loom, feature = "steps")))]
#[inline(always)]
pub(crate) fn access(_: Access, _: usize) {}

/// Reports an event to an observer.
#[cfg(not(any(kcas_loom, feature = "steps")))]
#[inline(always)]
pub(crate) fn report<'a>(_: impl FnOnce() -> Event<'a>) {}

/// Names memory for an observer. Does nothing without the feature `steps`.
#[cfg(not(any(kcas_loom, feature = "steps")))]
#[inline(always)]
pub fn name<T>(_: &'static str, _: &[T]) {}

#[cfg(any(kcas_loom, feature = "steps"))]
mod hooks {
    use std::cell::{Cell, RefCell};
    use std::ops::Range;
    use std::panic::Location;
    use std::rc::Rc;
    use std::sync::mpsc::{self, Receiver, Sender};
    use std::thread::{self, JoinHandle};

    use super::{Access, Event};

    /// Learns what a thread does to shared memory.
    pub trait Observer {
        /// Called before a step. The address is 0 for [`Access::Other`].
        fn step(&self, _: Access, _: usize) {}

        /// Called after a compare-and-swap that failed.
        fn failed(&self) {}

        /// Called when the memory at these addresses gets a name.
        fn name(&self, _: &'static str, _: Range<usize>) {}

        /// Called after an event, of which this is the place in the code.
        #[doc(hidden)]
        fn learn(&self, _: Event, _: &Location) {}
    }

    /// An observer that numbers steps. Its hook is absent while it runs: what the hook does itself does not count as
    /// steps.
    struct Hook<F>(Cell<Option<(u64, F)>>);

    impl<F: FnMut(u64, Access)> Observer for Hook<F> {
        fn step(&self, access: Access, _: usize) {
            if let Some((step, mut run)) = self.0.take() {
                run(step, access);
                self.0.set(Some((step + 1, run)));
            }
        }
    }

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

    /// [`step`](super::step) of a known kind, at an address.
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

    /// Runs `action`, and before each of its steps `hook`, which gets the number of the step, from
    /// 0. If the thread already had a hook, it is suspended meanwhile.
    pub fn with_hook<R>(mut hook: impl FnMut(u64) + 'static, action: impl FnOnce() -> R) -> R {
        with_access_hook(move |step, _| hook(step), action)
    }

    /// [`with_hook`] for a hook that also gets the kind of the step.
    pub fn with_access_hook<R>(
        hook: impl FnMut(u64, Access) + 'static,
        action: impl FnOnce() -> R,
    ) -> R {
        with_observer(Rc::new(Hook(Cell::new(Some((0, hook))))), action)
    }

    /// Number of steps of each kind.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Counts {
        /// [`Access::Load`].
        pub loads: u64,
        /// [`Access::Store`].
        pub stores: u64,
        /// [`Access::Exchange`].
        pub exchanges: u64,
        /// [`Access::Other`].
        pub others: u64,
    }

    /// Runs `action` and counts its steps.
    pub fn count<R>(action: impl FnOnce() -> R) -> (R, Counts) {
        let counts = Rc::new(Cell::new(Counts::default()));
        let counter = Rc::clone(&counts);
        let hook = move |_, access| {
            let mut counts = counter.get();
            *match access {
                Access::Load => &mut counts.loads,
                Access::Store => &mut counts.stores,
                Access::Exchange => &mut counts.exchanges,
                Access::Other => &mut counts.others,
            } += 1;
            counter.set(counts);
        };
        let result = with_access_hook(hook, action);
        (result, counts.get())
    }

    /// Runs `action`, which must finish within `limit` steps.
    ///
    /// # Panics
    /// When it takes more: it waits for another thread, or never ends.
    pub fn within<R>(limit: u64, action: impl FnOnce() -> R) -> R {
        let check = move |step| assert!(step < limit, "not done after {limit} steps");
        with_hook(check, action)
    }

    /// A thread stopped in the middle of an action.
    #[derive(Debug)]
    pub struct Frozen<R> {
        thread: JoinHandle<R>,
        go_on: Sender<u64>,
        stops: Receiver<()>,
    }

    /// Number of steps after which a frozen thread's action is considered endless.
    const NO_END: u64 = 100_000;

    /// Runs `action` in a thread of its own and stops it before the step with this number, for as
    /// long as needed; or returns the result of the action, if it has no such step.
    ///
    /// # Panics
    /// When the action panics, or takes more than 100,000 steps, because it waits for another
    /// thread.
    pub fn freeze<R: Send + 'static>(
        step: u64,
        action: impl FnOnce() -> R + Send + 'static,
    ) -> Result<Frozen<R>, R> {
        freeze_where(|_| true, step, action)
    }

    /// [`freeze`], counting only these steps.
    ///
    /// # Panics
    /// As [`freeze`].
    pub fn freeze_where<R: Send + 'static>(
        counts: fn(Access) -> bool,
        step: u64,
        action: impl FnOnce() -> R + Send + 'static,
    ) -> Result<Frozen<R>, R> {
        let (stopped, stops) = mpsc::channel();
        let (go_on, goes_on) = mpsc::channel();
        let mut left = step;
        let hook = move |at, access| {
            assert!(at < NO_END, "not done after {NO_END} steps");
            while counts(access) && left == 0 {
                // An error means that nobody needs the thread any more: let it finish.
                let _ = stopped.send(());
                left = goes_on.recv().unwrap_or(u64::MAX);
            }
            left -= u64::from(counts(access));
        };
        let thread = thread::spawn(move || with_access_hook(hook, action));
        match stops.recv() {
            Ok(()) => Ok(Frozen {
                thread,
                go_on,
                stops,
            }),
            // The hook is gone, so the action is over.
            Err(_) => Err(join(thread)),
        }
    }

    impl<R> Frozen<R> {
        /// Lets the thread take this many more steps; false if its action ends before.
        pub fn advance(&self, steps: u64) -> bool {
            self.go_on.send(steps).is_ok() && self.stops.recv().is_ok()
        }

        /// Lets the thread finish; returns the result of the action.
        ///
        /// # Panics
        /// When the action panics.
        pub fn thaw(self) -> R {
            drop(self.go_on);
            join(self.thread)
        }
    }

    fn join<R>(thread: JoinHandle<R>) -> R {
        thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}
