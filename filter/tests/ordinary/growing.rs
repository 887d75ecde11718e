//! The growing filter: what it holds as it grows and shrinks, its sizes, and its error rates.

use filter::growing::{GrowingBuilder, GrowingCuckooFilter};
use filter::{Filter, InsertError, internals};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::identity::Identity;

/// Without much reserved memory, which the counting allocator would write each time.
fn builder(buckets: usize) -> GrowingBuilder {
    let builder = GrowingCuckooFilter::builder().reserved_bytes(1 << 14);
    builder.buckets(buckets)
}

fn of_buckets(buckets: usize) -> GrowingCuckooFilter {
    builder(buckets).build().unwrap()
}

/// A filter whose keys are their hashes.
fn of_hashes(buckets: usize) -> GrowingCuckooFilter<Identity> {
    let builder = builder(buckets).unmixed_hasher(Identity::default());
    builder.build().unwrap()
}

/// A key of this tag and this address of its first bucket: the lowest bits choose the bucket.
fn key(tag: u64, address: u64) -> u64 {
    address << 6 | tag
}

/// The `n`-th of 2,048 keys that differ in few bits: some of the tag, some of the number of a bucket among
/// the first 16, some of the nine further bits that a slot keeps there, and some that only slots of a larger
/// table keep. They also differ in which of their two buckets comes first.
fn narrow(n: u64) -> u64 {
    let bits = [0, 6, 7, 8, 9, 11, 18, 19, 21, 28];
    let key: u64 = (bits.iter().enumerate())
        .map(|(nth, bit)| (n >> nth & 1) << bit)
        .sum();
    key ^ ((internals::apart(key) << 6) * (n >> bits.len()))
}

/// Lookups of a group load its buckets first in a table of this size.
#[test]
fn batches_in_large_table_match_single_calls() {
    let filter = of_buckets(1 << 21);
    (0..100).for_each(|key| filter.insert(&key).unwrap());
    let keys = Vec::from_iter((0..200).rev());
    let mut found = vec![false; keys.len()];
    filter.contains_batch(&keys, &mut found);
    let is_found = |(key, found)| found == filter.contains(key);
    assert!(keys.iter().zip(found).all(is_found));
    assert!((0..100).all(|key| filter.contains(&key)));
}

/// At each doubling up to the thirteenth, after which the docs state a number: it is wrong as rarely as it says, well
/// filled when it grows, and has all keys. When they are removed, those that had no bit left, and went to both halves
/// of their buckets, leave little behind, and nothing once it shrinks.
#[test]
fn thousandfold_growth_loses_no_key() {
    const ABSENT: u64 = 1_000_000;
    let mut filter = of_buckets(16);
    let first = filter.memory_bytes();
    let found = |filter: &GrowingCuckooFilter| {
        let absent = |key: &u64| filter.contains(&(u64::MAX - key));
        (0..ABSENT).filter(absent).count() as f64
    };
    let mut keys = 0;
    for doublings in 1..=13 {
        while filter.slots() < 48 << doublings {
            let slots = filter.slots();
            filter.insert(&keys).unwrap();
            // Also a key that was there long before.
            let both = filter.contains(&keys) && filter.contains(&(keys / 2));
            assert!(both, "{keys}");
            let load = keys as f64 / slots as f64;
            // Few buckets may be less full.
            let is_filled = filter.slots() == slots || load > 0.6 || doublings < 7;
            assert!(is_filled, "{slots} slots: {load}");
            keys += 1;
        }
        let (found, most) = (found(&filter), ABSENT as f64 * filter.false_positive_rate());
        // Five standard deviations of a Poisson count.
        let most = (most + 5.0 * most.sqrt() + 5.0).min(ABSENT as f64 / 512.0);
        assert!(found <= most, "{found} of {most} after {doublings}");
    }
    assert_eq!(filter.len() as u64, keys);
    assert!((0..keys).all(|key| filter.contains(&key) && filter.remove(&key).unwrap()));
    let (left, most) = (found(&filter), ABSENT as f64 * filter.false_positive_rate());
    assert!(left > 0.0 && left < most, "{left} of {most}");
    filter.shrink_to_fit();
    assert_eq!((filter.slots(), filter.len()), (48, 0));
    assert!(filter.memory_bytes() <= first + 1_024);
    assert!((0..keys).all(|key| !filter.contains(&key) && !filter.remove(&key).unwrap()));
    assert_eq!(found(&filter), 0.0);
}

