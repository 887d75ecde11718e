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

use std::cell::Cell;
use std::ops::Range;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use crossbeam_utils::CachePadded;
#[cfg(feature = "steps")]
use kcas::steps::with_hook;
use rand::RngExt;
use rand::rngs::SmallRng;

use crate::workload::keys::Keys;
use crate::workload::phase::{Cycle, Measured, Phase, Watch};

/// A thread stops at one of this many steps, which are more than a hundred operations.
const STEPS: u64 = 2_000;

/// How long threads may take to reach their steps once some are frozen; after that, they count as
/// blocked by those.
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

/// Threads that stay frozen until this is dropped or releases them.
pub(crate) struct Frozen<'scope> {
    /// A thread continues when the other end of its channel is gone.
    holds: Vec<mpsc::Sender<()>>,
    threads: Vec<ScopedJoinHandle<'scope, ()>>,
}

impl Frozen<'_> {
    /// Waits until all have completed the operation that they were in.
    pub(crate) fn release(self) -> Result<()> {
        drop(self.holds);
        let ends: Vec<_> = (self.threads.into_iter())
            .map(ScopedJoinHandle::join)
            .collect();
        let all_well = ends.iter().all(thread::Result::is_ok);
        ensure!(all_well, "a thread panicked that was to be frozen");
        Ok(())
    }
}

/// The table in which threads are to be frozen, and keys for them: none that is looked up as
/// absent.
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
    let (arrived, arrivals) = mpsc::channel();
    let mut frozen = Frozen {
        holds: Vec::new(),
        threads: Vec::new(),
    };
    for _ in 0..threads {
        let (hold, held) = mpsc::channel();
        let offset = random.random_range(0..site.pool.len());
        let pool = Cycle::new(site.pool.clone(), offset);
        let at = random.random_range(0..STEPS);
        let (site, arrived) = (site.clone(), arrived.clone());
        let work = move || site.work_until_frozen(pool, at, arrived, held);
        frozen.holds.push(hold);
        frozen.threads.push(scope.spawn(work));
    }
    drop(arrived);
    for before in 0..threads {
        let arrival = match before {
            // Nobody delays it.
            0 => arrivals.recv().map_err(mpsc::RecvTimeoutError::from),
            _ => arrivals.recv_timeout(PATIENCE),
        };
        match arrival {
            Ok(Arrived::Frozen) => {}
            Ok(Arrived::WithoutSteps) => bail!(
                "threads cannot be frozen inside its operations, which have no steps: call \
                 `kcas::steps::step()` before every access to shared memory"
            ),
            // The others are blocked, or have panicked, which is reported when they are released.
            Err(_) => break,
        }
    }
    Ok(frozen)
}

/// What happened to a thread that is to be frozen.
enum Arrived {
    Frozen,
    WithoutSteps,
}

impl Site<'_> {
    fn work_until_frozen(
        &self,
        mut pool: Cycle,
        at: u64,
        arrived: mpsc::Sender<Arrived>,
        held: mpsc::Receiver<()>,
    ) {
        let was_frozen = Rc::new(Cell::new(false));
        let (tell, will_be_frozen) = (arrived.clone(), Rc::clone(&was_frozen));
        let freeze = move |step| {
            if step == at {
                // Nobody listens any more if this thread was considered blocked.
                let _ = tell.send(Arrived::Frozen);
                // Always an error, since nothing is ever sent: the other end is gone.
                let _ = held.recv();
                will_be_frozen.set(true);
            }
        };
        with_hook(freeze, || {
            // Every operation has a step, so these are enough.
            for _ in 0..STEPS {
                if was_frozen.get() {
                    break;
                }
                self.insert_and_remove(pool.next_key());
            }
        });
        if !was_frozen.get() {
            let _ = arrived.send(Arrived::WithoutSteps);
        }
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
