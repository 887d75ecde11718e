//! A filter that forgets, of three buckets of two slots, and callers whose answers are checked.
// Not every test that has this module uses all of it.
#![allow(dead_code)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use filter::internals::{Geometry, Location};
use filter::{Class, ExpiringCuckooFilter, InsertError};
use histories::{Call, ExpiringEvent, Failure, OneExpiringClass, Remembered};

use crate::small::{BUCKETS, Identity, key};

/// With one bit of age, keys are remembered for one period: there are two ages, so each returns after two
/// periods.
pub(crate) type Expiring<const AGE_BITS: usize = 1> =
    ExpiringCuckooFilter<2, 4, AGE_BITS, Identity>;

/// Makes a filter that holds these keys, each in its preferred bucket.
pub(crate) fn holding<const AGE_BITS: usize>(keys: &[u64]) -> Arc<Expiring<AGE_BITS>> {
    let builder = ExpiringCuckooFilter::builder().ages::<2, 4, AGE_BITS>();
    let builder = builder.buckets(BUCKETS).unmixed_hasher(Identity::default());
    let filter = builder.build().unwrap();
    let geometry = Geometry::<2, 4>::new(BUCKETS);
    let mut room = [2; BUCKETS];
    for held in keys {
        let Location { first, second, .. } = geometry.locate(*held);
        // An insert takes the emptier bucket, so the other one is filled meanwhile.
        let fillers = (0..room[second]).filter(|_| first != second);
        let fillers: Vec<u64> = fillers.map(|nth| key(second, second, nth)).collect();
        fillers
            .iter()
            .chain([held])
            .for_each(|key| assert_eq!(filter.insert_unique(key), Ok(true)));
        fillers.iter().for_each(|key| assert!(filter.remove(key)));
        room[first] -= 1;
    }
    Arc::new(filter)
}

/// Makes calls, and records them with their answers.
pub(crate) struct Caller<const AGE_BITS: usize = 1> {
    filter: Arc<Expiring<AGE_BITS>>,
    thread: usize,
    /// The period before the first call.
    first: u64,
    calls: Vec<Call<(Option<u64>, ExpiringEvent)>>,
}

impl<const AGE_BITS: usize> Caller<AGE_BITS> {
    /// Makes a caller with this number: calls of callers with different numbers count as
    /// simultaneous.
    pub(crate) fn new(filter: &Arc<Expiring<AGE_BITS>>, thread: usize) -> Self {
        Caller {
            filter: Arc::clone(filter),
            thread,
            first: filter.period(),
            calls: Vec::new(),
        }
    }

    pub(crate) fn insert(&mut self, key: u64, renew: bool) -> Result<bool, InsertError> {
        let since = self.filter.period();
        let result = if renew {
            self.filter.insert_unique(&key)
        } else {
            self.filter.insert_if_absent(&key)
        };
        let event = ExpiringEvent::Insert {
            since,
            renew,
            result,
        };
        self.write_down(Some(key), event);
        result
    }

    pub(crate) fn contains(&mut self, key: u64) -> bool {
        let found = self.filter.contains(&key);
        self.write_down(Some(key), ExpiringEvent::Contains(found));
        found
    }

    pub(crate) fn remove(&mut self, key: u64) -> bool {
        let removed = self.filter.remove(&key);
        self.write_down(Some(key), ExpiringEvent::Remove(removed));
        removed
    }

    pub(crate) fn advance(&mut self) {
        let period = self.filter.advance().unwrap();
        self.write_down(None, ExpiringEvent::Begin(period));
        self.write_down(None, ExpiringEvent::Forget(period));
    }

    /// Copies the filter, and records what the copy answers about these keys.
    pub(crate) fn try_clone(&mut self, keys: &[u64]) -> Expiring<AGE_BITS> {
        let copy = self.filter.try_clone().expect("there is memory");
        for key in keys {
            self.write_down(Some(*key), ExpiringEvent::Contains(copy.contains(key)));
        }
        copy
    }

    fn write_down(&mut self, key: Option<u64>, event: ExpiringEvent) {
        self.calls.push(Call {
            thread: self.thread,
            start: 0,
            end: 0,
            event: (key, event),
        });
    }
}

/// Checks that some order explains the answers that the callers got from a filter that held these keys since
/// its period 0, and that the filter holds what that order leaves.
pub(crate) fn explained<const AGE_BITS: usize, const N: usize>(
    held: &[u64],
    callers: [Caller<AGE_BITS>; N],
) {
    let filter = Arc::clone(&callers[0].filter);
    let period = (callers.iter().map(|caller| caller.first).min()).expect("there is one");
    let calls: Vec<_> = callers
        .into_iter()
        .flat_map(|caller| caller.calls)
        .collect();
    let asked = calls.iter().filter_map(|call| call.event.0);
    let keys: Vec<u64> = asked.chain(held.iter().copied()).collect();
    let held = held.iter().map(|key| filter.class(key)).collect();
    all_explained(&filter, (period, &held), &keys, &calls, "");
}

/// Checks the same of calls with their times, and of these keys, which are all that were ever there; in this
/// period, before the first call, it held these classes since its period 0. A failure says `what` it was.
pub(crate) fn all_explained<const AGE_BITS: usize>(
    filter: &Expiring<AGE_BITS>,
    (period, held): (u64, &BTreeSet<Class>),
    keys: &[u64],
    calls: &[Call<(Option<u64>, ExpiringEvent)>],
    what: &str,
) {
    let specification = OneExpiringClass {
        periods: (1 << AGE_BITS) - 1,
    };
    let classes: BTreeMap<Class, u64> =
        (keys.iter()).map(|key| (filter.class(key), *key)).collect();
    let mut copies = 0;
    for (class, key) in classes {
        let since = BTreeSet::from([held.contains(&class).then_some(0)]);
        let before = Remembered { period, since };
        let calls: Vec<_> = (calls.iter())
            .filter(|call| call.event.0.is_none_or(|key| filter.class(&key) == class))
            .map(|call| Call {
                thread: call.thread,
                start: call.start,
                end: call.end,
                event: call.event.1,
            })
            .collect();
        let there = filter.contains(&key);
        match histories::check(&specification, &[before], &calls) {
            Ok(left) => assert!(
                (left.iter()).any(|left| left.since.iter().any(|since| since.is_some() == there)),
                "{what}{class:?} is there: {there}; possible: {left:?}"
            ),
            Err(Failure::Violation(violation)) => panic!("{what}{class:?}: {violation}"),
            Err(Failure::TooManyOverlap) => panic!("{what}too many calls to check"),
        }
        assert_eq!(filter.count(&key), usize::from(there), "{what}{class:?}");
        copies += usize::from(there);
    }
    assert_eq!(filter.len(), copies, "{what}");
}
