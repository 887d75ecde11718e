//! Workers that are stopped and killed at random moments.
//!
//! A second shared array says of each key what its owner, a thread of a worker, knows: absent, being inserted, present
//! or being removed, and in which period. No two keys have the same class, so the filter must be exact about each.

use std::collections::HashSet;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{array, env, fs, panic, process, thread};

use filter::{CuckooFilter, Filter, InsertError, SnapshotError};
use kcas::WordArray;
use kcas::shared::{Shared, USER};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::any::{AnyFilter, WINDOW, patiently};
use crate::file::File;
use crate::worker::{self, Worker};

const TEST: &str = "storm::killed_workers_lose_no_key";

const BUCKETS: usize = 64;
const WORKERS: usize = 4;
const THREADS: usize = 2;
const OWNERS: usize = WORKERS * THREADS;
/// Keys of one owner alone, more than it can insert.
const OWN: usize = 4 * BUCKETS * 12 / 10 / OWNERS;
/// Keys that all owners try to insert once.
const CONTESTED: usize = 8;
const KEYS: usize = OWNERS * OWN + CONTESTED;
/// Load 0.95.
const LOAD: usize = (4 * BUCKETS * 95 / 100 - CONTESTED) / OWNERS;

const ABSENT: u64 = 0;
const INSERTING: u64 = 1;
const PRESENT: u64 = 2;
const REMOVING: u64 = 3;

/// What is known of a key. (In a filter that does not expire, it is always period 0.)
#[derive(Clone, Copy)]
struct State {
    /// One of those above; of a contested key the number of its winner plus 1, or 0.
    what: u64,
    /// The periods in which the call that inserted it began and had ended.
    since: u64,
    until: u64,
}

impl State {
    fn new(what: u64, since: u64, until: u64) -> State {
        State { what, since, until }
    }

    fn load(known: &Known, key: usize) -> (u64, State) {
        let word = known.load(key);
        let (since, until) = (word >> 8 & 0xff_ffff, word >> 32);
        (word, State::new(word & 0xff, since, until))
    }

    fn word(self) -> u64 {
        self.what | self.since << 8 | self.until << 32
    }

    /// True if the key cannot have expired by this period.
    fn lasts(self, period: u64) -> bool {
        period < self.since + WINDOW
    }

    /// Checks how often the key was found between two looks at the period.
    fn check(self, count: usize, [before, after]: [u64; 2], key: usize) {
        let (least, most) = match self.what {
            ABSENT => (false, false),
            PRESENT => (self.lasts(after), before <= self.until + WINDOW),
            _ => (false, true),
        };
        let State { what, since, until } = self;
        assert!(
            (usize::from(least)..=usize::from(most)).contains(&count),
            "key {key} of state {what} and periods {since} to {until} is there {count} times in {before} to {after}"
        );
    }
}

/// Where the table begins in a file.
pub(crate) const TABLE: u64 = 2 << 20;

/// What the owners know. A contested key has the number of the owner that has inserted it, plus 1. Then come the keys,
/// and of each owner whether it has begun, and the number of its calls that were checked.
type Known = WordArray<Shared>;

fn set(known: &Known, key: usize, old: u64, new: u64) {
    let is_set = known.exchange_raw(key, old, new);
    assert!(is_set, "key {key} is not in state {old}");
}

fn begun(owner: usize) -> usize {
    2 * KEYS + owner
}

fn checked(owner: usize) -> usize {
    begun(OWNERS) + owner
}

fn keys_of(owners: Range<usize>) -> Range<usize> {
    owners.start * OWN..owners.end * OWN
}

fn owners_of(worker: usize) -> Range<usize> {
    worker * THREADS..(worker + 1) * THREADS
}

/// Returns keys of different classes.
pub(crate) fn keys(buckets: usize) -> impl Iterator<Item = u64> {
    let filter = CuckooFilter::builder().buckets(buckets).build().unwrap();
    let mut classes = HashSet::new();
    (0..).filter(move |key| classes.insert(format!("{:?}", filter.class(key))))
}

