//! Who is reading, under the model checker: nothing is freed before the cell.

use std::marker::PhantomData;
use std::sync::Mutex;

/// See the same type of ordinary builds.
#[derive(Debug)]
pub struct Pinned(());

/// Nothing.
pub fn pin() -> Pinned {
    Pinned(())
}

/// What was replaced, kept until the cell is dropped.
// Not one of loom's: it is no part of what is modelled.
#[derive(Debug)]
pub(crate) struct Retired<T> {
    /// Addresses of boxes, which nobody else frees.
    addresses: Mutex<Vec<u64>>,
    owns: PhantomData<Box<T>>,
}

impl<T> Default for Retired<T> {
    fn default() -> Self {
        Retired {
            addresses: Mutex::default(),
            owns: PhantomData,
        }
    }
}

impl<T> Drop for Retired<T> {
    fn drop(&mut self) {
        let addresses = self.addresses.get_mut().expect("nobody panics with it");
        for address in addresses.drain(..) {
            // SAFETY: as `retire` was promised; and nobody has the cell any more.
            drop(unsafe { Box::from_raw(crate::to_pointer::<T>(address)) });
        }
    }
}

impl Pinned {
    /// Forgets the action: no model has a moment at which all threads have let go.
    pub fn after_all(&self, action: impl FnOnce() + Send + 'static) {
        drop(action);
    }

    /// Keeps a value until the cell is dropped.
    ///
    /// # Safety
    ///
    /// As in ordinary builds.
    pub(crate) unsafe fn retire<T: Send + 'static>(&self, retired: &Retired<T>, old: u64) {
        let mut addresses = retired.addresses.lock().expect("nobody panics with it");
        addresses.push(old);
    }
}
