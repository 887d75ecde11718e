//! Single operations of one thread on a table in the cache, half full and nearly full. The harness
//! measures many threads, and tables larger than the caches (`harness pair --keys`).
//!
//! ```sh
//! cargo bench -p lfcf-filter                            # all of them, two minutes
//! cargo bench -p lfcf-filter -- insert/0.95             # one of them
//! cargo bench -p lfcf-filter -- --test                  # each once, without timing it
//! ```
//!
//! `tried.md` lists what was tried to make them faster, and what came of it.

use std::ops::Range;
use std::time::{Duration, Instant};

use criterion::{Bencher, BenchmarkId, Criterion, criterion_group, criterion_main};
use filter::CuckooFilter;

/// 2^16 slots: 128 KiB.
const BUCKETS: usize = 1 << 14;
const LOADS: [f64; 2] = [0.5, 0.95];

/// Number of keys inserted and then removed as a group: few enough to keep the load factor, many
/// enough that the clock is seldom read.
const GROUP: u64 = 64;

/// Makes a filter filled to a load factor with the keys from 0 on; returns it and their number.
fn filled(load: f64) -> (CuckooFilter, u64) {
    let filter = CuckooFilter::builder().buckets(BUCKETS).build();
    let filter = filter.expect("16,384 buckets are possible");
    let keys = (load * filter.slots() as f64) as u64;
    (0..keys).for_each(|key| filter.insert(&key).expect("the load is workable"));
    (filter, keys)
}

/// Measures at each load. The routine gets the filter, and the number of keys in it.
fn at_each_load(
    criterion: &mut Criterion,
    name: &str,
    mut routine: impl FnMut(&mut Bencher, &CuckooFilter, u64),
) {
    let mut group = criterion.benchmark_group(name);
    for load in LOADS {
        let (filter, keys) = filled(load);
        group.bench_function(BenchmarkId::from_parameter(load), |bencher| {
            routine(bencher, &filter, keys);
        });
    }
}

/// Asks for each of these keys in turn, round and round.
fn cycle<R>(bencher: &mut Bencher, keys: Range<u64>, ask: impl Fn(u64) -> R) {
    let mut keys = keys.cycle();
    bencher.iter(|| keys.next().map(&ask));
}

/// Which part of a group's work is timed.
#[derive(Clone, Copy)]
enum Timed {
    PuttingIn,
    TakingOut,
}

/// Inserts groups of new keys, and removes each group again.
fn come_and_go(
    bencher: &mut Bencher,
    filter: &CuckooFilter,
    mut new: impl Iterator<Item = u64>,
    timed: Timed,
    insert: impl Fn(&u64) -> bool,
) {
    bencher.iter_custom(|iterations| {
        let (mut left, mut spent) = (iterations, Duration::ZERO);
        while left > 0 {
            let mut group: Vec<u64> = new.by_ref().take(left.min(GROUP) as usize).collect();
            left -= group.len() as u64;
            let begun = Instant::now();
            group.retain(&insert);
            let middle = Instant::now();
            let all_out = group.iter().all(|key| filter.remove(key).unwrap());
            spent += match timed {
                Timed::PuttingIn => middle - begun,
                Timed::TakingOut => middle.elapsed(),
            };
            assert!(all_out, "a key that was put in is there");
        }
        spent
    });
}

fn lookups(criterion: &mut Criterion) {
    at_each_load(criterion, "contains-hit", |bencher, filter, keys| {
        cycle(bencher, 0..keys, |key| filter.contains(&key));
    });
    at_each_load(criterion, "contains-miss", |bencher, filter, keys| {
        cycle(bencher, keys..2 * keys, |key| filter.contains(&key));
    });
    at_each_load(criterion, "count", |bencher, filter, keys| {
        cycle(bencher, 0..keys, |key| filter.count(&key));
    });
}

fn updates(criterion: &mut Criterion) {
    for (name, timed) in [("insert", Timed::PuttingIn), ("remove", Timed::TakingOut)] {
        at_each_load(criterion, name, |bencher, filter, keys| {
            come_and_go(bencher, filter, keys.., timed, |key| {
                filter.insert(key).is_ok()
            });
        });
    }
    at_each_load(criterion, "insert_if_absent", |bencher, filter, keys| {
        // Leaves out keys taken for one that is there: inserting them uniquely would be a lookup.
        let absent = (keys..).filter(|key| !filter.contains(key));
        let insert = |key: &u64| filter.insert_if_absent(key) == Ok(true);
        come_and_go(bencher, filter, absent, Timed::PuttingIn, insert);
    });
}

criterion_group!(operations, lookups, updates);
criterion_main!(operations);
