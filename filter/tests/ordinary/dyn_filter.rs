//! A filter fitted to a false positive rate meets it with the least memory; impossible requests are
//! reported as such.

use std::collections::HashSet;
use std::hash::RandomState;

use filter::layout::Layout;
use filter::{BuildError, CuckooFilter, DynBuildError, DynCuckooFilter, LoadError};

fn fitted(n: usize, rate: f64) -> DynCuckooFilter {
    let builder = CuckooFilter::builder().capacity(n);
    builder.false_positive_rate(rate).build().unwrap()
}

#[test]
fn the_requested_rate_is_kept() {
    const ASKED: u64 = 200_000;
    for n in [100, 10_000, 200_000] {
        for rate in [
            0.5, 0.1, 0.05, 0.03, 0.01, 0.005, 0.002, 0.001, 5e-4, 1e-4, 3e-5, 2.5e-7,
        ] {
            let filter = fitted(n, rate);
            for key in 0..n as u64 {
                filter.insert(&key).unwrap();
            }
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

/// A layout: its slots and bits, its error rate, the buckets it takes for `n` keys, its timestamp
/// bits.
type Known = ((usize, usize), f64, usize, usize);

/// Returns all dependable layouts.
fn dependable(n: usize) -> Vec<Known> {
    let mut known = Vec::new();
    macro_rules! layouts {
        ($($slots:literal: $($bits:literal)+,)+) => {
            $($({
                assert!(Layout::<$slots, $bits>::DEPENDABLE);
                let builder = CuckooFilter::builder().layout::<$slots, $bits>();
                let filter = builder.capacity(n).build().unwrap();
                // Each of 2 × SLOTS slots is compared; of 2^BITS hashes, two make
                // the same fingerprint.
                let alike = (1.0 + 2.0 / f64::powi(2.0, $bits)) / f64::powi(2.0, $bits);
                let rate = 2.0 * $slots as f64 * alike;
                let buckets = filter.capacity() / $slots;
                known.push((($slots, $bits), rate, buckets, 63 - $slots * $bits));
            })+)+
        };
    }
    // With more bits, each would leave fewer than 7 for the timestamp.
    layouts! {
        2: 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28,
        3: 7 8 9 10 11 12 13 14 15 16 17 18,
        4: 7 8 9 10 11 12 13 14,
        5: 7 8 9 10 11,
        6: 7 8 9,
        7: 7 8,
        8: 7,
    }
    let longest = |slots| known.iter().filter(|l| l.0.0 == slots).map(|l| l.3).min();
    for slots in 2..=8 {
        let least = longest(slots).unwrap();
        assert!(least >= 7 && least - 7 < slots, "a longer one is missing");
    }
    known
}

/// The layouts in the docs' table that are used to meet a rate.
const OFFERED: [(usize, usize); 13] = [
    (8, 7),
    (7, 8),
    (6, 8),
    (6, 9),
    (5, 10),
    (5, 11),
    (4, 12),
    (4, 13),
    (4, 14),
    (3, 16),
    (3, 18),
    (2, 24),
    (2, 28),
];

/// No dependable layout that is wrong as rarely as requested is smaller, at any rate and size; of
/// those offered that are as small, the one with the longest timestamps is taken; and each that is
/// offered is taken at some rate.
#[test]
fn the_smallest_layout_that_meets_the_rate_is_chosen() {
    for n in [1, 100, 12_345] {
        let known = dependable(n);
        let offered: Vec<&Known> = known.iter().filter(|l| OFFERED.contains(&l.0)).collect();
        let steps = (0..2_000).map(|step| 0.999 * f64::powf(10.0, -f64::from(step) / 250.0));
        let borders = known
            .iter()
            .flat_map(|l| [0.999_999, 1.0, 1.000_001].map(|x| x * l.1));
        let mut chosen = HashSet::new();
        for rate in steps.chain(borders).filter(|&rate| rate >= 1.4902e-8) {
            let smallest = known.iter().filter(|l| l.1 <= rate).map(|l| l.2).min();
            let filter = fitted(n, rate);
            let (layout, buckets) = (filter.layout(), filter.capacity() / filter.layout().0);
            assert_eq!(Some(buckets), smallest, "{n} keys at {rate}: {layout:?}");
            let as_small = offered.iter().filter(|l| l.1 <= rate && l.2 == buckets);
            let taken = known.iter().find(|l| l.0 == layout).unwrap();
            assert!(taken.1 <= rate, "{n} keys at {rate}: {layout:?}");
            // In the smallest tables, layouts with other numbers of slots may take equally many
            // buckets.
            let alike = as_small.filter(|l| l.0.0 == layout.0);
            assert_eq!(Some(taken.3), alike.map(|l| l.3).max(), "at {rate}");
            chosen.insert(layout);
        }
        assert_eq!(chosen, HashSet::from(OFFERED));
    }
    assert_eq!(fitted(1_000, 0.99).layout(), (8, 7));
    assert_eq!(fitted(1_000, 0.03).layout(), (6, 9));
    assert_eq!(fitted(1_000, 2.4e-7).layout(), (2, 24));
}

#[test]
fn impossible_rates_are_errors_that_name_the_least() {
    let build = |rate| {
        let builder = CuckooFilter::builder().capacity(1_000);
        builder.false_positive_rate(rate).build()
    };
    let least = match build(0.0).unwrap_err() {
        DynBuildError::Rate { least, .. } => least,
        other => panic!("{other}"),
    };
    assert_eq!(build(least).unwrap().false_positive_rate(), least);
    for impossible in [
        -0.5,
        -0.0,
        least * 0.999_999,
        1.0,
        2.0,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
    ] {
        let error = build(impossible).unwrap_err();
        assert!(
            matches!(error, DynBuildError::Rate { .. }),
            "{impossible}: {error}"
        );
    }
    assert_eq!(
        build(1e-9).unwrap_err().to_string(),
        "no filter has a false positive rate of 0.000000001: it must be below 1, and 1.490116130486996e-8 is the least possible"
    );
}

#[test]
fn too_many_keys_are_an_error_that_names_the_most() {
    for rate in [0.1, 0.002, 1e-6] {
        let build = |n| {
            let builder = CuckooFilter::builder().false_positive_rate(rate);
            builder.capacity(n).build()
        };
        for wished in [usize::MAX, 1 << 40] {
            let Err(DynBuildError::TooManyKeys {
                wished: reported,
                most,
            }) = build(wished)
            else {
                panic!("{wished} keys at {rate}");
            };
            assert_eq!(reported, wished);
            // 2^32 buckets of two to seven slots.
            assert!(((6 << 30)..(7 << 32)).contains(&most), "{most}");
            let one_more = DynBuildError::TooManyKeys {
                wished: most + 1,
                most,
            };
            assert_eq!(build(most + 1).unwrap_err(), one_more);
        }
    }
}

#[test]
fn sizes_are_checked_as_for_every_filter() {
    let builder = CuckooFilter::builder().false_positive_rate(0.01);
    let error = |builder: filter::DynBuilder| builder.build().unwrap_err();
    assert_eq!(error(builder), BuildError::NoSize.into());
    assert_eq!(error(builder.buckets(0)), BuildError::ZeroSize.into());
    assert_eq!(builder.buckets(10).build().unwrap().capacity(), 50);
}

#[test]
fn a_fitted_filter_is_loaded_in_the_layout_that_it_was_saved_in() {
    for (layout, rate, ..) in dependable(200) {
        let filter = fitted(200, rate);
        if filter.layout() != layout {
            continue;
        }
        (0..100).for_each(|key| filter.insert(&key).unwrap());
        assert!(filter.memory_bytes() >= filter.capacity() / layout.0 * 8 + size_of_val(&filter));
        let bytes = filter.to_bytes().unwrap();
        let mut written = Vec::new();
        filter.write_to(&mut written).unwrap();
        assert_eq!(bytes, written);
        for loaded in [
            DynCuckooFilter::from_bytes(&bytes).unwrap(),
            DynCuckooFilter::read_from(&bytes[..]).unwrap(),
        ] {
            assert_eq!((loaded.layout(), loaded.len()), (filter.layout(), 100));
            assert!((0..100).all(|key| loaded.contains(&key)));
            assert_eq!(loaded.class(&7), filter.class(&7));
        }
        let cut = DynCuckooFilter::read_from(&bytes[..bytes.len() - 1]);
        assert!(matches!(cut, Err(LoadError::Truncated { .. })));
    }
    let bytes = CuckooFilter::builder()
        .layout::<4, 8>()
        .capacity(10)
        .build()
        .unwrap()
        .to_bytes()
        .unwrap();
    let error = DynCuckooFilter::from_bytes(&bytes).unwrap_err();
    assert!(matches!(error, LoadError::Layout { slots: 4, bits: 8 }));
    let error = DynCuckooFilter::read_from(&bytes[..]).unwrap_err();
    assert!(matches!(error, LoadError::Layout { slots: 4, bits: 8 }));
}

/// A builder with a hasher loads what one with the same hasher has saved, unless it is wrong more
/// often than requested.
#[test]
fn a_fitted_filter_is_loaded_with_its_hasher_and_a_rate() {
    let builder = |rate| CuckooFilter::builder().false_positive_rate(rate);
    let hasher = RandomState::new();
    let mixed = |rate| builder(rate).hasher(hasher.clone());
    let filter = mixed(0.01).capacity(100).build().unwrap();
    filter.insert("key").unwrap();
    let bytes = filter.to_bytes().unwrap();
    for loaded in [
        mixed(0.01).from_bytes(&bytes),
        mixed(0.3).from_bytes(&bytes),
        mixed(0.01).read_from(&bytes[..]),
    ] {
        let loaded = loaded.unwrap();
        assert!(loaded.contains("key"));
        assert_eq!(loaded.layout(), (5, 10));
    }
    for refused in [
        mixed(0.009).from_bytes(&bytes),
        mixed(0.009).read_from(&bytes[..]),
        mixed(f64::NAN).from_bytes(&bytes),
    ] {
        let refused = refused.unwrap_err();
        assert!(matches!(refused, LoadError::Layout { slots: 5, bits: 10 }));
    }
    let unmixed = builder(0.01)
        .unmixed_hasher(hasher.clone())
        .from_bytes(&bytes);
    assert!(matches!(unmixed, Err(LoadError::Hasher)));
    let other = builder(0.01).hasher(RandomState::new()).from_bytes(&bytes);
    assert!(matches!(other, Err(LoadError::Hasher)));
}

/// Nobody wants a million words in a log.
#[test]
fn debug_is_one_short_line() {
    let typed = CuckooFilter::with_capacity(1_000_000);
    typed.insert("key").unwrap();
    let fitted = fitted(1_000_000, 0.01);
    for (text, parts) in [
        (
            format!("{typed:?}"),
            ["CuckooFilter {", "slots: 4, bits: 12", "len: 1,"],
        ),
        (
            format!("{fitted:?}"),
            ["DynCuckooFilter {", "slots: 5, bits: 10", "len: 0,"],
        ),
    ] {
        assert!(text.len() < 200, "{} characters", text.len());
        assert!(!text.contains('\n'));
        for part in parts {
            assert!(text.contains(part), "{text}");
        }
    }
}
