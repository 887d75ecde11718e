//! The store: what it keeps, what damage leaves, and how often it reads.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use log_store::{Changes, Store};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tempfile::TempDir;

fn new_file() -> (TempDir, PathBuf) {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("store");
    (directory, path)
}

fn open(path: &Path) -> Store {
    Store::open(path, true).unwrap()
}

/// Changes that give these keys these values.
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
fn a_store_is_a_map() {
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
            drop(store);
            store = open(&path);
            assert_eq!(contents(&store), map);
        }
    }
    assert!(map.len() > 500);
    let absent = (0..5_000).map(|n| format!("key {n}").into_bytes());
    let mut absent = absent.filter(|key| !map.contains_key(key));
    assert!(absent.all(|key| store.get(&key).unwrap().is_none()));
}

/// Absent keys, also those that were deleted, cost hardly any read; without the filter, each costs a
/// chain.
#[test]
fn the_filter_avoids_reads_for_absent_keys() {
    const KEYS: usize = 10_000;
    let (_directory, path) = new_file();
    let key = |n: usize| format!("key {n}").into_bytes();
    let mut store = open(&path);
    let all = (0..KEYS).map(|n| (key(n), Some(b"value".to_vec())));
    store.commit(&all.collect()).unwrap();
    let odd = (1..KEYS).step_by(2).map(|n| (key(n), None));
    store.commit(&odd.collect()).unwrap();
    for _ in 0..2 {
        let absent = || (1..KEYS).step_by(2).chain(KEYS..2 * KEYS);
        let before = store.reads();
        assert!(absent().all(|n| store.get(&key(n)).unwrap().is_none()));
        // The filter takes fewer than one absent key in 500 for a present one.
        let filtered = store.reads() - before;
        assert!(filtered < 300, "{filtered} reads for 15,000 absent keys");
        let get = |n| store.get_without_filter(&key(n)).unwrap();
        assert!(absent().all(|n| get(n).is_none()));
        let unfiltered = store.reads() - before - filtered;
        assert!(unfiltered > 15_000, "{unfiltered} reads without the filter");
        drop(store);
        store = open(&path);
    }
}

/// A log of two batches, and the length of the first. A value looks like the beginning of a batch.
fn two_batches() -> (Vec<u8>, usize) {
    let (_directory, path) = new_file();
    let mut store = open(&path);
    store.commit(&set([("1", "one"), ("2", "two")])).unwrap();
    let first = fs::read(&path).unwrap();
    let value = Some(first[..20].to_vec());
    let changes = [
        (b"2".to_vec(), Some(b"new".to_vec())),
        (b"3".to_vec(), value),
    ];
    store.commit(&Changes::from(changes)).unwrap();
    (fs::read(&path).unwrap(), first.len())
}

/// A torn batch is as if it had never been written, and the next one takes its place.
#[test]
fn a_torn_batch_is_ignored_and_replaced() {
    let (bytes, first) = two_batches();
    let cut_off = (first..bytes.len()).map(|length| bytes[..length].to_vec());
    // After a power cut, there may be zeros where nothing was written yet.
    let zeros = (first..bytes.len() - 4).map(|start| {
        let mut torn = bytes.clone();
        torn[start..bytes.len().min(start + 20)].fill(0);
        torn
    });
    let (_directory, path) = new_file();
    for torn in cut_off.chain(zeros) {
        fs::write(&path, &torn).unwrap();
        assert_eq!(Store::open(&path, false).unwrap().filter().len(), 2);
        assert_eq!(fs::read(&path).unwrap(), torn, "opening changed it");
        open(&path).commit(&set([("4", "four")])).unwrap();
        let wanted = set([("1", "one"), ("2", "two"), ("4", "four")]);
        assert_eq!(contents(&open(&path)), wanted);
    }
}

/// Returns these bytes with each bit flipped in turn.
fn flipped(bytes: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    (0..bytes.len() * 8).map(|bit| {
        let mut damaged = bytes.to_vec();
        damaged[bit / 8] ^= 1 << (bit % 8);
        damaged
    })
}

/// A flipped bit in the last batch: it is torn. In a batch before it: an error that says where.
#[test]
fn a_flipped_bit_is_never_accepted() {
    let (bytes, first) = two_batches();
    let (_directory, path) = new_file();
    for (bit, damaged) in flipped(&bytes).enumerate() {
        fs::write(&path, &damaged).unwrap();
        if bit / 8 >= first {
            assert_eq!(open(&path).filter().len(), 2, "bit {bit}");
        } else {
            let error = Store::open(&path, true).map(drop).unwrap_err();
            let wanted = ["damaged at byte 0", "does not begin like one"];
            let wanted = wanted[usize::from(bit < 64)];
            assert!(error.to_string().contains(wanted), "{error}");
            assert!(fs::read(&path).unwrap() == damaged, "it was changed");
        }
    }
}

/// Damage to the file of an open store: no lookup panics or goes round for ever.
#[test]
fn damage_to_an_open_store_is_survived() {
    let (bytes, _) = two_batches();
    let (_directory, path) = new_file();
    fs::write(&path, &bytes).unwrap();
    let store = open(&path);
    let mut errors = 0;
    for damaged in flipped(&bytes) {
        fs::write(&path, damaged).unwrap();
        let get = |key: &&str| store.get(key.as_bytes()).is_err();
        errors += ["1", "2", "3"].iter().filter(|key| get(key)).count();
    }
    assert!(errors > 50, "{errors}");
}
