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

#[cfg(all(feature = "steps", not(kcas_loom)))]
pub use hooks::{
    Counts, Frozen, Observer, count, freeze, freeze_where, name, with_access_hook, with_hook,
    with_observer, within,
};

#[cfg(all(feature = "steps", not(kcas_loom)))]
pub(crate) use hooks::{access, failed};

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

/// One step of the current thread: runs its hook, if it has one. Does nothing without the feature
/// `steps`.
#[inline(always)]
pub fn step() {
    access(Access::Other, 0);
}

/// [`step`] of a known kind, at an address.
#[cfg(not(all(feature = "steps", not(kcas_loom))))]
#[inline(always)]
pub(crate) fn access(_: Access, _: usize) {}

/// Names memory for an observer. Does nothing without the feature `steps`.
#[cfg(not(all(feature = "steps", not(kcas_loom))))]
#[inline(always)]
pub fn name<T>(_: &'static str, _: &[T]) {}

#[cfg(all(feature = "steps", not(kcas_loom)))]
mod hooks {
    use std::cell::{Cell, RefCell};
    use std::ops::Range;
    use std::rc::Rc;
    use std::sync::mpsc::{self, Receiver, Sender};
    use std::thread::{self, JoinHandle};

    use super::Access;

    /// Learns what a thread does to shared memory.
    pub trait Observer {
        /// Called before a step. The address is 0 for [`Access::Other`].
        fn step(&self, access: Access, address: usize);

        /// Called after a compare-and-swap that failed.
        fn failed(&self) {}

        /// Called when the memory at these addresses gets a name.
        fn name(&self, _: &'static str, _: Range<usize>) {}
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
    fn observer() -> Option<Rc<dyn Observer>> {
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

// They step through the whole crate; what is tested depends on none of it.
#[cfg(all(test, feature = "steps", not(kcas_loom)))]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::{Access, Counts, Observer, count, step, with_hook, with_observer};
    use crate::sync::{AtomicU64, OnFirstUse, Ordering};
    use crate::thread_id::{self, SpareId, ThreadId};
    use crate::{Entry, Error, WordArray};

    /// Accesses with their addresses; `None` for each exchange that failed.
    #[derive(Default)]
    struct Recorded(RefCell<Vec<Option<(Access, usize)>>>);

    impl Observer for Recorded {
        fn step(&self, access: Access, address: usize) {
            self.0.borrow_mut().push(Some((access, address)));
        }

        fn failed(&self) {
            self.0.borrow_mut().push(None);
        }
    }

    #[test]
    fn observer_learns_addresses_and_failures() {
        let word = AtomicU64::new(5);
        let recorded = Rc::new(Recorded::default());
        let (success, failure) = (Ordering::SeqCst, Ordering::Relaxed);
        word.store(6, Ordering::Relaxed);
        with_observer(Rc::clone(&recorded) as Rc<dyn Observer>, || {
            assert_eq!(word.load(Ordering::Relaxed), 6);
            word.store(7, Ordering::Relaxed);
            let _ = word.compare_exchange(7, 8, success, failure);
            let _ = word.compare_exchange(7, 8, success, failure);
        });
        word.load(Ordering::Relaxed);
        let at = |access| Some((access, std::ptr::from_ref(&word).addr()));
        let [load, store, exchange] = [Access::Load, Access::Store, Access::Exchange].map(at);
        assert_eq!(
            *recorded.0.borrow(),
            [load, store, exchange, exchange, None]
        );
    }

    #[test]
    fn spare_id_replaces_own_while_lent() {
        let spare = [(); 2].map(|()| SpareId::claim().unwrap());
        let held = || thread_id::with(ThreadId::index).unwrap();
        let own = held();
        let [one, two] = &spare;
        let lent = [one.lend(held), two.lend(|| one.lend(held)), two.lend(held)];
        assert!(lent[0] == lent[1] && lent[0] != lent[2] && !lent.contains(&own));
        assert_eq!(held(), own);
    }

    fn steps_of(action: impl FnOnce()) -> u64 {
        let ((), counts) = count(action);
        counts.loads + counts.stores + counts.exchanges + counts.others
    }

    #[test]
    fn every_access_is_a_step() {
        let words = WordArray::new(1);
        assert_eq!(steps_of(|| assert_eq!(words.load(0), 0)), 1);
        let exchange = || assert_eq!(words.compare_exchange(0, 0, 5), Ok(0));
        assert_eq!(steps_of(exchange), 1);
        assert_eq!(words.load(0), 5, "and has its effect");
    }

    #[test]
    fn steps_are_counted_by_kind() {
        let atomic = AtomicU64::new(0);
        let made = OnFirstUse::new(|(): ()| 1, ());
        let ((), counts) = count(|| {
            atomic.load(Ordering::SeqCst);
            made.get();
            made.get_or_make();
            (0..2).for_each(|value| atomic.store(value, Ordering::SeqCst));
            atomic.fetch_and(0, Ordering::SeqCst);
            atomic.fetch_sub(1, Ordering::SeqCst);
            for current in [0, u64::MAX, 7, 8] {
                let (success, failure) = (Ordering::SeqCst, Ordering::Relaxed);
                let _ = atomic.compare_exchange(current, 7, success, failure);
            }
            step();
        });
        let expected = Counts {
            loads: 3,
            stores: 2,
            exchanges: 6,
            others: 1,
        };
        assert_eq!(counts, expected);
        assert_eq!(count(|| ()), ((), Counts::default()));
    }

    /// The cost that the docs of [`WordArray::kcas`] promise.
    #[test]
    fn undisturbed_operations_cost_2k_plus_1_exchanges() {
        let words = WordArray::new(WordArray::MAX_ENTRIES);
        let entries_of = |entries, expected, new| -> Vec<_> {
            let entry = |index| Entry::new(index, expected, new);
            (0..entries).map(entry).collect()
        };
        // A thread's first operation also claims an id.
        words.kcas(&entries_of(2, 0, 0)).unwrap();
        for k in 1..=WordArray::MAX_ENTRIES {
            let owned = count(|| words.kcas(&entries_of(k, 0, 1)));
            let dcss = count(|| words.kcas_by_dcss(&entries_of(k, 1, 0)));
            let first_differs = count(|| words.kcas(&entries_of(k, 5, 6)));
            let results = [owned.0, dcss.0, first_differs.0];
            assert_eq!(results, [Ok(()), Ok(()), Err(Error::Mismatch)]);
            let counts = [owned.1, dcss.1, first_differs.1];
            let expected = match k {
                1 => [1; 3],
                _ => [2 * k + 1, 3 * k + 1, 1],
            };
            let exchanges = counts.map(|counts| counts.exchanges as usize);
            assert_eq!(exchanges, expected, "{k} entries");
        }
    }

    #[test]
    fn what_a_hook_does_is_no_step() {
        let words = Rc::new(WordArray::new(1));
        let inside = Rc::clone(&words);
        let hook = move |step| {
            assert_eq!(step, 0);
            inside.compare_exchange(0, 0, 5).unwrap();
        };
        assert_eq!(with_hook(hook, || words.load(0)), 5);
        assert_eq!(steps_of(|| ()), 0);
    }
}
