//! A value that threads read without a lock while others replace it as a whole; a replaced value is
//! freed when nobody reads it any more ([`crossbeam_epoch`]). A structure that replaces parts of
//! itself this way needs no `unsafe` of its own: the unsafe lines are here, each with its reason.
//!
//! A reader holds a [`Pinned`]: while it does, nothing that it could have read from a cell is
//! freed. A thread that stops while holding one stops nobody else, but memory that is replaced
//! meanwhile is kept. Any other guard of the process's default collector has the same effect.
//!
//! # Orderings
//!
//! The address of the value is accessed with `SeqCst`, like the words of `kcas` and for the same
//! reason: one thread replaces the value and then loads a word; another changes the word and then
//! loads the value. With release and acquire alone, both could miss what the other did (store
//! buffering) if the second one is already pinned, so that no fence of the collector intervenes. In
//! a growing filter: one thread begins a generation, inserts x there, and does not find y in the
//! older one; the other inserts y into the older one, and does not find x because it does not know
//! the newer one. On x86-64 `SeqCst` costs nothing: a load is a plain load and an exchange a full
//! barrier either way.
//!
//! Under the model checker nothing is freed before the cell itself, and the action given to
//! [`Pinned::after_all`] never runs: loom explores the order in which values are replaced and read,
//! not when memory is reclaimed, which is `crossbeam-epoch`'s business and checked there.

#![warn(missing_docs)]

use std::marker::PhantomData;

use kcas::sync::{AtomicU64, Ordering};

#[cfg(all(test, kcas_loom))]
mod cell_models;
#[cfg(not(kcas_loom))]
mod pinned;
#[cfg(kcas_loom)]
#[path = "pinned_in_models.rs"]
mod pinned;

pub use pinned::{Pinned, flush, pin};

/// A value of type `T` on the heap, replaced as a whole.
///
/// ```
/// use epoch_cell::{EpochCell, pin};
///
/// let cell = EpochCell::new(vec![1]);
/// let pinned = pin();
/// let first = cell.load(&pinned);
/// assert!(cell.replace(first, Box::new(vec![1, 2]), &pinned).is_ok());
/// assert_eq!(first, &[1]); // freed when no thread that may have it is pinned
/// assert_eq!(cell.load(&pinned), &[1, 2]);
/// assert!(cell.replace(first, Box::new(vec![3]), &pinned).is_err());
/// ```
#[derive(Debug)]
pub struct EpochCell<T: Send + Sync + 'static> {
    /// The address of the value: never null, made by `Box::into_raw`, owned by the cell.
    address: AtomicU64,
    /// Like a `Box<T>`, it may be sent and shared if `T` may, and drops a `T`.
    owns: PhantomData<Box<T>>,
    retired: pinned::Retired<T>,
}

impl<T: Send + Sync + 'static> EpochCell<T> {
    /// Makes a cell that holds `value`.
    pub fn new(value: T) -> Self {
        EpochCell {
            address: AtomicU64::new(address_of(Box::new(value))),
            owns: PhantomData,
            retired: pinned::Retired::default(),
        }
    }

    /// Returns the value. Wait-free: one load, which is the linearization point.
    #[inline]
    pub fn load<'a>(&'a self, _: &'a Pinned) -> &'a T {
        // SeqCst: see the crate's docs. As an Acquire it pairs with `replace`, or with whatever
        // handed the cell to this thread.
        let address = self.address.load(Ordering::SeqCst);
        // SAFETY: the address is of a `T` that the cell owned at the load. If it is replaced, it is
        // freed only after every thread pinned at that moment has let go; this thread is one of
        // them, since its load came first. The `Pinned` belongs to the default collector, like that
        // of the replacing thread. The cell cannot be dropped while it is borrowed.
        unsafe { &*to_pointer(address) }
    }

    /// True if this is the value in the cell at this moment. Wait-free: one load, which is the
    /// linearization point.
    ///
    /// `value` was loaded from the cell under a `Pinned` that is still held, so no other value can
    /// have its address.
    #[inline]
    pub fn holds(&self, value: &T) -> bool {
        // SeqCst: as in `load`.
        self.address.load(Ordering::SeqCst) == address_of_ref(value)
    }

    /// Replaces the value by `new` if it is still `current`, which was loaded under this `Pinned`.
    ///
    /// Lock-free, except for the allocator. Linearization point: the compare-and-swap.
    ///
    /// # Errors
    /// Gives `new` back if the value has been replaced meanwhile.
    pub fn replace(&self, current: &T, new: Box<T>, pinned: &Pinned) -> Result<(), Box<T>> {
        let (old, new) = (address_of_ref(current), address_of(new));
        // SeqCst: see the crate's docs. It releases the new value to `load`, and acquires the old
        // one for the thread that frees it. Relaxed on failure: nothing is read because of it.
        let exchanged =
            self.address
                .compare_exchange(old, new, Ordering::SeqCst, Ordering::Relaxed);
        match exchanged {
            Ok(address) => {
                let replaced = Replaced {
                    address,
                    owns: PhantomData,
                };
                // It was in the cell, and only this exchange took it out. It is dropped after every
                // thread pinned now has let go; a thread that pins later does not find it in the
                // cell.
                pinned.retire(&self.retired, replaced);
                Ok(())
            }
            // SAFETY: `new` came from `Box::into_raw` above, and nobody else has seen it.
            Err(_) => Err(unsafe { Box::from_raw(to_pointer(new)) }),
        }
    }

    /// Gives exclusive access to the value.
    pub fn get_mut(&mut self) -> &mut T {
        // SAFETY: the cell owns it, and `&mut self` rules out any other reference: those from
        // `load` borrow the cell. Relaxed: whatever gave this thread exclusive access to the cell
        // ordered everything that others did with it before.
        unsafe { &mut *to_pointer(self.address.load(Ordering::Relaxed)) }
    }
}

impl<T: Send + Sync + 'static> Drop for EpochCell<T> {
    fn drop(&mut self) {
        // SAFETY: the cell owns it, and references from `load` cannot outlive the cell. Relaxed: as
        // in `get_mut`.
        drop(unsafe { Box::from_raw(to_pointer::<T>(self.address.load(Ordering::Relaxed))) });
    }
}

/// A value taken out of a cell. Until it is dropped it is an address, not a `Box`: others may still
/// be reading the value, and a `Box` asserts that nobody is.
#[derive(Debug)]
pub(crate) struct Replaced<T> {
    address: u64,
    owns: PhantomData<Box<T>>,
}

impl<T> Drop for Replaced<T> {
    fn drop(&mut self) {
        // SAFETY: the address came from `Box::into_raw`, and whoever made this ensures that it is
        // dropped once, when nobody reads the value any more.
        drop(unsafe { Box::from_raw(to_pointer::<T>(self.address)) });
    }
}

fn address_of<T>(value: Box<T>) -> u64 {
    Box::into_raw(value).expose_provenance() as u64
}

fn address_of_ref<T>(value: &T) -> u64 {
    std::ptr::from_ref(value).addr() as u64
}

fn to_pointer<T>(address: u64) -> *mut T {
    std::ptr::with_exposed_provenance_mut(address as usize)
}
