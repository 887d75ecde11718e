//! Operations under striped locks, stopped where others can do most harm.

use std::rc::Rc;

use kcas::steps::with_hook;
use subject::Subject;

use super::lookups::{ByTimestamps, ByVersions, SegmentLock};
use super::striped::{Lookup, Striped};

/// Returns the keys whose buckets these are, of two.
fn keys<L: Lookup>(filter: &Striped<L>, buckets: [usize; 2]) -> impl Iterator<Item = u64> {
    let geometry = filter.table.geometry;
    (0..).filter(move |key: &u64| {
        let location = subject::layout::locate(&geometry, key);
        [location.first, location.second] == buckets
    })
}

/// The empty slot is always in the bucket that the insert does not read.
#[test]
fn an_insert_is_not_refused_while_a_slot_is_empty_throughout() {
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

/// The only copy is always in the bucket that the lookup is not reading: it is in the second
/// while the first is read, and moves before the step `hops`.
fn finds_a_copy_that_hops<L: Lookup>(hops: u64) {
    let filter = Rc::new(Striped::<L>::with_buckets(2).unwrap());
    let class = |key: &u64| filter.class(key);
    let (zero, one) = keys(&filter, [0, 1])
        .find_map(|zero| {
            let mut others = keys(&filter, [1, 0]).take(10_000);
            Some((zero, others.find(|one| class(one) == class(&zero))?))
        })
        .unwrap();
    assert!(filter.insert(&zero));
    let other = Rc::clone(&filter);
    let hook = move |step| {
        if step == hops {
            // Removes look into the lower stripe first.
            assert!(other.insert(&one) && other.remove(&one));
        }
    };
    assert!(with_hook(hook, || filter.contains(&one)), "{}", L::NAME);
}

#[test]
fn a_copy_that_hops_behind_a_lookup_is_found() {
    // The steps: word of bucket 1, word of bucket 0, word of bucket 1 again.
    finds_a_copy_that_hops::<ByTimestamps>(1);
    // The steps: version, word of bucket 1, word of bucket 0, version.
    finds_a_copy_that_hops::<ByVersions>(2);
}
