//! A filter that forgets, of three buckets of two slots, and callers whose answers are checked.

use std::collections::BTreeSet;
use std::sync::Arc;

use filter::{Class, ExpiringCuckooFilter, Filter, InsertError, SnapshotError};
use histories::{Call, Event, OneExpiringClass, Remembered};

use crate::small::{BUCKETS, Identity, Operation, Tested, described, put_into};

/// With one bit of age, keys are remembered for one period: there are two ages, so each returns after two
/// periods.
pub(crate) type Expiring<const AGE_BITS: usize = 1> =
    ExpiringCuckooFilter<Identity, 2, 4, AGE_BITS>;

pub(crate) type Caller<const AGE_BITS: usize = 1> = crate::small::Caller<Expiring<AGE_BITS>>;

/// Makes a filter that holds these keys, each in its preferred bucket.
pub(crate) fn holding<const AGE_BITS: usize>(keys: &[u64]) -> Arc<Expiring<AGE_BITS>> {
    let builder = ExpiringCuckooFilter::builder().layout::<2, 4, AGE_BITS>();
    let builder = builder.buckets(BUCKETS).unmixed_hasher(Identity::default());
    let filter = builder.build().unwrap();
    put_into(&filter, keys);
    Arc::new(filter)
}

impl<const AGE_BITS: usize> Tested for Expiring<AGE_BITS> {
    const MAX: u64 = 1;
    const PERIOD: fn(&Self) -> u64 = Self::period;
    const CLASS: fn(&Self, &u64) -> Class = Self::class;
    type Copy = Self;
    const TRY_CLONE: fn(&Self) -> Result<Self, SnapshotError> = Self::try_clone;

    fn left(copies: u64, period: u64, calls: &[Call<Event>]) -> Result<Vec<u64>, String> {
        let periods = (1 << AGE_BITS) - 1;
        let since = BTreeSet::from([(copies > 0).then_some(0)]);
        let before = Remembered { period, since };
        let left = histories::check(&OneExpiringClass { periods }, &[before], calls);
        let left = left.map_err(described)?;
        let since = left.iter().flat_map(|state| &state.since);
        Ok(since.map(|since| since.is_some().into()).collect())
    }

    fn ask(copy: &Self, key: u64) -> Event {
        Event::Contains(copy.contains(&key))
    }

    fn run(caller: &mut Caller<AGE_BITS>, operation: Operation) {
        match operation {
            Operation::Insert(key) => _ = caller.put(key, true),
            Operation::InsertIfAbsent(key) => _ = caller.put(key, false),
            Operation::Contains(key) => _ = caller.contains(key),
            Operation::Remove(key) => _ = caller.remove(key),
            Operation::Advance => caller.advance(),
            Operation::TryClone(key) => _ = caller.copy(&[key]),
            _ => panic!("it has one copy of a class"),
        }
    }
}

impl<const AGE_BITS: usize> Caller<AGE_BITS> {
    pub(crate) fn put(&mut self, key: u64, renew: bool) -> Result<bool, InsertError> {
        let since = self.filter.period();
        let result = if renew {
            self.filter.insert_or_renew(&key)
        } else {
            self.filter.insert_if_absent(&key)
        };
        self.write_down(Some(key), Event::InsertAged(since, renew, result.clone()));
        result
    }

    pub(crate) fn advance(&mut self) {
        let period = self.filter.advance().unwrap();
        self.write_down(None, Event::Begin(period));
        self.write_down(None, Event::Forget(period));
    }
}
