//! Models of the growing filter, while buckets are split.
//!
//! Here a filter begins with one or two buckets of three slots, and grows by one bucket at a time.
//! Timestamps are turned over before every second addition.

use crate::small::Operation;
use crate::small::growing::{Growing, apart, from_other_bucket, holding, key};
use crate::{Calls, calls, copy, hop, insert, insert_if_absent, look_up, race, remove};
use Operation::{Contains, Count, Insert, InsertIfAbsent, Remove};
use kcas_testing::model::explore_test;

/// The filter begins with this many buckets.
fn explore_race(
    buckets: usize,
    bounds: (usize, u64),
    held: &[u64],
    mine: impl Calls<Growing>,
    others: impl Calls<Growing>,
) {
    let hold = move |held: &[u64]| holding(buckets, held);
    crate::explore_race(bounds, hold, held, mine, others, |_| ());
}

/// The `nth` key of this address that has one bucket, however often it is split here.
fn staying(address: u64, nth: usize) -> u64 {
    key(apart(0, 3, nth), address)
}

/// Keys that fill the only bucket; when it is split, one goes to the new bucket.
fn residents() -> [u64; 3] {
    [staying(0, 0), staying(1, 1), staying(2, 2)]
}

#[test]
fn lookup_during_bucket_split() {
    for looked_up in [residents()[0], residents()[1], staying(0, 3)] {
        let new = insert(staying(0, 3));
        explore_race(1, (4, 9_300), &residents(), look_up(looked_up), new);
    }
}

/// A count while the bucket is split, which has two copies of the key.
#[test]
fn count_during_bucket_split() {
    let twice = staying(1, 0);
    let held = [twice, staying(0, 1), twice];
    let count = calls([Count(twice)]);
    explore_race(1, (4, 6_000), &held, count, insert(staying(0, 3)));
}

/// A remove while the bucket is split, which must be split to make room for the second insert at the latest.
#[test]
fn remove_during_bucket_split() {
    for removed in [residents()[0], residents()[1]] {
        let inserts = calls([Insert(staying(0, 3)), Insert(staying(1, 4))]);
        explore_race(1, (4, 50_000), &residents(), remove(removed), inserts);
    }
}

/// Two inserts that both find the bucket full.
#[test]
fn two_inserts_splitting_one_bucket() {
    let [first, second] = [0, 1].map(|at| insert(staying(at, 3)));
    explore_race(1, (3, 125_000), &residents(), first, second);
}

/// An insert into a bucket with room, tried at once, while that bucket is split because the other one is full.
#[test]
fn fast_insert_during_bucket_split() {
    for address in [0, 2] {
        let held = [1, 3, 5, 0].map(|address| staying(address, address as usize / 2));
        let [mine, others] = [address, 7].map(|address| insert(staying(address, 3)));
        explore_race(2, (3, 5_000), &held, mine, others);
    }
}

/// Keys that fill two buckets, and then, for each of these, one that finds no room in it. Two threads may split the
/// buckets at the same time, and the second before the first.
fn two_full_buckets() -> [u64; 8] {
    std::array::from_fn(|nth| staying(nth as u64 % 6, nth / 2))
}

/// Two inserts that find different buckets full.
#[test]
fn two_inserts_that_split_two_buckets() {
    let [held @ .., first, second] = two_full_buckets();
    explore_race(2, (3, 380_000), &held, insert(first), insert(second));
}

/// Two unique inserts of one key into a full bucket: one gets `true`.
#[test]
fn two_unique_inserts_splitting_one_bucket() {
    let insert = insert_if_absent(staying(0, 3));
    explore_race(1, (3, 78_000), &residents(), insert, insert);
}

/// Two unique inserts of keys of one class, which prefer different buckets: one gets `true`.
#[test]
fn two_unique_inserts_from_both_buckets() {
    let [item, twin] = hopping().map(insert_if_absent);
    explore_race(2, (3, 36_900), &[], item, twin);
}

/// Both buckets of a key are full. The other one gets a copy of it, and then room, into which a chain from the
/// first can end: a unique insert must not take that bucket as the search saw it, which was after it
/// looked for a copy.
#[test]
fn unique_insert_chain_into_bucket_with_copy() {
    explore_test(2, 25_000, || {
        let ([item, twin], moves) = (hopping(), key(apart(1, 1, 1), 0));
        let beside = [0, 1].map(|nth| staying(0, nth));
        let full = [0, 1, 2].map(|nth| staying(1, nth));
        // One more, so that no timestamp is turned over below.
        let filter = holding(2, &[&[moves], &beside[..], &full[..1]].concat());
        assert!(filter.remove(&full[0]).unwrap());
        full.iter().for_each(|key| filter.insert(key).unwrap());
        assert_eq!(filter.slots(), 6);
        let held = [&[moves], &beside[..], &full].concat();
        let others = calls([Remove(full[0]), InsertIfAbsent(twin), Remove(full[1])]);
        race(&filter, &held, insert_if_absent(item), others);
    });
}

