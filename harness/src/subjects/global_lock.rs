//! The classic cuckoo filter under one mutex, the standard library's: the simplest way to share a sequential
//! filter.

use std::sync::Mutex;

use super::one_lock::OneLock;
use super::random_walk::RandomWalk;
use super::under_mutex::UnderMutex;

/// A sequential filter behind a mutex.
pub type GlobalLock = OneLock<Mutex<RandomWalk>>;

impl UnderMutex for RandomWalk {
    const NAME: &'static str = "global-lock";
    const DESCRIPTION: &'static str =
        "classic random-walk cuckoo filter with a victim slot, under one mutex";
}
