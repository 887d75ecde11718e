//! Threads that begin at the same moment.

use std::panic;
use std::sync::Barrier;
use std::thread::{self, ScopedJoinHandle};

use crate::perturbation::{self, Part};

/// Runs `act` on each item in a thread of its own, whose number is the place of the item. Returns the
/// results in the order of the items. Threads are disturbed inside their calls as the seed `disturbance` determines.
pub(crate) fn at_once<T: Send, R: Send>(
    each: Vec<(Part, T)>,
    disturbance: u64,
    act: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    let (barrier, act) = (&Barrier::new(each.len()), &act);
    thread::scope(|scope| {
        let run = |(thread, (part, item))| {
            let part = Part { thread, ..part };
            scope.spawn(move || {
                barrier.wait();
                perturbation::during(disturbance, part, || act(item))
            })
        };
        let running: Vec<_> = each.into_iter().enumerate().map(run).collect();
        let ended = running.into_iter().map(ScopedJoinHandle::join);
        ended
            .map(|ended| ended.unwrap_or_else(|panic| panic::resume_unwind(panic)))
            .collect()
    })
}
