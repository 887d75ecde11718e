//! A structure for one thread, under one lock: what a program gets by sharing it so. Which lock, and what is inside,
//! its users say: `global-lock`, `rwlock`, and the cuckoo hash tables.

use std::hash::Hash;

use anyhow::Result;
use filter::Class;

use crate::Subject;

/// A structure for one thread. Where a key belongs is found without it, from a copy of its [`Locator`](Self::Locator).
pub trait Sequential: Send + Sync + Sized + 'static {
    /// [`Subject::STASH`].
    const STASH: usize = 0;
    /// All that must be known to locate keys.
    type Locator: Send + Sync + 'static;
    /// What the structure is asked for, of a key.
    type Location: Copy;

    /// An empty one, as [`Subject::with_buckets`] has it.
    fn with_buckets(buckets: usize) -> Result<Self>;

    /// What locates keys; it never changes.
    fn locator(&self) -> Self::Locator;

    /// Where a key belongs.
    fn locate<K: Hash + ?Sized>(locator: &Self::Locator, key: &K) -> Self::Location;

    /// [`Subject::class`].
    fn class(_location: Self::Location) -> Option<Class> {
        None
    }

    /// Adds a copy; `false`, with nothing lost, if there is no room.
    fn insert(&mut self, location: Self::Location) -> bool;

    /// Whether there is a copy.
    fn contains(&self, location: Self::Location) -> bool;

    /// Takes a copy out; `false` if there is none.
    fn remove(&mut self, location: Self::Location) -> bool;

    /// [`Subject::slots`].
    fn slots(&self) -> usize;

    /// Size in bytes of what it has allocated.
    fn memory_bytes(&self) -> usize;
}

/// A lock with the structure inside. It calls [`step`](kcas::steps::step) before it is taken and before it
/// is freed. A thread that panicked elsewhere leaves a structure that is whole, so that poison is ignored: no operation
/// panics half done.
pub trait Lock: Send + Sync + 'static {
    /// What is inside.
    type Inside: Sequential;
    /// [`Subject::NAME`].
    const NAME: &'static str;
    /// [`Subject::DESCRIPTION`].
    const DESCRIPTION: &'static str;

    /// A lock that nobody holds.
    fn new(inside: Self::Inside) -> Self;

    /// Lets `action` look into the structure.
    fn look<R>(&self, action: impl FnOnce(&Self::Inside) -> R) -> R;

    /// Lets `action` change the structure.
    fn change<R>(&self, action: impl FnOnce(&mut Self::Inside) -> R) -> R;
}

/// A sequential structure under a lock. Keys are hashed before the lock is taken.
pub struct OneLock<L: Lock> {
    /// A copy, so that it can be read without the lock.
    locator: <L::Inside as Sequential>::Locator,
    lock: L,
}

impl<L: Lock> OneLock<L> {
    #[inline(always)]
    fn locate<K: Hash + ?Sized>(&self, key: &K) -> <L::Inside as Sequential>::Location {
        L::Inside::locate(&self.locator, key)
    }
}

impl<L: Lock> Subject for OneLock<L> {
    const NAME: &'static str = L::NAME;
    const DESCRIPTION: &'static str = L::DESCRIPTION;
    const GUARANTEES: &'static str = "linearizable; blocking";
    const STASH: usize = L::Inside::STASH;

    fn with_buckets(buckets: usize) -> Result<Self> {
        let inside = L::Inside::with_buckets(buckets)?;
        Ok(Self {
            locator: inside.locator(),
            lock: L::new(inside),
        })
    }

    #[inline]
    fn insert<K: Hash + ?Sized>(&self, key: &K) -> bool {
        let location = self.locate(key);
        self.lock.change(|inside| inside.insert(location))
    }

    #[inline(always)]
    fn contains<K: Hash + ?Sized>(&self, key: &K) -> bool {
        let location = self.locate(key);
        self.lock.look(|inside| inside.contains(location))
    }

    #[inline]
    fn remove<K: Hash + ?Sized>(&self, key: &K) -> bool {
        let location = self.locate(key);
        self.lock.change(|inside| inside.remove(location))
    }

    fn class<K: Hash + ?Sized>(&self, key: &K) -> Option<Class> {
        L::Inside::class(self.locate(key))
    }

    fn slots(&self) -> usize {
        self.lock.look(Sequential::slots)
    }

    fn memory_bytes(&self) -> usize {
        self.lock.look(Sequential::memory_bytes) + size_of::<Self>()
    }
}