#[test]
fn shrinking_keeps_remaining_keys() {
    // One of them has grown more than 2^9 times.
    for buckets in [16, 1_024] {
        const KEYS: u64 = 40_000;
        let mut filter = of_buckets(buckets);
        (0..KEYS).for_each(|key| filter.insert(&key).unwrap());
        let stay = || (0..KEYS).step_by(100);
        let most = (0..KEYS).filter(|key| key % 100 != 0);
        most.for_each(|key| assert!(filter.remove(&key).unwrap()));
        let grown = filter.memory_bytes();
        filter.shrink_to_fit();
        assert!(filter.memory_bytes() < grown / 5);
        let loaded = GrowingCuckooFilter::from_bytes(&filter.to_bytes().unwrap()).unwrap();
        for filter in [filter, loaded] {
            assert_eq!(filter.len(), stay().count());
            // It grows again.
            (KEYS..2 * KEYS).for_each(|key| filter.insert(&key).unwrap());
            assert!(
                stay()
                    .chain(KEYS..2 * KEYS)
                    .all(|key| filter.remove(&key).unwrap())
            );
            assert!(filter.is_empty());
        }
    }
}

/// The size is what `with_capacity` promises, and the load what the design promises.
#[test]
fn growth_begins_near_requested_capacity() {
    for n in [10, 2_048, 3_071, 60_000, 131_072, 262_144, 393_215, 786_431] {
        let filter = GrowingCuckooFilter::with_capacity(n);
        let slots = filter.slots();
        let grows = |key: &u64| {
            filter.insert(key).unwrap();
            filter.slots() > slots
        };
        let held = (0..).find(grows).unwrap() as f64;
        let (of, load) = (held / n as f64, held / slots as f64);
        assert!(n == 10 || (0.37..1.2).contains(&of), "{n}: at {of}");
        let least = if slots < 3 << 17 { 0.61 } else { 0.75 };
        assert!((least..0.9).contains(&load), "{n}: {load}");
        assert!(n != 10 || (1_850.0..2_100.0).contains(&held), "{held}");
    }
}

/// The number of keys stays the same; the keys do not.
#[test]
fn churn_does_not_make_it_grow_for_ever() {
    const KEYS: u64 = 3_000;
    let filter = of_buckets(16);
    for key in 0..400 * KEYS {
        filter.insert(&key).unwrap();
        assert!(key < KEYS || filter.remove(&(key - KEYS)).unwrap());
    }
    let load = filter.load_factor();
    assert!(load > 0.6, "{load}");
}

/// The table in `design.md`: whole numbers between which the bits per key are. (The feature `__steps` makes fewer
/// buckets at a time.)
#[test]
#[cfg(not(feature = "__steps"))]
fn memory_per_key_is_as_documented() {
    let filter = GrowingCuckooFilter::new();
    let mut keys = 0_u64;
    let mut table = String::from("| Distinct keys | Bits per key |\n|---|---|\n");
    for (from, to, case) in [
        (2_000, 10_000, "2,000 to 10,000"),
        (10_000, 100_000, "10,000 to 100,000"),
        (100_000, 400_000, "100,000 to 400,000"),
        (400_000, 1_600_000, "400,000 to 1,600,000"),
    ] {
        let (mut least, mut most) = (f64::MAX, 0.0_f64);
        while keys < to {
            filter.insert(&keys).unwrap();
            keys += 1;
            if keys >= from && keys % 16 == 0 {
                let bits = filter.memory_bytes() as f64 * 8.0 / keys as f64;
                (least, most) = (least.min(bits), most.max(bits));
            }
        }
        table += &format!("| {case} | {:.0} to {:.0} |\n", least.floor(), most.ceil());
    }
    let design = include_str!("../../src/growing/design.md");
    assert!(design.contains(&table), "{table}");
}