/// Two keys of one class that prefer different buckets of two.
fn hopping() -> [u64; 2] {
    let item = key(apart(1, 1, 0), 0);
    [item, from_other_bucket(item)]
}

/// A copy changes buckets by an insert and a remove, while it is looked up, and the first bucket is split.
#[test]
fn hops_during_bucket_split() {
    for looked_up in 0..2 {
        let [item, twin] = hopping();
        // Bucket 0 gets full, and is split.
        let held = [item, staying(0, 0), staying(2, 1)];
        let look = look_up([item, twin][looked_up]);
        explore_race(2, (3, 18_300), &held, look, move |writer| {
            insert(staying(0, 2))(writer);
            hop([item, twin, item])(writer);
        });
    }
}

/// A filter of three buckets: bucket 0 of two has been split, bucket 1 not. Bucket 1 is full; one of its
/// keys, which comes first, can move to bucket 0 or 2.
fn half_round() -> Vec<u64> {
    let tag = apart(1, 1, 0);
    let splits = [0, 2, 4, 8, 6].map(|address| staying(address, address as usize / 2));
    [&[key(tag, 1), staying(1, 0), staying(3, 1)], &splits[..]].concat()
}

/// A chain moves a key from a bucket that has not been split to one that has been.
#[test]
fn lookup_of_key_moving_between_levels() {
    explore_test(3, 760, || {
        let held = half_round();
        let filter = holding(2, &held);
        assert_eq!(filter.slots(), 9);
        race(&filter, &held, look_up(held[0]), insert(staying(5, 2)));
    });
}

/// The copy of a key moves to the key's other bucket and back, and that bucket's timestamp comes round: a
/// lookup or a count that reads the same word before and after must notice this by the number of turns.
#[test]
fn lookup_during_timestamp_wrap() {
    let [item, twin] = hopping();
    for look in [Contains(item), Count(item)] {
        explore_test(3, 3_600, move || {
            let (filter, other) = (holding(2, &[twin]), staying(0, 0));
            // The next addition but one to the first bucket makes its timestamp what it is now.
            filter.insert(&other).unwrap();
            assert!(filter.remove(&other).unwrap());
            race(&filter, &[twin], calls([look]), move |writer| {
                hop([twin, item, twin])(writer);
                insert(other)(writer);
                remove(other)(writer);
            });
        });
    }
}

/// The same for a remove: there is always a copy, and it takes one.
#[test]
fn remove_during_timestamp_wrap() {
    explore_test(3, 12_900, move || {
        let [item, twin] = hopping();
        let (filter, other) = (holding(2, &[twin]), staying(0, 0));
        filter.insert(&other).unwrap();
        assert!(filter.remove(&other).unwrap());
        race(&filter, &[twin], remove(item), move |writer| {
            insert(item)(writer);
            let _ = writer.remove(twin);
            insert(twin)(writer);
            let _ = writer.remove(item);
            insert(other)(writer);
            remove(other)(writer);
        });
    });
}

/// The only copy of a key is removed, and one is added to the other bucket, by a thread that has changed the filter
/// before: so it tries each change at once. The copy of the filter never has two.
#[test]
fn copy_of_key_reinserted_in_one_step() {
    for first in [0, 1] {
        let (item, twin) = (hopping()[first], hopping()[1 - first]);
        let comes_back = calls([Remove(item), Insert(twin)]);
        explore_race(2, (2, 14_000), &[item], comes_back, copy([item], 0));
    }
}

#[test]
fn copy_during_bucket_split() {
    let ([first, second, third], new) = (residents(), staying(0, 3));
    let copy = copy([first, second, third, new], 3);
    explore_race(1, (2, 22_000), &residents(), copy, insert(new));
}

/// Two buckets are made while the filter is copied: the first of which that takes none of the keys.
#[test]
fn copy_while_two_buckets_are_made() {
    let all @ [held @ .., new] = [0, 2, 4, 6].map(|address| staying(address, address as usize / 2));
    explore_race(1, (2, 76_000), &held, copy(all, 0), insert(new));
}
