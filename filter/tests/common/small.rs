//! A filter of three buckets of two slots, and keys whose buckets a test can choose.
// Not every test with this module uses all of it.
#![allow(dead_code)]

use std::collections::BTreeMap;
use std::sync::Arc;

use filter::internals::Geometry;
use filter::layout::Layout;
use filter::{Class, CuckooFilter, Filter, InsertError, SnapshotError};
use histories::{Call, Event, Failure, OneClass};

pub(crate) use crate::identity::Identity;

pub(crate) const BUCKETS: usize = 3;
const SLOTS: usize = 2;
const BITS: usize = 4;

pub(crate) type Small = CuckooFilter<SLOTS, BITS, Identity>;

/// Returns a key that prefers bucket `first` and has `second` as its other one: the `nth` such
/// fingerprint.
pub(crate) fn key(first: usize, second: usize, nth: usize) -> u64 {
    key_of::<SLOTS, BITS>(first, second, nth)
}

/// [`key`] for another layout of three buckets.
pub(crate) fn key_of<const SLOTS: usize, const BITS: usize>(
    first: usize,
    second: usize,
    nth: usize,
) -> u64 {
    let geometry = Geometry::<SLOTS, BITS>::new(BUCKETS);
    (1..=Layout::<SLOTS, BITS>::MAX_FINGERPRINT)
        .map(|fingerprint| {
            let high = ((first as u64) << 32) / BUCKETS as u64 + 1;
            high << 32 | fingerprint
        })
        .filter(|&hash| {
            let location = geometry.locate(hash);
            (location.first, location.second) == (first, second)
        })
        .nth(nth)
        .expect("each pair of buckets has a third of the fingerprints")
}

/// Makes a filter that holds these keys, each in its preferred bucket.
pub(crate) fn holding(keys: &[u64]) -> Arc<Small> {
    let filter = CuckooFilter::builder()
        .layout::<SLOTS, BITS>()
        .buckets(BUCKETS)
        .unmixed_hasher(Identity::default())
        .build()
        .unwrap();
    let geometry = Geometry::<SLOTS, BITS>::new(BUCKETS);
    let mut room = [SLOTS; BUCKETS];
    for held in keys {
        let location = geometry.locate(*held);
        assert!(room[location.first] > 0, "{held:#x} has no room");
        // An insert takes the emptier bucket, so the other one is filled meanwhile.
        let other = location.second;
        let fillers = if other == location.first {
            0
        } else {
            room[other]
        };
        (0..fillers).for_each(|_| filter.insert(&key(other, other, 0)).unwrap());
        filter.insert(held).unwrap();
        (0..fillers).for_each(|_| assert!(filter.remove(&key(other, other, 0))));
        room[location.first] -= 1;
    }
    Arc::new(filter)
}

/// Bucket 0 holds a key that can move to bucket 1 and one that cannot; bucket 2 is full of keys
/// that cannot move; bucket 1 is empty. An insert of `key(0, 2, _)` must move `key(0, 1, 3)`. (The
/// last fingerprint of its kind is greater than any sequence number here, so no tag looks as if it
/// held it.)
pub(crate) fn residents() -> [u64; 4] {
    [key(0, 1, 3), key(0, 0, 0), key(2, 2, 0), key(2, 2, 1)]
}

/// A filter whose answers are recorded.
pub(crate) trait Asked: Filter + Sized + Send + Sync {
    /// Maximum number of copies of a class.
    const MOST: u64;
    /// Whether it may refuse a key for lack of room.
    const MAY_BE_FULL: bool;
    fn class(&self, key: u64) -> Class;
    fn try_clone(&self) -> Result<Self, SnapshotError>;
}

impl Asked for Small {
    const MOST: u64 = 2 * SLOTS as u64;
    const MAY_BE_FULL: bool = true;

    fn class(&self, key: u64) -> Class {
        self.class(&key)
    }

    fn try_clone(&self) -> Result<Self, SnapshotError> {
        self.try_clone()
    }
}

/// A call, with its key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Operation {
    Insert(u64),
    InsertUnique(u64),
    Count(u64),
    Contains(u64),
    Remove(u64),
    /// A copy of the filter, which has one generation if it grows; this key is counted in it.
    TryClone(u64),
}

/// Makes calls, and records them with their answers.
pub(crate) struct Caller<F = Small> {
    filter: Arc<F>,
    thread: usize,
    calls: Vec<Call<(u64, Event)>>,
}

impl<F: Asked> Caller<F> {
    /// Makes a caller with this number: calls of callers with different numbers count as
    /// simultaneous.
    pub(crate) fn new(filter: &Arc<F>, thread: usize) -> Self {
        Caller {
            filter: Arc::clone(filter),
            thread,
            calls: Vec::new(),
        }
    }

