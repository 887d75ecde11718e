//! Whenever the allocator refuses what a copy needs, the copy fails with an error.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::limited::with_granted;
use filter::{CuckooFilter, SaveError, SnapshotError};

const BUCKETS: usize = 20_000;

/// Every filter has a few KiB of counters besides its table.
const SMALL: usize = 4 << 10;

/// Copies, and saves, while two threads change the filter all over: each allocation of a copy is refused
/// now and then.
#[test]
fn a_copy_without_memory_is_an_error() {
    crate::turn();
    let refused = SnapshotError::OutOfMemory { buckets: BUCKETS };
    let filter = CuckooFilter::builder().buckets(BUCKETS).build().unwrap();
    let copy = |times| with_granted(SMALL, times, || filter.try_clone().map(drop));
    let save = |times| with_granted(SMALL, times, || filter.to_bytes().map(drop));
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
        for times in (0..12).cycle().take(60) {
            for result in [copy(times), save(times)] {
                let may_succeed = times > 0 && result == Ok(());
                assert!(may_succeed || result == Err(refused), "{result:?}");
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    // Before anything is written: one for what others might change, and one for the copy or the
    // bytes.
    for (granted, expected) in [(0, Err(refused)), (1, Err(refused)), (2, Ok(()))] {
        assert_eq!([copy(granted), save(granted)], [expected; 2], "{granted}");
    }
    // Only the former to write to a file.
    let written = with_granted(SMALL, 0, || filter.write_to(std::io::sink()));
    assert!(matches!(written, Err(SaveError::Snapshot(error)) if error == refused));
    assert!(with_granted(SMALL, 1, || filter.write_to(std::io::sink())).is_ok());
}
