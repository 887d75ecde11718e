//! The state of a store after a crash, and after damage.

use std::collections::BTreeMap;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::simulated_disk::SimulatedDisk;
use crate::{delete, exported, set};
use log_store::store::log::Change;
use log_store::store::page::SIZE;
use log_store::store::{Store, log};

type Map = BTreeMap<String, Vec<u8>>;

fn contents(store: &Store<SimulatedDisk>) -> Map {
    let keys = store.live().unwrap().into_keys();
    keys.map(|key| {
        let value = store.get(&key).unwrap().unwrap();
        (String::from_utf8(key).unwrap(), value)
    })
    .collect()
}

/// Makes some changes, of one page or of several, and the map that results from them.
fn changes(rng: &mut StdRng, map: &Map) -> (Vec<Change>, Map) {
    let mut map = map.clone();
    let longest = [20, 20, 5_000][rng.random_range(0..3)];
    let changes = (0..rng.random_range(1..8)).map(|_| {
        let key = rng.random_range(0..30).to_string();
        if rng.random_bool(0.3) {
            map.remove(&key);
            return delete(&key);
        }
        let value = vec![rng.random(); rng.random_range(0..longest)];
        map.insert(key.clone(), value.clone());
        set(&key, &value)
    });
    (changes.collect(), map)
}

/// The power fails at any call, eight times for each store: everything acknowledged is there, and
/// of the batch being written either all or nothing.
#[test]
fn what_is_acknowledged_survives_power_failures() {
    let mut rng = StdRng::seed_from_u64(2);
    let (mut kept, mut lost) = (0, 0);
    for _ in 0..80 {
        let disk = SimulatedDisk::new();
        let mut acknowledged = Map::new();
        for _ in 0..8 {
            let mut store = Store::open(disk.clone()).unwrap();
            disk.fail_after(rng.random_range(0..10));
            let attempted = loop {
                let (batch, after) = changes(&mut rng, &acknowledged);
                if store.commit(&batch).is_err() {
                    break after;
                }
                acknowledged = after;
            };
            drop(store);
            disk.restart(&mut rng);
            let found = contents(&Store::open(disk.clone()).unwrap());
            if found == acknowledged {
                lost += 1;
            } else {
                assert!(
                    found == attempted,
                    "neither what was acknowledged nor the next batch"
                );
                kept += 1;
            }
            acknowledged = found;
        }
    }
    // Both occurred often.
    assert!(kept > 30 && lost > 200, "{kept} kept, {lost} lost");
}

/// Makes a log of two batches, of one page and of two; returns it and its length after the first
/// batch.
fn two_batches() -> (Vec<u8>, usize) {
    let disk = SimulatedDisk::new();
    let mut store = Store::open(disk.clone()).unwrap();
    store.commit(&[set("1", b"one"), set("2", b"two")]).unwrap();
    let first = disk.bytes().len();
    let long = vec![b'x'; SIZE];
    store
        .commit(&[set("2", b"new"), set("3", &long), set("4", b"")])
        .unwrap();
    let bytes = disk.bytes();
    assert_eq!((first, bytes.len()), (2 * SIZE, 4 * SIZE));
    (bytes, first)
}

/// Torn anywhere, a batch is as if it had never been written; and the next one takes its place.
#[test]
fn a_log_that_is_cut_off_anywhere_has_all_batches_before() {
    let (bytes, first) = two_batches();
    for length in first..bytes.len() {
        let disk = SimulatedDisk::of(bytes[..length].to_vec());
        let mut store = Store::open(disk.clone()).unwrap();
        assert_eq!(store.torn(), (length - first) as u64);
        // Checking the contents takes longer than finding the end.
        if length % 101 == 0 || length % SIZE < 2 {
            assert_eq!(exported(&store), b"onetwo");
            assert_eq!(disk.bytes().len(), length, "opening changed it");
            store.commit(&[set("3", b"three")]).unwrap();
            assert_eq!(store.torn(), 0);
            let store = Store::open(disk.clone()).unwrap();
            assert_eq!(exported(&store), b"onetwothree");
            assert_eq!(store.torn(), 0, "what was torn is still there");
        }
    }
    let whole = Store::open(SimulatedDisk::of(bytes)).unwrap();
    assert_eq!((whole.len(), whole.torn(), whole.log().pages()), (4, 0, 4));
}

