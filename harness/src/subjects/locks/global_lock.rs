//! The classic cuckoo filter under one mutex of the standard library: the simplest way to share a
//! sequential filter.

use subject::one_lock::OneLock;
use subject::sync::Mutex;
use subject::under_mutex::UnderMutex;

use super::victim_cuckoo::VictimCuckoo;

/// A sequential filter behind a mutex.
pub type GlobalLock = OneLock<Mutex<VictimCuckoo>>;

impl UnderMutex for VictimCuckoo {
    const NAME: &'static str = "global-lock";
    const DESCRIPTION: &'static str =
        "classic random-walk cuckoo filter with a victim slot, under one mutex";
}
