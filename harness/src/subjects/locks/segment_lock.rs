//! The same cuckoo filter under striped locks: the fine-grained baseline, made as fast as we know
//! how.
//!
//! The table and all that changes it are those of [`striped`](super::striped), which takes as few locks as are
//! correct, and hardly any while it searches for a chain of shifts. The lock is one atomic exchange to take
//! and one plain store to free. A lookup takes the stripe of one bucket and looks there; only where it finds
//! nothing it takes that of the other bucket, too, still holding the first.
//!
//! It is linearizable, as every operation takes effect while it holds what it read: a lookup that
//! finds nothing has seen both buckets with both stripes held. The table advances the timestamps of its words, and these
//! lookups do not read them: [`striped-timestamps`](super::StripedTimestamps) has lookups that do, and take no lock. It is
//! blocking: a thread that loses its core
//! while it holds a stripe delays whoever needs that stripe.

use std::hash::Hash;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use filter::Class;

use super::striped::Striped;
use subject::Subject;
use subject::layout::locate;
use subject::spin::Spin;

/// A cuckoo filter under striped locks.
#[derive(Debug)]
pub struct SegmentLock(Striped<SpinLock>);

/// A lock: `true` while it is held.
#[derive(Debug, Default)]
pub(super) struct SpinLock(AtomicBool);

impl Spin for SpinLock {
    #[inline]
    fn try_take(&self) -> bool {
        // Acquire pairs with the release in `free`: what the last holder wrote is seen.
        !self.0.swap(true, Ordering::Acquire)
    }

    #[inline]
    fn is_held(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    #[inline]
    fn free(&self) {
        self.0.store(false, Ordering::Release);
    }
}

impl Subject for SegmentLock {
    const NAME: &'static str = "segment-lock";
    const DESCRIPTION: &'static str =
        "cuckoo filter under striped spin locks; chains are searched without locks";
    const GUARANTEES: &'static str = "linearizable; blocking";

    fn with_buckets(buckets: usize) -> Result<Self> {
        Striped::new(buckets).map(Self)
    }

    #[inline]
    fn insert<K: Hash + ?Sized>(&self, key: &K) -> bool {
        self.0.insert(locate(self.0.geometry(), key))
    }

    #[inline(always)]
    fn contains<K: Hash + ?Sized>(&self, key: &K) -> bool {
        let location = locate(self.0.geometry(), key);
        self.0.find(location, |_, _| ()).is_some()
    }

    #[inline]
    fn remove<K: Hash + ?Sized>(&self, key: &K) -> bool {
        self.0.remove(locate(self.0.geometry(), key))
    }

    fn class<K: Hash + ?Sized>(&self, key: &K) -> Option<Class> {
        Some(locate(self.0.geometry(), key).into())
    }

    fn slots(&self) -> usize {
        self.0.slots()
    }

    fn memory_bytes(&self) -> usize {
        self.0.memory_bytes()
    }
}
