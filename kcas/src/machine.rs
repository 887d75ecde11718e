//! What a simulator learns: every access to shared memory before it is made, and how cores wait.
//! Part of [`simulation`](crate::simulation), in its own module since every atomic depends on it.

use crate::steps::Access;

#[cfg(all(feature = "simulation", not(kcas_loom)))]
pub use observed::{Machine, access, exchanged, is_under_way, name, park, pause, wake, within};

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
    /// In a system call that finds nothing to wait for.
    Call,
}

/// Names memory, so that a simulator can say which lines threads contend for. Does nothing outside
/// a simulation.
#[cfg(not(all(feature = "simulation", not(kcas_loom))))]
#[inline(always)]
pub fn name<T>(_: &'static str, _: &[T], _: usize) {}

#[cfg(not(all(feature = "simulation", not(kcas_loom))))]
#[inline(always)]
pub(crate) fn access(_: usize, _: Access) {}

#[cfg(all(feature = "simulation", not(kcas_loom)))]
mod observed {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::{Access, Named, Pause};

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

    /// Tells the machine, if this thread simulates. It is not borrowed while it acts: it may switch
    /// to another core, which tells it more.
    #[inline]
    fn tell<R>(what: impl FnOnce(&dyn Machine) -> R) -> Option<R> {
        let machine = MACHINE.try_with(|machine| machine.borrow().clone());
        Some(what(machine.ok()??.as_ref()))
    }

    /// True if this thread simulates.
    pub fn is_under_way() -> bool {
        tell(|_| ()).is_some()
    }

    /// Reports an access that is about to be made.
    #[inline]
    pub fn access(address: usize, access: Access) {
        tell(|machine| machine.access(address, access));
    }

    /// Reports whether the last exchange succeeded.
    #[inline]
    pub fn exchanged(succeeded: bool) {
        tell(|machine| machine.exchanged(succeeded));
    }

    /// The core waits. Returns false, at once, outside a simulation.
    #[inline]
    pub fn pause(pause: Pause) -> bool {
        tell(|machine| machine.pause(pause)).is_some()
    }

    /// The core sleeps until another one [`wake`]s it. Only within a simulation.
    pub fn park(address: usize) {
        tell(|machine| machine.park(address));
    }

    /// Wakes one core that sleeps at this address. Only within a simulation.
    pub fn wake(address: usize) {
        tell(|machine| machine.wake(address));
    }

    /// Names memory, so that a simulator can say which lines threads contend for; `first` is the
    /// number of the first element. Does nothing outside a simulation.
    pub fn name<T>(what: &'static str, elements: &[T], first: usize) {
        let named = Named {
            what,
            start: elements.as_ptr().addr(),
            bytes: size_of::<T>(),
            len: elements.len(),
            first,
        };
        tell(|machine| machine.name(named));
    }
}
