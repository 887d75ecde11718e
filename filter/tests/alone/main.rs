//! Tests of what a whole process has: its memory, its allocator, and the ids of its threads. They
//! take turns.
#![cfg(not(kcas_loom))]

mod bounded_memory;
mod copy_out_of_memory;
mod growing_and_back;
mod growing_out_of_memory;
mod limited;
mod no_allocation;
mod threads;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Waits until no other test runs.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}
