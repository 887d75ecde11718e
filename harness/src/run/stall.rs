//! Freezes threads in the middle of an operation, while others are measured.
//!
//! A thread is frozen before a *step* ([`kcas::steps`]): an access to an atomic in the lock-free
//! filters, to the table or a lock in the others. It inserts and removes one key after another
//! until it reaches the step that was drawn for it, and stays there. Since the step is drawn from
//! many more steps than an operation has, every step of an operation is equally likely.
//!
//! Measured threads may be blocked by a lock that a frozen thread holds, and then do not return
//! before it is released, long after their time is up. So their work is not reported by themselves,
//! but counted from outside ([`Observed`]).

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use crossbeam_utils::CachePadded;
#[cfg(feature = "steps")]
use kcas::steps::with_hook;
use rand::RngExt;
use rand::rngs::SmallRng;

use crate::workload::{Cycle, Keys, Measured, Phase, Watch};

/// A thread stops at one of this many steps, which are more than a hundred operations.
const STEPS: u64 = 2_000;

/// How long threads may take to reach their steps; after that, they count as blocked.
const PATIENCE: Duration = Duration::from_millis(200);

/// What threads have done so far, readable while they may be blocked.
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

    /// Returns the watch of a thread, which ends its work and holds its count.
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

/// What holds threads in the middle of an operation.
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

/// The table in which threads are to be frozen, and keys for them, none of which is looked up as absent.
#[derive(Clone)]
pub(crate) struct Site<'a> {
    pub(crate) subject: &'a dyn Measured,
    pub(crate) keys: &'a Keys,
    pub(crate) pool: Range<usize>,
}

/// Starts threads, and returns when all are frozen, or blocked by others that are.
pub(crate) fn freeze<'scope>(
    scope: &'scope Scope<'scope, '_>,
    site: &Site<'scope>,
    threads: usize,
    random: &mut SmallRng,
) -> Result<Frozen<'scope>> {
    let hold = Arc::<Hold>::default();
    let start = |_| {
        let offset = random.random_range(0..site.pool.len());
        let pool = Cycle::new(site.pool.clone(), offset);
        let at = random.random_range(0..STEPS);
        let (site, hold) = (site.clone(), Arc::clone(&hold));
        scope.spawn(move || site.work_until_frozen(pool, at, &hold))
    };
    let frozen = Frozen {
        threads: (0..threads).map(start).collect(),
        hold: Arc::clone(&hold),
    };
    let (mut before, mut since) = (0, Instant::now());
    loop {
        let ended = frozen.threads.iter().filter(|of| of.is_finished()).count();
        ensure!(
            !hold.without_steps.load(Ordering::Relaxed),
            "threads cannot be frozen inside its operations, which have no steps: call \
             `kcas::steps::step()` before every access to shared memory"
        );
        let now = hold.frozen.load(Ordering::Relaxed);
        if now > before {
            (before, since) = (now, Instant::now());
        }
        // The others are blocked, or have panicked, which is reported when they are released.
        if now + ended >= threads || (now > 0 && since.elapsed() > PATIENCE) {
            return Ok(frozen);
        }
        thread::sleep(Duration::from_micros(200));
    }
}

impl Site<'_> {
    fn work_until_frozen(&self, mut pool: Cycle, at: u64, hold: &Arc<Hold>) {
        let (held, is_released) = (Arc::clone(hold), || hold.released.get().is_some());
        let freeze = move |step| {
            if step == at {
                held.frozen.fetch_add(1, Ordering::Relaxed);
                held.released.wait();
            }
        };
        with_hook(freeze, || {
            // Every operation has a step, so these are enough.
            for _ in 0..STEPS {
                if is_released() {
                    break;
                }
                self.insert_and_remove(pool.next_key());
            }
        });
        let is_held = !is_released();
        hold.without_steps.fetch_or(is_held, Ordering::Relaxed);
    }

    /// Leaves the table as it was, apart from the places of keys.
    fn insert_and_remove(&self, key: usize) {
        let key = key..key + 1;
        let never = AtomicBool::new(false);
        let watch = Watch::new(&never);
        let perform = |mut phase| self.subject.perform(self.keys, &mut phase, &watch, None);
        if perform(Phase::Insert(key.clone())).refused == 0 {
            perform(Phase::Remove(key));
        }
    }
}

/// There are no hooks: threads are never frozen.
#[cfg(not(feature = "steps"))]
fn with_hook<R>(_: impl FnMut(u64) + 'static, action: impl FnOnce() -> R) -> R {
    action()
}
