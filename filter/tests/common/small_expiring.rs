//! A filter that forgets, of three buckets of two slots, and callers whose answers are checked.
// Not every test that has this module uses all of it.
#![allow(dead_code)]

use std::collections::BTreeSet;
use std::sync::Arc;

use filter::{Class, ExpiringCuckooFilter, InsertError, SnapshotError};
use histories::{ExpiringEvent, OneExpiringClass, Remembered};

use crate::small::{Asked, BUCKETS, Identity, Operation, put_into};

/// With one bit of age, keys are remembered for one period: there are two ages, so each returns after two
/// periods.
pub(crate) type Expiring<const AGE_BITS: usize = 1> =
    ExpiringCuckooFilter<2, 4, AGE_BITS, Identity>;

pub(crate) type Caller<const AGE_BITS: usize = 1> = crate::small::Caller<Expiring<AGE_BITS>>;

/// Makes a filter that holds these keys, each in its preferred bucket.
pub(crate) fn holding<const AGE_BITS: usize>(keys: &[u64]) -> Arc<Expiring<AGE_BITS>> {
    let builder = ExpiringCuckooFilter::builder().ages::<2, 4, AGE_BITS>();
    let builder = builder.buckets(BUCKETS).unmixed_hasher(Identity::default());
    let filter = builder.build().unwrap();
    put_into(&filter, keys);
    Arc::new(filter)
}

impl<const AGE_BITS: usize> Asked for Expiring<AGE_BITS> {
    type Specification = OneExpiringClass;

    fn period(&self) -> u64 {
        self.period()
    }

    fn class(&self, key: u64) -> Class {
        self.class(&key)
    }

    fn try_clone(&self) -> Result<Self, SnapshotError> {
        self.try_clone()
    }

    fn contained(found: bool) -> ExpiringEvent {
        ExpiringEvent::Contains(found)
    }

    fn removed(removed: bool) -> ExpiringEvent {
        ExpiringEvent::Remove(removed)
    }

    fn class_of(copies: u64, period: u64) -> (OneExpiringClass, Remembered) {
        let periods = (1 << AGE_BITS) - 1;
        let since = BTreeSet::from([(copies > 0).then_some(0)]);
        (OneExpiringClass { periods }, Remembered { period, since })
    }

    fn may_be_left(states: &[Remembered], copies: u64) -> bool {
        let mut since = states.iter().flat_map(|state| &state.since);
        since.any(|since| u64::from(since.is_some()) == copies)
    }

    fn run(caller: &mut Caller<AGE_BITS>, operation: Operation) {
        match operation {
            Operation::Insert(key) => _ = caller.insert(key, true),
            Operation::InsertIfAbsent(key) => _ = caller.insert(key, false),
            Operation::Contains(key) => _ = caller.contains(key),
            Operation::Remove(key) => _ = caller.remove(key),
            Operation::Advance => caller.advance(),
            Operation::TryClone(key) => _ = caller.try_clone_of_generations(&[key]),
            _ => panic!("it has one copy of a class"),
        }
    }
}

impl<const AGE_BITS: usize> Caller<AGE_BITS> {
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

    pub(crate) fn advance(&mut self) {
        let period = self.filter.advance().unwrap();
        self.write_down(None, ExpiringEvent::Begin(period));
        self.write_down(None, ExpiringEvent::Forget(period));
    }
}
