//! The door to a simulator: it learns of every access to shared memory before the access is made,
//! with address and kind, and decides when the core goes on.
//!
//! It exists only with the feature `simulation`, and even then nothing is observed outside
//! [`within`]. Without the feature, these functions do nothing.
//!
//! A simulator runs many cores on one thread. What is thread-local here, the
//! [thread id](crate::thread_id), is swapped when the core changes ([`swap_id`]).

pub use crate::steps::Access;

#[cfg(all(feature = "simulation", not(kcas_loom)))]
pub use observed::{
    Machine, claim_id, exchanged, give_back_id, is_under_way, name, park, pause, record, swap_id,
    wake, within,
};

#[cfg(all(feature = "simulation", not(kcas_loom)))]
pub(crate) use observed::access_to;

#[cfg(all(feature = "simulation", not(kcas_loom)))]
pub use observed::access;

/// What the lines of some memory hold: elements of the same size, one after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Named {
    /// What an element is, such as `bucket`.
    pub what: &'static str,
    /// Address of the first element.
    pub start: usize,
    /// Size of an element in bytes.
    pub bytes: usize,
    /// Number of elements.
    pub len: usize,
    /// Number of the first element.
    pub first: usize,
}

/// How a core waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// For as many pause instructions as this.
    Spin(u32),
    /// By giving its core to another thread, if one wants it.
    Yield,
}

