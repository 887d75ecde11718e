//! The door of the measured locks: what they share between threads comes from here. Ordinarily it
//! is the standard library's and crossbeam's; with the feature `simulation`, the same observed by a
//! [simulator](kcas::simulation), if one is under way.
//!
//! These atomics make no [step](kcas::steps): subjects make theirs themselves.

#[cfg(not(feature = "simulation"))]
pub use ordinary::{AtomicBool, AtomicU64, Backoff, Mutex, touch, zeros};
#[cfg(feature = "simulation")]
pub use simulated::{AtomicBool, AtomicU64, Backoff, Mutex, touch, zeros};

pub use kcas::simulation::{Access, name};

#[cfg(not(feature = "simulation"))]
mod ordinary {
    pub use std::sync::Mutex;
    pub use std::sync::atomic::{AtomicBool, AtomicU64};

    pub use crossbeam_utils::Backoff;

    use super::Access;

    /// Returns this many zeros, or `None` if there is no memory for them.
    pub fn zeros(len: usize) -> Option<Box<[AtomicU64]>> {
        bytemuck::try_zeroed_slice_box(len).ok()
    }

    /// Tells a simulator of an access to memory that is no atomic. Does nothing here.
    #[inline(always)]
    pub fn touch<T>(_: &T, _: Access) {}
}

#[cfg(feature = "simulation")]
mod simulated {
    use std::cell::Cell;
    use std::ops::{Deref, DerefMut};
    use std::sync::atomic::{self, Ordering};
    use std::sync::{self, LockResult, PoisonError};

    use kcas::simulation::{self, Access, Pause};

    /// Declares an observed atomic with the operations that subjects use.
    macro_rules! observed {
        ($name:ident, $value:ty) => {
            #[derive(Debug, Default)]
            pub struct $name(atomic::$name);

            impl $name {
                pub const fn new(value: $value) -> Self {
                    Self(atomic::$name::new(value))
                }

                fn before(&self, access: Access) -> &atomic::$name {
                    touch(&self.0, access);
                    &self.0
                }

                pub fn load(&self, order: Ordering) -> $value {
                    self.before(Access::Load).load(order)
                }

                pub fn store(&self, value: $value, order: Ordering) {
                    self.before(Access::Store).store(value, order);
                }

                pub fn compare_exchange(
                    &self,
                    current: $value,
                    new: $value,
                    success: Ordering,
                    failure: Ordering,
                ) -> Result<$value, $value> {
                    let atomic = self.before(Access::Exchange);
                    let exchanged = atomic.compare_exchange(current, new, success, failure);
                    simulation::exchanged(exchanged.is_ok());
                    exchanged
                }

                /// It never fails for no reason.
                pub fn compare_exchange_weak(
                    &self,
                    current: $value,
                    new: $value,
                    success: Ordering,
                    failure: Ordering,
                ) -> Result<$value, $value> {
                    self.compare_exchange(current, new, success, failure)
                }
            }

            /// Whatever else is done to it is one exchange, which succeeds.
            impl Deref for $name {
                type Target = atomic::$name;

                fn deref(&self) -> &atomic::$name {
                    self.before(Access::Exchange)
                }
            }
        };
    }

    observed!(AtomicU64, u64);
    observed!(AtomicBool, bool);

    /// Returns this many zeros, or `None` if there is no memory for them.
    pub fn zeros(len: usize) -> Option<Box<[AtomicU64]>> {
        let mut zeros = Vec::new();
        zeros.try_reserve_exact(len).ok()?;
        zeros.resize_with(len, AtomicU64::default);
        Some(zeros.into_boxed_slice())
    }

    /// Tells a simulator of an access.
    #[inline]
    pub fn touch<T>(place: &T, access: Access) {
        simulation::access(std::ptr::from_ref(place).addr(), access);
    }

    /// As crossbeam's: waits longer each time, and in the end gives its core away.
    #[derive(Debug)]
    pub struct Backoff {
        ordinary: crossbeam_utils::Backoff,
        times: Cell<u32>,
    }

    impl Default for Backoff {
        fn default() -> Self {
            Self::new()
        }
    }

    impl Backoff {
        /// As in crossbeam: 2^6 pause instructions at most, 2^10 before it rests at its longest.
        const SPINS: u32 = 6;
        const YIELDS: u32 = 10;

        pub fn new() -> Self {
            Self {
                ordinary: crossbeam_utils::Backoff::new(),
                times: Cell::new(0),
            }
        }

