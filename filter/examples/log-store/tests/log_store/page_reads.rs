//! Counting the pages that are read.

use crate::simulated_disk::SimulatedDisk;
use crate::{delete, set};
use log_store::compare::compare;
use log_store::store::Store;
use log_store::store::page::SIZE;

fn key(number: usize) -> String {
    format!("key number {number:05}")
}

/// Most absent keys cost nothing, even those that were deleted; each present one costs a page.
#[test]
fn absent_keys_are_not_read_for() {
    const KEYS: usize = 10_000;
    let mut store = Store::open(SimulatedDisk::new()).unwrap();
    let all: Vec<_> = (0..KEYS).map(|n| set(&key(n), b"value")).collect();
    store.commit(&all).unwrap();
    let odd: Vec<_> = (1..KEYS).step_by(2).map(|n| delete(&key(n))).collect();
    store.commit(&odd).unwrap();

    let before = store.log().pages_read();
    for n in (1..KEYS).step_by(2) {
        assert!(store.get(key(n).as_bytes()).unwrap().is_none());
    }
    // Of 5,000 keys, the filter takes one in a thousand for present at a quarter of its load, and
    // the offsets at most one in sixteen of these: 0.3 pages; five standard deviations of a Poisson
    // distribution more are 3.
    let absent = store.log().pages_read() - before;
    assert!(absent <= 3, "{absent} pages read for deleted keys");

    // With many more keys: of those that the filter takes for present, the offsets let through at
    // most one in sixteen.
    let others = (KEYS..20 * KEYS).map(key);
    let mistaken: Vec<String> = others
        .filter(|key| store.index().may_have(key.as_bytes()))
        .collect();
    let before = store.log().pages_read();
    for key in &mistaken {
        assert!(store.get(key.as_bytes()).unwrap().is_none());
    }
    let read = (store.log().pages_read() - before) as f64;
    let most = mistaken.len() as f64 / 16.0;
    assert!(mistaken.len() > 50, "{}", mistaken.len());
    assert!(
        read < most + 5.0 * most.sqrt(),
        "{read} pages read for {}",
        mistaken.len()
    );

    let present = KEYS / 2;
    let comparison = compare(&store, KEYS).unwrap();
    let [with_filter, offsets, filter_and_ranges, ranges, exact] = &comparison.ways[..] else {
        panic!("there are five ways")
    };
    assert_eq!((comparison.present, comparison.absent), (present, present));
    assert_eq!((exact.present, exact.absent), (present as u64, 0));
    // Binomial: five standard deviations.
    let (mistaken, expected) = (comparison.mistaken as f64, comparison.expected);
    assert!((1.0..20.0).contains(&expected), "{expected}");
    assert!(
        (mistaken - expected).abs() < 5.0 * expected.sqrt(),
        "{mistaken}, not {expected}"
    );
    // One page for each key; the offsets, told apart by seven bits, are wrong about less than one
    // key in sixteen.
    for way in [with_filter, offsets] {
        let more = way.present.checked_sub(present as u64).unwrap();
        assert!(
            more < present as u64 / 16,
            "{more} pages too many: {}",
            way.name
        );
    }
    assert!(with_filter.absent <= 3, "{}", with_filter.absent);
    assert!(
        (30..present as u64 / 8).contains(&offsets.absent),
        "{}",
        offsets.absent
    );
    // Each key was in the range of some page, and most still are in that of a page of deletions.
    assert!(ranges.absent > present as u64, "{}", ranges.absent);
    assert!(filter_and_ranges.absent <= 2 * mistaken as u64);
    assert!(with_filter.bytes > offsets.bytes && offsets.bytes < exact.bytes);
}

/// Counted by hand: keys 10 to 49 are in one page, keys 20 and 39 in a later one.
#[test]
fn key_ranges_lead_to_all_pages_that_could_have_a_key() {
    let mut store = Store::open(SimulatedDisk::new()).unwrap();
    let all: Vec<_> = (10..50).map(|n| set(&n.to_string(), b"")).collect();
    store.commit(&all).unwrap();
    store.commit(&[set("20", b""), set("39", b"")]).unwrap();
    let comparison = compare(&store, 100).unwrap();
    let ranges = &comparison.ways[3];
    assert_eq!(ranges.name, "key ranges of pages");
    // For keys 21 to 38 the later page is read, too.
    assert_eq!(ranges.present, 40 + 18);
    // The absent keys come after the nine of their decade: those after 29 are in both ranges, those
    // after 49 in neither.
    assert_eq!(ranges.absent, 10 + 20 + 10);
    // At most this many keys, evenly chosen.
    assert_eq!(compare(&store, 7).unwrap().present, 7);
}

/// A value costs as many pages as it spans.
#[test]
fn a_long_value_costs_the_pages_that_it_is_on() {
    let mut store = Store::open(SimulatedDisk::new()).unwrap();
    store
        .commit(&[set("long", &vec![1; 3 * SIZE]), set("short", b"")])
        .unwrap();
    let reads = |key: &str| {
        let before = store.log().pages_read();
        store.get(key.as_bytes()).unwrap();
        store.log().pages_read() - before
    };
    assert_eq!((reads("long"), reads("short"), reads("none")), (4, 1, 0));
}