/// True if a bucket of this table, as it is in the file, holds a tag of an operation.
pub(crate) fn has_tags(table: &[u8]) -> bool {
    let mut words = table.chunks(8);
    words.any(|word| u64::from_ne_bytes(word.try_into().unwrap()) >> 63 == 1)
}

fn work(path: &Path, worker: usize) {
    let report = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        report(panic);
        process::exit(1);
    }));
    let filter = AnyFilter::open(path).unwrap();
    let known: Known = WordArray::open(&path.with_extension("known")).unwrap();
    thread::scope(|threads| {
        for owner in owners_of(worker) {
            let (filter, known) = (&filter, &known);
            threads.spawn(move || change(filter, known, owner));
        }
    });
}

/// Changes keys until the process is killed.
fn change(filter: &AnyFilter, known: &Known, owner: usize) {
    let keys: [u64; KEYS] = array::from_fn(|key| known.load(KEYS + key));
    let own = keys_of(owner..owner + 1);
    // Keys of calls that were killed, of which nobody knows yet what they have done, stay as they are.
    let may_be_present = |key: &usize| State::load(known, *key).1.what != ABSENT;
    let mut present = own.clone().filter(may_be_present).count();
    let mut calls = known.load(checked(owner));
    let mut rng = StdRng::seed_from_u64(rand::random());
    assert_eq!(filter.remove("none"), Ok(false));
    set(known, begun(owner), 0, 1);
    loop {
        let calls_before = calls;
        if rng.random_ratio(1, 100) {
            // Leaves a core to workers that start.
            thread::sleep(Duration::from_micros(50));
        }
        if rng.random_ratio(1, 1_000) {
            filter.advance_to(filter.period() + 1);
        }
        if rng.random_ratio(1, 200) {
            let before = filter.period();
            match filter.copy() {
                Ok(copy) => {
                    calls += 1;
                    own.clone().for_each(|key| {
                        let (_, state) = State::load(known, key);
                        state.check(copy.count(&keys[key]), [before, filter.period()], key);
                    });
                }
                // Another thread does.
                Err(error) => assert_eq!(error, SnapshotError::Busy),
            }
        }
        let key = rng.random_range(own.clone());
        let (word, state) = State::load(known, key);
        let begun = filter.period();
        if state.what == ABSENT || state.what == PRESENT {
            calls += 1;
            let count = usize::from(filter.contains(&keys[key]));
            state.check(count, [begun, filter.period()], key);
        }
        let is_new = state.what == ABSENT && present < LOAD;
        // It may have expired.
        let is_renewed = state.what == PRESENT && filter.expires() && rng.random();
        if is_new || is_renewed {
            calls += 1;
            let since = if is_new { begun } else { state.since };
            let inserting = State::new(INSERTING, since, 0);
            set(known, key, word, inserting.word());
            let result = if is_renewed || rng.random() {
                filter.insert(&keys[key])
            } else {
                let is_first = filter.insert_if_absent(&keys[key]);
                is_first.map(|is_first| assert!(is_first, "key {key}"))
            };
            let after = match result {
                Ok(()) => State::new(PRESENT, begun, filter.period()).word(),
                Err(InsertError::Full) => ABSENT,
                Err(error) => panic!("{error}"),
            };
            set(known, key, inserting.word(), after);
            present = present + usize::from(result.is_ok()) - usize::from(is_renewed);
        } else if state.what == PRESENT && present >= LOAD {
            calls += 1;
            let removing = State::new(REMOVING, state.since, state.until);
            set(known, key, word, removing.word());
            let is_removed = filter.remove(&keys[key]).unwrap();
            assert!(is_removed || !state.lasts(filter.period()), "key {key}");
            set(known, key, removing.word(), ABSENT);
            present -= 1;
        }
        let contested = rng.random_range(OWNERS * OWN..KEYS);
        contest(filter, known, owner, contested, &keys);
        set(known, checked(owner), calls_before, calls + 1);
        calls += 1;
    }
}

