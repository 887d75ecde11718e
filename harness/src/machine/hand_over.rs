//! Measures the time in which a cache line moves from one core to another.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;

use super::pinning::Cores;

/// Returns the mean of a hand-over before and one after; 0 if they differ much. If a hypervisor moves the cores, they
/// change fourfold within a second.
pub(crate) fn throughout(before: f64, after: f64) -> f64 {
    const ALIKE: f64 = 1.25;
    if before.max(after) <= ALIKE * before.min(after) {
        f64::midpoint(before, after)
    } else {
        0.0
    }
}

/// Runs `action` on two cores, 0 and 1, from the same moment on; returns the average result.
fn on_both(cores: &Cores, pair: [usize; 2], action: impl Fn(usize) -> f64 + Sync) -> f64 {
    let ready = AtomicUsize::new(0);
    let run = |number: usize| {
        cores.pin(pair[number]);
        // A thread that sleeps would begin late. But it yields: with real-time priority, a spinning thread would keep
        // the other one forever on the core on which both are created. SeqCst: nothing is timed before both have seen
        // the other one.
        ready.fetch_add(1, Ordering::SeqCst);
        while ready.load(Ordering::SeqCst) < 2 {
            thread::yield_now();
        }
        action(number)
    };
    thread::scope(|scope| {
        let threads = [0, 1].map(|number| scope.spawn(move || run(number)));
        let results = threads.map(|thread| thread.join().expect("a probe does not panic"));
        (results[0] + results[1]) / 2.0
    })
}

/// A longer measurement is given up: other programs use the cores, and both threads hardly ever run at once. Its mean is
/// already longer than any hand-over.
const LONGEST: Duration = Duration::from_millis(4);

/// Returns the time until a core sees the exchange of another one, in ns: the least of `times` measurements, since any
/// disturbance only adds to it. Each takes at most a millisecond if no other program uses the cores.
pub(crate) fn hand_over(cores: &Cores, pair: [usize; 2], times: usize) -> f64 {
    let measure = |_| {
        let ball = CachePadded::new(AtomicU64::new(0));
        let stop = CachePadded::new(AtomicBool::new(false));
        on_both(cores, pair, |me| {
            let (from, to) = (me as u64, 1 - me as u64);
            let exchange = || {
                // AcqRel pairs with itself on the other core: nothing else is published.
                (ball.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed)).is_ok()
            };
            trips(exchange, &stop) / 2.0
        })
    };
    (0..times).map(measure).fold(f64::INFINITY, f64::min)
}

/// Makes exchanges, each of which needs an exchange by the other core before it. Returns ns per exchange.
fn trips(mut exchange: impl FnMut() -> bool, stop: &AtomicBool) -> f64 {
    const TRIPS: u32 = 2_000;
    const LOOKS: u32 = 1 << 10;
    let (start, mut done, mut failed) = (Instant::now(), 0, 0_u32);
    // Relaxed, as below: a thread that misses it looks again.
    while done < TRIPS && !stop.load(Ordering::Relaxed) {
        if exchange() {
            done += 1;
            continue;
        }
        failed = failed.wrapping_add(1);
        if failed.is_multiple_of(LOOKS) && start.elapsed() > LONGEST {
            stop.store(true, Ordering::Relaxed);
        }
    }
    start.elapsed().as_secs_f64() * 1e9 / f64::from(done.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moved_cores_have_no_distance() {
        assert_eq!(throughout(100.0, 120.0), 110.0);
        assert_eq!([throughout(25.0, 125.0), throughout(125.0, 25.0)], [0.0; 2]);
    }

    /// Otherwise a sweep on a busy machine would hardly progress.
    #[test]
    fn core_without_answer_is_given_up() {
        let stop = AtomicBool::new(false);
        let ns = trips(|| false, &stop);
        assert!(stop.into_inner() && ns >= LONGEST.as_nanos() as f64, "{ns}");
        let ns = trips(|| true, &AtomicBool::new(false));
        assert!(ns < LONGEST.as_nanos() as f64, "{ns}");
    }
}
