//! A single-threaded structure under one lock: the simplest way for a program to share it.

use std::hash::Hash;

use anyhow::Result;
use filter::Class;

use crate::Subject;
use crate::sync::Mutex;

/// A single-threaded structure, whose [`Locator`](Self::Locator) locates keys without it.
pub trait Sequential: Send + Sync + Sized + 'static {
    const NAME: &'static str;
    const DESCRIPTION: &'static str;
    const STASH: usize = 0;
    type Locator: Send + Sync + 'static;
    /// The location of a key, which the structure's operations take.
    type Location: Copy;

    /// Creates an empty structure, as [`Subject::with_buckets`] does.
    fn with_buckets(buckets: usize) -> Result<Self>;

    /// Returns what locates keys; it never changes.
    fn locator(&self) -> Self::Locator;

    fn locate<K: Hash + ?Sized>(locator: &Self::Locator, key: &K) -> Self::Location;

    fn class(_location: Self::Location) -> Option<Class> {
        None
    }

    /// Adds a copy; returns `false`, with nothing lost, if there is no room.
    fn insert(&mut self, location: Self::Location) -> bool;

    fn contains(&self, location: Self::Location) -> bool;

    /// Removes a copy; returns `false` if there is none.
    fn remove(&mut self, location: Self::Location) -> bool;

    fn memory_bytes(&self) -> usize;
}

/// A lock with the structure inside. It makes a [step](kcas::steps::step) before it is taken, and
/// one before it is released.
pub trait Lock: Send + Sync + 'static {
    type Inside: Sequential;
    const NAME: &'static str = Self::Inside::NAME;
    const DESCRIPTION: &'static str = Self::Inside::DESCRIPTION;

    /// Creates a lock that no thread holds.
    fn new(inside: Self::Inside) -> Self;

    /// Runs `action` with shared access to the structure.
    fn look<R>(&self, action: impl FnOnce(&Self::Inside) -> R) -> R;

    /// Runs `action` with exclusive access to the structure.
    fn change<R>(&self, action: impl FnOnce(&mut Self::Inside) -> R) -> R;
}

impl<S: Sequential> Lock for Mutex<S> {
    type Inside = S;

    fn new(inside: S) -> Self {
        Self::new(inside)
    }

    #[inline(always)]
    fn look<R>(&self, action: impl FnOnce(&S) -> R) -> R {
        self.with(
            #[inline(always)]
            |inside| action(inside),
        )
    }

    #[inline(always)]
    fn change<R>(&self, action: impl FnOnce(&mut S) -> R) -> R {
        self.with(action)
    }
}

/// A sequential structure under a lock. Keys are hashed before the lock is taken, and everything up to its exchange
/// is inlined: a location that is stored before would be waited for.
pub struct OneLock<L: Lock> {
    /// A copy, which can be read without the lock.
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

    #[inline(always)]
    fn insert<K: Hash + ?Sized>(&self, key: &K) -> bool {
        let location = self.locate(key);
        self.lock.change(
            #[inline(always)]
            |inside| inside.insert(location),
        )
    }

    #[inline(always)]
    fn contains<K: Hash + ?Sized>(&self, key: &K) -> bool {
        let location = self.locate(key);
        self.lock.look(
            #[inline(always)]
            |inside| inside.contains(location),
        )
    }

    #[inline(always)]
    fn remove<K: Hash + ?Sized>(&self, key: &K) -> bool {
        let location = self.locate(key);
        self.lock.change(
            #[inline(always)]
            |inside| inside.remove(location),
        )
    }

    fn class<K: Hash + ?Sized>(&self, key: &K) -> Option<Class> {
        L::Inside::class(self.locate(key))
    }

    fn memory_bytes(&self) -> usize {
        self.lock.look(Sequential::memory_bytes) + size_of::<Self>()
    }
}
