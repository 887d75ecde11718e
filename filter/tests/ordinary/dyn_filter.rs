//! A filter fitted to a false positive rate meets it with the least memory; impossible requests are
//! reported as such.

use std::hash::RandomState;

use filter::{BuildError, CuckooFilter, DynCuckooFilter, LoadError};

fn fitted(n: usize, rate: f64) -> DynCuckooFilter {
    let builder = CuckooFilter::builder().capacity(n);
    builder.false_positive_rate(rate).build().unwrap()
}

#[test]
fn requested_rate_is_kept() {
    const ASKED: u64 = 200_000;
    let rates = [
        0.5, 0.1, 0.05, 0.03, 0.01, 0.005, 0.002, 0.001, 5e-4, 1e-4, 3e-5, 2.5e-7,
    ];
    for n in [100, 10_000, 200_000] {
        for rate in rates {
            let filter = fitted(n, rate);
            (0..n as u64).for_each(|key| filter.insert(&key).unwrap());
            let absent = n as u64..n as u64 + ASKED;
            let wrong = absent.filter(|key| filter.contains(key)).count() as f64;
            // One in a million sets of keys is this many standard deviations above the rate.
            let z = 4.75_f64;
            let expected = rate * ASKED as f64;
            let most = expected + z * expected.sqrt() + z * z;
            assert!(wrong <= most, "{n} keys at {rate}: {wrong} of {ASKED}");
            assert!(filter.false_positive_rate() <= rate);
        }
    }
}

#[test]
fn impossible_rate_error_names_minimum() {
    let build = |rate| {
        let builder = CuckooFilter::builder().capacity(1_000);
        builder.false_positive_rate(rate).build()
    };
    let least = match build(0.0).unwrap_err() {
        BuildError::Rate { least, .. } => least,
        other => panic!("{other}"),
    };
    assert_eq!(build(least).unwrap().false_positive_rate(), least);
    let infinite = [f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
    let others = [-0.5, -0.0, least * 0.999_999, 1.0, 2.0];
    for impossible in others.into_iter().chain(infinite) {
        let error = build(impossible).unwrap_err();
        let is_rate = matches!(error, BuildError::Rate { .. });
        assert!(is_rate, "{impossible}: {error}");
    }
}

// With 32 bits, memory ends before.
#[cfg(target_pointer_width = "64")]
#[test]
fn too_many_keys_error_names_maximum() {
    for rate in [0.1, 0.002, 1e-6] {
        let build = |n| {
            let builder = CuckooFilter::builder().false_positive_rate(rate);
            builder.capacity(n).build()
        };
        let most = |requested| match build(requested).unwrap_err() {
            BuildError::TooManyKeys { most, .. } => most,
            error => panic!("{requested} keys at {rate}: {error}"),
        };
        let named = most(usize::MAX);
        // 2^32 buckets of two to seven slots.
        assert!(((6 << 30)..(7 << 32)).contains(&named), "{named}");
        assert_eq!(most(named + 1), named);
    }
}

/// In the layout that it was saved in, with its hasher, unless that is wrong more often than requested
/// or is not chosen for any rate.
#[test]
fn fitted_filter_loads_with_hasher_and_rate() {
    let is_of = |error: LoadError, layout: (u16, u8)| {
        let found =
            matches!(error, LoadError::Layout { slots, bits, .. } if (slots, bits) == layout);
        assert!(found, "{error}");
    };
    let hasher = RandomState::new();
    let mixed = |rate| {
        let builder = CuckooFilter::builder().false_positive_rate(rate);
        builder.capacity(100).hasher(hasher.clone())
    };
    let filter = mixed(0.01).build().unwrap();
    filter.insert("key").unwrap();
    let bytes = filter.to_bytes().unwrap();
    for loaded in [
        mixed(0.3).load_bytes(&bytes),
        mixed(0.01).load_from(&bytes[..]),
    ] {
        let loaded = loaded.unwrap();
        let layout = loaded.layout();
        assert_eq!((layout.slots, layout.bits, loaded.len()), (5, 10, 1));
        assert!(loaded.contains("key") && loaded.class("key") == filter.class("key"));
    }
    is_of(mixed(0.009).load_bytes(&bytes).unwrap_err(), (5, 10));
    is_of(mixed(f64::NAN).load_from(&bytes[..]).unwrap_err(), (5, 10));
    let other = DynCuckooFilter::from_bytes(&bytes);
    assert!(matches!(other, Err(LoadError::Hasher)));
    let builder = CuckooFilter::builder().layout::<4, 8>().capacity(10);
    let bytes = builder.build().unwrap().to_bytes().unwrap();
    is_of(DynCuckooFilter::from_bytes(&bytes).unwrap_err(), (4, 8));
}
