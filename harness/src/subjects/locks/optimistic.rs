//! Our cuckoo filter with optimistic lookups, which write nothing, after MemC3 (Fan, Andersen,
//! Kaminsky, NSDI 2013) and libcuckoo (Li, Andersen, Kaminsky, Freedman, EuroSys 2014). For
//! lookups, it is the strongest rival with locks.
//!
//! The table and all updates are those of [`striped`](super::striped), as under `segment-lock`. The
//! lock of a stripe is a *version*: a number that is odd while the stripe is held, and that grows
//! by two each time (a *sequence lock*). A lookup notes the version, reads the words, and starts
//! again if the version has changed meanwhile. Three differences from the published schemes let a
//! lookup do less:
//!
//! - **A find needs no version.** A bucket is one word, so one load shows that there was a copy at
//!   some moment. The version is loaded again all the same, so that there is one branch for both
//!   answers: one on the answer would be mispredicted where hits and misses alternate at random.
//! - **One version, not two.** A lookup that finds nothing checks only the version of its first
//!   bucket. If it is even and unchanged, the first word did not change between the two looks at it,
//!   so neither bucket held a copy when the second was read. No copy can have been on its way from
//!   one to the other, as a move holds the stripes of both.
//! - **Buckets share 1,024 stripes**, each with cache lines of its own, where MemC3 has 8,192
//!   counters, and libcuckoo 65,536 locks, side by side.
//!
//! Other threads may see an insert's stores a moment after it has returned, as nothing but the next
//! acquisition of the stripe waits for them. So two threads that each insert a key and then look up
//! the other's may both miss it; otherwise the filter is linearizable. It is blocking: inserts,
//! removes and lookups that find nothing wait for a stripe whose holder has lost its core.

use std::hint::{black_box, select_unpredictable};
use std::sync::atomic::{Ordering, fence};

use filter::internals::Location;
use kcas::steps::step;
use subject::layout::Layout;
use subject::spin::Spin;
use subject::sync::{AtomicU64, Backoff};

use super::striped::{Lookup, Striped};

pub type Optimistic = Striped<ByVersions>;

#[derive(Debug)]
pub struct ByVersions;

/// A lock that counts: odd while it is held.
#[derive(Debug, Default)]
pub struct Version(AtomicU64);

impl Spin for Version {
    #[inline]
    fn try_take(&self) -> bool {
        // Acquire: pairs with the release in `free`, to see what the last holder wrote.
        let taken = self.0.fetch_or(1, Ordering::Acquire) & 1 == 0;
        // Pairs with the fence in `change_since`: a thread that sees a word written from here on
        // also sees the odd version.
        fence(Ordering::Release);
        taken
    }

    #[inline]
    fn is_held(&self) -> bool {
        self.0.load(Ordering::Relaxed) & 1 == 1
    }

    #[inline]
    fn free(&self) {
        // No other thread writes while the version is odd. Release: pairs with the acquire of the
        // next holder, and with that in `now`.
        let odd = self.0.load(Ordering::Relaxed);
        self.0.store(odd.wrapping_add(1), Ordering::Release);
    }
}

impl Version {
    #[inline]
    fn now(&self) -> u64 {
        step();
        // Acquire: pairs with the release in `free`, to see what was written under earlier
        // versions.
        self.0.load(Ordering::Acquire)
    }

    /// Returns zero if the stripe was free at `version` and was not taken before the words had been
    /// read.
    #[inline]
    fn change_since(&self, version: u64) -> u64 {
        // Pairs with the fence in `try_take`.
        fence(Ordering::Acquire);
        step();
        (self.0.load(Ordering::Relaxed) ^ version) | (version & 1)
    }
}

impl Lookup for ByVersions {
    const NAME: &'static str = "optimistic";
    const DESCRIPTION: &'static str = "cuckoo filter under striped versions: lookups write nothing, and look again when one has changed";
    const GUARANTEES: &'static str = "linearizable, but that an insert may be seen a moment after its end; blocking; lookups never write";
    type Lock = Version;

    #[inline(always)]
    fn contains(table: &Striped<Self>, location: Location) -> bool {
        let stripe = table.stripe(location.first);
        let holds = |bucket| Layout::contains(table.read(bucket), location.fingerprint);
        let backoff = Backoff::new();
        loop {
            let version = stripe.now();
            let found = holds(location.first) | holds(location.second);
            // One branch, whatever the answer is. The compiler must not see through the select, or
            // it would turn it into an `or` and that into two branches.
            let change = stripe.change_since(version);
            if black_box(select_unpredictable(found, 0, change)) == 0 {
                return found;
            }
            backoff.snooze();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_changes_when_the_stripe_is_taken() {
        let stripe = Version::default();
        let before = stripe.now();
        assert_eq!(stripe.change_since(before), 0);
        assert!(stripe.try_take() && !stripe.try_take() && stripe.is_held());
        assert!(stripe.change_since(before) != 0);
        assert!(
            stripe.change_since(stripe.now()) != 0,
            "somebody may be writing now"
        );
        stripe.free();
        assert!(stripe.change_since(before) != 0 && !stripe.is_held());
        assert_eq!(stripe.change_since(stripe.now()), 0);
    }
}
