//! Tests that descriptors are freed, including those of threads that end, and while others
//! continue.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use kcas_epoch::{Entry, WordArray};
use memory_stats::memory_stats;

/// Tries to add one to both words.
fn add(words: &WordArray) -> bool {
    let entries = [0, 1].map(|index| {
        let expected = words.load(index);
        Entry::new(index, expected, expected + 1)
    });
    words.kcas(&entries).is_ok()
}

/// In a process of its own with a single test: anything else that runs would be counted too.
#[test]
fn memory_stays_with_threads_that_come_and_go() {
    const THREADS: u64 = 3_000;
    const OPERATIONS: u64 = 300;
    // An operation on two words takes three descriptors, of 300 bytes together at least.
    const UNFREED: usize = (THREADS * OPERATIONS) as usize * 300;

    let resident = || memory_stats().expect("the system tells").physical_mem;
    let words = WordArray::new(2);
    let running = AtomicBool::new(true);
    let grown = thread::scope(|scope| {
        let other = scope.spawn(|| {
            let mut added = 0;
            while running.load(Ordering::Relaxed) {
                added += u64::from(add(&words));
            }
            added
        });
        let before = resident();
        let mut added = 0;
        for _ in 0..THREADS {
            let run = || (0..OPERATIONS).filter(|_| add(&words)).count() as u64;
            added += scope.spawn(run).join().unwrap();
        }
        let grown = resident().saturating_sub(before);
        running.store(false, Ordering::Relaxed);
        added += other.join().unwrap();
        assert_eq!((words.load(0), words.load(1)), (added, added));
        grown
    });
    let (more, taken) = (grown >> 10, UNFREED >> 10);
    println!("{more} KiB more, of {taken} KiB that were taken");
    assert!(grown < UNFREED / 10, "{grown} bytes more");
}
