//! Makes rare interleavings common: a thread yields its core, spins for a moment, or stays stopped for a
//! while, at random steps inside its calls.
//!
//! Needs a build with the feature `steps` ([`kcas::steps`]). Without it there are no steps to stop at.

/// Whether this build can stop threads inside a call.
pub const AVAILABLE: bool = cfg!(feature = "steps");

/// Runs `action` with its steps perturbed, at rates and moments that follow from the seed of the round
/// and the number of the thread.
#[cfg(feature = "steps")]
pub fn during<R>(round: u64, thread: usize, action: impl FnOnce() -> R) -> R {
    kcas::steps::with_hook(hook::new(round, thread), action)
}

/// Says that the current thread begins a call: rounds may spare the first steps of each.
#[cfg(feature = "steps")]
pub fn call_begins() {
    hook::STEPS_OF_CALL.set(0);
}

/// Says that the current thread begins a call; this build has no steps to perturb.
#[cfg(not(feature = "steps"))]
pub fn call_begins() {}

/// Runs `action`; this build has no steps to perturb.
#[cfg(not(feature = "steps"))]
pub fn during<R>(_round: u64, _thread: usize, action: impl FnOnce() -> R) -> R {
    action()
}

#[cfg(feature = "steps")]
mod hook {
    use std::cell::Cell;
    use std::hint;
    use std::thread;
    use std::time::{Duration, Instant};

    use rand::rngs::SmallRng;
    use rand::{RngExt, SeedableRng};

    /// A stop, as a power of two of microseconds: others do a few to a thousand calls meanwhile.
    const STOP: std::ops::RangeInclusive<u32> = 1..=9;

    /// The system cannot wake a thread sooner than about after so long.
    const SHORTEST_SLEEP: Duration = Duration::from_micros(64);

    /// Longest spin: a few microseconds, in which another thread does a few calls.
    const SPIN: u32 = 100;

    thread_local! {
        pub(super) static STEPS_OF_CALL: Cell<u32> = const { Cell::new(0) };
    }

    /// How often a thread is disturbed: at one step in so many, after the first ones of a call.
    struct Rates {
        spared: u32,
        stop: u32,
        spin: u32,
        yielding: u32,
    }

    impl Rates {
        /// Some rounds are rough and some are calm: which is needed to hit a race is not known.
        fn of_round(random: &mut SmallRng) -> Self {
            // Most calls are over after a few steps. With these spared, and the others disturbed all the
            // more, threads stop inside K-CAS, or while they meet one.
            let spared = [0, 0, 0, 4, 8, 32][random.random_range(0..6)];
            let mut one_in = |least: u32, most: u32| 1 << random.random_range(least..=most);
            Self {
                spared,
                stop: if spared == 0 {
                    one_in(6, 12)
                } else {
                    one_in(3, 9)
                },
                spin: one_in(2, 8),
                // On a busy machine it is another program that gets the core, for milliseconds.
                yielding: one_in(9, 12),
            }
        }
    }

    #[derive(Debug, PartialEq, Eq)]
    enum Disturbance {
        Stop,
        Spin,
        Yield,
    }

    impl Rates {
        /// What happens before a step, as a random number has it.
        fn at(&self, steps_of_call: u32, drawn: u32) -> Option<Disturbance> {
            // From different bits: the rates are powers of two, and these are independent.
            if steps_of_call < self.spared {
                None
            } else if drawn.is_multiple_of(self.stop) {
                Some(Disturbance::Stop)
            } else if (drawn >> 12).is_multiple_of(self.spin) {
                Some(Disturbance::Spin)
            } else if (drawn >> 20).is_multiple_of(self.yielding) {
                Some(Disturbance::Yield)
            } else {
                None
            }
        }
    }

    pub(super) fn new(round: u64, thread: usize) -> impl FnMut(u64) {
        let rates = Rates::of_round(&mut SmallRng::seed_from_u64(round));
        let mut random = SmallRng::seed_from_u64(round ^ ((thread as u64 + 1) << 48));
        move |_| {
            let steps = STEPS_OF_CALL.get();
            STEPS_OF_CALL.set(steps.saturating_add(1));
            match rates.at(steps, random.random()) {
                None => {}
                Some(Disturbance::Stop) => {
                    stop(Duration::from_micros(1 << random.random_range(STOP)));
                }
                Some(Disturbance::Spin) => {
                    for _ in 0..random.random_range(0..SPIN) {
                        hint::spin_loop();
                    }
                }
                Some(Disturbance::Yield) => thread::yield_now(),
            }
        }
    }

    fn stop(time: Duration) {
        if time >= SHORTEST_SLEEP {
            return thread::sleep(time);
        }
        let begun = Instant::now();
        while begun.elapsed() < time {
            thread::yield_now();
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn some_rounds_spare_the_first_steps_of_a_call_and_no_others() {
            let rates = (0..100).map(|round| Rates::of_round(&mut SmallRng::seed_from_u64(round)));
            let (sparing, others): (Vec<_>, Vec<_>) = rates.partition(|rates| rates.spared > 0);
            assert!(sparing.len() > 20 && others.len() > 20);
            for rates in sparing {
                assert_eq!(rates.at(rates.spared - 1, 0), None);
                assert_eq!(rates.at(rates.spared, 0), Some(Disturbance::Stop));
            }
        }
    }
}

#[cfg(all(test, feature = "steps"))]
mod tests {
    use std::time::{Duration, Instant};

    use kcas::steps::step;

    use super::*;

    #[test]
    fn steps_are_disturbed_and_nothing_else_is() {
        let run = |perturbed: bool| {
            let begun = Instant::now();
            let steps = || (0..20_000).for_each(|_| step());
            if perturbed {
                during(1, 0, steps);
            } else {
                steps();
            }
            begun.elapsed()
        };
        assert!(run(false) < Duration::from_millis(10));
        // Some stops, at the rarest rate.
        let disturbed = run(true);
        assert!(disturbed > Duration::from_micros(40), "{disturbed:?}");
        assert!(disturbed > 2 * run(false));
    }
}
