//! Random calls, one after another, to every kind of filter: each answers as a multiset over classes
//! would, whether it is called key by key or in batches, and also after it was saved and loaded.

use std::collections::HashMap;

use filter::{Class, CuckooFilter, DynCuckooFilter, Filter, GrowingCuckooFilter, InsertError};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Command {
    Insert(Vec<u8>),
    InsertUnique(Vec<u8>),
    Remove(Vec<u8>),
    /// Saves the filter, and goes on with what is loaded.
    Reload,
    Clear,
}

fn command() -> impl Strategy<Value = Command> {
    // One key, fewer than a group, and more than one.
    let keys = || {
        prop_oneof![
            6 => prop::collection::vec(any::<u8>(), 1),
            2 => prop::collection::vec(any::<u8>(), 2..9),
            1 => prop::collection::vec(any::<u8>(), 60..80),
        ]
    };
    prop_oneof![
        6 => keys().prop_map(Command::Insert),
        4 => keys().prop_map(Command::InsertUnique),
        6 => keys().prop_map(Command::Remove),
        1 => Just(Command::Reload),
        1 => Just(Command::Clear),
    ]
}

/// What the model needs to know of a kind of filter.
trait Kind: Filter + Sized {
    fn class_of(&self, key: u8) -> Class;
    fn loaded(bytes: &[u8]) -> Self;

    /// Whether a plain insert may fail like this while the class has so many copies.
    fn may_refuse(&self, error: InsertError, class: Class, held: usize) -> bool;
}

fn fixed_may_refuse(slots: usize, error: InsertError, class: Class, held: usize) -> bool {
    let [first, second] = class.buckets;
    let most = slots * if first == second { 1 } else { 2 };
    match error {
        InsertError::TooManyCopies { most: stated } => held == most && usize::from(stated) == most,
        InsertError::Full => held < most,
        _ => false,
    }
}

impl<const SLOTS: usize, const BITS: usize> Kind for CuckooFilter<SLOTS, BITS> {
    fn class_of(&self, key: u8) -> Class {
        self.class(&key)
    }

    fn loaded(bytes: &[u8]) -> Self {
        let builder = CuckooFilter::builder().layout::<SLOTS, BITS>();
        builder.from_bytes(bytes).unwrap()
    }

    fn may_refuse(&self, error: InsertError, class: Class, held: usize) -> bool {
        fixed_may_refuse(SLOTS, error, class, held)
    }
}

impl Kind for DynCuckooFilter {
    fn class_of(&self, key: u8) -> Class {
        self.class(&key)
    }

    fn loaded(bytes: &[u8]) -> Self {
        DynCuckooFilter::read_from(bytes).unwrap()
    }

    fn may_refuse(&self, error: InsertError, class: Class, held: usize) -> bool {
        fixed_may_refuse(self.layout().0, error, class, held)
    }
}

impl Kind for GrowingCuckooFilter {
    fn class_of(&self, key: u8) -> Class {
        self.class(&key)
    }

    fn loaded(bytes: &[u8]) -> Self {
        // Without reserved memory, which the counting allocator would write each time.
        let builder = GrowingCuckooFilter::builder().reserved_bytes(0);
        builder.from_bytes(bytes).unwrap()
    }

    fn may_refuse(&self, error: InsertError, _: Class, held: usize) -> bool {
        matches!(error, InsertError::TooManyCopies { most } if usize::from(most) <= held)
    }
}

/// Calls `one` if there is one key, and otherwise `batch`.
fn results<F, R: Clone>(
    filter: &F,
    keys: &[u8],
    any: R,
    one: fn(&F, &u8) -> R,
    batch: fn(&F, &[u8], &mut [R]),
) -> Vec<R> {
    if let [key] = keys {
        return vec![one(filter, key)];
    }
    let mut results = vec![any; keys.len()];
    batch(filter, keys, &mut results);
    results
}

