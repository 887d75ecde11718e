//! What [`snapshot`](crate::snapshot) uses of the crate `arc-swap`, for the model checker, which
//! does not see the accesses of that crate.
//!
//! Its accesses are `SeqCst`, as those of `arc-swap` are. (Release and acquire would do, but let a
//! load find each older list, so that models have forty times as many executions; tried with
//! `copies_in_succession`.) It hides how `arc-swap` protects a value that is read, with how many
//! accesses, and when it drops one: here, none is dropped before the last.

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
        self.value(self.held.load(Ordering::SeqCst))
    }

    pub(crate) fn rcu(&self, change: impl Fn(&Option<Arc<T>>) -> Option<Arc<T>>) {
        let mut held = self.held.load(Ordering::SeqCst);
        loop {
            let changed = self.add(change(&self.value(held)));
            let exchanged =
                self.held
                    .compare_exchange(held, changed, Ordering::SeqCst, Ordering::SeqCst);
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