/// It grows up to the limit. Copies, saved filters and emptied filters keep the limit.
#[test]
fn growth_stops_at_allowed_error_rate() {
    const MAX: f64 = 0.001;
    let builder = builder(16).max_false_positive_rate(MAX);
    let mut filter = builder.clone().build().unwrap();
    let fill = |filter: &GrowingCuckooFilter| {
        let refused = |key: u64| filter.insert(&key).err().map(|error| (key, error));
        (0..100_000).find_map(refused).expect("it stops growing")
    };
    let (key, error) = fill(&filter);
    let slots = filter.slots();
    let buckets = slots / 3 + if cfg!(feature = "__steps") { 2 } else { 16 };
    let is_right = matches!(error, InsertError::TooManyFalsePositives { buckets: named, .. } if named == buckets);
    assert!(is_right, "{error}");
    assert!((0.99 * MAX..=MAX).contains(&filter.false_positive_rate()));
    // It is as full as one that cannot grow, and holds what it held.
    assert!(key as usize > slots * 9 / 10, "{key} keys in {slots} slots");
    assert_eq!(filter.insert_if_absent(&key), Err(error.clone()));
    assert!(filter.len() as u64 == key && (0..key).all(|key| filter.contains(&key)));
    let bytes = filter.to_bytes().unwrap();
    for copy in [filter.try_clone(), Ok(builder.load_bytes(&bytes).unwrap())] {
        let copy = copy.unwrap();
        assert_eq!(copy.insert(&key), Err(error.clone()));
        assert!(copy.remove(&0).unwrap() && copy.remove(&1).unwrap());
        copy.insert(&0).unwrap();
    }
    // Loaded with a higher limit, it grows on.
    let more = GrowingCuckooFilter::from_bytes(&bytes).unwrap();
    (key..2 * key).for_each(|key| more.insert(&key).unwrap());
    filter.clear();
    filter.shrink_to_fit();
    assert_eq!((filter.slots(), fill(&filter).1), (48, error));
}

/// Keys that could not be told apart once, and can be later: random inserts and removes, compared with
/// what is held. Where an older key knows fewer bits than a newer one, its slot stands for both.
#[test]
fn removing_key_loses_no_other_of_class() {
    let mut grown = 0;
    for seed in 0..100 {
        let mut random = StdRng::seed_from_u64(seed);
        let filter = of_hashes(16);
        let mut held: Vec<u64> = Vec::new();
        for _ in 0..600 {
            if held.len() < 4 || random.random_bool(0.6) {
                let key = narrow(random.random_range(0..2_048));
                match filter.insert(&key) {
                    Ok(()) => held.push(key),
                    Err(InsertError::TooManyCopies { .. } | InsertError::Crowded) => {}
                    Err(error) => panic!("{error}"),
                }
            } else {
                let key = held.swap_remove(random.random_range(0..held.len()));
                assert!(
                    filter.remove(&key).unwrap(),
                    "seed {seed}: {key} cannot be removed"
                );
            }
            for key in &held {
                assert!(filter.contains(key), "seed {seed}: {key} is missing");
            }
            assert_eq!(filter.len(), held.len());
        }
        grown += usize::from(filter.slots() > 48 << 6);
    }
    assert!(grown > 20, "{grown} of 100 have grown much");
}

/// Inserts a key as often as it has room, then removes it; returns how many copies there were.
fn copies(filter: &GrowingCuckooFilter<Identity>, key: u64) -> usize {
    let held = filter.count(&key);
    let refused = (held..).find_map(|copies| {
        assert_eq!(filter.count(&key), copies);
        filter.insert(&key).err().map(|error| (copies, error))
    });
    let (copies, error) = refused.expect("it is refused some time");
    let is_right =
        matches!(error, InsertError::TooManyCopies { most, .. } if usize::from(most) == copies);
    assert!(is_right, "{copies} copies: {error}");
    assert_eq!(filter.insert_if_absent(&key), Ok(false));
    copies
}

