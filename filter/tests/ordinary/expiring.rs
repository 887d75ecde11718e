//! A filter that forgets: what it remembers, for how long, what of that is saved, and what it makes of files with
//! right checksums that nobody saved.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use filter::{AdvanceError, Class, ExpiringCuckooFilter, InsertError};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::at_once::{meanwhile, on_threads};
use crate::forged::with_right_checksums;

type Expiring = ExpiringCuckooFilter;

/// The greatest number of a period.
const LAST: u64 = (1 << 42) - 1;

/// Random calls of one thread, beside a map from classes to the periods in which they were renewed.
fn agrees_with_a_map<const S: usize, const B: usize, const A: usize>(seed: u64) {
    let periods = (1 << A) - 1;
    let builder = ExpiringCuckooFilter::builder().layout::<S, B, A>();
    let mut filter = builder.clone().buckets(64).build().unwrap();
    let mut map = HashMap::<Class, u64>::new();
    let mut rng = StdRng::seed_from_u64(seed);
    let keys = (64 * S) as u64;
    for _ in 0..20_000 {
        let key = rng.random_range(0..keys);
        let (class, period) = (filter.class(&key), filter.period());
        let renewed = map.get(&class).copied();
        match rng.random_range(0..100) {
            0 => _ = filter.advance().unwrap(),
            1 => filter.advance_to(period + rng.random_range(0..20)).unwrap(),
            2 => filter = filter.try_clone().unwrap(),
            3 => {
                let bytes = filter.to_bytes().unwrap();
                filter = builder.clone().load_bytes(&bytes).unwrap();
            }
            4..30 => assert_eq!(filter.contains(&key), renewed.is_some()),
            30..40 => assert_eq!(filter.remove(&key).unwrap(), map.remove(&class).is_some()),
            40..70 => match filter.insert_or_renew(&key) {
                Ok(new) => assert_eq!(new, map.insert(class, period).is_none()),
                Err(error) => assert!(error == InsertError::Full && renewed.is_none()),
            },
            _ => match filter.insert_if_absent(&key) {
                Ok(new) => {
                    assert_eq!(new, renewed.is_none());
                    map.entry(class).or_insert(period);
                }
                Err(error) => assert!(error == InsertError::Full && renewed.is_none()),
            },
        }
        let period = filter.period();
        map.retain(|_, since| *since + periods > period);
        assert_eq!(filter.len(), map.len());
    }
}

#[test]
fn random_calls_agree_with_map() {
    for seed in 0..3 {
        agrees_with_a_map::<4, 12, 2>(seed);
        agrees_with_a_map::<4, 11, 3>(seed);
        agrees_with_a_map::<3, 12, 1>(seed);
    }
}

/// After a pause of any length, what was there is gone, and it is the period that was asked for. Only `advance` leads
/// on from a period that is too great.
#[test]
fn pause_of_any_length_forgets_everything() {
    for pause in (3..40).chain([1 << 20, LAST - 8, LAST - 7]) {
        let filter = Expiring::with_capacity(100);
        filter.advance_to(7).unwrap();
        filter.insert("key").unwrap();
        filter.advance_to(7 + pause - 1).unwrap();
        assert_eq!(filter.contains("key"), pause < 4);
        filter.advance_to(7 + pause).unwrap();
        assert_eq!((filter.len(), filter.period()), (0, 7 + pause));
    }
    const FAR: u64 = 1 << 30;
    let mut filter = Expiring::with_capacity(100);
    filter.advance_to(FAR).unwrap();
    filter.clear();
    filter.insert("key").unwrap();
    let loaded = Expiring::from_bytes(&filter.to_bytes().unwrap()).unwrap();
    for filter in [filter, loaded] {
        (5..20).for_each(|period| filter.advance_to(period).unwrap());
        assert!(filter.contains("key") && filter.period() == FAR);
        (1..4).for_each(|begun| assert_eq!(filter.advance(), Ok(FAR + begun)));
        assert!(!filter.contains("key"));
    }
}

/// A filter of a later period could be saved, and not loaded. Times in nanoseconds are such numbers.
#[test]
fn advance_beyond_last_period_is_error() {
    let filter = Expiring::with_capacity(100);
    for period in [LAST + 1, 1_795_932_135_862_260_970, u64::MAX] {
        let error = filter.advance_to(period).unwrap_err();
        let is_right = matches!(error, AdvanceError::NoSuchPeriod { period: refused, last: LAST, .. } if refused == period);
        assert!(is_right && filter.period() == 0, "{error}");
        assert!(error.to_string().contains("longer units"), "{error}");
    }
    filter.advance_to(LAST).unwrap();
    filter.insert("key").unwrap();
    let loaded = Expiring::from_bytes(&filter.to_bytes().unwrap()).unwrap();
    for filter in [filter, loaded] {
        let error = filter.advance().unwrap_err();
        assert!(matches!(error, AdvanceError::NoSuchPeriod { period, .. } if period == LAST + 1));
        assert!(filter.contains("key") && filter.period() == LAST);
    }
    assert!(Expiring::from_bytes(&forged(&[0], LAST + 1)).is_err());
    assert!(Expiring::from_bytes(&forged(&[0], u64::MAX)).is_err());
}

