//! Tests of what a whole process has: its memory, its allocator, and the ids of its threads. They
//! take turns.
#![cfg(not(kcas_loom))]

#[path = "../common/at_once.rs"]
mod at_once;
mod bounded_memory;
mod growing_and_back;
mod limited;
mod no_allocation;
mod out_of_memory;
mod threads;

use std::cell::OnceCell;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Waits until no other test runs, nor its thread: until that ends, it has an id. (What a thread has had longest, it
/// drops last.)
fn turn() {
    static TURN: Mutex<()> = Mutex::new(());
    thread_local! {
        static MINE: OnceCell<MutexGuard<'static, ()>> = const { OnceCell::new() };
    }
    MINE.with(|mine| _ = mine.get_or_init(|| TURN.lock().unwrap_or_else(PoisonError::into_inner)));
}
