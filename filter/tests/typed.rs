//! A typed filter does what the filter inside it does with the same keys.
#![cfg(not(kcas_loom))]

use std::fmt::Debug;
use std::hash::RandomState;

use filter::{CuckooFilter, GrowingCuckooFilter, InsertError, KeyFilter, TypedFilter};

const KEYS: i32 = 1_000;

/// Returns the filters of this crate, with hashers that differ.
fn with_each(check: impl Fn(&dyn Fn(bool))) {
    let builder = || CuckooFilter::builder().capacity(2 * KEYS as usize);
    check(&|batches| keys_come_and_go(builder().build().unwrap(), batches));
    let seeded = || builder().hasher(RandomState::new());
    check(&|batches| keys_come_and_go(seeded().build().unwrap(), batches));
    let fitted = || seeded().false_positive_rate(0.001);
    check(&|batches| keys_come_and_go(fitted().build().unwrap(), batches));
    check(&|batches| keys_come_and_go(GrowingCuckooFilter::new(), batches));
}

fn keys_come_and_go<F: KeyFilter + Debug>(filter: F, batches: bool) {
    let typed = TypedFilter::<i32, _>::new(filter);
    let keys: Vec<i32> = (-KEYS / 2..KEYS / 2).collect();
    let (mut inserted, mut unique) = (vec![Ok(()); keys.len()], vec![Ok(true); keys.len()]);
    let (mut found, mut removed) = (vec![false; keys.len()], vec![false; keys.len()]);
    if batches {
        typed.insert_batch(&keys, &mut inserted);
        typed.insert_unique_batch(&keys, &mut unique);
        typed.contains_batch(&keys, &mut found);
        // Half of them are absent, so the order counts.
        let asked: Vec<i32> = (0..KEYS).collect();
        let mut answers = vec![false; asked.len()];
        typed.contains_batch(&asked, &mut answers);
        let one_by_one = asked.iter().map(|key| typed.contains(key));
        assert!(one_by_one.eq(answers), "{typed:?}");
    } else {
        inserted = keys.iter().map(|key| typed.insert(key)).collect();
        unique = keys.iter().map(|key| typed.insert_unique(key)).collect();
        found = keys.iter().map(|key| typed.contains(key)).collect();
    }
    let all: [Vec<Result<_, InsertError>>; 2] = [vec![Ok(()); keys.len()], inserted];
    assert_eq!(all[0], all[1], "{typed:?}");
    assert_eq!(unique, vec![Ok(false); keys.len()], "{typed:?}");
    assert_eq!(found, vec![true; keys.len()], "{typed:?}");
    for key in &keys {
        assert_eq!(typed.hash(key), typed.inner().hash_key(key), "{typed:?}");
        assert!(typed.count(key) >= 1, "{typed:?}");
    }
    assert_eq!(typed.inner().len(), keys.len());
    if batches {
        typed.remove_batch(&keys, &mut removed);
    } else {
        let (first, rest) = keys.split_first().unwrap();
        removed[0] = typed.try_remove(first).unwrap();
        for (key, removed) in rest.iter().zip(&mut removed[1..]) {
            *removed = typed.remove(key);
        }
    }
    assert_eq!(removed, vec![true; keys.len()], "{typed:?}");
    assert!(typed.into_inner().is_empty());
}

#[test]
fn typed_keys_come_and_go_in_every_filter() {
    with_each(|run| run(false));
    with_each(|run| run(true));
}

/// A key of the right type is the same key in the filter itself; of another type it is not.
#[test]
fn the_filter_inside_has_the_same_keys() {
    let seeded = CuckooFilter::builder().hasher(RandomState::new());
    let mut typed = TypedFilter::<str, _>::new(seeded.capacity(100).build().unwrap());
    typed.insert("abc").unwrap();
    assert!(typed.inner().contains("abc"));
    assert!(!typed.inner().contains(b"abc"));
    assert!(!typed.inner().contains(&("abc", "")));
    typed.inner_mut().clear();
    assert!(!typed.contains("abc"));
}

#[test]
fn places_for_results_of_another_number_change_nothing() {
    let typed = TypedFilter::<i32, _>::new(CuckooFilter::with_capacity(100));
    // More than go in one group.
    let insert = || typed.insert_batch(&[1; 200], &mut [Ok(()); 199]);
    let refused = std::panic::catch_unwind(std::panic::AssertUnwindSafe(insert));
    assert!(refused.is_err() && typed.inner().is_empty());
}