        /// Waits, on the core.
        pub fn spin(&self) {
            let times = self.times.get().min(Self::SPINS);
            self.times.set((self.times.get() + 1).min(Self::SPINS + 1));
            if !simulation::pause(Pause::Spin(1 << times)) {
                self.ordinary.spin();
            }
        }

        /// Waits; gives the core away if that has been long.
        pub fn snooze(&self) {
            let times = self.times.get();
            let pause = if times <= Self::SPINS {
                Pause::Spin(1 << times)
            } else {
                Pause::Yield
            };
            self.times.set((times + 1).min(Self::YIELDS + 1));
            if !simulation::pause(pause) {
                self.ordinary.snooze();
            }
        }
    }

    /// As the standard library's. In a simulation the state of the lock is a simulated word, and a
    /// waiter does what the standard library's does on Linux: it spins for a while, then parks.
    #[derive(Debug, Default)]
    pub struct Mutex<T> {
        state: AtomicU64,
        inside: sync::Mutex<T>,
    }

    /// Nobody holds the mutex; somebody does; and others may be parked.
    const FREE: u64 = 0;
    const HELD: u64 = 1;
    const AWAITED: u64 = 2;

    /// How often a waiter looks before it parks, as in the standard library.
    const LOOKS: u32 = 100;

    impl<T> Mutex<T> {
        pub const fn new(inside: T) -> Self {
            Self {
                state: AtomicU64::new(FREE),
                inside: sync::Mutex::new(inside),
            }
        }

        /// Waits until nobody holds the mutex, and takes it.
        pub fn lock(&self) -> LockResult<Guard<'_, T>> {
            let awaited = simulation::is_under_way().then(|| {
                self.take();
                self
            });
            let guard = |inside| Guard {
                inside: Some(inside),
                state: awaited.map(|mutex| &mutex.state),
            };
            match self.inside.lock() {
                Ok(inside) => Ok(guard(inside)),
                Err(poisoned) => Err(PoisonError::new(guard(poisoned.into_inner()))),
            }
        }

        fn take(&self) {
            if self.exchange(FREE, HELD) {
                return;
            }
            let mut seen = self.look();
            if seen == FREE && self.exchange(FREE, HELD) {
                return;
            }
            // Acquire, here and in `exchange`: pairs with the Release in the guard's `drop`.
            while seen == AWAITED || self.state.swap(AWAITED, Ordering::Acquire) != FREE {
                // The system call begins, and looks again: often the mutex has changed hands by then.
                // Nothing comes between that look and the sleep.
                simulation::pause(Pause::Call);
                if self.state.load(Ordering::Relaxed) == AWAITED {
                    simulation::park(std::ptr::from_ref(&self.state).addr());
                }
                seen = self.look();
            }
        }

        fn exchange(&self, from: u64, to: u64) -> bool {
            let (success, failure) = (Ordering::Acquire, Ordering::Relaxed);
            (self.state.compare_exchange(from, to, success, failure)).is_ok()
        }

        /// Looks until it is not just held, or has been for long.
        fn look(&self) -> u64 {
            for _ in 0..LOOKS {
                let seen = self.state.load(Ordering::Relaxed);
                if seen != HELD {
                    return seen;
                }
                simulation::pause(Pause::Spin(1));
            }
            HELD
        }
    }

    #[derive(Debug)]
    pub struct Guard<'a, T> {
        inside: Option<sync::MutexGuard<'a, T>>,
        state: Option<&'a AtomicU64>,
    }

    impl<T> Deref for Guard<'_, T> {
        type Target = T;

        fn deref(&self) -> &T {
            self.inside.as_ref().expect("held until it is dropped")
        }
    }

    impl<T> DerefMut for Guard<'_, T> {
        fn deref_mut(&mut self) -> &mut T {
            self.inside.as_mut().expect("held until it is dropped")
        }
    }

    impl<T> Drop for Guard<'_, T> {
        fn drop(&mut self) {
            self.inside = None;
            // Release: pairs with the Acquire of the next holder.
            if let Some(state) = self.state
                && state.swap(FREE, Ordering::Release) == AWAITED
            {
                simulation::wake(std::ptr::from_ref(state).addr());
            }
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_mutex_outside_a_simulation_excludes_threads() {
            let mutex = Mutex::new(0);
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| (0..10_000).for_each(|_| *mutex.lock().unwrap() += 1));
                }
            });
            assert_eq!(*mutex.lock().unwrap(), 40_000);
        }
    }
}
