//! Tests of what a whole process has: its memory, and the ids of its threads. They take turns.
#![cfg(not(kcas_loom))]

#[cfg(not(feature = "steps"))]
mod lazy_memory;
mod threads;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Waits until no other test runs.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}
