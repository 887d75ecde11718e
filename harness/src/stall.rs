//! Freezes threads in the middle of an operation, while others are measured.
//!
//! A thread is frozen before a *step* ([`kcas::steps`]): an access to an atomic in the lock-free
//! filters, to the table or a lock in the others. It inserts and removes one key after another
//! until it reaches the step that was drawn for it, and stays there. Since the step is drawn from
//! many more steps than an operation has, every step of an operation is equally likely.
//!
//! Measured threads may be blocked by a lock that a frozen thread holds, and then do not return
//! before it is released, long after their time is up. Their work is therefore counted from outside
//! ([`Observed`]).

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::Duration;

use anyhow::{Result, ensure};
use crossbeam_utils::CachePadded;
use histories::Event;
#[cfg(feature = "steps")]
use kcas_testing::steps::with_hook;
use rand::RngExt;
use rand::rngs::SmallRng;
use subject::calls::Operation;

use crate::crew::settled;
use crate::operations::{Measured, Watch};

/// A thread stops at one of this many steps, which are more than a hundred operations.
const STEPS: u64 = 2_000;

/// How long threads may take to reach their steps; after that, they count as blocked.
const PATIENCE: Duration = Duration::from_millis(200);

/// The operations of threads so far, readable while they may be blocked.
pub(crate) struct Observed {
    progress: Vec<CachePadded<AtomicU64>>,
    over: AtomicBool,
}

impl Observed {
    pub(crate) fn new(threads: usize) -> Self {
        Self {
            progress: (0..threads).map(|_| CachePadded::default()).collect(),
            over: AtomicBool::new(false),
        }
    }

    /// Returns the watch of a thread, which ends its work and counts its operations.
    pub(crate) fn watch(&self, thread: usize) -> Watch<'_> {
        Watch {
            progress: Some(&self.progress[thread]),
            ..Watch::new(&self.over)
        }
    }

    /// Returns the number of operations that all threads have done so far.
    pub(crate) fn operations(&self) -> u64 {
        let counts = self.progress.iter();
        counts.map(|count| count.load(Ordering::Relaxed)).sum()
    }

    /// Ends the work of all threads that are not blocked.
    pub(crate) fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

/// The state of frozen threads.
#[derive(Default)]
struct Hold {
    frozen: AtomicUsize,
    /// Whether a thread has met no step.
    without_steps: AtomicBool,
    released: OnceLock<()>,
}

/// Threads that stay frozen until this is dropped or releases them.
pub(crate) struct Frozen<'scope> {
    hold: Arc<Hold>,
    threads: Vec<ScopedJoinHandle<'scope, ()>>,
}

impl Drop for Frozen<'_> {
    fn drop(&mut self) {
        let _ = self.hold.released.set(());
    }
}

impl Frozen<'_> {
    /// Waits until all have completed the operation that they were in.
    pub(crate) fn release(mut self) -> Result<()> {
        let threads = std::mem::take(&mut self.threads);
        drop(self);
        let ends: Vec<_> = threads.into_iter().map(ScopedJoinHandle::join).collect();
        let all_well = ends.iter().all(thread::Result::is_ok);
        ensure!(all_well, "a thread that was to be frozen panicked");
        Ok(())
    }
}

/// Starts threads, and returns when all are frozen, or blocked by others that are.
pub(crate) fn freeze<'scope>(
    scope: &'scope Scope<'scope, '_>,
    subject: &'scope dyn Measured,
    threads: usize,
    random: &mut SmallRng,
) -> Result<Frozen<'scope>> {
    let hold = Arc::<Hold>::default();
    let start = |_| {
        let (first_key, at) = (random.random(), random.random_range(0..STEPS));
        let hold = Arc::clone(&hold);
        scope.spawn(move || work_until_frozen(subject, first_key, at, &hold))
    };
    let frozen = Frozen {
        threads: (0..threads).map(start).collect(),
        hold: Arc::clone(&hold),
    };
    let ended = || {
        frozen
            .threads
            .iter()
            .filter(|thread| thread.is_finished())
            .count()
    };
    let held = || hold.frozen.load(Ordering::Relaxed);
    // The others are blocked, or have panicked, which is reported when they are released.
    while settled(threads, PATIENCE, || held() + ended()) < threads && held() == 0 {}
    ensure!(
        !hold.without_steps.load(Ordering::Relaxed),
        "threads cannot be frozen inside its operations, which have no steps: call \
         `kcas::steps::step()` before every access to shared memory"
    );
    Ok(frozen)
}

/// Inserts and removes keys until it is frozen before this step: consecutive numbers from a random start,
/// of which practically none is looked up as absent.
fn work_until_frozen(subject: &dyn Measured, first_key: u64, at: u64, hold: &Arc<Hold>) {
    let (held, is_released) = (Arc::clone(hold), || hold.released.get().is_some());
    let freeze = move |step| {
        if step == at {
            held.frozen.fetch_add(1, Ordering::Relaxed);
            held.released.wait();
        }
    };
    with_hook(freeze, || {
        // Every operation has a step, so these are enough.
        for number in 0..STEPS {
            if is_released() {
                break;
            }
            // Leaves the table as it was, apart from the places of keys.
            let key = first_key.wrapping_add(number);
            if subject.call(Operation::Insert, key) == Event::Insert(Ok(())) {
                subject.call(Operation::Remove, key);
            }
        }
    });
    let is_held = !is_released();
    hold.without_steps.fetch_or(is_held, Ordering::Relaxed);
}

/// There are no hooks: threads are never frozen.
#[cfg(not(feature = "steps"))]
fn with_hook<R>(_: impl FnMut(u64) + 'static, action: impl FnOnce() -> R) -> R {
    action()
}
