//! Makes rare interleavings common: at random steps inside its calls, a thread yields its core,
//! spins for a moment, or stays stopped for a while.
//!
//! Needs a build with the feature `steps` ([`kcas::steps`]). Without it there are no steps to stop
//! at.

use subject::calls::Operation;

/// The role of a thread in a round.
#[derive(Clone, Copy, Debug, Default)]
pub struct Part {
    pub thread: usize,
    /// Whether its role is to mislead the others. If only some calls are disturbed, none of its
    /// calls are.
    pub misleads: bool,
    /// The calls that the round is designed to mislead: half of such rounds disturb these alone.
    pub misled: Option<Operation>,
}

/// Whether this build can stop threads inside a call.
pub const AVAILABLE: bool = cfg!(feature = "steps");

/// Runs `action` with its steps perturbed, at rates and moments determined by the seed of the round
/// and the thread's role in it. Without the feature `steps`, there are none to perturb.
pub fn during<R>(_round: u64, _part: Part, action: impl FnOnce() -> R) -> R {
    #[cfg(feature = "steps")]
    return kcas_testing::steps::with_hook(hook::new(_round, _part), action);
    #[cfg(not(feature = "steps"))]
    action()
}

/// Marks that the current thread begins a call of this kind: which calls are disturbed, and where,
/// differs from round to round.
pub fn call_begins(_operation: Operation) {
    #[cfg(feature = "steps")]
    hook::UNDER_WAY.set((Some(_operation), 0));
}

#[cfg(feature = "steps")]
mod hook {
    use std::cell::Cell;
    use std::hint;
    use std::ops::RangeInclusive;
    use std::thread;
    use std::time::{Duration, Instant};

    use rand::rngs::SmallRng;
    use rand::{RngExt, SeedableRng};
    use subject::calls::Operation;

    use super::Part;

    /// Length of a stop, as a power of two of microseconds, in which others make 1 to 1,000 calls.
    const STOP: RangeInclusive<u32> = 1..=9;

    /// Length of a stop if every few steps have one: others make a few calls.
    const SHORT_STOP: RangeInclusive<u32> = 0..=5;

    /// The shortest time after which the system can wake a thread, roughly.
    const MIN_SLEEP: Duration = Duration::from_micros(64);

    /// Longest spin: a few microseconds, in which another thread makes a few calls.
    const SPIN: u32 = 100;

    thread_local! {
        pub(super) static UNDER_WAY: Cell<UnderWay> = const { Cell::new((None, 0)) };
    }

    /// The call that a thread is in, and how many of its steps are done.
    type UnderWay = (Option<Operation>, u32);

