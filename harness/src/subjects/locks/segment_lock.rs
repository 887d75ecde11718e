//! Our cuckoo filter under striped locks: the fine-grained baseline, made as fast as we know
//! how.
//!
//! The table and all updates are those of [`striped`](super::striped), which takes as few locks as
//! correctness allows, and hardly any while it searches for an eviction path. Taking a lock is one
//! atomic exchange, and freeing it one plain store. A lookup takes the stripe of one bucket and
//! looks there; only if it finds nothing does it also take the stripe of the other bucket, still
//! holding the first.
//!
//! It is linearizable, as every operation takes effect while it holds what it read: a lookup that
//! finds nothing has seen both buckets with both stripes held. The table advances the timestamps of
//! its words, but these lookups do not read them; [`striped-timestamps`](super::StripedTimestamps)
//! has lookups that do, and take no lock. It is blocking: a thread that loses its core while it
//! holds a stripe delays every thread that needs that stripe.

use filter::internals::Location;
use subject::spin::SpinLock;

use super::striped::{Lookup, Striped, StripedFilter};

/// A cuckoo filter under striped locks.
pub type SegmentLock = StripedFilter<ByLock>;

/// Lookups that take locks.
#[derive(Debug)]
pub struct ByLock;

impl Lookup for ByLock {
    const NAME: &'static str = "segment-lock";
    const DESCRIPTION: &'static str =
        "cuckoo filter under striped spin locks; chains are searched without locks";
    const GUARANTEES: &'static str = "linearizable; blocking";
    type Lock = SpinLock;

    #[inline(always)]
    fn contains(table: &Striped<SpinLock>, location: Location) -> bool {
        table.find(location, |_, _| ()).is_some()
    }
}