    pub(crate) fn run(&mut self, operation: Operation) {
        match operation {
            Operation::Insert(key) => _ = self.insert(key),
            Operation::InsertUnique(key) => _ = self.insert_unique(key),
            Operation::Count(key) => _ = self.count(key),
            Operation::Contains(key) => _ = self.contains(key),
            Operation::Remove(key) => _ = self.remove(key),
            Operation::TryClone(key) => _ = self.copy(&[key], counted),
        }
    }

    pub(crate) fn insert(&mut self, key: u64) -> Result<(), InsertError> {
        let result = self.filter.insert(&key);
        assert!(F::MAY_BE_FULL || result.is_ok(), "{result:?}");
        self.write_down(key, Event::Insert(result));
        result
    }

    pub(crate) fn insert_unique(&mut self, key: u64) -> Result<bool, InsertError> {
        let result = self.filter.insert_unique(&key);
        assert!(F::MAY_BE_FULL || result.is_ok(), "{result:?}");
        self.write_down(key, Event::InsertUnique(result));
        result
    }

    pub(crate) fn count(&mut self, key: u64) -> usize {
        let copies = self.filter.count(&key);
        self.write_down(key, Event::Count(copies as u64));
        copies
    }

    pub(crate) fn contains(&mut self, key: u64) -> bool {
        let found = self.filter.contains(&key);
        self.write_down(key, Event::Contains(found));
        found
    }

    pub(crate) fn contains_batch(&mut self, keys: [u64; 2]) {
        let mut found = [false; 2];
        self.filter.contains_batch(&keys, &mut found);
        for (key, found) in keys.into_iter().zip(found) {
            self.write_down(key, Event::Contains(found));
        }
    }

    pub(crate) fn remove(&mut self, key: u64) -> bool {
        let removed = self.filter.remove(&key);
        self.write_down(key, Event::Remove(removed));
        removed
    }

    /// Copies the filter, which has no other keys; each class in the copy is held as often as a count
    /// at the same time might have answered.
    pub(crate) fn try_clone(&mut self, keys: &[u64]) -> F {
        let copy = self.copy(keys, counted);
        let held: usize = keys.iter().map(|key| copy.count(key)).sum();
        assert_eq!(copy.len(), held, "the copy holds other keys as well");
        copy
    }

    /// Copies the filter; each class is in the copy or not as a lookup at the same time might have
    /// answered.
    pub(crate) fn try_clone_of_generations(&mut self, keys: &[u64]) -> F {
        self.copy(keys, |copy, key| Event::Contains(copy.contains(&key)))
    }

    /// Copies the filter, and records what the copy answers about these keys.
    fn copy(&mut self, keys: &[u64], ask: fn(&F, u64) -> Event) -> F {
        let copy = self.filter.try_clone().expect("there is room and memory");
        for key in keys {
            self.write_down(*key, ask(&copy, *key));
        }
        copy
    }

    fn write_down(&mut self, key: u64, event: Event) {
        self.calls.push(Call {
            thread: self.thread,
            start: 0,
            end: 0,
            event: (key, event),
        });
    }
}

fn counted(filter: &impl Filter, key: u64) -> Event {
    Event::Count(filter.count(&key) as u64)
}

/// Checks that some order explains the answers the callers got from a filter that held these keys,
/// and that the filter now holds what that order leaves.
pub(crate) fn explained<F: Asked, const N: usize>(held: &[u64], callers: [Caller<F>; N]) {
    let filter = Arc::clone(&callers[0].filter);
    let mut classes = BTreeMap::<Class, (u64, u64, Vec<Call<Event>>)>::new();
    let of_class = |key: &u64| (*key, 0, Vec::new());
    for key in held {
        let class = classes.entry(filter.class(*key));
        class.or_insert_with(|| of_class(key)).1 += 1;
    }
    for call in callers.into_iter().flat_map(|caller| caller.calls) {
        let (key, event) = call.event;
        let class = classes.entry(filter.class(key));
        let calls = &mut class.or_insert_with(|| of_class(&key)).2;
        calls.push(Call {
            thread: call.thread,
            start: call.start,
            end: call.end,
            event,
        });
    }
    let most = F::MOST;
    let mut total = 0;
    for (class, (key, held, calls)) in classes {
        match histories::check(&OneClass { most }, &[held], &calls) {
            Ok(left) => {
                let &[left] = left.as_slice() else {
                    panic!("the calls say how many copies are left, and not {left:?}");
                };
                assert_eq!(filter.contains(&key), left > 0, "{class:?}, {left} left");
                assert_eq!(filter.count(&key) as u64, left, "{class:?}");
                total += left as usize;
            }
            Err(Failure::Violation(violation)) => panic!("{class:?}: {violation}"),
            Err(Failure::TooManyOverlap) => panic!("too many calls to check"),
        }
    }
    assert_eq!(filter.len(), total);
}
