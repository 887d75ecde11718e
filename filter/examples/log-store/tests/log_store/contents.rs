//! What is put into a store comes out of it again.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::simulated_disk::SimulatedDisk;
use crate::{delete, exported, odd_lines, set};
use log_store::lines::{Imported, import};
use log_store::store::page::ROOM;
use log_store::store::{Store, log};

fn import_all(store: &mut Store<SimulatedDisk>, text: &[u8], batch: u64) -> Imported {
    let mut acknowledged = 0;
    let batch = NonZeroU64::new(batch).unwrap();
    let acknowledge = |number| {
        assert!(number > acknowledged);
        acknowledged = number;
        Ok(())
    };
    let imported = import(store, text, batch, acknowledge).unwrap();
    assert_eq!(acknowledged, imported.lines);
    imported
}

#[test]
fn an_export_is_what_was_imported() {
    let long = |length: usize| [vec![b'x'; length], b"\n".to_vec()].concat();
    let mut texts: Vec<Vec<u8>> = [&b""[..], b"\n", b"x", b"x\n", b"\n\n\r\n", b"\r", b"\xff\0"]
        .map(<[u8]>::to_vec)
        .into();
    texts.push(odd_lines(2_000).concat());
    texts.push(vec![b'x'; 3 << 20]);
    // The second record begins at every place near the end of a page, or ends there.
    for length in (ROOM - 40..ROOM + 10).chain(2 * ROOM - 30..2 * ROOM) {
        texts.push([&long(length)[..], b"second\n", &long(1)].concat());
    }
    for text in texts {
        for batch in [1, 7, 1_000] {
            // With the long one, a single batch is enough.
            if batch < 1_000 && text.len() > 1 << 15 {
                continue;
            }
            let disk = SimulatedDisk::new();
            let mut store = Store::open(disk.clone()).unwrap();
            let imported = import_all(&mut store, &text, batch);
            assert_eq!(imported.written, imported.lines);
            assert!(exported(&store) == text, "{} bytes", text.len());
            let store = Store::open(disk).unwrap();
            assert!(exported(&store) == text, "{} bytes, reopened", text.len());
        }
    }
}

#[test]
fn an_import_writes_and_deletes_what_differs_and_nothing_else() {
    let disk = SimulatedDisk::new();
    let mut store = Store::open(disk.clone()).unwrap();
    store
        .commit(&[set("name", b"x"), set("007", b"x"), set("0", b"x")])
        .unwrap();
    let imported = import_all(&mut store, b"a\nb\nc\nd\n", 2);
    assert_eq!(
        (imported.lines, imported.written, imported.deleted),
        (4, 4, 3)
    );
    assert_eq!(exported(&store), b"a\nb\nc\nd\n");

    let before = disk.bytes();
    let imported = import_all(&mut store, b"a\nb\nc\nd\n", 2);
    assert_eq!(
        (imported.lines, imported.written, imported.deleted),
        (4, 0, 0)
    );
    assert!(disk.bytes() == before);

    let imported = import_all(&mut store, b"a\nB\nc", 2);
    assert_eq!(
        (imported.lines, imported.written, imported.deleted),
        (3, 2, 1)
    );
    assert_eq!(exported(&Store::open(disk).unwrap()), b"a\nB\nc");
}

/// Compares a store with a map, past its initial room and with many deletions; also in one batch,
/// and after reopening.
#[test]
fn a_store_is_a_map() {
    let mut rng = StdRng::seed_from_u64(1);
    let disk = SimulatedDisk::new();
    let mut store = Store::open(disk.clone()).unwrap();
    let mut map = BTreeMap::new();
    let mut most = 0;
    for round in 0..100 {
        let batch: Vec<_> = (0..rng.random_range(1..200))
            .map(|n| {
                let key = format!("key {}", rng.random_range(0..5_000));
                // First it grows, then it shrinks.
                if rng.random_bool(if round < 70 { 0.2 } else { 0.7 }) {
                    map.remove(&key);
                    delete(&key)
                } else {
                    let value = format!("{round} {n}").into_bytes();
                    let change = set(&key, &value);
                    map.insert(key, value);
                    change
                }
            })
            .collect();
        store.commit(&batch).unwrap();
        most = most.max(map.len());
        assert_eq!(store.len(), map.len());
        // One copy for each key: no deletion left a copy behind.
        assert_eq!(store.index().filter().len(), map.len());
        if round == 50 {
            store = Store::open(disk.clone()).unwrap();
        }
    }
    assert!(most > 2_500, "it did not grow: {most}");
    for key in 0..5_000 {
        let key = format!("key {key}");
        assert_eq!(store.get(key.as_bytes()).unwrap().as_ref(), map.get(&key));
    }
}

#[test]
fn what_no_record_can_hold_is_refused() {
    let disk = SimulatedDisk::new();
    let mut store = Store::open(disk.clone()).unwrap();
    let before = disk.bytes();
    let error = |store: &mut Store<_>, key: &str| {
        let changes = [set("fits", b""), set(key, b"")];
        store.commit(&changes).unwrap_err().to_string()
    };
    assert_eq!(
        error(&mut store, ""),
        "a key of 0 bytes: it must have 1 to 1024"
    );
    let long = "x".repeat(log::MAX_KEY + 1);
    assert_eq!(
        error(&mut store, &long),
        "a key of 1025 bytes: it must have 1 to 1024"
    );
    assert!(disk.bytes() == before);
    // The longest keys fit, one after the other.
    let keys = ["a", "b", "c", "d"].map(|end| long[2..].to_owned() + end);
    store
        .commit(&keys.each_ref().map(|key| set(key, key.as_bytes())))
        .unwrap();
    for key in keys {
        assert_eq!(store.get(key.as_bytes()).unwrap(), Some(key.into_bytes()));
    }
}
