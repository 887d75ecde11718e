//! Memory is bounded: the resident memory of the process stays where it is over a long churn, while
//! threads come and go, and (with the feature `steps`) while threads are stopped in the middle of inserts.
//!
//! In a process of its own, and one test: whatever else runs would be counted, too.

use std::thread;

use filter::CuckooFilter;
use memory_stats::memory_stats;

/// Keys that come and go; the table they fill to a load at which many inserts need a chain.
const KEYS: u64 = 7_600;
const BUCKETS: usize = 2_000;

const THREADS: u64 = 4;
const SHORT_LIVED: u64 = 10_000;

/// What the process may grow by, in bytes: what the allocator and the stacks of the system keep back varies
/// by some pages. One record more for each short-lived thread would be 2.5 MB, one word lost for each churned
/// key 20 MB.
const MAY_GROW: usize = 1 << 20;

fn resident_bytes() -> usize {
    let stats = memory_stats().expect("the system tells how much memory a process has");
    stats.physical_mem
}

/// Removes and inserts the keys of one thread, of so many, again and again.
fn churn(filter: &CuckooFilter, thread: u64, threads: u64, times: usize) {
    for _ in 0..times {
        for key in (thread..KEYS).step_by(threads as usize) {
            assert!(filter.remove(&key));
            filter.insert(&key).expect("its room is free again");
        }
    }
}

fn churn_in_parallel(filter: &CuckooFilter, times: usize) {
    thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || churn(filter, thread, THREADS, times));
        }
    });
}

fn come_and_go(filter: &CuckooFilter, threads: u64) {
    for first in (0..threads).step_by(THREADS as usize) {
        thread::scope(|scope| {
            for thread in first..first + THREADS {
                scope.spawn(move || churn(filter, thread % KEYS, KEYS, 3));
            }
        });
    }
}

/// Runs `work` once, for all that is made at first use, and then again: memory stays.
fn stays(what: &str, mut work: impl FnMut()) {
    work();
    let before = resident_bytes();
    work();
    let grown = resident_bytes().saturating_sub(before);
    println!("{what}: {} KiB, grown by {} KiB", before >> 10, grown >> 10);
    assert!(grown <= MAY_GROW, "{what}: grown by {grown} bytes");
}

#[test]
fn resident_memory_stays() {
    let filter = CuckooFilter::builder().buckets(BUCKETS).build().unwrap();
    for key in 0..KEYS {
        filter.insert(&key).unwrap();
    }
    stays("churn", || churn_in_parallel(&filter, 300));
    stays("10,000 short-lived threads", || {
        come_and_go(&filter, SHORT_LIVED);
    });
    #[cfg(feature = "steps")]
    with_stopped_threads(filter);
}

/// Threads are stopped at many different steps of inserts, most of which need a chain; the others go on.
#[cfg(feature = "steps")]
fn with_stopped_threads(filter: CuckooFilter) {
    use std::sync::Arc;

    use kcas::steps::freeze;

    let filter = Arc::new(filter);
    let insert = |key: u64| {
        let filter = Arc::clone(&filter);
        move || filter.insert(&key)
    };
    let mut stopped = Vec::new();
    for step in (10..100).step_by(3) {
        let key = KEYS + step;
        match freeze(step, insert(key)) {
            Ok(frozen) => stopped.push((key, frozen)),
            Err(done) => assert!(done.is_ok() && filter.remove(&key)),
        }
    }
    assert!(stopped.len() > 5, "only {} inserts are long", stopped.len());
    println!("{} threads are stopped inside an insert", stopped.len());
    stays("churn beside them", || churn_in_parallel(&filter, 100));
    stays("10,000 short-lived threads beside them", || {
        come_and_go(&filter, SHORT_LIVED);
    });
    for (key, frozen) in stopped {
        assert_eq!(frozen.thaw(), Ok(()));
        assert!(filter.contains(&key));
    }
    assert!((0..KEYS).all(|key| filter.contains(&key)));
}
