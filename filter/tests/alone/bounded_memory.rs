//! Bounded memory: the resident memory of the process does not grow over a long churn, while
//! threads come and go, and (with the feature `__steps`) while threads are stopped in the middle of
//! inserts.

use std::sync::atomic::{AtomicU64, Ordering};

use filter::CuckooFilter;
use memory_stats::memory_stats;

use crate::at_once::on_threads;

/// Keys in the table: enough of them that many inserts need a chain.
const KEYS: u64 = 7_400;
const BUCKETS: usize = 2_000;

const THREADS: usize = 4;
const SHORT_LIVED: usize = 10_000;

/// How much the process may grow, in bytes: what the allocator and the system's stacks retain
/// varies by a few pages. One extra record for each short-lived thread would be 2.5 MB, one word
/// lost for each churned key 20 MB.
const MAY_GROW: usize = 1 << 20;

pub(crate) fn resident_bytes() -> usize {
    let stats = memory_stats().expect("the system knows how much memory a process has");
    stats.physical_mem
}

/// A filter that always holds [`KEYS`] keys, the oldest of which make room for new ones: each
/// thread has its own lane of keys, at regular intervals.
struct Window {
    filter: CuckooFilter,
    oldest: [AtomicU64; THREADS],
}

impl Window {
    fn new() -> Window {
        let filter = CuckooFilter::builder().buckets(BUCKETS).build().unwrap();
        (0..KEYS).for_each(|key| filter.insert(&key).unwrap());
        let oldest = std::array::from_fn(|lane| AtomicU64::new(lane as u64));
        Window { filter, oldest }
    }

    fn slide(&self, lane: usize, times: usize) {
        for _ in 0..times {
            let oldest = self.oldest[lane].fetch_add(THREADS as u64, Ordering::Relaxed);
            assert!(self.filter.remove(&oldest).unwrap());
            let new = oldest + KEYS;
            self.filter.insert(&new).expect("there is room");
        }
    }

    fn slide_in_parallel(&self, times: usize) {
        on_threads(THREADS as u64, |lane| self.slide(lane as usize, times));
    }

    fn come_and_go(&self) {
        for _ in 0..SHORT_LIVED / THREADS {
            self.slide_in_parallel(20);
        }
    }
}

/// Runs `work` once, for everything that is made on first use, and then again: memory must not
/// grow.
fn stays(case: &str, mut work: impl FnMut()) {
    work();
    let before = resident_bytes();
    work();
    let grown = resident_bytes().saturating_sub(before);
    println!("{case}: {} KiB, grown by {} KiB", before >> 10, grown >> 10);
    assert!(grown <= MAY_GROW, "{case}: grown by {grown} bytes");
}

#[test]
fn resident_memory_stays() {
    crate::turn();
    let window = Window::new();
    stays("churn", || window.slide_in_parallel(50_000));
    stays("10,000 short-lived threads", || window.come_and_go());
    #[cfg(feature = "__steps")]
    with_stopped_threads(window);
}

/// Threads are stopped at many different steps of inserts, most of which need a chain; the others
/// go on.
#[cfg(feature = "__steps")]
fn with_stopped_threads(window: Window) {
    use std::sync::Arc;

    use kcas_testing::steps::freeze;

    let window = Arc::new(window);
    let filter = &window.filter;
    let insert = |key: u64| {
        let window = Arc::clone(&window);
        move || window.filter.insert(&key)
    };
    let mut stopped = Vec::new();
    for step in (5..60).step_by(2) {
        let key = u64::MAX - step;
        match freeze(step, insert(key)) {
            Ok(frozen) => stopped.push((key, frozen)),
            Err(done) => assert!(done.is_ok() && filter.remove(&key).unwrap()),
        }
    }
    assert!(stopped.len() > 5, "only {} inserts are long", stopped.len());
    println!("{} threads are stopped inside an insert", stopped.len());
    stays("churn beside them", || window.slide_in_parallel(50_000));
    let come_and_go = || window.come_and_go();
    stays("10,000 short-lived threads beside them", come_and_go);
    for (key, frozen) in stopped {
        assert_eq!(frozen.thaw(), Ok(()));
        assert!(filter.contains(&key));
    }
    for oldest in &window.oldest {
        let oldest = oldest.load(Ordering::Relaxed);
        let mut held = (oldest..oldest + KEYS).step_by(THREADS);
        assert!(held.all(|key| filter.contains(&key)));
    }
}