/// Tries to win a contested key. If it is ours, removes it, unless it expires.
fn contest(filter: &AnyFilter, known: &Known, owner: usize, key: usize, keys: &[u64]) {
    let (what, since) = (owner as u64 + 1, filter.period());
    let (word, state) = State::load(known, key);
    if state.what == what && !filter.expires() {
        set(known, key, word, 0);
        assert!(filter.remove(&keys[key]).unwrap(), "key {key}");
    } else if filter.insert_if_absent(&keys[key]) == Ok(true) {
        let until = filter.period();
        let (word, other) = State::load(known, key);
        // Another one may have won before this call, or after the key expired again.
        let is_over = !other.lasts(until) || other.until >= since + WINDOW;
        assert!(
            word == 0 || is_over && filter.expires(),
            "key {key} has two winners"
        );
        let won = State::new(what, since, until).word();
        assert!(known.exchange_raw(key, word, won) || filter.expires());
    }
}

struct Storm {
    path: PathBuf,
    filter: AnyFilter,
    known: Known,
    keys: Vec<u64>,
    /// Calls that were killed, and those of them that took effect.
    under_way: usize,
    effective: usize,
    /// Keys that were looked for in copies.
    copied: usize,
}

impl Storm {
    fn start(&self, worker: usize) -> Worker {
        for word in owners_of(worker).map(begun) {
            self.known.exchange_raw(word, 1, 0);
        }
        let task = format!("{worker} {}", self.path.display());
        Worker::start(TEST, &task)
    }

    fn has_begun(&self, worker: usize) -> bool {
        let mut words = owners_of(worker).map(begun);
        words.all(|word| self.known.load(word) == 1)
    }

    /// Checks the keys of dead owners, whose calls have taken effect or never will. Returns the number of copies.
    fn settle(&mut self, owners: Range<usize>) -> usize {
        let (mut sum, begun, are_all) = (0, self.filter.period(), owners.len() == OWNERS);
        let copy = if are_all {
            patiently(|| self.filter.copy())
        } else {
            self.filter.copy()
        };
        assert!(copy.is_ok() || !are_all, "{copy:?}");
        for key in keys_of(owners) {
            let (word, state) = State::load(&self.known, key);
            let before = self.filter.period();
            let count = self.filter.count(&self.keys[key]);
            let until = self.filter.period();
            sum += count;
            state.check(count, [before, until], key);
            // A worker may be copying, which has not ended while it is stopped.
            if let Ok(copy) = &copy {
                state.check(copy.count(&self.keys[key]), [begun, until], key);
                self.copied += 1;
            }
            if state.what == INSERTING || state.what == REMOVING {
                let after = State::new(PRESENT, state.since, until).word();
                set(&self.known, key, word, after * count as u64);
                self.under_way += 1;
                self.effective += usize::from((count == 1) == (state.what == INSERTING));
            }
        }
        sum
    }

    /// Checks everything when no worker lives.
    fn check(&mut self) {
        let mut table = [0; 8 * BUCKETS];
        let file = fs::File::open(&self.path).unwrap();
        file.read_exact_at(&mut table, TABLE).unwrap();
        assert!(!has_tags(&table));
        let mut sum = self.settle(0..OWNERS);
        for key in OWNERS * OWN..KEYS {
            let (word, state) = State::load(&self.known, key);
            let count = self.filter.count(&self.keys[key]);
            let least = word != 0 && state.lasts(self.filter.period());
            // Its winner may have been killed before it could say so.
            let (what, is_right) = (state.what, (usize::from(least)..=1).contains(&count));
            assert!(
                is_right,
                "contested key {key} of {what} is there {count} times"
            );
            sum += count;
            if count == 1 && word == 0 {
                assert_eq!(self.filter.remove(&self.keys[key]), Ok(true));
                sum -= 1;
            }
        }
        assert_eq!([self.filter.recount(), self.filter.len()], [sum; 2]);
    }

    /// Returns the blocks of the files, and the number of mappings of them in this process.
    fn used(&self) -> ([u64; 2], usize) {
        let lock = format!("{}.lock", self.path.display());
        let blocks = [&self.path, Path::new(&lock)].map(|path| path.metadata().unwrap().blocks());
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        (blocks, maps.matches(self.path.to_str().unwrap()).count())
    }
}