/// Names memory, so that a simulator can say which lines threads contend for. Does nothing outside
/// a simulation.
#[cfg(not(all(feature = "simulation", not(kcas_loom))))]
#[inline(always)]
pub fn name<T>(_: &'static str, _: &[T], _: usize) {}

#[cfg(not(any(feature = "simulation", kcas_loom)))]
#[inline(always)]
pub(crate) fn access_to<T>(_: &T, _: Access) {}

#[cfg(all(feature = "simulation", not(kcas_loom)))]
mod observed {
    use std::cell::RefCell;
    use std::ops::Range;
    use std::rc::Rc;

    use super::{Access, Named, Pause};
    use crate::descriptor;
    use crate::thread_id::{self, TooManyThreads};

    /// A simulated machine, as the code that runs on it sees it.
    pub trait Machine {
        /// Called before the current core accesses memory; returns when it is its turn.
        fn access(&self, address: usize, access: Access);

        /// Called after an exchange that may fail, with its success.
        fn exchanged(&self, succeeded: bool);

        /// The current core waits.
        fn pause(&self, pause: Pause);

        /// The current core sleeps until another one wakes a sleeper at this address.
        fn park(&self, address: usize);

        /// Wakes one core that sleeps at this address, if there is one.
        fn wake(&self, address: usize);

        /// Names memory.
        fn name(&self, named: Named);
    }

    std::thread_local! {
        static MACHINE: RefCell<Option<Rc<dyn Machine>>> = const { RefCell::new(None) };
    }

    /// Runs `action` on this machine: everything this thread does meanwhile is observed.
    pub fn within<R>(machine: Rc<dyn Machine>, action: impl FnOnce() -> R) -> R {
        struct Restore(Option<Rc<dyn Machine>>);
        impl Drop for Restore {
            fn drop(&mut self) {
                MACHINE.set(self.0.take());
            }
        }
        let _restore = Restore(MACHINE.replace(Some(machine)));
        action()
    }

    // The machine is not borrowed while it acts: it may switch to another core, which asks again.
    #[inline]
    fn machine() -> Option<Rc<dyn Machine>> {
        MACHINE
            .try_with(|machine| machine.borrow().clone())
            .ok()
            .flatten()
    }

    /// True if this thread simulates.
    pub fn is_under_way() -> bool {
        machine().is_some()
    }

    /// Tells of an access that is about to be made.
    #[inline]
    pub fn access(address: usize, access: Access) {
        if let Some(machine) = machine() {
            machine.access(address, access);
        }
    }

    /// [`access`] to a place.
    #[inline]
    pub(crate) fn access_to<T>(place: &T, kind: Access) {
        access(std::ptr::from_ref(place).addr(), kind);
    }

    /// Tells whether the last exchange succeeded.
    #[inline]
    pub fn exchanged(succeeded: bool) {
        if let Some(machine) = machine() {
            machine.exchanged(succeeded);
        }
    }

    /// The core waits. Returns false, at once, outside a simulation.
    #[inline]
    pub fn pause(pause: Pause) -> bool {
        machine().is_some_and(|machine| {
            machine.pause(pause);
            true
        })
    }

    /// The core sleeps until another one [`wake`]s it. Only within a simulation.
    pub fn park(address: usize) {
        if let Some(machine) = machine() {
            machine.park(address);
        }
    }

    /// Wakes one core that sleeps at this address. Only within a simulation.
    pub fn wake(address: usize) {
        if let Some(machine) = machine() {
            machine.wake(address);
        }
    }

    /// Names memory, so that a simulator can say which lines threads contend for; `first` is the
    /// number of the first element. Does nothing outside a simulation.
    pub fn name<T>(what: &'static str, elements: &[T], first: usize) {
        if let Some(machine) = machine() {
            machine.name(Named {
                what,
                start: elements.as_ptr().addr(),
                bytes: size_of::<T>(),
                len: elements.len(),
                first,
            });
        }
    }

    /// Claims a thread id for a core, which becomes the thread's by [`swap_id`].
    ///
    /// # Errors
    /// [`TooManyThreads`] when every id is held.
    pub fn claim_id() -> Result<usize, TooManyThreads> {
        thread_id::claim_for_a_core()
    }

    /// Gives back an id that [`claim_id`] returned, and that is no thread's at the moment.
    pub fn give_back_id(id: usize) {
        thread_id::give_back_of_a_core(id);
    }

    /// Replaces the id that this thread holds; returns the one that it held.
    pub fn swap_id(id: Option<usize>) -> Option<usize> {
        thread_id::swap(id)
    }

    /// Returns the addresses of the record that descriptors under an id are kept in, which is made if
    /// there is none.
    pub fn record(id: usize) -> Range<usize> {
        descriptor::addresses(id)
    }
}

#[cfg(all(test, feature = "simulation", not(kcas_loom)))]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;
    use crate::sync::{AtomicU64, Ordering};
    use crate::thread_id;

    /// Records every access and whether each exchange succeeded.
    #[derive(Default)]
    struct Told(RefCell<Vec<(usize, Access)>>, RefCell<Vec<bool>>);

    impl Machine for Told {
        fn access(&self, address: usize, access: Access) {
            self.0.borrow_mut().push((address, access));
        }

        fn exchanged(&self, succeeded: bool) {
            self.1.borrow_mut().push(succeeded);
        }

        fn pause(&self, _: Pause) {}

        fn park(&self, _: usize) {}

        fn wake(&self, _: usize) {}

        fn name(&self, _: Named) {}
    }

    #[test]
    fn a_machine_learns_of_each_access_within_and_of_none_outside() {
        let word = AtomicU64::new(5);
        let told = Rc::new(Told::default());
        word.store(6, Ordering::Relaxed);
        let ordering = (Ordering::SeqCst, Ordering::Relaxed);
        within(Rc::clone(&told) as Rc<dyn Machine>, || {
            assert!(is_under_way());
            assert_eq!(word.load(Ordering::Relaxed), 6);
            word.store(7, Ordering::Relaxed);
            let _ = word.compare_exchange(7, 8, ordering.0, ordering.1);
            let _ = word.compare_exchange(7, 8, ordering.0, ordering.1);
        });
        assert!(!is_under_way() && !pause(Pause::Yield));
        word.load(Ordering::Relaxed);
        let here = std::ptr::from_ref(&word).addr();
        let kinds = [
            Access::Load,
            Access::Store,
            Access::Exchange,
            Access::Exchange,
        ];
        assert_eq!(*told.0.borrow(), kinds.map(|kind| (here, kind)));
        assert_eq!(*told.1.borrow(), [true, false]);
    }

    #[test]
    fn each_core_has_an_id_of_its_own() {
        let ids = [claim_id().unwrap(), claim_id().unwrap()];
        let own = swap_id(Some(ids[0]));
        let of_now = || thread_id::with(|id| id.index()).unwrap();
        assert_eq!(of_now(), ids[0]);
        swap_id(Some(ids[1]));
        assert_eq!(of_now(), ids[1]);
        swap_id(own);
        assert_ne!(ids[0], ids[1]);
        ids.into_iter().for_each(give_back_id);
    }
}
