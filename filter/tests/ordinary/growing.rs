//! The growing filter: sizes, error rates, and tables that take over from one another.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use filter::InsertError;
use filter::growing::{GrowingCuckooFilter, pin};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

fn builder() -> filter::growing::GrowingBuilder {
    GrowingCuckooFilter::builder()
}

fn small() -> GrowingCuckooFilter {
    builder().capacity(1_000).build().unwrap()
}

/// Waits until superseded generations are closed: until whoever is pinned now, also in other tests,
/// has let go.
pub(crate) fn wait_for_pinned_threads() {
    let all_have = Arc::new(AtomicBool::new(false));
    let tell = Arc::clone(&all_have);
    pin().after_all(move || tell.store(true, Ordering::SeqCst));
    while !all_have.load(Ordering::SeqCst) {
        pin().after_all(|| ());
        thread::yield_now();
    }
}

#[test]
fn growing_a_thousandfold_loses_no_key() {
    const KEYS: u64 = 1_000_000;
    let mut filter = small();
    for key in 0..KEYS {
        filter.insert(&key).unwrap();
        // Also a key that was there long before, and may be in a bucket that has not been taken
        // over.
        assert!(
            filter.contains(&key) && filter.contains(&(key / 2)),
            "{key}"
        );
    }
    assert_eq!(filter.len(), KEYS as usize);
    assert!((0..KEYS).all(|key| filter.contains(&key)));
    let tables = filter.tables();
    assert_eq!(tables.len(), 1);
    assert!(tables[0].buckets.is_multiple_of(1_024) && tables[0].bits < 18);
    assert!((0..KEYS).all(|key| filter.remove(&key)));
    assert!(filter.is_empty());
    assert!((0..KEYS).all(|key| !filter.contains(&key) && !filter.remove(&key)));
    filter.shrink_to_fit().unwrap();
    assert_eq!(filter.memory_bytes(), small().memory_bytes());
}

/// A table is split only when it is nearly full, even if it consists of many slices that fill one
/// by one.
#[test]
fn tables_are_well_filled_when_they_are_split() {
    let filter = small();
    let (mut key, mut before) = (0_u64, filter.tables()[0]);
    while before.buckets < 1 << 18 {
        filter.insert(&key).unwrap();
        key += 1;
        let now = filter.tables()[0];
        if now.buckets != before.buckets {
            let load = key as f64 / (before.buckets * before.slots) as f64;
            assert!(load > 0.75, "{before:?}: {load}");
            println!(
                "{} slots of {} bits, {} buckets: {load:.3}",
                before.slots, before.bits, before.buckets
            );
        }
        before = now;
    }
}

/// A slice of one bucket may be full when the others are nearly empty: the keys are not to blame.
#[test]
fn distinct_keys_are_not_refused_where_slices_are_tiny() {
    for (buckets, keys) in [(1, 100_000_u64), (3, 200_000)] {
        let filter = builder().buckets(buckets).build().unwrap();
        for key in 0..keys {
            assert_eq!(filter.insert(&key), Ok(()), "{key} of {buckets}");
        }
    }
}

#[test]
fn false_positives_are_as_rare_as_it_states() {
    const ABSENT: u64 = 1_000_000;
    let filter = builder().buckets(4).build().unwrap();
    for key in 0..300_000_u64 {
        filter.insert(&key).unwrap();
        if key.is_power_of_two() && key > 1_000 {
            let found = (0..ABSENT)
                .filter(|n| filter.contains(&(u64::MAX - n)))
                .count();
            let most = ABSENT as f64 * filter.false_positive_rate();
            // Five standard deviations of a Poisson count.
            assert!(
                (found as f64) < most + 5.0 * most.sqrt() + 5.0,
                "{found} of {most} at {key}"
            );
        }
    }
    // There are two generations by now.
    assert_eq!(filter.tables().len(), 2);
    assert!(filter.false_positive_rate() < GrowingCuckooFilter::<()>::MAX_FALSE_POSITIVE_RATE);
}

