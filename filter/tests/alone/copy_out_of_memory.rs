//! Whenever the allocator refuses what a copy needs, the copy fails with an error.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::limited::with_granted;
use filter::{CuckooFilter, SaveError, SnapshotError};

const BUCKETS: usize = 20_000;

/// Every filter has a few KiB of counters besides its table.
const SMALL: usize = 4 << 10;

/// Copies, and saves, while two threads change the filter all over: repeated until each allocation
/// of a copy was refused once.
#[test]
fn a_copy_without_memory_is_an_error() {
    let _turn = crate::turn();
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
                    Ok(()) => {}
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
    // Before anything is written: one for what others might change, and one for the copy or the
    // bytes.
    for granted in 0..2 {
        let copy = with_granted(SMALL, granted, || filter.try_clone().map(drop));
        assert_eq!(copy, Err(refused));
        let saved = with_granted(SMALL, granted, || filter.to_bytes().map(drop));
        assert_eq!(saved, Err(refused));
    }
    let copy = with_granted(SMALL, 2, || filter.try_clone().map(drop));
    assert_eq!(copy, Ok(()));
    let saved = with_granted(SMALL, 2, || filter.to_bytes().map(drop));
    assert_eq!(saved, Ok(()));
    // Only the former to write to a file.
    let written = with_granted(SMALL, 0, || filter.write_to(std::io::sink()));
    assert!(matches!(written, Err(SaveError::Snapshot(error)) if error == refused));
    assert!(with_granted(SMALL, 1, || filter.write_to(std::io::sink())).is_ok());
}
