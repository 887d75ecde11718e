//! Workers that are killed at random moments. Each worker is this program again, as this one test.
//!
//! A second shared array says of each key what its worker knows: absent, being inserted, present or being removed. No two keys
//! have the same class, so the filter must be exact about each.

use std::collections::HashSet;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, thread};

use filter::shared::SharedCuckooFilter;
use filter::{CuckooFilter, InsertError};
use kcas::WordArray;
use kcas::shared::{Shared, USER};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::file::File;

const BUCKETS: usize = 64;
const WORKERS: usize = 4;
/// Keys of one worker alone, more than it can insert.
const OWN: usize = 4 * BUCKETS * 12 / 10 / WORKERS;
/// Keys that all workers try to insert once.
const CONTESTED: usize = 8;
/// Load 0.95.
const LOAD: usize = (4 * BUCKETS * 95 / 100 - CONTESTED) / WORKERS;

const ABSENT: u64 = 0;
const INSERTING: u64 = 1;
const PRESENT: u64 = 2;
const REMOVING: u64 = 3;

const VARIABLE: &str = "FILTER_SHARED_WORKER";

/// What the workers know. A contested key has the number of the worker that has inserted it, plus 1.
type Known = WordArray<Shared>;

fn set(known: &Known, key: usize, old: u64, new: u64) {
    assert!(
        known.exchange_raw(key, old, new),
        "key {key} is not in state {old}"
    );
}

/// Returns keys of different classes.
fn keys() -> Vec<u64> {
    let filter = CuckooFilter::builder().buckets(BUCKETS).build().unwrap();
    let mut classes = HashSet::new();
    let is_new = |key: &u64| classes.insert(format!("{:?}", filter.class(key)));
    (0..)
        .filter(is_new)
        .take(WORKERS * OWN + CONTESTED)
        .collect()
}

fn open(path: &Path) -> SharedCuckooFilter {
    CuckooFilter::builder().open_shared(path).unwrap()
}

/// Changes keys until it is killed.
fn work(path: &Path, worker: usize) {
    let (filter, keys) = (open(path), keys());
    let known: Known = WordArray::open(&path.with_extension("known")).unwrap();
    let look = CuckooFilter::builder().open_shared_to_read(path).unwrap();
    let own = worker * OWN..(worker + 1) * OWN;
    for key in own.clone() {
        // What the last worker was doing has happened or never will, since its ids were taken over.
        let (state, count) = (known.load(key), filter.count(&keys[key]));
        match state {
            INSERTING | REMOVING => set(&known, key, state, [ABSENT, PRESENT][count]),
            _ => assert_eq!(count as u64 * PRESENT, state, "key {key}"),
        }
    }
    let mut present = own
        .clone()
        .filter(|&key| known.load(key) == PRESENT)
        .count();
    let mut rng = StdRng::seed_from_u64(rand::random());
    loop {
        let key = rng.random_range(own.clone());
        let is_present = known.load(key) == PRESENT;
        assert_eq!(look.contains(&keys[key]), is_present, "key {key}");
        if !is_present && present < LOAD {
            set(&known, key, ABSENT, INSERTING);
            let result = if rng.random() {
                filter.insert(&keys[key])
            } else {
                let is_first = filter.insert_if_absent(&keys[key]);
                is_first.map(|is_first| assert!(is_first, "key {key}"))
            };
            assert!(
                matches!(result, Ok(()) | Err(InsertError::Full)),
                "{result:?}"
            );
            present += usize::from(result.is_ok());
            set(
                &known,
                key,
                INSERTING,
                if result.is_ok() { PRESENT } else { ABSENT },
            );
        } else if is_present && present >= LOAD {
            set(&known, key, PRESENT, REMOVING);
            assert!(filter.remove(&keys[key]).unwrap(), "key {key}");
            set(&known, key, REMOVING, ABSENT);
            present -= 1;
        }
        let contested = WORKERS * OWN + rng.random_range(0..CONTESTED);
        let name = worker as u64 + 1;
        if known.load(contested) == name {
            set(&known, contested, name, 0);
            assert!(filter.remove(&keys[contested]).unwrap(), "key {contested}");
        } else if filter.insert_if_absent(&keys[contested]) == Ok(true) {
            // Unless there are two winners.
            set(&known, contested, 0, name);
        }
    }
}

fn spawn(file: &File, worker: usize) -> Child {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "storm::no_key_is_lost_when_workers_are_killed"]);
    command.env(VARIABLE, format!("{worker} {}", file.0.display()));
    command.stdout(Stdio::null()).spawn().unwrap()
}

/// Checks each key when no worker lives. Returns the number of calls that were under way.
fn check(filter: &SharedCuckooFilter, known: &Known, keys: &[u64]) -> usize {
    let (mut under_way, mut sum) = (0, 0);
    for (key, hashed) in keys.iter().enumerate() {
        let (state, count) = (known.load(key), filter.count(hashed));
        sum += count;
        match state {
            _ if key >= WORKERS * OWN => {
                // Its winner may have been killed before it could say so, or after.
                assert!(
                    count <= 1 && (state == 0 || count == 1),
                    "{key}: {count}, {state}"
                );
                if count == 1 && state == 0 {
                    sum -= usize::from(filter.remove(hashed).unwrap());
                }
            }
            ABSENT | PRESENT => assert_eq!(count as u64 * PRESENT, state, "key {key}"),
            _ => {
                assert!(count <= 1, "key {key} is there {count} times");
                under_way += 1;
            }
        }
    }
    assert_eq!(filter.recount(), sum);
    assert_eq!(filter.len(), sum);
    under_way
}

/// Four workers change a filter at a load of 0.95, and one or all are killed every few milliseconds.
#[test]
fn no_key_is_lost_when_workers_are_killed() {
    if let Ok(variable) = env::var(VARIABLE) {
        let (worker, path) = variable.split_once(' ').unwrap();
        return work(path.as_ref(), worker.parse().unwrap());
    }
    let seconds = env::var("STORM_SECONDS").map_or(4, |seconds| seconds.parse().unwrap());
    let (file, keys) = (File::new("storm"), keys());
    let second = File(file.0.with_extension("known"));
    let filter = CuckooFilter::builder()
        .buckets(BUCKETS)
        .open_or_create_shared(&file.0)
        .unwrap();
    let known: Known = WordArray::create(&second.0, keys.len(), [0; USER]).unwrap();
    let mut workers: Vec<_> = (0..WORKERS).map(|worker| spawn(&file, worker)).collect();
    let (start, mut kills, mut under_way) = (Instant::now(), 0, 0);
    while start.elapsed() < Duration::from_secs(seconds) {
        thread::sleep(Duration::from_millis(rand::random_range(5..60)));
        let first = rand::random_range(0..WORKERS);
        let all = rand::random_range(0..3) == 0;
        let killed = if all { 0..WORKERS } else { first..first + 1 };
        kills += killed.len();
        for worker in &mut workers[killed.clone()] {
            worker.kill().unwrap();
            let status = worker.wait().unwrap();
            assert_eq!(
                status.signal(),
                Some(9),
                "a worker has ended before it was killed"
            );
        }
        if all {
            filter.take_over_all().unwrap();
            under_way += check(&filter, &known, &keys);
        }
        killed.for_each(|worker| workers[worker] = spawn(&file, worker));
    }
    for mut worker in workers {
        worker.kill().unwrap();
        worker.wait().unwrap();
    }
    filter.take_over_all().unwrap();
    check(&filter, &known, &keys);
    assert!(!filter.is_damaged());
    println!("{kills} kills; {under_way} calls were under way in those of all workers");
}
