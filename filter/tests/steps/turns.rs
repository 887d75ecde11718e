//! Threads of each kind of filter take turns of a random number of steps: with real times, some order of their calls
//! explains all answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use filter::Filter;
use kcas_testing::steps::freeze;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

use crate::small::Operation::{Advance, Contains, Count, Insert, InsertIfAbsent, Remove, TryClone};
use crate::small::growing::{self, apart, from_other_bucket, staying};
use crate::small::{Caller, Operation, Recorded, Tested, all_explained, key};
use crate::small::{expiring, holding};

const THREADS: usize = 4;

/// A call of each kind is as likely as it is often in a list.
type Kinds = &'static [fn(u64) -> Operation];

const FIXED: Kinds = &[
    Insert,
    Insert,
    InsertIfAbsent,
    Contains,
    Count,
    Remove,
    TryClone,
];

/// One copy of a key at most, so that there is always room for it.
const GROWING: Kinds = &[
    InsertIfAbsent,
    InsertIfAbsent,
    Contains,
    Count,
    Remove,
    TryClone,
];

const EXPIRING: Kinds = &[
    Insert,
    Insert,
    InsertIfAbsent,
    Contains,
    Remove,
    TryClone,
    |_| Advance,
    |_| Advance,
];

/// Two classes of each pair of buckets, so that chains lead from any bucket to any other.
fn keys() -> Vec<u64> {
    (0..18)
        .map(|nth| (nth / 6, nth / 2 % 3, nth % 2))
        .filter(|(first, second, _)| first >= second)
        .map(|(first, second, nth)| key(first, second, nth))
        .collect()
}

/// Keys that fill the first two buckets, which are then split; and keys that move between the first and others.
fn growing_keys() -> Vec<u64> {
    let moving = [1, 2, 5, 16, 18].map(|bits| growing::key(apart(bits, 5, 0), 0));
    let staying = (0..8).map(|nth| staying(nth % 2 + 16 * (nth / 2)));
    let others = moving.map(from_other_bucket);
    moving.into_iter().chain(others).chain(staying).collect()
}

/// Makes random calls, and writes down when they began and ended.
fn calls<F: Tested>(
    caller: &mut Caller<F>,
    kinds: Kinds,
    keys: &[u64],
    time: &AtomicU64,
    seed: u64,
) {
    let mut rng = StdRng::seed_from_u64(seed);
    let now = || time.fetch_add(1, Ordering::SeqCst);
    for _ in 0..rng.random_range(2..7) {
        let kind = kinds[rng.random_range(0..kinds.len())];
        let key = keys[rng.random_range(0..keys.len())];
        let (before, start) = (caller.calls.len(), now());
        F::run(caller, kind(key));
        let end = now();
        for (_, call) in &mut caller.calls[before..] {
            (call.start, call.end) = (start, end);
        }
    }
}

fn take_turns<F: Tested>(seed: u64, filter: &Arc<F>, kinds: Kinds, keys: &[u64]) {
    let mut rng = StdRng::seed_from_u64(seed);
    let time = Arc::new(AtomicU64::new(0));
    // Some buckets are full at first.
    let full = rng.random_range(0..=6);
    let mut held = keys.to_vec();
    held.shuffle(&mut rng);
    held.retain(|key| filter.len() < full && filter.insert_if_absent(key) == Ok(true));
    let mut running: Vec<_> = (0..THREADS)
        .map(|thread| {
            let (mut caller, time) = (Caller::new(filter, thread), Arc::clone(&time));
            let keys = keys.to_vec();
            let action = move || {
                calls(&mut caller, kinds, &keys, &time, seed * 8 + thread as u64);
                caller.calls
            };
            freeze(0, action).expect("it has steps")
        })
        .collect();
    let mut recorded: Vec<Recorded> = Vec::new();
    let longest = [2, 8, 30, 100][rng.random_range(0..4)];
    while !running.is_empty() {
        let turn = rng.random_range(0..running.len());
        if !running[turn].advance(rng.random_range(1..=longest)) {
            recorded.extend(running.swap_remove(turn).thaw());
        }
    }
    recorded.sort_by_key(|(_, call)| call.start);
    all_explained(
        &**filter,
        (0, &held),
        keys,
        &recorded,
        &format!("seed {seed}: "),
    );
}

/// Nothing is left after a window.
fn take_turns_in_periods<const AGE_BITS: usize>(seed: u64) {
    let filter = expiring::holding::<AGE_BITS>(&[]);
    take_turns(seed, &filter, EXPIRING, &keys());
    (1..1 << AGE_BITS).for_each(|_| _ = filter.advance().unwrap());
    assert_eq!(filter.len(), 0, "seed {seed}");
}

/// `SEEDS` says how many, from `FIRST` on.
#[test]
fn random_turns_are_explained() {
    let number =
        |name: &str, usual: u64| std::env::var(name).map_or(usual, |value| value.parse().unwrap());
    let first = number("FIRST", 0);
    for seed in first..first + number("SEEDS", 1_000) {
        take_turns(seed, &holding(&[]), FIXED, &keys());
        take_turns(seed, &growing::holding(16, &[]), GROWING, &growing_keys());
        take_turns_in_periods::<1>(seed);
        take_turns_in_periods::<2>(seed);
    }
}
