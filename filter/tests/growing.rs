//! A filter that grows: sizes, rates, tables that come and go, one thread and several.
#![cfg(not(kcas_loom))]

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use filter::BuildError;
use filter::growing::{GrowingCuckooFilter, InsertError, pin};
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

const FIRST: usize = 1_000;

fn small() -> GrowingCuckooFilter {
    GrowingCuckooFilter::builder()
        .capacity(FIRST)
        .build()
        .unwrap()
}

/// Lets tables be closed that were superseded, and others be freed: nobody else is pinned.
fn let_go() {
    (0..100).for_each(|_| pin().after_all(|| ()));
}

#[test]
fn it_grows_a_thousandfold_and_back_and_denies_nothing() {
    const KEYS: u64 = 1_000_000;
    let mut filter = small();
    for key in 0..KEYS {
        filter.insert(&key).unwrap();
    }
    assert_eq!(filter.len(), KEYS as usize);
    assert!((0..KEYS).all(|key| filter.contains(&key)));
    let tables = filter.tables();
    assert!(
        tables
            .windows(2)
            .all(|pair| pair[0].buckets == 4 * pair[1].buckets)
    );
    // All but the newest were full.
    for table in &tables[1..] {
        let load = table.len as f64 / (table.buckets * table.slots) as f64;
        assert!(load > 0.7, "{table:?}");
    }
    // The first tables' keys last.
    for key in (0..KEYS).rev() {
        assert!(filter.remove(&key), "{key}");
    }
    assert!(filter.is_empty());
    assert!((0..KEYS).all(|key| !filter.contains(&key)));
    filter.shrink_to_fit().unwrap();
    assert_eq!(filter.tables().len(), 1);
    assert_eq!(filter.memory_bytes(), small().memory_bytes());
}

#[test]
fn false_positives_are_below_the_bound_that_it_states() {
    const ABSENT: u64 = 1_000_000;
    let filter = small();
    for key in 0..2_000_000_u64 {
        filter.insert(&key).unwrap();
        let is_full = filter.tables().len();
        if key.is_power_of_two() && key > 1_000 {
            let found = (0..ABSENT)
                .filter(|n| filter.contains(&(u64::MAX - n)))
                .count();
            let stated = filter.false_positive_rate();
            assert!(stated < GrowingCuckooFilter::<()>::MAX_FALSE_POSITIVE_RATE);
            // Five standard deviations of a Poisson count.
            let most = ABSENT as f64 * stated;
            assert!(
                (found as f64) < most + 5.0 * most.sqrt() + 5.0,
                "{found} of {most} at {key}, {is_full}"
            );
        }
    }
}

/// Two keys that an old table cannot tell apart, one of them in a newer table: what is taken out is never the other
/// one's. Random inserts and removes against exact counts, in tables so small that keys are often alike.
#[test]
fn no_key_is_denied_when_others_like_it_are_removed() {
    for seed in 0..300 {
        let mut random = StdRng::seed_from_u64(seed);
        let filter = GrowingCuckooFilter::builder()
            .buckets(2)
            .unmixed_hasher(NarrowHasher)
            .build()
            .unwrap();
        let mut held: Vec<u64> = Vec::new();
        for _ in 0..400 {
            if held.len() < 4 || random.random_bool(0.55) {
                let key = random.random_range(0..1_u64 << 20);
                match filter.insert(&key) {
                    Ok(()) => held.push(key),
                    Err(InsertError::TooManyCopies) => {}
                    Err(error) => panic!("{error}"),
                }
            } else {
                let key = held.swap_remove(random.random_range(0..held.len()));
                assert!(
                    filter.remove(&key),
                    "seed {seed}: {key} was denied to a remove"
                );
            }
            for key in &held {
                assert!(filter.contains(key), "seed {seed}: {key} was denied");
            }
            assert_eq!(filter.len(), held.len());
        }
    }
}

/// Hashes of few bits that matter: one of the fingerprint's short part, six of what comes after, and one that chooses
/// the bucket.
#[derive(Clone)]
struct NarrowHasher;

impl std::hash::BuildHasher for NarrowHasher {
    type Hasher = std::hash::DefaultHasher;

    fn build_hasher(&self) -> Self::Hasher {
        std::hash::DefaultHasher::new()
    }

    fn hash_one<T: std::hash::Hash>(&self, key: T) -> u64 {
        use std::hash::Hasher;
        let mut hasher = self.build_hasher();
        key.hash(&mut hasher);
        let bits = hasher.finish();
        bits & 1 << 63 | bits & 0x3f << 12 | (bits & 1) + 1
    }
}

