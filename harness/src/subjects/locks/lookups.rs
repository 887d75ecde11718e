//! The lookups of tables under striped locks: under a lock, by timestamps, and by versions.
//!
//! Those that take no lock write nothing. A move of a fingerprint writes the bucket that it goes to
//! before the one that it leaves, with release, and they read with acquire: a thread that sees that
//! a fingerprint has left a bucket sees it in the other one. If they find a fingerprint, there was a
//! copy: the second copy that exists for a moment during a move exists only while both stripes are
//! held, so no other thread can remove the first meanwhile.
//!
//! Other threads may see an insert's stores a moment after it has returned, so two threads that each
//! insert a key and then look up the other's may both miss it. That alone keeps these two from being
//! linearizable; a store that also excluded it would add an exchange to each insert and remove.

use std::sync::atomic::{Ordering, fence};

use filter::internals::Location;
use subject::layout::Layout;
use subject::spin::{Spin, SpinLock};
use subject::sync::AtomicU64;

use super::striped::{Lookup, MIN_STRIPES, Striped};

/// A cuckoo filter under striped spinlocks: the fine-grained baseline, made as fast as we know how. A lookup takes the
/// stripes of both buckets: a branch that saves the second one where the first has the key could not be predicted, and
/// took longer if half of the keys were there. So every operation takes effect while it holds what it read.
pub type SegmentLock<const STRIPES: usize = MIN_STRIPES> = Striped<ByLock<STRIPES>>;

pub struct ByLock<const STRIPES: usize = MIN_STRIPES>;

impl<const STRIPES: usize> Lookup for ByLock<STRIPES> {
    const NAME: &'static str = match STRIPES {
        MIN_STRIPES => "segment-lock",
        16_384 => "segment-lock-16384",
        _ => panic!("no subject has so many stripes"),
    };
    const STRIPES: usize = STRIPES;
    const DESCRIPTION: &'static str = match STRIPES {
        MIN_STRIPES => "cuckoo filter under 1,024 spin locks; chains are searched without locks",
        _ => "segment-lock with 16,384 locks",
    };
    const GUARANTEES: &'static str = "linearizable; blocking";
    type Lock = SpinLock;

    #[inline(always)]
    fn look(table: &Striped<Self>, location: Location) -> (bool, bool) {
        let _held = table.lock_both(location.first, location.second);
        let [first, second] = [location.first, location.second].map(|bucket| table.read(bucket));
        let holds = |word| Layout::contains(word, location.fingerprint);
        (true, holds(first) | holds(second))
    }
}

/// [`SegmentLock`] with lookups that never wait: they read the timestamps that the layout has
/// anyway. Our own lookup relies on nothing more.
pub type StripedTimestamps = Striped<ByTimestamps>;

pub struct ByTimestamps;

impl Lookup for ByTimestamps {
    const NAME: &'static str = "striped-timestamps";
    const DESCRIPTION: &'static str =
        "segment-lock with lookups that take no lock: three loads, which compare timestamps";
    const GUARANTEES: &'static str = "linearizable, but that an insert may be seen a moment after its end; blocking inserts and removes; lookups never write";
    type Lock = SpinLock;

    #[inline(always)]
    fn look(table: &Striped<Self>, location: Location) -> (bool, bool) {
        let words = [table.read(location.first), table.read(location.second)];
        let is_unchanged = table.read(location.first) == words[0];
        let holds = |word| Layout::contains(word, location.fingerprint);
        (is_unchanged, holds(words[0]) | holds(words[1]))
    }
}

/// [`SegmentLock`] with optimistic lookups, after MemC3 (Fan, Andersen, Kaminsky, NSDI 2013) and
/// libcuckoo (Li, Andersen, Kaminsky, Freedman, EuroSys 2014). The lock of a stripe is a
/// *version*. Three differences from the published schemes let a lookup do less:
///
/// - **A find needs no version**: one load shows that there was a copy. The version is loaded again
///   all the same, as a branch on the answer would be mispredicted; only if it has changed does a find end the lookup.
/// - **One version, not two.** If that of the first bucket is even and unchanged, the first word did
///   not change between the two looks at it, so neither bucket held a copy when the second was read:
///   a move from one to the other holds the stripes of both.
/// - **Stripes have cache lines of their own**, where MemC3 has 8,192 counters, and libcuckoo 65,536 locks,
///   side by side.
pub type Optimistic<const STRIPES: usize = MIN_STRIPES> = Striped<ByVersions<STRIPES>>;

pub struct ByVersions<const STRIPES: usize = MIN_STRIPES>;

impl<const STRIPES: usize> Lookup for ByVersions<STRIPES> {
    const NAME: &'static str = match STRIPES {
        MIN_STRIPES => "optimistic",
        16_384 => "optimistic-16384",
        _ => panic!("no subject has so many stripes"),
    };
    const STRIPES: usize = STRIPES;
    const DESCRIPTION: &'static str = match STRIPES {
        MIN_STRIPES => "segment-lock with versions: lookups write nothing, and may look again",
        _ => "optimistic with 16,384 versions",
    };
    const GUARANTEES: &'static str = "linearizable, but that an insert may be seen a moment after its end; blocking; lookups never write";
    type Lock = Version;

    #[inline(always)]
    fn look(table: &Striped<Self>, location: Location) -> (bool, bool) {
        let stripe = table.stripe(location.first);
        let version = stripe.now();
        let holds = |bucket| Layout::contains(table.read(bucket), location.fingerprint);
        let found = holds(location.first) | holds(location.second);
        (stripe.is_unchanged_since(version), found)
    }
}

/// A lock that counts (a *sequence lock*): odd while it is held, and two more each time.
#[derive(Debug, Default)]
pub struct Version(AtomicU64);

impl Spin for Version {
    #[inline]
    fn try_take(&self) -> bool {
        // Acquire: pairs with the release in `free`, to see what the last holder wrote.
        let taken = self.0.fetch_or(1, Ordering::Acquire) & 1 == 0;
        // Pairs with the fence in `is_unchanged_since`: a thread that sees a word written from here on
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
        // Acquire: pairs with the release in `free`, to see what was written under earlier
        // versions.
        self.0.load(Ordering::Acquire)
    }

    /// Returns whether the stripe was free at `version` and not taken before the words were read.
    #[inline]
    fn is_unchanged_since(&self, version: u64) -> bool {
        // Pairs with the fence in `try_take`.
        fence(Ordering::Acquire);
        self.0.load(Ordering::Relaxed) == version && version & 1 == 0
    }
}