/// Hashes with few significant bits: one of the 12 that choose the other bucket, those of the slice
/// and of the rest of the fingerprint up to `tail`, and one that chooses the bucket.
#[derive(Clone)]
struct NarrowHasher {
    tail: u64,
}

impl BuildHasher for NarrowHasher {
    type Hasher = DefaultHasher;

    fn build_hasher(&self) -> DefaultHasher {
        DefaultHasher::new()
    }

    fn hash_one<T: Hash>(&self, key: T) -> u64 {
        let bits = BuildHasherDefault::<DefaultHasher>::new().hash_one(key);
        bits & 1 << 63 | bits & self.tail << 12 | ((bits & 1) + 1)
    }
}

/// Two keys that an old generation cannot tell apart, one of them in a newer one: a remove never
/// takes the other key's copy. Random inserts and removes, compared with what is held, in filters
/// so small that keys are often alike.
#[test]
fn removing_a_key_loses_no_other_of_its_class() {
    let mut most_generations = 0;
    for seed in 0..400 {
        let mut random = StdRng::seed_from_u64(seed);
        // All but three of the first generation's 25 bits are the same in all keys; the second
        // generation has other bits.
        let tail = [0x7, 0x7 << 12, 0xe003, 0x3f][seed as usize % 4];
        let filter = builder()
            .buckets(2)
            .unmixed_hasher(NarrowHasher { tail })
            .build()
            .unwrap();
        let mut held: Vec<u64> = Vec::new();
        for _ in 0..300 {
            if held.len() < 4 || random.random_bool(0.55) {
                let key = random.random_range(0..1_u64 << 20);
                match filter.insert(&key) {
                    Ok(()) => held.push(key),
                    Err(InsertError::TooManyCopies { .. } | InsertError::Crowded) => {}
                    Err(error) => panic!("{error}"),
                }
            } else {
                let key = held.swap_remove(random.random_range(0..held.len()));
                assert!(filter.remove(&key), "seed {seed}: {key} cannot be removed");
            }
            for key in &held {
                assert!(filter.contains(key), "seed {seed}: {key} is missing");
            }
            assert_eq!(filter.len(), held.len());
            most_generations = most_generations.max(filter.tables().len());
        }
    }
    assert!(most_generations >= 2);
}

/// Returns a filter of two generations, and how many keys, from 0 on, are in the older one and in
/// both.
fn of_two_generations() -> (GrowingCuckooFilter, u64, u64) {
    let filter = builder().buckets(1).build().unwrap();
    let mut key = 0_u64;
    let in_older = loop {
        filter.insert(&key).unwrap();
        if let [_, older] = filter.tables()[..] {
            break older.len as u64;
        }
        key += 1;
    };
    (in_older..in_older + 1_000).for_each(|key| filter.insert(&key).unwrap());
    filter.remove(&key);
    (filter, key, in_older + 1_000)
}

#[test]
fn an_emptied_generation_is_freed_by_the_last_remove() {
    let (filter, in_older, all) = of_two_generations();
    wait_for_pinned_threads();
    let memory = filter.memory_bytes();
    for removed in 0..in_older {
        assert_eq!(filter.tables().len(), 2);
        assert!(filter.remove(&removed));
    }
    assert_eq!(filter.tables().len(), 1, "{:?}", filter.tables());
    assert!(filter.memory_bytes() < memory);
    assert!((in_older + 1..all).all(|key| filter.contains(&key)));
}