/// The docs of `TooManyCopies` say these numbers. (A key with one bucket might have two in a larger table.)
#[test]
fn copies_are_counted_without_growth() {
    let one_bucket = (0..64).find(|tag: &u64| internals::apart(*tag) % 16 == 0);
    assert_eq!(copies(&of_hashes(16), key(one_bucket.unwrap(), 0)), 3);
    let filter = of_hashes(16);
    assert_eq!(copies(&filter, key(1, 0)), 6);
    assert_eq!(filter.slots(), 3 * 16);
    for left in (0..6).rev() {
        assert!(filter.remove(&key(1, 0)).unwrap());
        assert_eq!(filter.count(&key(1, 0)), left);
    }
}

/// Two keys fill the buckets of a third one, and only a table of 2^20 buckets would keep any of them apart.
#[test]
fn colliding_keys_do_not_grow_without_end() {
    let filter = of_hashes(1 << 12);
    let [first, second, third] = [0, 1 << 19, 1 << 20].map(|address| key(1, address));
    for key in [first, second].repeat(3) {
        filter.insert(&key).unwrap();
    }
    assert_eq!(filter.insert(&third), Err(InsertError::Crowded));
    assert_eq!(filter.insert_if_absent(&third), Err(InsertError::Crowded));
    assert_eq!(filter.slots(), 3 << 17);
    let counts = [first, second, third].map(|key| filter.count(&key));
    assert_eq!(counts, [3, 3, 0]);
}

/// Three copies of each key have room.
#[test]
fn keys_with_many_copies_bound_memory() {
    for keys in [1_200_u64, 20_000] {
        let filter = GrowingCuckooFilter::new();
        let mut copies = vec![0; keys as usize];
        for nth in 0..12 * keys {
            let key = nth / 12;
            match filter.insert(&key) {
                Ok(()) => copies[key as usize] += 1,
                Err(InsertError::TooManyCopies { .. }) => {}
                Err(error) => panic!("copy {} of {key}: {error}", nth % 12),
            }
        }
        let bits_a_copy = 8.0 * filter.memory_bytes() as f64 / filter.len() as f64;
        assert!(bits_a_copy < 100.0, "{bits_a_copy}");
        // All but some that are taken for others have three, and keys that come once have room.
        let fewer = copies.iter().filter(|&&copies| copies < 3).count() as u64;
        let others = keys..2 * keys;
        let added: Vec<u64> = others.filter(|key| filter.insert(key).is_ok()).collect();
        let lacking = fewer.max(keys - added.len() as u64);
        assert!(lacking <= keys / 500, "{lacking}");
        for (key, copies) in copies.into_iter().enumerate() {
            (0..copies).for_each(|_| assert!(filter.remove(&(key as u64)).unwrap()));
        }
        assert!(added.iter().all(|key| filter.remove(key).unwrap()));
        assert!(filter.is_empty());
    }
}

/// A key with a copy in each of its buckets has both when they are joined into one.
#[test]
fn copies_are_kept_where_buckets_are_joined() {
    let tag = (0..64).find(|&tag| internals::apart(tag) & 31 == 16);
    let others: Vec<u64> = (0..200).map(filter::mix).collect();
    // At some addresses, both copies go to one bucket, and are not joined.
    for address in 0..16 {
        let mut filter = of_hashes(16);
        let twice = key(tag.expect("one in 32 has it"), address);
        others.iter().for_each(|key| filter.insert(key).unwrap());
        assert!(filter.slots() >= 3 * 32);
        let before = filter.count(&twice);
        (0..2).for_each(|_| filter.insert(&twice).unwrap());
        others
            .iter()
            .for_each(|key| assert!(filter.remove(key).unwrap()));
        filter.shrink_to_fit();
        assert_eq!((filter.slots(), before), (3 * 16, 0));
        assert_eq!(filter.count(&twice), 2);
        assert!(
            filter.remove(&twice).unwrap()
                && filter.remove(&twice).unwrap()
                && !filter.remove(&twice).unwrap()
        );
    }
}
