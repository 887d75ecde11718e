//! One thread against the specification: a multiset over classes.

use std::collections::HashMap;
use std::hash::BuildHasher;

use filter::{Class, CuckooFilter, InsertError};
use proptest::prelude::*;

#[derive(Clone, Copy, Debug)]
enum Call {
    Insert(u8),
    InsertUnique(u8),
    Remove(u8),
}

fn call() -> impl Strategy<Value = Call> {
    prop_oneof![
        3 => any::<u8>().prop_map(Call::Insert),
        2 => any::<u8>().prop_map(Call::InsertUnique),
        3 => any::<u8>().prop_map(Call::Remove),
    ]
}

/// Runs the calls on a filter and on its specification; after each, every key must look the same in
/// both.
fn agrees<const SLOTS: usize, const BITS: usize, S: BuildHasher>(
    filter: &CuckooFilter<SLOTS, BITS, S>,
    calls: &[Call],
) -> Result<(), TestCaseError> {
    let mut copies = HashMap::<Class, usize>::new();
    for call in calls {
        match call {
            Call::Insert(key) => match filter.insert(key) {
                Ok(()) => *copies.entry(filter.class(key)).or_default() += 1,
                Err(error) => {
                    // Only when both of its buckets are full.
                    prop_assert!(filter.len() >= SLOTS);
                    let class = filter.class(key);
                    let [first, second] = class.buckets;
                    let most = SLOTS * if first == second { 1 } else { 2 };
                    let expected = if copies.get(&class) == Some(&most) {
                        InsertError::TooManyCopies { most: most as u8 }
                    } else {
                        InsertError::Full
                    };
                    prop_assert_eq!(error, expected);
                }
            },
            Call::InsertUnique(key) => {
                let held = copies.entry(filter.class(key)).or_default();
                match filter.insert_unique(key) {
                    Ok(inserted) => {
                        prop_assert_eq!(inserted, *held == 0);
                        *held += usize::from(inserted);
                    }
                    Err(error) => {
                        prop_assert_eq!(error, InsertError::Full);
                        prop_assert_eq!(*held, 0);
                        prop_assert!(filter.len() >= SLOTS);
                    }
                }
            }
            Call::Remove(key) => {
                let held = copies.entry(filter.class(key)).or_default();
                prop_assert_eq!(filter.remove(key), *held > 0);
                *held = held.saturating_sub(1);
            }
        }
        for key in 0..=u8::MAX {
            let held = copies.get(&filter.class(&key)).copied().unwrap_or(0);
            prop_assert_eq!(filter.count(&key), held);
            prop_assert_eq!(
                filter.contains(&key),
                held > 0,
                "key {} after {:?}",
                key,
                call
            );
        }
        prop_assert_eq!(filter.len(), copies.values().sum::<usize>());
        prop_assert_eq!(filter.is_empty(), copies.values().all(|&held| held == 0));
    }
    Ok(())
}

proptest! {
    // Short fingerprints and few buckets, so that keys collide, chains form and tables fill up.
    #[test]
    fn agrees_with_a_multiset_over_classes(
        calls in proptest::collection::vec(call(), 1..120),
        buckets in 1usize..12,
    ) {
        let builder = CuckooFilter::builder().buckets(buckets);
        agrees(&builder.build().unwrap(), &calls)?;
        agrees(&builder.layout::<4, 2>().build().unwrap(), &calls)?;
        agrees(&builder.layout::<2, 5>().build().unwrap(), &calls)?;
        agrees(&builder.layout::<1, 3>().build().unwrap(), &calls)?;
        agrees(&builder.layout::<3, 16>().build().unwrap(), &calls)?;
    }
}

#[test]
fn a_key_may_be_held_as_often_as_its_buckets_have_slots() {
    let filter = CuckooFilter::with_capacity(1_000);
    for copy in 1..=8 {
        assert_eq!(filter.insert("key"), Ok(()), "copy {copy}");
    }
    let told = filter.insert("key");
    assert_eq!(told, Err(InsertError::TooManyCopies { most: 8 }));
    assert_eq!(filter.len(), 8);
    for _ in 0..8 {
        assert!(filter.contains("key"));
        assert!(filter.remove("key"));
    }
    assert!(!filter.contains("key"));
    assert!(!filter.remove("key"));
    assert!(filter.is_empty());
}

/// For a key whose two buckets are the same one, half as many; and a filter that is full of other
/// keys says so.
#[test]
fn what_is_full_is_told_apart() {
    let filter = CuckooFilter::builder().buckets(1).build().unwrap();
    assert!((0..4).all(|_| filter.insert("key").is_ok()));
    let told = filter.insert("key");
    assert_eq!(told, Err(InsertError::TooManyCopies { most: 4 }));
    assert_eq!(filter.insert("other"), Err(InsertError::Full));
    assert_eq!(filter.insert_unique("key"), Ok(false));
    assert_eq!(filter.insert_unique("other"), Err(InsertError::Full));
    assert!(filter.remove("key"));
    assert_eq!(filter.insert("other"), Ok(()));
    assert_eq!(filter.insert("key"), Err(InsertError::Full));
}

#[test]
fn unsized_and_sized_keys_hash_alike() {
    let filter = CuckooFilter::with_capacity(10);
    filter.insert(&String::from("key")).unwrap();
    assert!(filter.contains("key"));
    filter.insert(&[1u8, 2][..]).unwrap();
    assert!(filter.contains(&vec![1u8, 2]));
}

#[test]
fn a_cleared_filter_is_as_new() {
    let mut filter = CuckooFilter::builder().buckets(500).build().unwrap();
    for _ in 0..3 {
        let accepted = (0u64..).find(|key| filter.insert(key).is_err()).unwrap();
        assert!(accepted > 1_800 && filter.len() == accepted as usize);
        filter.clear();
        assert!(filter.is_empty() && (0..accepted).all(|key| !filter.contains(&key)));
    }
}

#[test]
fn hashes_stand_for_keys() {
    let filter = CuckooFilter::with_capacity(1_000);
    let hash = filter.hash("key");
    assert_eq!(filter.insert_hash(hash), Ok(()));
    assert!(filter.contains("key") && filter.contains_hash(hash));
    assert_eq!(filter.insert_unique("key"), Ok(false));
    assert!(filter.remove("key") && !filter.contains_hash(hash));
    assert_eq!(filter.insert_unique_hash(hash), Ok(true));
    assert_eq!(
        (filter.insert_unique("key"), filter.count("key")),
        (Ok(false), 1)
    );
    assert!(filter.remove_hash(hash) && filter.is_empty());
}

/// Why no filter is filled by `Extend`: whoever is not told which keys were taken for others would
/// remove those others.
#[test]
fn a_key_that_was_not_new_must_not_be_removed() {
    let builder = CuckooFilter::builder().buckets(500);
    let filter: CuckooFilter<8, 7> = builder.layout().build().unwrap();
    let collected: Vec<u32> = (0..3_000).collect();
    let (new, taken): (Vec<u32>, Vec<u32>) =
        (collected.into_iter()).partition(|key| filter.insert_unique(key).unwrap());
    assert!(!taken.is_empty());
    assert!(new.iter().all(|key| filter.contains(key)));
    assert!(filter.remove(&taken[0]));
    assert!(new.iter().any(|key| !filter.contains(key)));
}
