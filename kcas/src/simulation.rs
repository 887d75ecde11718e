//! Hooks for a simulator: it learns of every access to shared memory before the access is made,
//! with address and kind, and decides when the core goes on.
//!
//! It exists only with the feature `simulation`, and even then nothing is observed outside
//! `within`. Without the feature, these functions do nothing.
//!
//! A simulator runs many cores on one thread. What is thread-local here, the
//! [thread id](crate::thread_id), is swapped when the core changes (`swap_id`).

pub use crate::machine::{Named, Pause, name};
pub use crate::steps::Access;

#[cfg(all(feature = "simulation", not(kcas_loom)))]
pub use crate::descriptor::addresses as record;
#[cfg(all(feature = "simulation", not(kcas_loom)))]
pub use crate::machine::{Machine, access, exchanged, is_under_way, park, pause, wake, within};
#[cfg(all(feature = "simulation", not(kcas_loom)))]
pub use ids::{claim_id, give_back_id, swap_id};

#[cfg(all(feature = "simulation", not(kcas_loom)))]
mod ids {
    use crate::thread_id::{self, ThreadId, TooManyThreads};

    /// Claims a thread id for a core, which becomes the thread's by [`swap_id`].
    ///
    /// # Errors
    /// [`TooManyThreads`] when every id is held.
    pub fn claim_id() -> Result<usize, TooManyThreads> {
        ThreadId::acquire().map(|id| id.index())
    }

    /// Gives back an id that [`claim_id`] returned, and that no thread holds at the moment.
    pub fn give_back_id(id: usize) {
        ThreadId::of(id).give_back();
    }

    /// Replaces the id that this thread holds; returns the one that it held.
    pub fn swap_id(id: Option<usize>) -> Option<usize> {
        thread_id::swap(id)
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
    struct Recorded(RefCell<Vec<(usize, Access)>>, RefCell<Vec<bool>>);

    impl Machine for Recorded {
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
        let recorded = Rc::new(Recorded::default());
        word.store(6, Ordering::Relaxed);
        let ordering = (Ordering::SeqCst, Ordering::Relaxed);
        within(Rc::clone(&recorded) as Rc<dyn Machine>, || {
            assert!(is_under_way());
            assert_eq!(word.load(Ordering::Relaxed), 6);
            word.store(7, Ordering::Relaxed);
            let _ = word.compare_exchange(7, 8, ordering.0, ordering.1);
            let _ = word.compare_exchange(7, 8, ordering.0, ordering.1);
        });
        assert!(!is_under_way() && !pause(Pause::Yield));
        word.load(Ordering::Relaxed);
        let here = std::ptr::from_ref(&word).addr();
        let [load, store, exchange] = [Access::Load, Access::Store, Access::Exchange];
        let kinds = [load, store, exchange, exchange];
        assert_eq!(*recorded.0.borrow(), kinds.map(|kind| (here, kind)));
        assert_eq!(*recorded.1.borrow(), [true, false]);
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
