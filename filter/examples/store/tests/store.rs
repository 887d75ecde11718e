//! The store: its contents, its errors, and its reads.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use filter::Filter;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use store::{Changes, Store};
use tempfile::TempDir;

fn new_file() -> (TempDir, PathBuf) {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("store");
    (directory, path)
}

fn open(path: &Path) -> Store {
    Store::open(path, true).unwrap()
}

fn set<const N: usize>(values: [(&str, &str); N]) -> Changes {
    Changes::from(values.map(|(key, value)| (key.into(), Some(value.into()))))
}

fn contents(store: &Store) -> Changes {
    let keys = store.keys().unwrap().into_iter();
    keys.map(|key| (key.clone(), store.get(&key).unwrap()))
        .collect()
}

/// Compares a store with a map while it grows and shrinks, and after it was opened again.
#[test]
fn store_equals_map() {
    let (_directory, path) = new_file();
    let mut rng = StdRng::seed_from_u64(1);
    let mut store = open(&path);
    let mut map = BTreeMap::new();
    for round in 0..100 {
        let changes: Changes = (0..rng.random_range(1..200))
            .map(|n| {
                let key = format!("key {}", rng.random_range(0..5_000)).into_bytes();
                let deleted = rng.random_bool(if round < 70 { 0.2 } else { 0.7 });
                let value = format!("{round} {n}").into_bytes();
                (key, (!deleted).then_some(value))
            })
            .collect();
        store.commit(&changes).unwrap();
        map.extend(changes);
        map.retain(|_, value| value.is_some());
        // One copy for each key: no deletion left a copy behind.
        assert_eq!(store.filter().len(), map.len());
        if round % 50 == 49 {
            let digest = store.filter().hasher_digest();
            drop(store);
            store = open(&path);
            assert_eq!(contents(&store), map);
            // Otherwise a client could choose keys that collide.
            assert_ne!(store.filter().hasher_digest(), digest);
        }
    }
    assert!(map.len() > 500);
    let absent = (0..5_000).map(|n| format!("key {n}").into_bytes());
    let mut absent = absent.filter(|key| !map.contains_key(key));
    assert!(absent.all(|key| store.get(&key).unwrap().is_none()));
}

#[test]
fn refused_commit_and_damage_are_errors() {
    let (_directory, path) = new_file();
    let mut store = open(&path);
    let too_long = "k".repeat(1_025);
    for _ in 0..10 {
        let refused = store.commit(&set([("a", "1"), (&too_long, "2")]));
        assert!(refused.unwrap_err().to_string().contains("1025 bytes"));
    }
    assert_eq!(store.filter().len(), 0);
    store.commit(&set([("a", "1")])).unwrap();
    assert_eq!(store.filter().len(), 1);
    drop(store);
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let error = Store::open(&path, true).map(drop).unwrap_err();
    assert!(error.to_string().contains("is damaged"), "{error}");
}

/// Deleted keys are absent, too.
#[test]
fn absent_keys_cost_hardly_any_read() {
    const KEYS: usize = 10_000;
    let (_directory, path) = new_file();
    let key = |n: usize| format!("key {n}").into_bytes();
    let mut store = open(&path);
    let all = (0..KEYS).map(|n| (key(n), Some(b"value".to_vec())));
    store.commit(&all.collect()).unwrap();
    let odd = (1..KEYS).step_by(2).map(|n| (key(n), None));
    store.commit(&odd.collect()).unwrap();
    let mut absent = (1..KEYS).step_by(2).chain(KEYS..2 * KEYS);
    assert!(absent.all(|n| store.get(&key(n)).unwrap().is_none()));
    // The filter mistakes fewer than one absent key in 500 for a present one.
    let reads = store.reads();
    assert!(reads < 300, "{reads} reads for 15,000 absent keys");
    assert_eq!(store.get(&key(0)).unwrap().as_deref(), Some(&b"value"[..]));
    assert_eq!(store.reads(), reads + 1);
}
