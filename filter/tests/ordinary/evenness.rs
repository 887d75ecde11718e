//! Fingerprints and buckets are spread evenly, and neither of a key's two buckets says anything
//! about the other: with the default hasher, and with a weak one, which is mixed first.
//!
//! The other bucket is the fingerprint's own bucket minus the first. So the two are independent if
//! fingerprint and first bucket are, and if the fingerprints' own buckets are spread over the
//! table; both are tested for every layout. Pairs of buckets themselves are tested where there are
//! enough fingerprints that their limited number does not show.

use std::hash::BuildHasher;

use crate::identity::Identity;
use ahash::RandomState;
use filter::FixedState;
use filter::hashing::Mixed;
use filter::internals::Geometry;
use statrs::distribution::{ChiSquared, ContinuousCDF};

/// Returns the n-th key of a kind.
type Keys = fn(u64) -> u64;

/// Numbers that a program might use as keys.
const KEYS: [(&str, Keys); 5] = [
    ("sequential", |n| n),
    ("multiples of 4096", |n| n << 12),
    ("high bits only", |n| n << 40),
    ("two counters side by side", |n| {
        ((n / 1_000) << 32) | (n % 1_000)
    }),
    ("squares", |n| n * n),
];

const NUMBER: u64 = 1 << 20;

/// Returns the probability that counts as uneven as these, or more so, come about if the outcomes
/// are as likely as `weights` says.
fn chance(counts: &[u64], weights: &[f64]) -> f64 {
    let (all, whole) = (
        counts.iter().sum::<u64>() as f64,
        weights.iter().sum::<f64>(),
    );
    let term = |(&count, weight): (&u64, &f64)| {
        let expected = all * weight / whole;
        (count as f64 - expected).powi(2) / expected
    };
    let statistic = counts.iter().zip(weights).map(term).sum();
    let chi_squared = ChiSquared::new((counts.len() - 1) as f64).unwrap();
    chi_squared.sf(statistic)
}

/// Returns the number of buckets in each of `parts` parts of the table.
fn sizes_of_parts(buckets: usize, parts: usize) -> Vec<f64> {
    let mut sizes = vec![0.0; parts];
    for bucket in 0..buckets {
        sizes[bucket * parts / buckets] += 1.0;
    }
    sizes
}

/// Multiplies each of the first by each of the second.
fn product(first: &[f64], second: &[f64]) -> Vec<f64> {
    let times = |a: &f64| second.iter().map(move |b| a * b).collect::<Vec<_>>();
    first.iter().flat_map(times).collect()
}