/// A thread finds what it inserted, unless the filter was cleared meanwhile; then it finds nothing
/// older either.
#[test]
fn clearing_while_others_work() {
    const CLEARS: u64 = 1_000;
    let filter = builder().buckets(4).build().unwrap();
    // Twice the number of clears, plus one during a clear.
    let clears = AtomicU64::new(0);
    let cleared = AtomicU64::new(0);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for thread in 0..3_u64 {
            let (filter, clears, cleared, done) = (&filter, &clears, &cleared, &done);
            scope.spawn(move || {
                let mut next = thread << 32;
                while !done.load(Ordering::Relaxed) {
                    let before = clears.load(Ordering::SeqCst);
                    let keys = next..next + 100;
                    next += 100;
                    for key in keys.clone() {
                        filter.insert(&key).unwrap();
                    }
                    let found = keys.clone().filter(|key| filter.contains(key)).count();
                    let removed = keys.filter(|key| filter.remove(key)).count();
                    if before % 2 == 0 && clears.load(Ordering::SeqCst) == before {
                        assert_eq!((found, removed), (100, 100), "keys were lost");
                    } else {
                        cleared.fetch_add(100 - removed as u64, Ordering::Relaxed);
                    }
                }
            });
        }
        let mut made = 0;
        // For longer if the others get no core: keys are to be cleared that they have just inserted.
        let none = || cleared.load(Ordering::Relaxed) == 0;
        while made < CLEARS || (none() && made < 1_000 * CLEARS) {
            clears.fetch_add(1, Ordering::SeqCst);
            filter.remove_all().unwrap();
            clears.fetch_add(1, Ordering::SeqCst);
            thread::yield_now();
            made += 1;
        }
        done.store(true, Ordering::Relaxed);
    });
    assert!(cleared.into_inner() > 0);
    filter.remove_all().unwrap();
    assert!(filter.is_empty());
    assert_eq!(filter.tables()[0].buckets, 4);
}

/// Every key has as many copies as the buckets have slots, and those that are refused are refused
/// for that reason.
#[test]
fn keys_with_many_copies_do_not_use_up_memory() {
    for (keys, tries) in [(1_200_u64, 3), (20_000, 12)] {
        let filter = GrowingCuckooFilter::new();
        for key in 0..keys {
            for copy in 0..tries {
                match filter.insert(&key) {
                    Ok(()) => {}
                    Err(InsertError::TooManyCopies { .. }) => {
                        let slots = filter.tables()[0].slots;
                        assert!(copy >= slots, "{copy} copies of {key}");
                    }
                    Err(error) => panic!("{error}"),
                }
            }
        }
        let bits_a_copy = 8.0 * filter.memory_bytes() as f64 / filter.len() as f64;
        println!(
            "{keys}: {bits_a_copy:.0} bits a copy, {:?}",
            filter.tables()
        );
        assert!(
            bits_a_copy < 250.0,
            "{bits_a_copy}: 131 and 106 were measured"
        );
        // Keys that come once have room among them.
        for key in keys..2 * keys {
            assert_eq!(filter.insert(&key), Ok(()));
        }
        for key in 0..keys {
            while filter.remove(&key) {}
            assert!(filter.remove(&(keys + key)));
        }
        assert!(filter.is_empty());
    }
}

#[test]
fn copies_are_counted_and_do_not_make_it_grow() {
    let filter = small();
    let mut copies = 0;
    let refused = loop {
        match filter.insert("again") {
            Ok(()) => copies += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, InsertError::TooManyCopies { .. }));
    assert_eq!(copies, filter.tables()[0].slots);
    assert_eq!(filter.count("again"), copies);
    assert_eq!(filter.tables(), {
        let other = small();
        (0..copies).for_each(|_| other.insert("again").unwrap());
        other.tables()
    });
    assert!(!filter.insert_unique("again").unwrap());
    for key in 0_u64..20_000 {
        filter.insert(&key).unwrap();
        assert_eq!(filter.count("again"), copies);
    }
    for left in (0..copies).rev() {
        assert!(filter.remove("again"));
        assert_eq!(filter.count("again"), left);
    }
    assert!(!filter.remove("again") && !filter.contains("again"));
}

#[test]
fn classes_stay_when_tables_are_split() {
    let filter = builder()
        .buckets(2)
        .unmixed_hasher(NarrowHasher { tail: 0x5 })
        .build()
        .unwrap();
    for key in 0..50_u64 {
        for other in 0..50_u64 {
            if filter.insert(&key).is_err() {
                continue;
            }
            let alike = filter.class(&key) == filter.class(&other);
            assert_eq!(filter.count(&other) > 0, alike, "{key} and {other}");
            assert!(filter.remove(&key));
        }
        // Makes it grow, unless it is one of few that are alike.
        let _ = filter.insert(&(1_000 + key));
        while filter.remove(&(1_000 + key)) {}
    }
}
