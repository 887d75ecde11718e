//! A filter that forgets, of a few buckets that all threads change all the time.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use filter::ExpiringCuckooFilter;

/// Not a test of what is promised, since timestamps of 7 bits wrap all the time here: it counts how often that
/// is noticed. `SECONDS`, `BUCKETS`, `WRITERS`, `ADVANCERS`, `PAUSE_US`;
/// `SHARED=0` gives each writer a key of its own.
#[test]
#[ignore = "takes ten seconds, and only counts"]
fn how_often_a_hot_bucket_misleads() {
    let number =
        |name: &str, usual: u64| std::env::var(name).map_or(usual, |value| value.parse().unwrap());
    let (seconds, buckets) = (number("SECONDS", 10), number("BUCKETS", 2) as usize);
    let (writers, advancers) = (number("WRITERS", 3), number("ADVANCERS", 2));
    let shared = number("SHARED", 1) == 1;
    let pause = Duration::from_micros(number("PAUSE_US", 0));
    let filter = ExpiringCuckooFilter::builder()
        .buckets(buckets)
        .build()
        .unwrap();
    let done = AtomicBool::new(false);
    let (missing, calls, longest) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let begun = AtomicU64::new(0);
    let late = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..advancers {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    filter.advance().unwrap();
                    begun.fetch_add(1, Ordering::Relaxed);
                    if !pause.is_zero() {
                        thread::sleep(pause);
                    }
                }
            });
        }
        for thread in 0..writers {
            let (filter, done, missing, calls, longest, late) =
                (&filter, &done, &missing, &calls, &longest, &late);
            scope.spawn(move || {
                let key = if shared { 0 } else { thread };
                let mut since = None;
                while !done.load(Ordering::Relaxed) {
                    let before = filter.period();
                    calls.fetch_add(1, Ordering::Relaxed);
                    let start = Instant::now();
                    let answer = filter.insert_unique(&key);
                    longest.fetch_max(start.elapsed().as_micros() as u64, Ordering::Relaxed);
                    let after = filter.period();
                    if after > before + 3 {
                        late.fetch_add(1, Ordering::Relaxed);
                    }
                    // It was there until period since + 3 began.
                    let due = |since: u64| after >= since + 3;
                    if answer == Ok(true) && since.is_some_and(|since| !due(since)) {
                        missing.fetch_add(1, Ordering::Relaxed);
                    }
                    since = answer.is_ok().then_some(before);
                }
            });
        }
        thread::sleep(Duration::from_secs(seconds));
        done.store(true, Ordering::Relaxed);
    });
    (0..3).for_each(|_| _ = filter.advance().unwrap());
    println!(
        "{calls:?} calls, {begun:?} periods; {missing:?} times a key was missing within its window; {late:?} calls took \
         more than three periods, the longest {longest:?} µs; {} left",
        filter.len()
    );
}
