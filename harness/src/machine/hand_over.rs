//! Measures the time in which a cache line moves from one core to another.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;

use super::pinning::Cores;

/// Exchanges of each thread in a measurement.
const TRIPS: u32 = 2_000;

/// A longer measurement is given up: other programs use the cores, and both threads hardly ever run at once.
const MAX_TIME: Duration = Duration::from_millis(4);

/// Returns the time until the second core sees an exchange of the first one, in ns: the least of five measurements,
/// since any disturbance only adds to it. `None` if it is not known, or if there is one core.
pub(crate) fn hand_over(cores: &Cores) -> Option<f64> {
    let measure = |_| {
        let (ball, ready) = (CachePadded::new(AtomicUsize::new(0)), AtomicUsize::new(0));
        let run = |me| {
            cores.pin(me);
            // A thread that sleeps would begin late. But it yields: with real-time priority, a spinning thread would
            // keep the other one forever on the core on which both are created. SeqCst: nothing is timed before both
            // have seen the other one.
            ready.fetch_add(1, Ordering::SeqCst);
            while ready.load(Ordering::SeqCst) < 2 {
                thread::yield_now();
            }
            exchange(&ball, me)
        };
        thread::scope(|scope| {
            let other = scope.spawn(|| run(1));
            let time = scope.spawn(|| run(0)).join().ok()??;
            other.join().ok()??;
            Some(time.as_secs_f64() * 1e9 / f64::from(2 * TRIPS))
        })
    };
    let times = (0..5).filter(|_| cores.count() > 1).filter_map(measure);
    times.reduce(f64::min)
}

/// Makes exchanges, each of which needs an exchange by the other core before it.
fn exchange(ball: &AtomicUsize, me: usize) -> Option<Duration> {
    const FAILURES_PER_LOOK: u32 = 1 << 10;
    let (start, mut failed) = (Instant::now(), 0_u32);
    for _ in 0..TRIPS {
        // AcqRel pairs with itself on the other core: nothing else is published.
        while (ball.compare_exchange(me, 1 - me, Ordering::AcqRel, Ordering::Relaxed)).is_err() {
            failed = failed.wrapping_add(1);
            if failed.is_multiple_of(FAILURES_PER_LOOK) && start.elapsed() > MAX_TIME {
                return None;
            }
        }
    }
    Some(start.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Otherwise a sweep on a busy machine would hardly progress.
    #[test]
    fn exchange_without_answer_is_given_up() {
        assert_eq!(exchange(&AtomicUsize::new(0), 1), None);
    }
}
