//! Random calls, one after another, to every kind of filter: each answers as a multiset over classes
//! would, or as a set if it forgets, whether it is called key by key or in batches, and also after it
//! was saved and loaded.

use std::collections::HashMap;

use filter::{
    Class, CuckooFilter, DynCuckooFilter, ExpiringCuckooFilter, Filter, GrowingCuckooFilter,
    InsertError, LoadError,
};
use proptest::prelude::*;

use crate::formats::growing_builder;

#[derive(Clone, Debug)]
enum Command {
    Insert(Vec<u8>),
    InsertIfAbsent(Vec<u8>),
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
        4 => keys().prop_map(Command::InsertIfAbsent),
        6 => keys().prop_map(Command::Remove),
        1 => Just(Command::Reload),
        1 => Just(Command::Clear),
    ]
}

/// Whether a plain insert may fail like this while the class has `held` copies, and can have `most`.
fn may_refuse(error: &InsertError, held: usize, most: Option<usize>) -> bool {
    match (error, most) {
        (InsertError::TooManyCopies { most, .. }, None) => usize::from(*most) <= held,
        (InsertError::TooManyCopies { most: stated, .. }, Some(most)) => {
            held == most && usize::from(*stated) == most
        }
        (InsertError::Full, Some(most)) => held < most,
        _ => false,
    }
}

/// Number of copies of a class that its buckets have room for, with this many slots each.
fn places(slots: usize, class: Class) -> Option<usize> {
    let [first, second] = class.buckets();
    Some(slots * if first == second { 1 } else { 2 })
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

fn agrees<F: Filter>(
    mut filter: F,
    class_of: fn(&F, &u8) -> Class,
    clear: fn(&mut F),
    load: impl Fn(&[u8]) -> Result<F, LoadError>,
    most: impl Fn(Class) -> Option<usize>,
    commands: &[Command],
) -> Result<(), TestCaseError> {
    let mut copies = HashMap::<Class, usize>::new();
    // The last group of a batch is not a whole one.
    let all: Vec<u8> = (0..=u8::MAX).chain(0..40).collect();
    for (at, command) in commands.iter().enumerate() {
        match command {
            Command::Insert(keys) => {
                let results = results(&filter, keys, Ok(()), F::insert, F::insert_batch);
                for (&key, result) in keys.iter().zip(results) {
                    let class = class_of(&filter, &key);
                    let held = copies.entry(class).or_default();
                    let most = most(class);
                    match result {
                        Ok(()) => *held = (*held + 1).min(most.unwrap_or(usize::MAX)),
                        Err(error) => prop_assert!(may_refuse(&error, *held, most), "{error}"),
                    }
                }
            }
            Command::InsertIfAbsent(keys) => {
                let calls = (F::insert_if_absent, F::insert_if_absent_batch);
                let results = results(&filter, keys, Ok(true), calls.0, calls.1);
                for (&key, result) in keys.iter().zip(results) {
                    let held = copies.entry(class_of(&filter, &key)).or_default();
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
                let results = results(&filter, keys, Ok(true), F::remove, F::remove_batch);
                for (&key, removed) in keys.iter().zip(results) {
                    let held = copies.entry(class_of(&filter, &key)).or_default();
                    prop_assert_eq!(removed, Ok(*held > 0));
                    *held = held.saturating_sub(1);
                }
            }
            Command::Reload => {
                let bytes = filter.to_bytes().unwrap();
                let capacity = filter.slots();
                filter = load(&bytes).unwrap();
                prop_assert_eq!(filter.slots(), capacity);
                prop_assert_eq!(filter.to_bytes().unwrap(), bytes);
            }
            Command::Clear => {
                clear(&mut filter);
                copies.clear();
            }
        }
        let held: usize = copies.values().sum();
        prop_assert_eq!((filter.len(), filter.is_empty()), (held, held == 0));
        prop_assert_eq!(filter.load_factor(), held as f64 / filter.slots() as f64);
        // A wrong copy stays until it is cleared, and checking all keys takes most of the time.
        let next = commands.get(at + 1);
        if at % 8 < 7 && !matches!(next, None | Some(Command::Clear | Command::Reload)) {
            continue;
        }
        let mut found = vec![false; all.len()];
        filter.contains_batch(&all, &mut found);
        for (&key, found) in all.iter().zip(found) {
            let held = copies.get(&class_of(&filter, &key)).copied().unwrap_or(0);
            prop_assert_eq!(filter.count(&key), held, "key {} after {:?}", key, command);
            prop_assert_eq!([filter.contains(&key), found], [held > 0; 2]);
        }
    }
    Ok(())
}

fn fixed<const SLOTS: usize, const BITS: usize>(
    buckets: usize,
    commands: &[Command],
) -> Result<(), TestCaseError> {
    let builder = CuckooFilter::builder().layout::<SLOTS, BITS>();
    let filter = builder.clone().buckets(buckets).build().unwrap();
    let load = |bytes: &[u8]| builder.clone().load_bytes(bytes);
    let most = |class| places(SLOTS, class);
    let calls = (CuckooFilter::class, CuckooFilter::clear);
    agrees(filter, calls.0, calls.1, load, most, commands)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    // Short fingerprints and few buckets, so that keys collide, chains form and tables fill up.
    #[test]
    fn filter_agrees_with_multiset_of_classes(
        commands in prop::collection::vec(command(), 1..60),
        buckets in 1_usize..40,
    ) {
        fixed::<4, 12>(buckets, &commands)?;
        fixed::<4, 2>(buckets, &commands)?;
        fixed::<2, 5>(buckets, &commands)?;
        fixed::<1, 3>(buckets, &commands)?;
        fixed::<3, 16>(buckets, &commands)?;
        // 1 << 32 would overflow a `usize` of 32 bits.
        fixed::<1, 32>(buckets, &commands)?;
        // Each of these rates leads to another layout.
        let rate = [0.3, 0.06, 0.05, 0.03, 0.01, 0.005, 0.002, 1e-3, 5e-4, 1e-4, 3e-5, 1e-6, 2e-8];
        let builder = CuckooFilter::builder().false_positive_rate(rate[buckets % rate.len()]);
        let fitted = builder.buckets(buckets).build().unwrap();
        let load = |bytes: &[u8]| DynCuckooFilter::read_from(bytes);
        let slots = fitted.layout().slots;
        let calls = (DynCuckooFilter::class, DynCuckooFilter::clear);
        agrees(fitted, calls.0, calls.1, load, |class| places(slots, class), &commands)?;
        // A set.
        let builder = ExpiringCuckooFilter::builder().layout::<2, 5, 2>();
        let expiring = builder.clone().buckets(buckets).build().unwrap();
        let load = |bytes: &[u8]| builder.clone().load_bytes(bytes);
        let calls = (ExpiringCuckooFilter::class, ExpiringCuckooFilter::clear);
        agrees(expiring, calls.0, calls.1, load, |_| Some(1), &commands)?;
        let builder = growing_builder();
        let growing = builder.clone().buckets(buckets).build().unwrap();
        let load = |bytes: &[u8]| builder.clone().load_bytes(bytes);
        let calls = (GrowingCuckooFilter::class, GrowingCuckooFilter::clear);
        agrees(growing, calls.0, calls.1, load, |_| None, &commands)?;
    }
}
