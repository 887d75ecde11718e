//! A filter of three buckets of two slots, and keys whose buckets a test can choose.
// Not every test with this module uses all of it.
#![allow(dead_code)]

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use filter::internals::{Geometry, Location};
use filter::layout::Layout;
use filter::{Class, CuckooFilter, Filter, InsertError, SnapshotError};
use histories::{Call, Event, Failure, OneClass};

pub(crate) use identity::Identity;

pub(crate) mod expiring;
pub(crate) mod growing;
mod identity;
pub(crate) mod in_file;

pub(crate) const BUCKETS: usize = 3;
const SLOTS: usize = 2;
const BITS: usize = 4;

pub(crate) type Small = CuckooFilter<Identity, SLOTS, BITS>;

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
    let high = ((first as u64) << 32) / BUCKETS as u64 + 1;
    (1..=Layout::<SLOTS, BITS>::MAX_FINGERPRINT)
        .map(|fingerprint| high << 32 | fingerprint)
        .filter(|&hash| {
            let location = geometry.locate(hash);
            (location.first, location.second) == (first, second)
        })
        .nth(nth)
        .expect("each pair of buckets has a third of the fingerprints")
}

/// Makes a filter that holds these keys, each in its preferred bucket.
pub(crate) fn holding(keys: &[u64]) -> Arc<Small> {
    let builder = CuckooFilter::builder().layout::<SLOTS, BITS>();
    let builder = builder.buckets(BUCKETS).unmixed_hasher(Identity::default());
    let filter = builder.build().unwrap();
    put_into(&filter, keys);
    Arc::new(filter)
}

/// Puts keys into an empty filter, each into its preferred bucket.
pub(crate) fn put_into(filter: &impl Filter, keys: &[u64]) {
    let geometry = Geometry::<SLOTS, BITS>::new(BUCKETS);
    let mut room = [SLOTS; BUCKETS];
    for held in keys {
        let Location { first, second, .. } = geometry.locate(*held);
        assert!(room[first] > 0, "{held:#x} has no room");
        // An insert takes the emptier bucket, so the other one is filled meanwhile.
        let fillers = (0..room[second]).filter(|_| first != second);
        let fillers = fillers.map(|nth| key(second, second, nth));
        let fillers: Vec<u64> = fillers.collect();
        (fillers.iter().chain([held])).for_each(|key| filter.insert(key).unwrap());
        fillers
            .iter()
            .for_each(|key| assert!(filter.remove(key).unwrap()));
        room[first] -= 1;
    }
}

/// Bucket 0 holds a key that can move to bucket 1 and one that cannot; bucket 2 is full of keys
/// that cannot move; bucket 1 is empty. An insert of `key(0, 2, _)` must move `key(0, 1, 3)`. (The
/// last fingerprint of its kind is greater than any sequence number here, so no tag looks as if it
/// held it.)
pub(crate) fn residents() -> [u64; 4] {
    [key(0, 1, 3), key(0, 0, 0), key(2, 2, 0), key(2, 2, 1)]
}

/// A filter whose answers are recorded. By default, it has several copies of a class.
pub(crate) trait Tested: Filter + Sized + 'static {
    /// Maximum number of copies of a class.
    const MAX: u64;
    /// Whether it may refuse a key for lack of room.
    const MAY_BE_FULL: bool = true;

    /// Returns its period; 0 if it has none.
    const PERIOD: fn(&Self) -> u64 = |_| 0;
    const CLASS: fn(&Self, &u64) -> Class;
    /// What a copy is.
    type Copy: Filter;
    const TRY_CLONE: fn(&Self) -> Result<Self::Copy, SnapshotError>;

    /// Returns how many copies of a class may be left after these calls, if it had `copies` from the beginning
    /// up to this period; or why no order explains the calls.
    fn left(copies: u64, _period: u64, calls: &[Call<Event>]) -> Result<Vec<u64>, String> {
        histories::check(&OneClass { most: Self::MAX }, &[copies], calls).map_err(described)
    }

    /// What a copy answers about a key.
    fn ask(copy: &Self::Copy, key: u64) -> Event {
        Event::Count(copy.count(&key) as u64)
    }

    fn run(caller: &mut Caller<Self>, operation: Operation) {
        match operation {
            Operation::Insert(key) => _ = caller.insert(key),
            Operation::InsertIfAbsent(key) => _ = caller.insert_if_absent(key),
            Operation::Count(key) => _ = caller.count(key),
            Operation::Contains(key) => _ = caller.contains(key),
            Operation::Remove(key) => _ = caller.remove(key),
            Operation::TryClone(key) => _ = caller.copy(&[key]),
            _ => panic!("it does not forget"),
        }
    }
}

pub(crate) fn described<State: Debug>(failure: Failure<State, Event>) -> String {
    match failure {
        Failure::Violation(violation) => violation.to_string(),
        Failure::TooManyOverlap => "too many calls to check".to_owned(),
    }
}

/// A call with its key, unless it concerns them all.
pub(crate) type Recorded = (Option<u64>, Call<Event>);

impl Tested for Small {
    type Copy = Self;
    const MAX: u64 = 2 * SLOTS as u64;
    const CLASS: fn(&Self, &u64) -> Class = Self::class;
    const TRY_CLONE: fn(&Self) -> Result<Self, SnapshotError> = Self::try_clone;
}

