//! Keys of any bytes, in any order of calls: what was inserted is found until it is removed or its
//! time is over, also after the filter was saved and loaded.

#![no_main]

use std::collections::HashMap;

use arbitrary::Arbitrary;
use filter::{CuckooFilter, ExpiringCuckooFilter, Filter, GrowingCuckooFilter, LoadError};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
enum Key {
    Number(i64),
    Bytes(Vec<u8>),
    Text(String),
}

#[derive(Arbitrary, Debug)]
enum Call {
    Insert(Key),
    InsertIfAbsent(Key),
    Remove(Key),
    Advance(u8),
    Reload,
}

fuzz_target!(|calls: Vec<Call>| {
    let fixed = CuckooFilter::builder().buckets(37).build().unwrap();
    agrees(fixed, CuckooFilter::from_bytes, &calls);
    let builder = GrowingCuckooFilter::builder().reserved_bytes(0).buckets(16);
    let growing = builder.clone().build().unwrap();
    agrees(growing, |bytes| builder.clone().load_bytes(bytes), &calls);
    is_remembered(&calls);
});

fn hash(filter: &impl Filter, key: &Key) -> u64 {
    match key {
        Key::Number(number) => filter.hash_one(number),
        Key::Bytes(bytes) => filter.hash_one(&**bytes),
        Key::Text(text) => filter.hash_one(&**text),
    }
}

/// Removes only keys that were inserted, so that keys of the same class do no harm.
fn agrees<F: Filter>(mut filter: F, load: impl Fn(&[u8]) -> Result<F, LoadError>, calls: &[Call]) {
    let mut held = HashMap::<u64, usize>::new();
    for call in calls {
        match call {
            Call::Insert(key) => {
                let hash = hash(&filter, key);
                *held.entry(hash).or_default() += usize::from(filter.insert_hash(hash).is_ok());
            }
            Call::InsertIfAbsent(key) => {
                let hash = hash(&filter, key);
                let new = filter.insert_if_absent_hash(hash);
                let copies = held.entry(hash).or_default();
                assert!(*copies == 0 || new == Ok(false));
                *copies += usize::from(new == Ok(true));
            }
            Call::Remove(key) => {
                let hash = hash(&filter, key);
                if let Some(copies) = held.get_mut(&hash).filter(|copies| **copies > 0) {
                    assert!(filter.remove_hash(hash).unwrap());
                    *copies -= 1;
                }
            }
            Call::Advance(_) => {}
            Call::Reload => filter = load(&filter.to_bytes().unwrap()).unwrap(),
        }
        assert_eq!(filter.len(), held.values().sum());
        for (&hash, &copies) in &held {
            assert!(filter.count_hash(hash) >= copies);
            assert!(filter.contains_hash(hash) || copies == 0);
        }
    }
}

/// Removes nothing, since a remove takes the one copy of all keys of a class.
fn is_remembered(calls: &[Call]) {
    let mut filter = ExpiringCuckooFilter::builder().buckets(37).build().unwrap();
    let mut period = 0;
    let mut came = HashMap::<u64, u64>::new();
    for call in calls {
        match call {
            Call::Insert(key) | Call::InsertIfAbsent(key) => {
                let hash = hash(&filter, key);
                if filter.insert_hash(hash).is_ok() {
                    came.insert(hash, period);
                }
            }
            Call::Remove(_) => {}
            Call::Advance(by) => {
                period += u64::from(*by);
                filter.advance_to(period).unwrap();
                came.retain(|_, came| *came + 3 > period);
                assert!(filter.len() <= came.len());
            }
            Call::Reload => {
                filter = ExpiringCuckooFilter::from_bytes(&filter.to_bytes().unwrap()).unwrap();
            }
        }
        assert!(came.keys().all(|&hash| filter.contains_hash(hash)));
    }
}
