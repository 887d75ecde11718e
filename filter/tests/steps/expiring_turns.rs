//! Threads of the filter that forgets take turns of a random number of steps: with real times, some order of
//! their calls explains all answers, for one period and for three.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kcas_testing::steps::freeze;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

use crate::at_step::{pairs, stops};
use crate::small::expiring::{Caller, Expiring, holding};
use crate::small::{BUCKETS, Recorded, all_explained, key, residents};

const THREADS: usize = 4;

/// Two classes of each pair of buckets, so that chains lead from any bucket to any other.
fn keys() -> Vec<u64> {
    (0..18)
        .map(|nth| (nth / 6, nth / 2 % 3, nth % 2))
        .filter(|(first, second, _)| first >= second)
        .map(|(first, second, nth)| key(first, second, nth))
        .collect()
}

/// Makes random calls, and writes down when they began and ended.
fn calls<const AGE_BITS: usize>(caller: &mut Caller<AGE_BITS>, time: &AtomicU64, seed: u64) {
    let mut rng = StdRng::seed_from_u64(seed);
    let now = || time.fetch_add(1, Ordering::SeqCst);
    let keys = keys();
    for _ in 0..rng.random_range(2..7) {
        let key = keys[rng.random_range(0..keys.len())];
        let (before, start) = (caller.calls.len(), now());
        match rng.random_range(0..14) {
            0..5 => _ = caller.put(key, true),
            5..7 => _ = caller.put(key, false),
            7..9 => _ = caller.contains(key),
            9 => _ = caller.remove(key),
            10 => _ = caller.try_clone_of_generations(&keys),
            _ => caller.advance(),
        }
        let end = now();
        for (_, call) in &mut caller.calls[before..] {
            (call.start, call.end) = (start, end);
        }
    }
}

fn take_turns<const AGE_BITS: usize>(seed: u64) {
    let mut rng = StdRng::seed_from_u64(seed);
    let filter = holding::<AGE_BITS>(&[]);
    let time = Arc::new(AtomicU64::new(0));
    // Nearly full at first.
    let full = rng.random_range(0..=2 * BUCKETS);
    let mut held = keys();
    held.shuffle(&mut rng);
    held.retain(|key| filter.len() < full && filter.insert_or_renew(key) == Ok(true));
    let mut running: Vec<_> = (0..THREADS)
        .map(|thread| {
            let (mut caller, time) = (Caller::new(&filter, thread), Arc::clone(&time));
            let action = move || {
                calls(&mut caller, &time, seed * 8 + thread as u64);
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
    let periods = (1 << AGE_BITS) - 1;
    let what = format!("seed {seed}: ");
    all_explained(&*filter, (0, &held), &keys(), &recorded, &what);
    (0..periods).for_each(|_| _ = filter.advance().unwrap());
    assert_eq!(filter.len(), 0, "seed {seed}");
}

/// `SEEDS` says how many, from `FIRST` on.
#[test]
fn random_turns_are_explained() {
    let number =
        |name: &str, usual: u64| std::env::var(name).map_or(usual, |value| value.parse().unwrap());
    let first = number("FIRST", 0);
    for seed in first..first + number("SEEDS", 1_000) {
        take_turns::<1>(seed);
        take_turns::<2>(seed);
    }
}

/// Periods are left out while a call is stopped at any step, with a chain or not: what is inserted afterwards
/// is remembered for three periods, and nothing for longer.
#[test]
fn calls_that_stop_while_others_leap() {
    let calls: [fn(&Expiring<2>); 6] = [
        |filter| _ = filter.insert_or_renew(&key(0, 2, 0)),
        |filter| _ = filter.insert_or_renew(&residents()[0]),
        |filter| _ = filter.insert_if_absent(&residents()[0]),
        |filter| _ = filter.advance().unwrap(),
        |filter| filter.advance_to(17).unwrap(),
        |filter| _ = filter.try_clone().unwrap(),
    ];
    let (new, mut number) = (key(1, 2, 1), 0);
    for (call, to) in pairs(calls, 1..16) {
        for (step, filter, stopped) in stops(0, || holding::<2>(&residents()), call) {
            let to = filter.period() + to;
            filter.advance_to(to).unwrap();
            assert_eq!(filter.period(), to);
            let inserted = filter.insert(&new);
            assert!(inserted.is_ok() || to < 4);
            let found = filter.contains(&new);
            assert!(found || inserted.is_err());
            stopped.thaw();
            assert!(filter.contains(&new) == found || filter.period() >= to + 3);
            (0..3).for_each(|_| _ = filter.advance().unwrap());
            assert_eq!(filter.len(), 0, "stopped at {step}, {to}");
            number += 1;
        }
    }
    println!("{number} stops");
}