/// A call, with its key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Operation {
    Insert(u64),
    InsertIfAbsent(u64),
    Count(u64),
    Contains(u64),
    Remove(u64),
    Advance,
    /// A copy of the filter, which is asked about this key.
    TryClone(u64),
}

/// Makes calls, and records them with their answers.
pub(crate) struct Caller<F: Tested = Small> {
    pub(crate) filter: Arc<F>,
    thread: usize,
    /// The period before the first call.
    first: u64,
    pub(crate) calls: Vec<Recorded>,
}

impl<F: Tested> Caller<F> {
    /// Makes a caller with this number: calls of callers with different numbers count as
    /// simultaneous.
    pub(crate) fn new(filter: &Arc<F>, thread: usize) -> Self {
        Caller {
            filter: Arc::clone(filter),
            thread,
            first: (F::PERIOD)(filter),
            calls: Vec::new(),
        }
    }

    pub(crate) fn contains(&mut self, key: u64) -> bool {
        let found = self.filter.contains(&key);
        self.write_down(Some(key), Event::Contains(found));
        found
    }

    pub(crate) fn remove(&mut self, key: u64) -> bool {
        let removed = self.filter.remove(&key).unwrap();
        self.write_down(Some(key), Event::Remove(removed));
        removed
    }

    /// Copies the filter, and records what the copy answers about these keys.
    pub(crate) fn copy(&mut self, keys: &[u64]) -> F::Copy {
        let copy = (F::TRY_CLONE)(&self.filter).expect("there is room and memory");
        for key in keys {
            self.write_down(Some(*key), F::ask(&copy, *key));
        }
        copy
    }

    pub(crate) fn write_down(&mut self, key: Option<u64>, event: Event) {
        let call = Call {
            thread: self.thread,
            start: 0,
            end: 0,
            event,
        };
        self.calls.push((key, call));
    }

    pub(crate) fn insert(&mut self, key: u64) -> Result<(), InsertError> {
        let result = self.filter.insert(&key);
        assert!(F::MAY_BE_FULL || result.is_ok(), "{result:?}");
        self.write_down(Some(key), Event::Insert(result.clone()));
        result
    }

    pub(crate) fn insert_if_absent(&mut self, key: u64) -> Result<bool, InsertError> {
        let result = self.filter.insert_if_absent(&key);
        assert!(F::MAY_BE_FULL || result.is_ok(), "{result:?}");
        self.write_down(Some(key), Event::InsertIfAbsent(result.clone()));
        result
    }

    pub(crate) fn count(&mut self, key: u64) -> usize {
        let copies = self.filter.count(&key);
        self.write_down(Some(key), Event::Count(copies as u64));
        copies
    }

    /// Copies the filter, which has no other keys; each class in the copy is held as often as a count
    /// at the same time might have answered.
    pub(crate) fn try_clone(&mut self, keys: &[u64]) -> F::Copy {
        let copy = self.copy(keys);
        let held: usize = keys.iter().map(|key| copy.count(key)).sum();
        assert_eq!(copy.len(), held, "the copy holds other keys as well");
        copy
    }
}

/// Checks that some order explains the answers the callers got from a filter that held these keys since its
/// beginning, and that the filter now holds what that order leaves.
pub(crate) fn explained<F: Tested>(held: &[u64], callers: impl IntoIterator<Item = Caller<F>>) {
    let callers: Vec<_> = callers.into_iter().collect();
    let filter = Arc::clone(&callers[0].filter);
    let period = (callers.iter().map(|caller| caller.first).min()).expect("there is one");
    let calls = callers.into_iter().flat_map(|caller| caller.calls);
    let calls: Vec<_> = calls.collect();
    let keys = calls.iter().filter_map(|(key, _)| *key);
    let keys: Vec<u64> = keys.chain(held.iter().copied()).collect();
    all_explained(&*filter, (period, held), &keys, &calls, "");
}

/// Checks the same of calls with their times, and of these keys, which are all that were ever there. A failure says
/// `what` it was.
pub(crate) fn all_explained<F: Tested>(
    filter: &F,
    (period, held): (u64, &[u64]),
    keys: &[u64],
    calls: &[Recorded],
    what: &str,
) {
    let class_of = |key: &u64| ((F::CLASS)(filter, key), *key);
    let mut total = 0;
    for (class, key) in keys.iter().map(class_of).collect::<BTreeMap<_, _>>() {
        let is_of_it = |key: &u64| (F::CLASS)(filter, key) == class;
        let held = held.iter().filter(|key| is_of_it(key)).count();
        let calls: Vec<_> = (calls.iter())
            .filter(|(key, _)| key.is_none_or(|key| is_of_it(&key)))
            .map(|(_, call)| call.clone())
            .collect();
        let copies = filter.count(&key);
        let left = F::left(held as u64, period, &calls);
        let left = left.unwrap_or_else(|why| panic!("{what}{class:?}: {why}"));
        assert!(
            left.contains(&(copies as u64)),
            "{what}{class:?}: {copies} copies are left; possible: {left:?}"
        );
        assert_eq!(filter.contains(&key), copies > 0, "{what}{class:?}");
        total += copies;
    }
    assert_eq!(filter.len(), total, "{what}");
}
