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

/// Runs `action`; this build has no steps to perturb.
#[cfg(not(feature = "steps"))]
pub fn during<R>(_round: u64, _thread: usize, action: impl FnOnce() -> R) -> R {
    action()
}

#[cfg(feature = "steps")]
mod hook {
    use std::hint;
    use std::thread;
    use std::time::Duration;

    use rand::rngs::SmallRng;
    use rand::{RngExt, SeedableRng};

    /// A stop, in microseconds: long enough for others to do tens to thousands of calls meanwhile.
    const STOP: std::ops::RangeInclusive<u64> = 10..=500;

    /// Longest spin: a few microseconds, in which another thread does a few calls.
    const SPIN: u32 = 100;

    /// How often a thread is disturbed: at one step in so many.
    struct Rates {
        stop: u32,
        spin: u32,
        yielding: u32,
    }

    impl Rates {
        /// Some rounds are rough and some are calm: which is needed to hit a race is not known.
        fn of_round(random: &mut SmallRng) -> Self {
            let mut one_in = |least: u32, most: u32| 1 << random.random_range(least..=most);
            Self {
                stop: one_in(6, 12),
                spin: one_in(2, 8),
                // On a busy machine it is another program that gets the core, for milliseconds.
                yielding: one_in(9, 12),
            }
        }
    }

    pub(super) fn new(round: u64, thread: usize) -> impl FnMut(u64) {
        let rates = Rates::of_round(&mut SmallRng::seed_from_u64(round));
        let mut random = SmallRng::seed_from_u64(round ^ ((thread as u64 + 1) << 48));
        move |_| {
            let drawn: u32 = random.random();
            // From different bits: the rates are powers of two, and these are independent.
            if drawn.is_multiple_of(rates.stop) {
                thread::sleep(Duration::from_micros(random.random_range(STOP)));
            } else if (drawn >> 12).is_multiple_of(rates.spin) {
                for _ in 0..random.random_range(0..SPIN) {
                    hint::spin_loop();
                }
            } else if (drawn >> 20).is_multiple_of(rates.yielding) {
                thread::yield_now();
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
        // At least four stops of 10 us and more, at the rarest rate.
        let disturbed = run(true);
        assert!(disturbed > Duration::from_micros(40), "{disturbed:?}");
        assert!(disturbed > 2 * run(false));
    }
}