/// A torn batch that lacks nothing but zeros, and then another crash in which only the far end was
/// written: now there are zeros before it.
#[test]
fn a_batch_that_was_missed_does_not_come_back() {
    let (bytes, _) = two_batches();
    for calls in 0..6 {
        let disk = SimulatedDisk::of(bytes[..bytes.len() - 512].to_vec());
        let mut store = Store::open(disk.clone()).unwrap();
        assert_eq!(exported(&store), b"onetwo");
        disk.fail_after(calls);
        let failed = store.commit(&[set("3", &vec![b'y'; 3 * SIZE])]);
        assert!(failed.is_err(), "it should take six calls");
        disk.restart_with(false, |sector| sector >= 4 * SIZE);
        let store = Store::open(disk).unwrap();
        // The last two calls write the last page, which stays, and sync it.
        let kept = if calls < 4 { 2 } else { 3 };
        assert_eq!(store.len(), kept, "after {calls} calls");
    }
}

/// A flipped bit in the last page: its batch is not accepted. A flipped bit in any page before it:
/// an error that says where.
#[test]
fn a_flipped_bit_is_never_accepted() {
    let (bytes, first) = two_batches();
    let mut rng = StdRng::seed_from_u64(3);
    // Each bit of a header, and one bit of each byte behind it.
    let bits = (0..20 * 8).chain((20..SIZE).map(|byte| byte * 8 + rng.random_range(0..8)));
    for bit in bits {
        // A quarter of the bytes of each page, and another quarter in the next.
        let page = bit / 8 % 4;
        let flip = |page: usize| {
            let mut damaged = bytes.clone();
            damaged[page * SIZE + bit / 8] ^= 1 << (bit % 8);
            let disk = SimulatedDisk::of(damaged.clone());
            let opened = Store::open(disk.clone());
            assert!(disk.bytes() == damaged, "it was changed");
            opened.map(|store| (store.len(), store.torn()))
        };
        if bit < 20 * 8 || page == 3 {
            let torn = (bytes.len() - first) as u64;
            assert_eq!(flip(3).unwrap(), (2, torn), "bit {bit}");
        }
        if bit < 20 * 8 || page != 3 {
            for page in [1, 2] {
                let error = flip(page).unwrap_err().to_string();
                let wanted = format!("page {page} of the log (from byte {} on)", page * SIZE);
                assert!(error.starts_with(&wanted), "bit {bit}: {error}");
            }
            let error = flip(0).unwrap_err().to_string();
            assert!(
                error.contains("does not begin like one"),
                "bit {bit}: {error}"
            );
        }
    }
}

/// Pages that are intact, but in the wrong place or after another log's first page.
#[test]
fn a_page_in_a_wrong_place_is_not_accepted() {
    let (bytes, _) = two_batches();
    let mut swapped = bytes.clone();
    swapped.copy_within(SIZE..2 * SIZE, 2 * SIZE);
    let error = Store::open(SimulatedDisk::of(swapped))
        .map(drop)
        .unwrap_err();
    assert!(
        error.to_string().starts_with("page 2 of the log"),
        "{error}"
    );
    for other in [
        &b""[..],
        b"text\n",
        &bytes[SIZE..],
        &log::first_page()[..SIZE - 1],
    ] {
        let disk = SimulatedDisk::of(other.to_vec());
        let error = Store::open(disk).map(drop).unwrap_err().to_string();
        assert!(error.contains("does not begin like one"), "{error}");
    }
}

/// Damage that occurs after the store was opened is found when the page is read.
#[test]
fn a_page_that_is_damaged_later_is_not_believed() {
    use log_store::store::disk::Disk;

    let (bytes, _) = two_batches();
    let mut disk = SimulatedDisk::of(bytes);
    let store = Store::open(disk.clone()).unwrap();
    disk.write_at(3 * SIZE as u64 + 100, b"damage").unwrap();
    let error = store.get(b"3").unwrap_err().to_string();
    assert!(error.starts_with("page 3 of the log"), "{error}");
}
