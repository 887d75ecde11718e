//! Timestamps of a growing filter that wrap: how many additions it takes to mislead a copy, and a loaded
//! filter of fewer buckets than there are counters of wraps.

use std::cell::Cell;
use std::sync::Arc;

use crc::{CRC_64_XZ, Crc};
use filter::{Filter, GrowingCuckooFilter};
use kcas::steps::{count, freeze, with_hook};

use crate::small_growing::{apart, from_the_other_bucket, holding, key};

/// Number of steps of a call, by a thread that has made none.
fn steps_of(call: impl FnOnce() + Send + 'static) -> u64 {
    let counted = std::thread::spawn(|| count(call));
    let ((), steps) = counted.join().unwrap();
    steps.loads + steps.stores + steps.exchanges + steps.others
}

/// What is in the filter throughout is in the copy, although an insert and a remove that began before the
/// copy end so many additions to the first bucket later.
fn is_copied_after(additions: u64) -> bool {
    let here = key(apart(1, 4, 0), 0);
    let there = from_the_other_bucket(here);
    let other = key(apart(0, 4, 0), 0);
    // Before its exchange; after that it counts.
    // A timestamp is 0 only at first, and between turning it over and the addition that does so.
    let before = || {
        let filter = holding(16, &[there]);
        filter.insert(&other).unwrap();
        assert!(filter.remove(&other));
        filter
    };
    let [inserted, removed] = [(); 2].map(|()| before());
    let insert = steps_of(move || inserted.insert(&here).unwrap()) - 3;
    let remove = steps_of(move || assert!(removed.remove(&there))) - 3;
    (0..60).all(|at| {
        let filter = before();
        let [inserts, removes, others] = [(); 3].map(|()| Arc::clone(&filter));
        let inserting = freeze(insert, move || inserts.insert(&here))
            .ok()
            .expect("it has this step");
        let removing = freeze(remove, move || removes.remove(&there))
            .ok()
            .expect("it has this step");
        let stopped = Cell::new(Some((inserting, removing)));
        let hook = move |step| {
            if step == at {
                for _ in 0..additions {
                    others.insert(&other).unwrap();
                    assert!(others.remove(&other));
                }
                let (inserting, removing) = stopped.take().unwrap();
                inserting.thaw().unwrap();
                assert!(removing.thaw());
            }
        };
        let copy = with_hook(hook, || filter.try_clone()).unwrap();
        assert_eq!(filter.count(&here), 1);
        copy.count(&here) == 1
    })
}

/// The docs say that it takes 64, and in the one place that these are additions, in the other that a copy counts as one.
#[test]
#[ignore = "fails: 61 or 62 do it, beside the copy's own, and 64 do not: a whole turn is 63"]
fn a_copy_is_misled_by_a_whole_turn_and_nothing_less() {
    let misled: Vec<u64> = (0..=140)
        .filter(|&additions| !is_copied_after(additions))
        .collect();
    assert_eq!(misled, [64, 128]);
}

/// Returns a saved filter that holds nothing, and began with 2^`base` buckets.
fn forged(base: u32) -> Vec<u8> {
    let mut bytes = GrowingCuckooFilter::builder()
        .buckets(16)
        .build()
        .unwrap()
        .to_bytes()
        .unwrap();
    let words = 1 << base;
    bytes[12..16].copy_from_slice(&base.to_le_bytes());
    bytes[16..24].copy_from_slice(&(words as u64).to_le_bytes());
    let crc = Crc::<u64>::new(&CRC_64_XZ);
    let mut digest = crc.digest();
    digest.update(&bytes[..40]);
    bytes[40..48].copy_from_slice(&digest.clone().finalize().to_le_bytes());
    bytes.resize(48 + 8 * words, 0);
    bytes[48..].fill(0);
    digest.update(&bytes[48..]);
    bytes.extend(digest.finalize().to_le_bytes());
    bytes
}

/// A key that is there throughout, in the one bucket or in the other, is found, although so many additions to the
/// first one fall between a lookup's reads of it.
fn is_found_after(filter: GrowingCuckooFilter, here: u64, other: u64, additions: u64) -> bool {
    let filter = Arc::new(filter);
    let there = from_the_other_bucket(here);
    let add_other = move |filter: &GrowingCuckooFilter| {
        filter.insert_hash(other).unwrap();
        assert!(filter.remove_hash(other));
    };
    // A timestamp of 0 does not come again.
    add_other(&filter);
    filter.insert_hash(there).unwrap();
    let others = Arc::clone(&filter);
    let hook = move |step| match step {
        // Before the second bucket is read.
        3 => {
            others.insert_hash(here).unwrap();
            assert!(others.remove_hash(there));
        }
        // Before the first one is read again.
        4 => {
            others.insert_hash(there).unwrap();
            assert!(others.remove_hash(here));
            (0..additions).for_each(|_| add_other(&others));
        }
        _ => {}
    };
    with_hook(hook, || filter.contains_hash(here))
}

/// Each bucket has the counter that lookups of its keys look at.
#[test]
fn a_key_is_found_while_a_timestamp_wraps() {
    for bucket in 0..16 {
        let (here, other) = (key(apart(1, 4, 0), bucket), key(apart(0, 4, 0), bucket));
        for additions in 0..130 {
            let filter = GrowingCuckooFilter::builder().buckets(16).build().unwrap();
            let found = is_found_after(filter, here, other, additions);
            assert!(found, "bucket {bucket}: missing after {additions}");
        }
    }
}

/// Also in a filter that began with fewer buckets than there are counters, if any can be loaded.
#[test]
#[ignore = "fails: one of two buckets is loaded, and counts its wraps where lookups of some keys do not look"]
fn a_key_is_found_while_a_timestamp_wraps_in_whatever_filter_can_be_loaded() {
    // The address ends with 2, so the bucket is 0, and the counter another one.
    let (here, other) = (key(apart(1, 1, 0), 2), key(apart(0, 1, 0), 0));
    for additions in 0..130 {
        let Ok(filter) = GrowingCuckooFilter::from_bytes(&forged(1)) else {
            return;
        };
        let found = is_found_after(filter, here, other, additions);
        assert!(found, "missing after {additions}");
    }
}
