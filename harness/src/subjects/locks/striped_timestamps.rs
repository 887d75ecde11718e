//! The filter under striped locks of `segment-lock`, whose lookups take none: they read the timestamps that the layout has
//! anyway.
//!
//! The table and all that changes it are those of [`striped`](super::striped). Whatever adds a fingerprint to a bucket
//! advances the timestamp in its word, and a shift writes the bucket that a fingerprint goes to before the one that it
//! leaves. That is all that our own lookup relies on: the first word, the second, and the first again. Who finds the
//! fingerprint nowhere, and the first word unchanged, knows that the first bucket did not have it throughout, nor the
//! second when that was read. Who finds it knows that there was a copy: the second one, which a shift makes
//! for a moment, is there only while both stripes are held, so that nobody can take the first away meanwhile.
//!
//! So lookups touch no lock, write nothing and wait for nobody. Inserts and removes are blocking.
//!
//! # Orderings
//!
//! Words are written with [`Release`](Ordering::Release) and read with [`Acquire`](Ordering::Acquire): who sees that a
//! fingerprint has left a bucket sees it in the other one. Nothing more: a thread's stores may be seen by others a moment
//! after its insert has returned. So two threads that each insert a key and then look up the other's may both
//! miss it. That is what keeps it from being linearizable; our filter excludes it. A store that did, too, would be another
//! exchange in each insert and remove.

use std::hint::{black_box, select_unpredictable};

use crossbeam_utils::Backoff;
use filter::hashing::Location;
use subject::layout::Layout;
use subject::spin::SpinLock;

use super::striped::{Lookup, Striped, StripedFilter};

/// A cuckoo filter under striped locks, with lookups by timestamps.
pub type StripedTimestamps = StripedFilter<ByTimestamps>;

/// Lookups by timestamps.
#[derive(Debug)]
pub struct ByTimestamps;

impl Lookup for ByTimestamps {
    const NAME: &'static str = "striped-timestamps";
    const DESCRIPTION: &'static str =
        "segment-lock with lookups that take no lock: three loads, which compare timestamps";
    const GUARANTEES: &'static str = "linearizable, but that an insert may be seen a moment after its end; blocking inserts and removes; lookups never write";
    type Lock = SpinLock;

    #[inline(always)]
    fn contains(table: &Striped<SpinLock>, location: Location) -> bool {
        let Location {
            fingerprint,
            first,
            second,
        } = location;
        let holds = |word| Layout::contains(word, fingerprint);
        let backoff = Backoff::new();
        loop {
            let words = [table.read(first), table.read(second)];
            let change = words[0] ^ table.read(first);
            let found = holds(words[0]) | holds(words[1]);
            // One branch, whatever the answer is. The compiler must not see through the select: it would make an `or` of it,
            // and two branches of that.
            if black_box(select_unpredictable(found, 0, change)) == 0 {
                return found;
            }
            backoff.spin();
        }
    }
}

#[cfg(all(test, feature = "steps"))]
mod tests {
    use filter::Class;
    use subject::Subject;
    use subject::layout::locate;

    use super::*;

    /// The only copy is always in the bucket that the lookup is not reading: it is in the second while the
    /// first is read, and then hops.
    #[test]
    fn a_copy_that_hops_behind_a_lookup_is_found() {
        let filter = std::rc::Rc::new(StripedTimestamps::with_buckets(2).unwrap());
        let geometry = filter.0.geometry;
        let location = |key: &u64| locate(&geometry, key);
        // Two keys of one class, of which each prefers another bucket.
        let (zero, one) = (0..20_000_u64)
            .filter(|key| (location(key).first, location(key).second) == (0, 1))
            .find_map(|zero| {
                let like = |key: &u64| {
                    location(key).first == 1 && Class::from(location(key)) == location(&zero).into()
                };
                Some((zero, (0..20_000).find(like)?))
            })
            .unwrap();
        assert!(filter.insert(&zero));

        let other = std::rc::Rc::clone(&filter);
        // The steps: word of bucket 1, word of bucket 0, word of bucket 1 again.
        let hook = move |step| {
            if step == 1 {
                // Removes look into the lower stripe first.
                assert!(other.insert(&one) && other.remove(&one));
            }
        };
        assert!(kcas::steps::with_hook(hook, || filter.contains(&one)));
    }
}
