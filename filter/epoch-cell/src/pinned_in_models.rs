//! Keeping track of readers under the model checker: nothing is freed before the cell.

use std::sync::Mutex;

use crate::Replaced;

/// See the type of this name in ordinary builds.
#[derive(Debug)]
pub struct Pinned(());

/// Does nothing.
pub fn pin() -> Pinned {
    Pinned(())
}

/// Does nothing.
pub fn flush() {}

/// Replaced values, kept until the cell is dropped.
// Not loom's mutex: it is not part of what is modelled.
#[derive(Debug)]
pub(crate) struct Retired<T>(Mutex<Vec<Replaced<T>>>);

impl<T> Default for Retired<T> {
    fn default() -> Self {
        Retired(Mutex::default())
    }
}

impl Pinned {
    /// Drops the action: a model has no moment at which all threads have let go.
    pub fn after_all(&self, action: impl FnOnce() + Send + 'static) {
        drop(action);
    }

    pub(crate) fn retire<T: Send + 'static>(&self, retired: &Retired<T>, old: Replaced<T>) {
        retired.0.lock().expect("nobody panics with it").push(old);
    }
}
