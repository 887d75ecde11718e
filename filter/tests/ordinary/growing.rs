//! The growing filter: sizes, error rates, and what it holds as it grows.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};

use filter::InsertError;
use filter::growing::GrowingCuckooFilter;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

fn builder() -> filter::growing::GrowingBuilder {
    GrowingCuckooFilter::builder()
}

fn small() -> GrowingCuckooFilter {
    builder().capacity(1_000).build().unwrap()
}

#[test]
fn growing_a_thousandfold_loses_no_key() {
    const KEYS: u64 = 1_000_000;
    let mut filter = small();
    for key in 0..KEYS {
        filter.insert(&key).unwrap();
        // Also a key that was there long before.
        assert!(
            filter.contains(&key) && filter.contains(&(key / 2)),
            "{key}"
        );
    }
    assert_eq!(filter.len(), KEYS as usize);
    assert!((0..KEYS).all(|key| filter.contains(&key)));
    assert!((0..KEYS).all(|key| filter.remove(&key)));
    assert!(filter.is_empty());
    assert!((0..KEYS).all(|key| !filter.contains(&key) && !filter.remove(&key)));
    filter.shrink_to_fit().unwrap();
    assert_eq!(filter.memory_bytes(), small().memory_bytes());
}

#[test]
fn it_is_well_filled_when_it_grows() {
    let filter = small();
    let (mut key, mut slots) = (0_u64, filter.capacity());
    while slots < 1 << 19 {
        filter.insert(&key).unwrap();
        key += 1;
        let now = filter.capacity();
        if now != slots {
            let load = key as f64 / slots as f64;
            assert!(load > 0.75, "{slots} slots: {load}");
        }
        slots = now;
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

/// Keys that could not be told apart once, and can be later: a remove never takes the other key's
/// copy. Random inserts and removes, compared with what is held, in filters so small that keys are
/// often alike.
#[test]
fn removing_a_key_loses_no_other_of_its_class() {
    for seed in 0..400 {
        let mut random = StdRng::seed_from_u64(seed);
        // Keys differ in a few bits only, early ones or late ones.
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
        }
    }
}

/// Every key has as many copies as it can have, and those that are refused are refused for that
/// reason.
#[test]
fn keys_with_many_copies_do_not_use_up_memory() {
    for (keys, tries) in [(1_200_u64, 3), (20_000, 12)] {
        let filter = GrowingCuckooFilter::new();
        for key in 0..keys {
            for copy in 0..tries {
                match filter.insert(&key) {
                    Ok(()) => {}
                    Err(InsertError::TooManyCopies { most }) => {
                        assert!(copy >= most, "{copy} copies of {key}");
                    }
                    Err(error) => panic!("{error}"),
                }
            }
        }
        let bits_a_copy = 8.0 * filter.memory_bytes() as f64 / filter.len() as f64;
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
    let most = copies as u8;
    assert_eq!(refused, InsertError::TooManyCopies { most });
    assert_eq!(filter.count("again"), copies);
    assert_eq!(filter.capacity(), small().capacity());
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
fn classes_stay_when_it_grows() {
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