/// Threads insert and renew keys while others begin periods and save: a key is never missed within its
/// window, and nobody gets `true` for a key that is there. `OPERATIONS` sets how many calls they make.
#[test]
fn every_key_is_found_within_window() {
    const WRITERS: u64 = 3;
    let operations = std::env::var("OPERATIONS").map_or(200_000, |number| number.parse().unwrap());
    let filter = Expiring::with_capacity(60_000);
    let (begun, within) = (AtomicUsize::new(0), AtomicUsize::new(0));
    // A key is forgotten three periods after it was inserted, and not before.
    let due = |since: u64| filter.period() >= since + 3;
    let write = |thread: u64| {
        let mut since = vec![None; 10_000];
        let mut rng = StdRng::seed_from_u64(thread);
        for _ in 0..operations / WRITERS {
            let key = rng.random_range(0..10_000);
            let before = filter.period();
            let remembered = since[key as usize];
            let (new, renewed) = match rng.random_range(0..4) {
                0 => {
                    let found = filter.contains(&(thread, key));
                    assert!(found || remembered.is_none_or(due), "a key is missing");
                    let is_within = remembered.is_some_and(|since| !due(since));
                    within.fetch_add(is_within.into(), Ordering::Relaxed);
                    continue;
                }
                1 => (filter.insert_if_absent(&(thread, key)).unwrap(), false),
                _ => (filter.insert_or_renew(&(thread, key)).unwrap(), true),
            };
            assert!(!new || remembered.is_none_or(due), "a key was there");
            if new || renewed {
                since[key as usize] = Some(before);
            }
        }
    };
    let begin = |pause: u64| {
        filter.advance().unwrap();
        begun.fetch_add(1, Ordering::Relaxed);
        thread::sleep(std::time::Duration::from_micros(pause));
    };
    let copy = || {
        let copy = Expiring::from_bytes(&filter.to_bytes().unwrap()).unwrap();
        (0..3).for_each(|_| _ = copy.advance().unwrap());
        assert_eq!(copy.len(), 0);
    };
    let others: [&(dyn Fn() + Sync); 3] = [&|| begin(300), &|| begin(700), &copy];
    meanwhile(others, || on_threads(WRITERS, write));
    assert!(within.into_inner() > 0, "no key was looked up in time");
    assert_eq!(filter.period(), begun.into_inner() as u64);
    (0..3).for_each(|_| _ = filter.advance().unwrap());
    assert_eq!(filter.len(), 0);
}

/// Returns the file of a filter whose buckets hold these words, in this period.
fn forged(words: &[u64], period: u64) -> Vec<u8> {
    let filter = Expiring::builder().buckets(words.len());
    let mut bytes = filter.build().unwrap().to_bytes().unwrap();
    let all = words.iter().chain([&period]);
    for (place, word) in bytes[40..].chunks_exact_mut(8).zip(all) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    with_right_checksums(bytes, 32)
}

/// Any fingerprints and ages, also several copies of a class, and ages that are due to be forgotten: every
/// call ends without a panic, and all is forgotten after a window. (`fuzz/targets/saved.rs` makes further calls.)
#[test]
fn forged_contents_are_forgotten() {
    let mut rng = StdRng::seed_from_u64(7);
    for _ in 0..2_000 {
        let buckets = rng.random_range(1..=6);
        // Few fingerprints, so that many are alike.
        let few = rng.random_range(1..=4_095);
        let word = |_| {
            (0..4).fold(0, |word, slot| match rng.random_range(0..=few) {
                0 => word,
                fingerprint => {
                    let age = rng.random_range(0..4_u64);
                    word | fingerprint << (12 * slot) | age << (48 + 2 * slot)
                }
            })
        };
        let words: Vec<u64> = (0..buckets).map(word).collect();
        let filter = Expiring::from_bytes(&forged(&words, 1 << 41)).unwrap();
        for key in 0..50 {
            let inserted = filter.insert_or_renew(&key);
            assert!(matches!(inserted, Ok(_) | Err(InsertError::Full)));
            assert!(inserted.is_err() || filter.contains(&key));
            assert!(filter.len() <= 4 * buckets);
        }
        // As many as a window has: some may be of the oldest age, which the first sweeps.
        (0..3).for_each(|_| _ = filter.advance().unwrap());
        assert_eq!(filter.len(), 0);
    }
}