fn agrees<F: Kind>(mut filter: F, commands: &[Command]) -> Result<(), TestCaseError> {
    let mut copies = HashMap::<Class, usize>::new();
    let all: Vec<u8> = (0..=u8::MAX).collect();
    for command in commands {
        match command {
            Command::Insert(keys) => {
                let results = results(&filter, keys, Ok(()), F::insert, F::insert_batch);
                for (&key, result) in keys.iter().zip(results) {
                    let class = filter.class_of(key);
                    let held = copies.entry(class).or_default();
                    match result {
                        Ok(()) => *held += 1,
                        Err(error) => {
                            prop_assert!(filter.may_refuse(error, class, *held), "{error}");
                        }
                    }
                }
            }
            Command::InsertUnique(keys) => {
                let calls = (F::insert_unique, F::insert_unique_batch);
                let results = results(&filter, keys, Ok(true), calls.0, calls.1);
                for (&key, result) in keys.iter().zip(results) {
                    let held = copies.entry(filter.class_of(key)).or_default();
                    match result {
                        Ok(inserted) => {
                            prop_assert_eq!(inserted, *held == 0);
                            *held += usize::from(inserted);
                        }
                        Err(error) => prop_assert_eq!((error, *held), (InsertError::Full, 0)),
                    }
                }
            }
            Command::Remove(keys) => {
                let remove = |filter: &F, key: &u8| filter.try_remove(key).unwrap();
                let results = results(&filter, keys, true, remove, F::remove_batch);
                for (&key, removed) in keys.iter().zip(results) {
                    let held = copies.entry(filter.class_of(key)).or_default();
                    prop_assert_eq!(removed, *held > 0);
                    *held = held.saturating_sub(1);
                }
            }
            Command::Reload => {
                let bytes = filter.to_bytes().unwrap();
                let capacity = filter.capacity();
                filter = F::loaded(&bytes);
                prop_assert_eq!(filter.capacity(), capacity);
                prop_assert_eq!(filter.to_bytes().unwrap(), bytes);
            }
            Command::Clear => {
                filter.clear();
                copies.clear();
            }
        }
        let mut found = vec![false; all.len()];
        filter.contains_batch(&all, &mut found);
        for (&key, found) in all.iter().zip(found) {
            let held = copies.get(&filter.class_of(key)).copied().unwrap_or(0);
            prop_assert_eq!(filter.count(&key), held, "key {} after {:?}", key, command);
            prop_assert_eq!([filter.contains(&key), found], [held > 0; 2]);
        }
        let held: usize = copies.values().sum();
        prop_assert_eq!((filter.len(), filter.is_empty()), (held, held == 0));
        prop_assert_eq!(filter.load_factor(), held as f64 / filter.capacity() as f64);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    // Short fingerprints and few buckets, so that keys collide, chains form and tables fill up.
    #[test]
    fn agrees_with_a_multiset_over_classes(
        commands in prop::collection::vec(command(), 1..60),
        buckets in 1_usize..40,
    ) {
        let builder = CuckooFilter::builder().buckets(buckets);
        agrees(builder.build().unwrap(), &commands)?;
        agrees(builder.layout::<4, 2>().build().unwrap(), &commands)?;
        agrees(builder.layout::<2, 5>().build().unwrap(), &commands)?;
        agrees(builder.layout::<1, 3>().build().unwrap(), &commands)?;
        agrees(builder.layout::<3, 16>().build().unwrap(), &commands)?;
        // Each of these rates leads to another layout.
        let rate = [0.3, 0.06, 0.05, 0.03, 0.01, 0.005, 0.002, 1e-3, 5e-4, 1e-4, 3e-5, 1e-6, 2e-8];
        let fitted = builder.false_positive_rate(rate[buckets % rate.len()]);
        agrees(fitted.build().unwrap(), &commands)?;
        let growing = GrowingCuckooFilter::builder().reserved_bytes(0);
        let growing = growing.buckets(buckets);
        agrees(growing.build().unwrap(), &commands)?;
    }
}