/// Returns the name and the probability of every spread of these keys.
fn chances<const SLOTS: usize, const BITS: usize>(
    hasher: &impl BuildHasher,
    key: impl Fn(u64) -> u64,
    buckets: usize,
) -> [(&'static str, f64); 5] {
    const PARTS: usize = 32;
    let geometry = Geometry::<SLOTS, BITS>::new(buckets);
    // The first bits are enough to represent the fingerprint.
    let kinds = 1usize << BITS.min(10);
    let mut fingerprints = vec![0; kinds];
    let (mut first, mut second) = (vec![0; buckets], vec![0; buckets]);
    let mut pairs = vec![0; PARTS * PARTS];
    let mut with_fingerprint = vec![0; PARTS * kinds];
    let part = |bucket: usize| bucket * PARTS / buckets;
    for n in 0..NUMBER {
        let location = geometry.locate(hasher.hash_one(key(n)));
        let fingerprint = location.fingerprint as usize % kinds;
        fingerprints[fingerprint] += 1;
        first[location.first] += 1;
        second[location.second] += 1;
        pairs[part(location.first) * PARTS + part(location.second)] += 1;
        with_fingerprint[part(location.first) * kinds + fingerprint] += 1;
    }
    // Fingerprint 1 stands for both hashes 0 and 1.
    let weight = |low: usize| {
        let hashes = 1u64 << (BITS as u32 - kinds.ilog2());
        let hashes = hashes as f64;
        match low {
            0 => hashes - 1.0,
            1 => hashes + 1.0,
            _ => hashes,
        }
    };
    let weights: Vec<f64> = (0..kinds).map(weight).collect();
    let sizes = sizes_of_parts(buckets, PARTS);
    let of_pairs: Vec<f64> = product(&sizes, &sizes);
    let both = product(&sizes, &weights);
    // If all fingerprints are represented, none is zero.
    let possible = |counts: &[u64], weights: &[f64]| {
        let counts = counts
            .iter()
            .zip(weights)
            .filter(|(_, weight)| **weight > 0.0);
        let (counts, weights): (Vec<u64>, Vec<f64>) = counts.unzip();
        chance(&counts, &weights)
    };
    [
        ("fingerprints", possible(&fingerprints, &weights)),
        ("first buckets", chance(&first, &vec![1.0; buckets])),
        ("second buckets", chance(&second, &vec![1.0; buckets])),
        (
            "pairs of buckets",
            if BITS >= 20 {
                chance(&pairs, &of_pairs)
            } else {
                1.0
            },
        ),
        (
            "fingerprints in each part of the table",
            possible(&with_fingerprint, &both),
        ),
    ]
}

/// Of the hundreds of probabilities computed here, one below this is no accident.
const NO_ACCIDENT: f64 = 1e-7;

fn is_even(name: &str, hasher: &impl BuildHasher) {
    for (kind, key) in KEYS {
        for buckets in [1 << 10, 1_000, 997] {
            let layouts = [
                chances::<4, 12>(hasher, key, buckets),
                chances::<3, 16>(hasher, key, buckets),
                chances::<2, 24>(hasher, key, buckets),
            ];
            for (what, chance) in layouts.into_iter().flatten() {
                let case = format!("{name}, {kind} keys, {buckets} buckets: {what}");
                assert!(chance > NO_ACCIDENT, "{case}: {chance:e}");
            }
        }
    }
}

#[test]
fn the_default_hasher_is_even() {
    is_even("default", &FixedState);
}

#[test]
fn ahash_with_other_seeds_is_even() {
    is_even("ahash", &RandomState::with_seeds(7, 8, 9, 10));
}

#[test]
fn an_identity_is_even_when_mixed() {
    is_even("identity", &Mixed(Identity::default()));
}

/// What the tests above would find without mixing.
#[test]
fn an_identity_alone_is_not_even() {
    let identity = Identity::default();
    for (kind, key) in KEYS {
        let found = chances::<4, 12>(&identity, key, 1_000);
        assert!(
            found.iter().any(|(_, chance)| *chance < NO_ACCIDENT),
            "{kind}: {found:?}"
        );
    }
}

/// The buckets that fingerprints lead to from the first bucket are spread as if drawn at random, or
/// better.
#[test]
fn fingerprints_lead_everywhere() {
    fn spreads<const SLOTS: usize, const BITS: usize>() {
        for buckets in [1 << 20, 1_000_003, 10_007] {
            let geometry = Geometry::<SLOTS, BITS>::new(buckets);
            let parts = 1 << (BITS / 2).min(8);
            let mut counts = vec![0; parts];
            let mut steps = vec![0; parts];
            for fingerprint in 1..1 << BITS {
                let bucket = geometry.other(fingerprint, 0);
                counts[bucket * parts / buckets] += 1;
                // The distance that two shifts advance.
                let next = geometry.other(fingerprint % ((1 << BITS) - 1) + 1, bucket);
                steps[next * parts / buckets] += 1;
            }
            for counts in [counts, steps] {
                let chance = chance(&counts, &sizes_of_parts(buckets, parts));
                let case = format!("{BITS} bits, {buckets} buckets");
                assert!(chance > NO_ACCIDENT, "{case}: {chance:e}, {counts:?}");
            }
        }
    }
    spreads::<8, 7>();
    spreads::<4, 8>();
    spreads::<5, 10>();
    spreads::<4, 12>();
    spreads::<4, 13>();
    spreads::<3, 16>();
    spreads::<2, 24>();
}

/// The purpose of mixing: with the weakest hasher, a filter built in the ordinary way takes as many
/// keys, and is wrong as rarely, as with a good one.
#[test]
fn a_weak_hasher_makes_no_worse_filter() {
    let n = 100_000;
    for (kind, key) in KEYS {
        let builder = filter::CuckooFilter::builder().capacity(n as usize);
        let filter = builder.hasher(Identity::default()).build().unwrap();
        for number in 0..n {
            filter
                .insert(&key(number))
                .unwrap_or_else(|full| panic!("{kind}: {full}"));
        }
        let wrong = (n..11 * n)
            .filter(|&number| filter.contains(&key(number)))
            .count();
        let rate = wrong as f64 / (10 * n) as f64;
        assert!((0.0016..0.0021).contains(&rate), "{kind}: {rate}");
    }
}