    /// Which calls are disturbed, and where.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    enum Victims {
        All,
        /// All calls, after this many steps: most calls are over by then, so that threads stop
        /// inside a K-CAS, or when they meet one.
        Late(u32),
        /// Lookups, between their few loads: whatever misleads a lookup happens there.
        Lookups,
        /// Lookups and removes, which begin with the same loads.
        LookupsAndRemoves,
        /// Inserts, between their loads, so that a bucket they saw full no longer is.
        Inserts,
    }

    impl Victims {
        const ALL: [Self; 7] = [
            Self::All,
            Self::Late(4),
            Self::Late(8),
            Self::Late(32),
            Self::Lookups,
            Self::LookupsAndRemoves,
            Self::Inserts,
        ];

        fn include(self, (operation, steps): UnderWay) -> bool {
            use Operation::{Contains, Count, Insert, InsertIfAbsent, Remove};
            match (self, operation) {
                (Self::All, _) => true,
                (Self::Late(spared), _) => steps >= spared,
                (Self::Lookups | Self::LookupsAndRemoves, Some(Contains | Count)) => true,
                (Self::LookupsAndRemoves, Some(Remove)) => true,
                (Self::Inserts, Some(Insert | InsertIfAbsent)) => true,
                _ => false,
            }
        }
    }

    /// How often a thread is disturbed: at one step in this many.
    struct Rates {
        victims: Victims,
        stop: u32,
        stops: RangeInclusive<u32>,
        spin: u32,
        yielding: u32,
    }

    impl Rates {
        /// Draws the rates of a round. They vary widely, as it is unknown which of them expose a race.
        fn in_round(random: &mut SmallRng, misled: Option<Operation>) -> Self {
            let any = Victims::ALL[random.random_range(0..Victims::ALL.len())];
            let victims = match misled {
                Some(Operation::Contains) if random.random() => Victims::Lookups,
                Some(Operation::Insert) if random.random() => Victims::Inserts,
                _ => any,
            };
            let mut one_in = |least: u32, most: u32| 1 << random.random_range(least..=most);
            let (stop, stops) = match victims {
                Victims::All => (one_in(6, 12), STOP),
                Victims::Late(_) => (one_in(3, 9), STOP),
                Victims::Lookups | Victims::LookupsAndRemoves => (one_in(1, 3), SHORT_STOP),
                // Inserts load more often.
                Victims::Inserts => (one_in(1, 2), SHORT_STOP),
            };
            Self {
                victims,
                stop,
                stops,
                spin: one_in(2, 8),
                // Rarely: on a busy machine another program takes the core for milliseconds.
                yielding: one_in(9, 12),
            }
        }
    }

    pub(super) fn new(round: u64, part: Part) -> impl FnMut(u64) {
        let rates = Rates::in_round(&mut SmallRng::seed_from_u64(round), part.misled);
        let mut random = SmallRng::seed_from_u64(round ^ ((part.thread as u64 + 1) << 48));
        let spared = part.misleads && !matches!(rates.victims, Victims::All | Victims::Late(_));
        move |_| {
            if spared {
                return;
            }
            let (operation, steps) = UNDER_WAY.get();
            UNDER_WAY.set((operation, steps.saturating_add(1)));
            let drawn: u32 = random.random();
            // Uses different bits: the rates are powers of two, and these are independent.
            if !rates.victims.include((operation, steps)) {
            } else if drawn.is_multiple_of(rates.stop) {
                let micros = 1 << random.random_range(rates.stops.clone());
                stop(Duration::from_micros(micros));
            } else if (drawn >> 12).is_multiple_of(rates.spin) {
                (0..random.random_range(0..SPIN)).for_each(|_| hint::spin_loop());
            } else if (drawn >> 20).is_multiple_of(rates.yielding) {
                thread::yield_now();
            }
        }
    }

    fn stop(time: Duration) {
        if time >= MIN_SLEEP {
            return thread::sleep(time);
        }
        let begun = Instant::now();
        while begun.elapsed() < time {
            thread::yield_now();
        }
    }

    #[cfg(test)]
    mod tests {
        use kcas::steps::step;

        use super::super::{call_begins, during};
        use super::*;

        #[test]
        fn each_kind_of_round_disturbs_its_victims_alone() {
            use Operation::{Contains, Count, Insert, InsertIfAbsent, Remove};
            let all = [Contains, Count, Remove, Insert, InsertIfAbsent];
            for (victims, spared, disturbed) in [
                (Victims::All, 0, &all[..]),
                (Victims::Late(4), 4, &all),
                (Victims::Late(8), 8, &all),
                (Victims::Late(32), 32, &all),
                (Victims::Lookups, 0, &all[..2]),
                (Victims::LookupsAndRemoves, 0, &all[..3]),
                (Victims::Inserts, 0, &all[3..]),
            ] {
                assert!(spared == 0 || !victims.include((Some(Insert), spared - 1)));
                for operation in all {
                    let includes = victims.include((Some(operation), spared));
                    assert_eq!(includes, disturbed.contains(&operation));
                }
                let count = |misled| {
                    let rates =
                        |round| Rates::in_round(&mut SmallRng::seed_from_u64(round), misled);
                    let drawn = (0..100).filter(|&round| rates(round).victims == victims);
                    drawn.count()
                };
                // Rounds that are designed to mislead calls disturb these alone in half of the cases.
                let misled = match victims {
                    Victims::Lookups => count(Some(Contains)),
                    Victims::Inserts => count(Some(Insert)),
                    _ => 50,
                };
                assert!(count(None) > 0 && misled > 40, "{victims:?}");
            }
        }

        #[test]
        fn only_steps_are_disturbed() {
            let steps = || {
                call_begins(Operation::Insert);
                (0..20_000).for_each(|_| step());
                UNDER_WAY.get().1
            };
            assert_eq!(steps(), 0);
            assert_eq!(during(1, Part::default(), steps), 20_000);
            assert_eq!(steps(), 0);
        }
    }
}
