//! Single operations of one thread on a table in the cache, half full and nearly full. The harness
//! measures many threads, and tables larger than the caches (`harness targets`).
//!
//! ```sh
//! cargo bench -p lfcf-filter                            # all of them, two minutes
//! cargo bench -p lfcf-filter -- insert/0.95             # one of them
//! cargo bench -p lfcf-filter -- --test                  # each once, without timing it
//! ```
//!
//! # What was tried
//!
//! One run of a prototype on two cores, in million lookups a second of present / absent keys, by
//! one thread among 60 thousand keys unless stated otherwise: read them as ratios. Add a row for
//! whatever you try, even if it did not help.
//!
//! | Change | Expected | Result |
//! |---|---|---|
//! | three loads (first bucket, second, first again) instead of two | a few per cent, as the third is of a line just read | 185 / 203 instead of 268 / 280 |
//! | other bucket by `(g − i) mod m`, for any number of buckets, instead of xor | a few cycles for the borrow | 160 / 190 instead of 185 / 203; 31 million keys: 19 / 19 instead of 16–19 / 14–23 |
//! | lookups in batches of 32 | cache misses overlap | 31 million keys: 34–42 instead of 19; in the cache 163 instead of 160 |
//!
//! Later, with the harness on another machine of two cores, relative to the roofline (which hashes
//! and loads the same and does nothing else); three runs each, except for the batches, which had
//! one:
//!
//! | Change | Expected | Result |
//! |---|---|---|
//! | answer of a lookup without a branch, always with the third load | no mispredictions | 0.56–0.60 / 0.57–0.60 instead of 0.65–0.68 / 0.63–0.66; rejected |
//! | a lookup's two exits merged into one | one jump fewer | the same; rejected |
//! | other bucket by products of 32 bits | two instructions fewer | the same, as the roofline gains as much; rejected |
//! | batches of 64 | a tenth, since more keys share the wait at the end of a group | 31 million keys: 1.16 instead of 1.11; kept |
//! | inserts read both buckets before examining either | misses overlap | 2^20 slots: 1.01–1.05 of before; 20 million keys: 0.96–1.08; rejected |
//!
//! Then against `word-lock`, a lock in the bucket's word, among 60,000 keys on one thread:
//! nanoseconds, medians of nine rounds in which both took turns, before → after, with those of
//! `word-lock` in brackets where the machine was equally fast.
//!
//! | Change | Expected | Result |
//! |---|---|---|
//! | answer of a lookup as data, one branch for the rare cases | half hits in random order without mispredictions | half hits 1.73 times as fast, all hits 0.88, all misses 0.97; kept |
//! | batches of four in arrays, with one branch for all, instead of 64 | no buffer to fill, and the processor overlaps them by itself | half hits 1.15–1.21 times single calls, 1.55 among 8 million keys; kept |
//! | always into the emptier bucket | fewer searches, no branch | insert to 0.5: 21.4 [13.2]; rejected |
//! | into the emptier bucket when the first is more than half full | the same where it matters | insert to 0.5: 21.4 → 13.1 [13.6]; kept |
//! | searches with nodes of 16 bytes, neighbours loaded together; K-CAS in 2k + 1 | fewer misses, fewer exchanges | churn at 0.95: 237 → 155 together with everything below; kept |
//! | the chain built where it is used instead of returned | 200 bytes need not be copied | insert to 0.95: 26.5 → 24.0 [24.5], churn at 0.95: 116 → 106 [98]; kept |
//! | K-CAS inlined into its caller instead of called through a pointer | one call fewer | together with the next: churn at 0.95: 0.80 → 0.93 of `word-lock`; kept |
//! | remove: bucket by a select, slot without a division | no mispredictions | 12.6 → 11.7 [12.1], churn at 0.95: 0.93 → 0.99 of `word-lock`; kept |
//! | batches of hashes, gathered first, instead of references to keys | a hash is in a register, a reference must be followed | half hits, over single calls: 0.93 → 1.19, among 8 million keys 1.04 → 1.20; kept |
//! | K-CAS: pause 20 times before helping | fewer threads work on one operation | churn by 2 threads among 60,000 keys 1.04 (0.88–3.9), 1,000 keys 0.68 (0.37–1.14), 60 keys 1.00 (0.89–1.9) of before: lost in the noise; rejected |
//! | the same on 64 simulated cores (`ice-lake-8375c-2s`), 64 buckets, updates alone, five rounds: look at the word up to 10, 100 or 1,000 times, a pause of 40 ns before each, and help if it is still the same | helping costs more than waiting where lines are fought over | 56.2 [55.9–56.8], 56.6 [55.7–57.1] and 56.6 million/s [55.7–57.1] instead of 56.1 [55.5–56.9]: 64 cores lose nothing by helping; rejected |
//! | the same with as many keys as 8, 16 and 32 buckets hold at a load of 0.9, on as many cores as have keys of their own to insert and remove (14, 28 and 57), three rounds: up to 0, 10, and 100 or 1,000 looks | with fewer buckets, more operations meet | 16.4, 16.9 and 16.9; 23.1, 23.1 and 23.1; 32.4, 33.1 and 32.9 million/s: their ranges overlap; rejected |
//! | the same where all is K-CAS: 64 cores add to 2, 4 or 8 of 8 words, and to 2 of 17: up to 0 or 10 looks | as above | 1.00 → 0.95, 0.36 → 0.32, 0.23 → 0.19, and 2.22 → 1.66 million/s: waiting costs; rejected |
//! | `insert_unique`: the bucket that is only compared not in the K-CAS | at most 45 → 20 ns at load 0.5, 47 → 24 at 0.92, if that were free | not linearizable, whether it is compared once or again before the decision ([`kcas`]); rejected |
//!
//! On a Zen 4, both versions in turns in one process, three to eight processes, with 0, 50 and 100 % of the keys
//! there in random order: how many times as fast, the least and the most.
//!
//! | Change | Expected | Result |
//! |---|---|---|
//! | lookup: a branch for each of the two rare cases, instead of one on their `or` | five instructions fewer of 62 | 60,000 keys 1.07–1.16, 8 million 1.11–1.23; batches 1.10–1.16 and 1.05–1.11; kept, also in `word-lock` |
//! | the same in a growing filter; how many buckets are split loaded, not computed; level and slot in one sum | eight instructions fewer of 101 | 60,000 keys 1.06–1.10, 8 million 1.27–1.41; kept |
//! | a batch whose buckets change: only the keys concerned looked up again, instead of all four | less work where many update | batches 1.02–1.06 instead of 1.10–1.16 where nobody does; rejected |
//! | growing: no counters of turned timestamps, or the number of buckets read again instead of them | up to nine instructions fewer | 1.07–1.11 and 1.03–1.06: no longer notices a wrap; rejected |
//! | growing: those counters chosen by other bits, or in the filter's own memory | two instructions fewer | 0.99–1.01 and 0.96–1.02; rejected |

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
    let keys = (load * filter.capacity() as f64) as u64;
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