#[test]
fn threads_grow_it_and_never_miss_their_keys() {
    const THREADS: u64 = 8;
    const EACH: u64 = 25_000;
    let filter = small();
    let barrier = std::sync::Barrier::new(THREADS as usize);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (filter, barrier) = (&filter, &barrier);
            scope.spawn(move || {
                let mut random = StdRng::seed_from_u64(thread);
                let mut mine: Vec<u64> = Vec::new();
                barrier.wait();
                for n in 0..EACH {
                    let key = thread << 32 | n;
                    filter.insert(&key).unwrap();
                    mine.push(key);
                    let any = mine[random.random_range(0..mine.len())];
                    assert!(filter.contains(&any), "{any:#x} is denied");
                    if random.random_bool(0.3) {
                        let out = mine.swap_remove(random.random_range(0..mine.len()));
                        assert!(filter.remove(&out), "{out:#x} is denied to a remove");
                    }
                }
                mine.shuffle(&mut random);
                for key in &mine {
                    assert!(filter.contains(key), "{key:#x} is denied");
                }
                for key in &mine {
                    assert!(filter.remove(key), "{key:#x} is denied to a remove");
                }
            });
        }
    });
    assert!(filter.is_empty());
    let_go();
    filter.insert(&1).unwrap();
    filter.remove(&1);
    assert!(filter.tables().len() <= 2, "{:?}", filter.tables());
}

#[test]
fn of_several_inserts_of_a_key_one_is_told_true_while_it_grows() {
    const THREADS: usize = 4;
    const KEYS: u64 = 100_000;
    let filter = small();
    let told = AtomicU64::new(0);
    let barrier = std::sync::Barrier::new(THREADS);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for key in 0..KEYS {
                    // Together to the place where a table is added, again and again.
                    if key.is_multiple_of(1_000) {
                        barrier.wait();
                    }
                    if filter.insert_unique(&key).unwrap() {
                        told.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let told = told.into_inner() as usize;
    assert_eq!(filter.len(), told);
    // A new key is wrongly refused as often as absent ones are found.
    assert!(
        told <= KEYS as usize && told > KEYS as usize * 99 / 100,
        "{told}"
    );
    assert!((0..KEYS).all(|key| filter.contains(&key)));
}

#[test]
fn an_emptied_table_is_freed_by_the_last_remove() {
    let filter = small();
    let mut key = 0_u64;
    while filter.tables().len() < 3 {
        filter.insert(&key).unwrap();
        key += 1;
    }
    let_go();
    assert!(filter.tables()[1..].iter().all(|table| table.closed));
    let memory = filter.memory_bytes();
    let oldest = filter.tables()[2].len as u64;
    for removed in 0..oldest {
        assert_eq!(filter.tables().len(), 3);
        assert!(filter.remove(&removed));
    }
    assert_eq!(filter.tables().len(), 2);
    assert!(filter.memory_bytes() < memory);
    assert!((oldest..key).all(|key| filter.contains(&key)));
}

#[test]
fn shrinking_frees_the_newest_and_opens_the_one_before_it() {
    let mut filter = small();
    let mut key = 0_u64;
    while filter.tables().len() < 3 {
        filter.insert(&key).unwrap();
        key += 1;
    }
    // What was deferred now must not close the table that is opened again.
    assert!(filter.remove(&(key - 1)));
    filter.shrink_to_fit().unwrap();
    assert_eq!(filter.tables().len(), 2);
    let_go();
    assert!(!filter.tables()[0].closed && filter.tables()[1].closed);
    let (first, last) = (key, 3 * key);
    (first..last).for_each(|key| filter.insert(&key).unwrap());
    assert!(
        (0..key - 1)
            .chain(first..last)
            .all(|key| filter.contains(&key))
    );
    filter.clear().unwrap();
    assert!(filter.is_empty() && filter.tables().len() == 1);
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
    assert_eq!(refused, InsertError::TooManyCopies);
    assert_eq!(filter.count("again"), copies);
    assert_eq!(filter.tables().len(), 1);
    assert!(!filter.insert_unique("again").unwrap());
    // Copies in several tables.
    let mut key = 0_u64;
    while filter.tables().len() < 3 {
        filter.insert(&key).unwrap();
        key += 1;
    }
    filter.insert("again").unwrap();
    assert_eq!(filter.count("again"), copies + 1);
    for left in (0..=copies).rev() {
        assert!(filter.remove("again"));
        assert_eq!(filter.count("again"), left);
    }
    assert!(!filter.remove("again") && !filter.contains("again"));
}

#[test]
fn absurd_sizes_are_errors() {
    let builder = GrowingCuckooFilter::builder;
    assert_eq!(
        builder().capacity(0).build().unwrap_err(),
        BuildError::ZeroSize
    );
    assert_eq!(
        builder().buckets(0).build().unwrap_err(),
        BuildError::ZeroSize
    );
    for result in [
        builder().capacity(usize::MAX).build(),
        builder().buckets(usize::MAX).build(),
    ] {
        assert!(matches!(result.unwrap_err(), BuildError::TooLarge { .. }));
    }
}

#[test]
fn a_batch_of_lookups_answers_as_one_by_one() {
    let filter = small();
    (0..10_000).for_each(|key| filter.insert(&key).unwrap());
    let keys: Vec<i32> = (5_000..15_000).collect();
    let mut found = vec![false; keys.len()];
    filter.contains_batch(&keys, &mut found);
    let singly: Vec<bool> = keys.iter().map(|key| filter.contains(key)).collect();
    assert_eq!(found, singly);
}