/// Four workers change a filter at a load of 0.95, and copy it. One or all are killed every few milliseconds, some of
/// them while they are stopped. Kills use up no ids and no memory.
///
/// `STORM_SECONDS` and `STORM_KILLS` say how long, at least.
#[test]
fn killed_workers_lose_no_key() {
    if let Some(task) = worker::task() {
        let (worker, path) = task.split_once(' ').unwrap();
        return work(path.as_ref(), worker.parse().unwrap());
    }
    rage("storm", false);
}

/// The same with a filter in which keys expire: its workers also begin periods, and renew keys.
#[test]
fn killed_workers_lose_no_unexpired_key() {
    rage("storm-expiring", true);
}

fn rage(name: &str, expires: bool) {
    let number = |name, default| env::var(name).map_or(default, |value| value.parse().unwrap());
    let (seconds, least) = (number("STORM_SECONDS", 4), number("STORM_KILLS", 0));
    let file = File::new(name);
    let second = File(file.0.with_extension("known"));
    let mut storm = Storm {
        path: file.0.clone(),
        filter: AnyFilter::create(&file.0, BUCKETS, expires),
        known: WordArray::create(&second.0, checked(OWNERS), [0; USER]).unwrap(),
        keys: keys(BUCKETS).take(KEYS).collect(),
        under_way: 0,
        effective: 0,
        copied: 0,
    };
    for (nth, &key) in storm.keys.iter().enumerate() {
        set(&storm.known, KEYS + nth, 0, key);
    }
    // The first copy reserves memory.
    drop(patiently(|| storm.filter.copy()).unwrap());
    let used = storm.used();
    let mut workers: [_; WORKERS] = array::from_fn(|worker| storm.start(worker));
    let (start, mut kills, mut stopped) = (Instant::now(), 0, 0);
    while start.elapsed() < Duration::from_secs(seconds) || kills < least {
        if rand::random_ratio(1, 3) {
            workers[rand::random_range(0..WORKERS)].stop_or_continue();
        }
        // Some are killed while they open the filter.
        let mut waits = rand::random_ratio(3, 4);
        while waits {
            thread::sleep(Duration::from_micros(200));
            workers.iter_mut().for_each(Worker::assert_lives);
            waits = (0..WORKERS).any(|nth| !workers[nth].is_stopped && !storm.has_begun(nth));
        }
        thread::sleep(Duration::from_micros(rand::random_range(0..3_000)));
        let first = rand::random_range(0..WORKERS);
        let all = rand::random_ratio(1, 2);
        let killed = if all { 0..WORKERS } else { first..first + 1 };
        for worker in &mut workers[killed.clone()] {
            worker.kill();
            kills += 1;
            stopped += usize::from(worker.is_stopped);
        }
        storm.filter.take_over_all().unwrap();
        if all {
            storm.check();
        } else if (0..WORKERS).all(|worker| worker == first || storm.has_begun(worker)) {
            // No other process is just taking over what this one has left.
            storm.settle(owners_of(first));
        }
        killed.for_each(|worker| workers[worker] = storm.start(worker));
    }
    workers.iter_mut().for_each(Worker::kill);
    storm.filter.take_over_all().unwrap();
    storm.check();
    let (filter, period) = (&storm.filter, storm.filter.period());
    (1..=WINDOW).for_each(|more| filter.advance_to(period + more));
    assert!(!expires || [filter.len(), filter.recount()] == [0; 2]);
    assert_eq!(filter.remove("none"), Ok(false));
    let ids = WordArray::open(&file.0).unwrap().ids_used();
    let (killed, effective, elapsed) = (storm.under_way, storm.effective, start.elapsed());
    let calls: u64 = (0..OWNERS)
        .map(|owner| storm.known.load(checked(owner)))
        .sum();
    println!(
        "{calls} calls were checked; {kills} kills in {elapsed:.0?}, {stopped} of stopped workers, within {killed} calls, {effective} of \
         which took effect; {period} periods; {ids} ids; blocks of the files, and mappings: {used:?}"
    );
    assert_eq!(storm.used(), used);
    assert!(storm.copied > 0);
    // A block of this process and of each worker, and as many that are passed over while others take them over.
    assert!(ids <= 4 * 2 * (WORKERS + 1), "{ids} ids");
}