/// Asks for each of the `keys` keys from `start` on in turn, round and round.
fn cycle<R>(bencher: &mut Bencher, start: u64, keys: u64, ask: impl Fn(&u64) -> R) {
    let mut key = start;
    bencher.iter(|| {
        key = if key + 1 == start + keys {
            start
        } else {
            key + 1
        };
        ask(&key)
    });
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
    mut new: impl Iterator<Item = u64>,
    timed: Timed,
    put_in: impl Fn(&u64) -> bool,
    take_out: impl Fn(&u64) -> bool,
) {
    bencher.iter_custom(|iterations| {
        let (mut left, mut spent) = (iterations, Duration::ZERO);
        while left > 0 {
            let mut group: Vec<u64> = new.by_ref().take(left.min(GROUP) as usize).collect();
            left -= group.len() as u64;
            let begun = Instant::now();
            group.retain(&put_in);
            let middle = Instant::now();
            let all_out = group.iter().all(&take_out);
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
        cycle(bencher, 0, keys, |key| filter.contains(key));
    });
    at_each_load(criterion, "contains-miss", |bencher, filter, keys| {
        cycle(bencher, keys, keys, |key| filter.contains(key));
    });
    at_each_load(criterion, "count", |bencher, filter, keys| {
        cycle(bencher, 0, keys, |key| filter.count(key));
    });
}

fn updates(criterion: &mut Criterion) {
    for (name, timed) in [("insert", Timed::PuttingIn), ("remove", Timed::TakingOut)] {
        at_each_load(criterion, name, |bencher, filter, keys| {
            let insert = |key: &u64| filter.insert(key).is_ok();
            come_and_go(bencher, keys.., timed, insert, |key| filter.remove(key));
        });
    }
    at_each_load(criterion, "insert_unique", |bencher, filter, keys| {
        // Leaves out keys taken for one that is there: inserting them uniquely would be a lookup.
        let absent = (keys..).filter(|key| !filter.contains(key));
        let insert = |key: &u64| filter.insert_unique(key) == Ok(true);
        come_and_go(bencher, absent, Timed::PuttingIn, insert, |key| {
            filter.remove(key)
        });
    });
}

criterion_group!(operations, lookups, updates);
criterion_main!(operations);
