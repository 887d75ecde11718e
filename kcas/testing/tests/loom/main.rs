//! The K-CAS protocol under the model checker.
//!
//! Run with `scripts/loom.sh`, which prints each model's threads, its bound on preemptions, and its
//! number of executions. The bugs that each model must catch are kept under `kcas/tests/planted/`,
//! and `scripts/planted.sh` shows that it does.
#![cfg(kcas_loom)]

mod commit;
mod descriptor;
mod operations;
mod take_over;

use kcas::thread_id::{self, ThreadId};

/// Runs an action with the id of this thread.
fn as_me<R>(action: impl FnOnce(&ThreadId) -> R) -> R {
    thread_id::with(action).unwrap()
}
