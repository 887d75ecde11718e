//! The atomics, mutexes and backoff of the measured locks. Ordinarily they are the standard library's
//! and crossbeam's; with the feature `simulation`, the same on the cores of the crate `simulator`, if a simulation is
//! under way.

use std::sync::PoisonError;

#[cfg(not(feature = "simulation"))]
pub use crossbeam_utils::Backoff;
use kcas::steps::step;
#[cfg(feature = "simulation")]
pub use simulated::Backoff;

pub use kcas::steps::name;
pub use kcas::sync::AtomicU64;

/// The standard library's mutex. Poison is ignored: no action here panics halfway, so a thread that
/// panicked elsewhere leaves everything intact.
#[derive(Debug, Default)]
pub struct Mutex<T> {
    #[cfg(feature = "simulation")]
    state: simulated::State,
    inside: std::sync::Mutex<T>,
}

impl<T> Mutex<T> {
    pub fn new(inside: T) -> Self {
        Self {
            #[cfg(feature = "simulation")]
            state: simulated::State::default(),
            inside: std::sync::Mutex::new(inside),
        }
    }

    /// Runs an action while the mutex is held, with a step before it is taken and released.
    #[inline(always)]
    pub fn with<R>(&self, action: impl FnOnce(&mut T) -> R) -> R {
        step();
        #[cfg(feature = "simulation")]
        let _held = self.state.take();
        let mut inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        let result = action(&mut inside);
        step();
        result
    }
}

#[cfg(feature = "simulation")]
mod simulated {
    use std::cell::Cell;
    use std::sync::atomic::Ordering;

    use simulator::{Pause, is_under_way, park, pause, wake};

    use super::AtomicU64;

    /// Like crossbeam's: waits longer each time, and in the end yields its core.
    #[derive(Debug, Default)]
    pub struct Backoff {
        ordinary: crossbeam_utils::Backoff,
        times: Cell<u32>,
    }

    impl Backoff {
        /// Like crossbeam: at most 2^6 pause instructions at a time.
        const SPINS: u32 = 6;

        pub fn new() -> Self {
            Self::default()
        }

        /// Waits, on the core.
        pub fn spin(&self) {
            let times = self.times().min(Self::SPINS);
            if !pause(Pause::Spin(1 << times)) {
                self.ordinary.spin();
            }
        }

        /// Waits; yields the core if the wait has been long.
        pub fn snooze(&self) {
            let how = match self.times() {
                times @ ..=Self::SPINS => Pause::Spin(1 << times),
                _ => Pause::Yield,
            };
            if !pause(how) {
                self.ordinary.snooze();
            }
        }

        /// Returns how often it has waited, and counts once more.
        fn times(&self) -> u32 {
            let times = self.times.get();
            self.times.replace((times + 1).min(Self::SPINS + 1))
        }
    }

    /// The state of a mutex in a simulation, where a waiter does what the standard library's does on
    /// Linux: it spins for a while, then parks.
    #[derive(Debug, Default)]
    pub(super) struct State(AtomicU64);

    /// No thread holds the mutex; one does; and others may be parked.
    const FREE: u64 = 0;
    const HELD: u64 = 1;
    const AWAITED: u64 = 2;

    /// How often a waiter looks before it parks, as in the standard library.
    const LOOKS: u32 = 100;

    /// A held mutex; released when dropped.
    pub(super) struct Guard<'a>(&'a AtomicU64);

    impl State {
        /// Takes the mutex, if a simulation is under way.
        pub(super) fn take(&self) -> Option<Guard<'_>> {
            is_under_way().then(|| {
                self.wait();
                Guard(&self.0)
            })
        }

        fn wait(&self) {
            if self.exchange() {
                return;
            }
            let mut seen = self.look();
            if seen == FREE && self.exchange() {
                return;
            }
            // Acquire, here and in `exchange`: pairs with the Release in `Guard::drop`.
            while seen == AWAITED || self.0.swap(AWAITED, Ordering::Acquire) != FREE {
                // The system call begins, and looks again: often the mutex has changed hands by
                // then. Nothing comes between that look and the sleep.
                pause(Pause::Call);
                if self.0.load(Ordering::Relaxed) == AWAITED {
                    park(std::ptr::from_ref(&self.0).addr());
                }
                seen = self.look();
            }
        }

        fn exchange(&self) -> bool {
            let (success, failure) = (Ordering::Acquire, Ordering::Relaxed);
            (self.0.compare_exchange(FREE, HELD, success, failure)).is_ok()
        }

        /// Looks up to [`LOOKS`] times, until the state is not [`HELD`]. Returns the last state seen.
        fn look(&self) -> u64 {
            for _ in 0..LOOKS {
                let seen = self.0.load(Ordering::Relaxed);
                if seen != HELD {
                    return seen;
                }
                pause(Pause::Spin(1));
            }
            HELD
        }
    }

    impl Drop for Guard<'_> {
        fn drop(&mut self) {
            // Release: pairs with the Acquire of the next holder.
            if self.0.swap(FREE, Ordering::Release) == AWAITED {
                wake(std::ptr::from_ref(self.0).addr());
            }
        }
    }
}
