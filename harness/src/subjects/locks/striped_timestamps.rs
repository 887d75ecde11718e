//! The filter under striped locks of `segment-lock`, with lookups that take no lock: they read the
//! timestamps that the layout has anyway.
//!
//! The table and all updates are those of [`striped`](super::striped). Whatever adds a fingerprint
//! to a bucket advances the timestamp in its word, and a move writes the bucket that a fingerprint
//! goes to before the one that it leaves. Our own lookup relies on nothing more: it reads the first
//! word, the second, and the first again. If it finds the fingerprint nowhere, and the first word
//! unchanged, then the first bucket did not have it throughout, nor did the second when it was
//! read. If it finds the fingerprint, there was a copy: the second copy that exists for a moment
//! during a move exists only while both stripes are held, so no other thread can remove the first
//! meanwhile.
//!
//! So lookups touch no lock, write nothing and never wait. Inserts and removes are blocking.
//!
//! Words are written with release and read with acquire: a thread that sees that a fingerprint has
//! left a bucket sees it in the other one. Other threads may see an insert's stores a moment after it
//! has returned, so two threads that each insert a key and then look up the other's may both miss it.
//! That alone keeps the filter from being linearizable; a store that also excluded it would add an
//! exchange to each insert and remove.

use std::hint::{black_box, select_unpredictable};

use filter::internals::Location;
use subject::layout::Layout;
use subject::spin::SpinLock;
use subject::sync::Backoff;

use super::striped::{Lookup, Striped};

/// A cuckoo filter under striped locks, with lookups by timestamps.
pub type StripedTimestamps = Striped<ByTimestamps>;

#[derive(Debug)]
pub struct ByTimestamps;

impl Lookup for ByTimestamps {
    const NAME: &'static str = "striped-timestamps";
    const DESCRIPTION: &'static str =
        "segment-lock with lookups that take no lock: three loads, which compare timestamps";
    const GUARANTEES: &'static str = "linearizable, but that an insert may be seen a moment after its end; blocking inserts and removes; lookups never write";
    type Lock = SpinLock;

    #[inline(always)]
    fn contains(table: &Striped<Self>, location: Location) -> bool {
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
            // One branch, whatever the answer is. The compiler must not see through the select, or
            // it would turn it into an `or` and that into two branches.
            if black_box(select_unpredictable(found, 0, change)) == 0 {
                return found;
            }
            backoff.spin();
        }
    }
}
