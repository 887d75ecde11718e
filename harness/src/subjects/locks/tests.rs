//! Operations under striped locks, stopped where others can do most harm.

use std::rc::Rc;

use kcas_testing::steps::with_hook;
use subject::Subject;

use super::lookups::SegmentLock;

/// Returns the keys whose buckets these are, of two.
fn keys(filter: &SegmentLock, buckets: [usize; 2]) -> impl Iterator<Item = u64> {
    let geometry = filter.table.geometry;
    (0..).filter(move |key: &u64| {
        let location = subject::layout::locate(&geometry, key);
        [location.first, location.second] == buckets
    })
}

/// The empty slot is always in the bucket that the insert does not read.
#[test]
fn insert_with_empty_slot_throughout_succeeds() {
    let filter = Rc::new(<SegmentLock>::with_buckets(2).unwrap());
    let mut firsts = keys(&filter, [0, 1]);
    let (leaves, refused) = (firsts.next().unwrap(), firsts.next().unwrap());
    let mut seconds = keys(&filter, [1, 0]);
    let comes = seconds.next().unwrap();
    for key in firsts.take(3).chain([leaves]).chain(seconds.take(3)) {
        assert!(filter.insert(&key));
    }

    let other = Rc::clone(&filter);
    let hook = move |step| {
        // After the step that looks up the counter come the reads: first, second, then those of
        // the search: first, second, second four times, first four times.
        let (goes, comes) = match step {
            2 | 4 => (leaves, comes),
            3 | 9 => (comes, leaves),
            _ => return,
        };
        assert!(other.remove(&goes) && other.insert(&comes));
    };
    assert!(with_hook(hook, || filter.insert(&refused)));
}
