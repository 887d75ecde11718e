//! What [`snapshot`](crate::snapshot) uses of the crate `arc-swap`, for the model checker, which
//! does not see the accesses of that crate.
//!
//! It hands a value over with release and acquire, which is the least that this takes: a load may
//! find an older value, as far as they allow it, and models explore each order of loads and
//! exchanges. It hides how `arc-swap` does the same, with how many accesses, and when it drops a
//! value: here, none is dropped before the last.

use std::sync::{Arc, Mutex};

use kcas::sync::{AtomicU64, Ordering};

/// See the type of this name in `arc-swap`.
#[derive(Debug)]
pub(crate) struct ArcSwapOption<T> {
    /// Which of the values it holds.
    held: AtomicU64,
    /// All that it has held, or was to hold.
    // Not loom's mutex: it is not part of what is modelled.
    values: Mutex<Vec<Option<Arc<T>>>>,
}

impl<T> ArcSwapOption<T> {
    pub(crate) fn empty() -> Self {
        ArcSwapOption {
            held: AtomicU64::new(0),
            values: Mutex::new(vec![None]),
        }
    }

    pub(crate) fn load(&self) -> Option<Arc<T>> {
        // Acquire: pairs with the exchange in `rcu`.
        self.value(self.held.load(Ordering::Acquire))
    }

    pub(crate) fn rcu(&self, change: impl Fn(&Option<Arc<T>>) -> Option<Arc<T>>) {
        // Acquire: pairs with the exchange below, as does a failed one.
        let mut held = self.held.load(Ordering::Acquire);
        loop {
            let changed = self.add(change(&self.value(held)));
            // Release: hands over the new value, and what it was made of.
            let exchanged =
                self.held
                    .compare_exchange(held, changed, Ordering::Release, Ordering::Acquire);
            match exchanged {
                Ok(_) => return,
                Err(newer) => held = newer,
            }
        }
    }

    fn value(&self, number: u64) -> Option<Arc<T>> {
        self.values.lock().expect("nobody panics with it")[number as usize].clone()
    }

    fn add(&self, value: Option<Arc<T>>) -> u64 {
        let mut values = self.values.lock().expect("nobody panics with it");
        values.push(value);
        values.len() as u64 - 1
    }
}
