//! Whenever the allocator refuses what a copy needs, the copy fails with an error.
#![cfg(not(kcas_loom))]

mod limited;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use filter::{CuckooFilter, SnapshotError};
use limited::with_granted;

const BUCKETS: usize = 20_000;

/// Every filter has a few KiB of counters besides its table.
const SMALL: usize = 4 << 10;

/// Copies, and saves, while two threads change the filter all over: repeated until each allocation
/// of a copy was refused once.
#[test]
fn a_copy_without_memory_is_an_error() {
    let refused = SnapshotError::OutOfMemory { buckets: BUCKETS };
    let filter = CuckooFilter::builder().buckets(BUCKETS).build().unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for thread in 0..2 {
            let (filter, done) = (&filter, &done);
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    let keys = || (0..BUCKETS as u64).map(|key| (thread, key));
                    keys().for_each(|key| filter.insert(&key).unwrap());
                    keys().for_each(|key| assert!(filter.remove(&key)));
                }
            });
        }
        let mut most = 0;
        for _ in 0..5 {
            for times in 0..12 {
                let copy = with_granted(SMALL, times, || filter.try_clone().map(drop));
                match copy {
                    Err(SnapshotError::OutOfMemory { buckets }) => {
                        assert_eq!(buckets, BUCKETS);
                        most = most.max(times);
                    }
                    Ok(()) | Err(SnapshotError::TooBusy) => {}
                    Err(error) => panic!("{error}"),
                }
                assert!(times > 0 || copy == Err(refused));
                let saved = with_granted(SMALL, times, || filter.to_bytes().map(drop));
                assert!(times > 0 || saved == Err(refused));
            }
        }
        done.store(true, Ordering::Relaxed);
        println!("allocations refused: up to the {}th of a copy", most + 1);
    });
    // With no other threads: one for the copy, and one for the bytes.
    assert_eq!(
        with_granted(SMALL, 0, || filter.try_clone().map(drop)),
        Err(refused)
    );
    assert_eq!(
        with_granted(SMALL, 1, || filter.try_clone().map(drop)),
        Ok(())
    );
    assert_eq!(
        with_granted(SMALL, 1, || filter.to_bytes().map(drop)),
        Err(refused)
    );
    assert_eq!(
        with_granted(SMALL, 2, || filter.to_bytes().map(drop)),
        Ok(())
    );
}
