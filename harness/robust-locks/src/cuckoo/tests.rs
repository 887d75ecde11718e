//! Owners that are killed before each store of an insert. The owner is this program again, as one test.

use std::collections::HashSet;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::{env, thread};

use filter::Class;

use super::*;

const BUCKETS: usize = 64;
const VARIABLE: &str = "ROBUST_OWNER";
const OWNER: &str = "cuckoo::tests::owner";

/// Stores until the end of this process; it does not end by itself where none are left at the start.
static STORES_LEFT: AtomicU64 = AtomicU64::new(u64::MAX);
static IS_FLAWED: AtomicBool = AtomicBool::new(false);

pub(super) fn die_if_due() {
    if STORES_LEFT.fetch_sub(1, Ordering::Relaxed) == 0 {
        // No destructor runs: to the system, the owner of a mutex has gone.
        std::process::abort();
    }
}

pub(super) fn is_flawed() -> bool {
    IS_FLAWED.load(Ordering::Relaxed)
}

/// Returns keys of different classes.
fn keys() -> impl Iterator<Item = u64> {
    let (geometry, mut classes) = (geometry(BUCKETS).unwrap(), HashSet::new());
    (0..).filter(move |key| classes.insert(Class::from(locate(&geometry, key))))
}

/// Returns a key whose insert needs a chain of at least three buckets.
fn chained(filter: &RobustCuckooFilter, all: &[u64]) -> u64 {
    let is_long = |key: &u64| {
        let Location { first, second, .. } = locate(&filter.geometry, key);
        let words = [first, second].map(|bucket| (bucket, filter.read(bucket)));
        let read = |_, buckets: &mut [usize; 4]| buckets.map(|of| filter.read(of));
        let mut chain = Chain::new();
        !words.iter().any(|(_, word)| Layout::has_room(*word))
            && path::search(&filter.geometry, &words, MAX_CHAIN, read, &mut chain)
            && chain.len() >= 3
    };
    let key = keys().find(|key| !all.contains(key) && is_long(key));
    key.expect("nearly all buckets are full")
}

/// Runs as a process of its own: inserts the key that it is given, and dies before the given store.
#[test]
fn owner() {
    let Ok(variable) = env::var(VARIABLE) else {
        return;
    };
    let mut parts = variable.splitn(3, ' ');
    let mut number = || parts.next().unwrap().parse().unwrap();
    let (key, stores): (u64, u64) = (number(), number());
    let filter = RobustCuckooFilter::open(parts.next().unwrap().as_ref()).unwrap();
    STORES_LEFT.store(stores, Ordering::Relaxed);
    assert!(filter.insert(&key));
}

/// Kills an owner before each store of an insert. Returns how many were killed, and how often a key was there other than once
/// afterwards.
fn kill_owners() -> (u64, usize) {
    let mut wrong = 0;
    for stores in 0.. {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("filter");
        RobustCuckooFilter::create(&path, BUCKETS).unwrap();
        let filter = RobustCuckooFilter::open(&path).unwrap();
        let all: Vec<_> = keys().take(BUCKETS * 4 * 95 / 100).collect();
        assert!(all.iter().all(|key| filter.insert(key)));
        let new = chained(&filter, &all);
        let mut owner = Command::new(env::current_exe().unwrap());
        owner
            .args(["--exact", OWNER])
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        owner.env(VARIABLE, format!("{new} {stores} {}", path.display()));
        let is_done = owner.status().unwrap().success();

        assert!(all.iter().all(|key| filter.contains(key)), "a key is lost");
        // One that was killed has inserted or has not.
        assert!(filter.remove(&new) || !is_done);
        wrong += all.iter().filter(|key| !filter.remove(key)).count();
        let left = filter.file.words().iter();
        wrong += left
            .map(|word| Layout::occupied(word.load(Ordering::Relaxed)))
            .sum::<usize>();
        if is_done {
            return (stores, wrong);
        }
    }
    unreachable!()
}

#[test]
fn owner_killed_before_any_store_leaves_each_key_once() {
    let (killed, wrong) = kill_owners();
    // A chain of three buckets has two moves of eight stores each.
    assert_eq!((killed % 8, wrong), (0, 0));
    assert!(killed >= 16);
}

/// The test above would see a repair that is wrong.
#[test]
fn flawed_repair_is_found() {
    let flawed = env::var(VARIABLE).is_err() && env::var("ROBUST_FLAWED").is_err();
    if flawed {
        // In a process of its own, so that no other test has this flaw.
        let mut itself = Command::new(env::current_exe().unwrap());
        itself.args(["--exact", "cuckoo::tests::flawed_repair_is_found"]);
        assert!(
            itself
                .env("ROBUST_FLAWED", "")
                .stdout(Stdio::null())
                .status()
                .unwrap()
                .success()
        );
        return;
    }
    IS_FLAWED.store(true, Ordering::Relaxed);
    assert!(kill_owners().1 > 0);
}

#[test]
fn threads_find_exactly_their_keys() {
    let folder = tempfile::tempdir().unwrap();
    let path = &folder.path().join("filter");
    RobustCuckooFilter::create(path, BUCKETS).unwrap();
    let all: Vec<_> = keys().take(BUCKETS * 4 * 95 / 100).collect();
    thread::scope(|scope| {
        for own in all.chunks(all.len() / 4) {
            // Each maps the file for itself, as a process would.
            scope.spawn(move || {
                let filter = RobustCuckooFilter::open(path).unwrap();
                for round in 0..500 {
                    let is_inserting = round % 2 == 0;
                    for key in own {
                        let change = if is_inserting {
                            RobustCuckooFilter::insert
                        } else {
                            RobustCuckooFilter::remove
                        };
                        assert!(change(&filter, key), "{key}");
                        assert_eq!(filter.contains(key), is_inserting, "{key}");
                    }
                    assert!(!filter.remove(&own[0]) || is_inserting && filter.insert(&own[0]));
                }
            });
        }
    });
    let filter = RobustCuckooFilter::open(path).unwrap();
    assert_eq!(
        filter
            .file
            .words()
            .iter()
            .map(|word| Layout::occupied(word.load(Ordering::Relaxed)))
            .sum::<usize>(),
        0
    );
    let other = folder.path().join("other");
    std::fs::write(&other, [0; 4_096]).unwrap();
    assert_eq!(
        RobustCuckooFilter::open(&other).unwrap_err().kind(),
        io::ErrorKind::InvalidData
    );
}
