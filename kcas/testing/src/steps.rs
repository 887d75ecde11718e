//! What drives threads by their [steps](kcas::steps): hooks before each step, counts of steps, and threads that are
//! stopped at one. Each needs a build with the feature `__steps` of kcas, and panics in others.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};

use kcas::steps::{Access, Observer, with_observer};

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
/// See [`freeze`].
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
