//! Subjects that are wrong on purpose: a check must find each of these flaws within seconds, and
//! none in a correct subject.

use std::collections::HashSet;
use std::hash::{BuildHasher, Hash};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, ThreadId};
use std::time::Duration;

use anyhow::Result;
use filter::{Class, FixedState, InsertError};
use harness::check::{self, Candidate, Finding, Report, Settings};
use harness::registry::Registry;
use harness::subject::{Operations, Subject, class};
use harness::subjects::{Growing, LockFree};

// A structure as a user may bring one along. Its `main` is used by the example alone.
#[allow(dead_code)]
#[path = "../examples/own_subject.rs"]
mod own_subject;

/// The flaw of a subject.
type Flaw = u8;

/// No flaw.
const NONE: Flaw = 0;
/// A false negative, once in a thousand lookups that find a key.
const FALSE_NEGATIVE: Flaw = 1;
/// Occasionally removes a copy to put it elsewhere, so that for a moment it is nowhere.
const MOVES: Flaw = 2;
/// Refuses a key although there is room.
const REFUSES: Flaw = 3;
/// Accepts a key and drops it.
const DROPS: Flaw = 4;
/// Looks for a copy first and takes it afterwards: it may say yes to two threads.
const TAKES_TWICE: Flaw = 5;
/// Leaves a copy behind.
const LEAVES: Flaw = 6;
/// Panics when it is used.
const PANICS: Flaw = 7;
/// Finds nothing for the thread that made it, which looks only before and after the others.
const FINDS_NONE_AT_THE_END: Flaw = 8;
/// Lets that thread remove as many copies as it inserted, but none of the others'.
const KEEPS_AT_THE_END: Flaw = 9;
/// Is slow to look a key up.
const SLOW: Flaw = 10;
/// Accepts a key that it holds, and adds no copy.
const LOSES_COPIES: Flaw = 11;
/// Looks for a key before it inserts it uniquely: it may say yes to two threads.
const LOOKS_FIRST: Flaw = 12;

/// A filter or a set with a flaw, which reveals classes or does not.
struct Flawed<S, const FLAW: Flaw, const NAMED: bool>(S, AtomicU64, ThreadId);

impl<S, const FLAW: Flaw, const NAMED: bool> Flawed<S, FLAW, NAMED> {
    /// Returns true if it has this flaw, and this is the thread that made it.
    fn by_maker(&self, flaw: Flaw) -> bool {
        FLAW == flaw && thread::current().id() == self.2
    }

    /// Returns true if it has this flaw, and, once in `one_in` calls, it is time for it.
    fn now(&self, flaw: Flaw, one_in: u64) -> bool {
        FLAW == flaw && self.1.fetch_add(1, Ordering::Relaxed) % one_in == one_in - 1
    }
}

impl<S: Subject, const FLAW: Flaw, const NAMED: bool> Subject for Flawed<S, FLAW, NAMED> {
    const NAME: &'static str = "flawed";
    const DESCRIPTION: &'static str = "a filter with a flaw";
    const GUARANTEES: &'static str = "none";
    const OPERATIONS: Operations = Operations {
        unique: FLAW == LOOKS_FIRST,
        ..Operations::ALL
    };
    const GROWS: bool = S::GROWS;
    const SET: bool = S::SET;

    fn with_buckets(buckets: usize) -> Result<Self> {
        let flawless = S::with_buckets(buckets)?;
        Ok(Self(flawless, AtomicU64::new(0), thread::current().id()))
    }

    fn insert<K: Hash + ?Sized>(&self, key: &K) -> bool {
        assert!(FLAW != PANICS, "this subject panics on purpose");
        if self.by_maker(KEEPS_AT_THE_END) {
            let done = self.0.insert(key);
            self.1.fetch_add(u64::from(done), Ordering::Relaxed);
            return done;
        }
        if FLAW == LOSES_COPIES && self.0.contains(key) {
            return true;
        }
        if self.now(MOVES, 20) && self.0.remove(key) {
            thread::yield_now();
            self.0.insert(key);
        }
        !self.now(REFUSES, 100) && (self.now(DROPS, 1_000) || self.0.insert(key))
    }

    fn insert_if_absent<K: Hash + ?Sized>(&self, key: &K) -> Result<bool, InsertError> {
        if self.0.contains(key) {
            return Ok(false);
        }
        thread::yield_now();
        self.insert(key).then_some(true).ok_or(InsertError::Full)
    }

    fn contains<K: Hash + ?Sized>(&self, key: &K) -> bool {
        if FLAW == SLOW {
            thread::sleep(Duration::from_millis(20));
        }
        !self.by_maker(FINDS_NONE_AT_THE_END)
            && self.0.contains(key)
            && !self.now(FALSE_NEGATIVE, 1_000)
    }

    fn remove<K: Hash + ?Sized>(&self, key: &K) -> bool {
        if self.by_maker(KEEPS_AT_THE_END) {
            if self.1.load(Ordering::Relaxed) == 0 {
                return false;
            }
            self.1.fetch_sub(1, Ordering::Relaxed);
        }
        if self.now(TAKES_TWICE, 2) {
            let found = self.0.contains(key);
            thread::yield_now();
            self.0.remove(key);
            return found;
        }
        if self.now(LEAVES, 1_000) {
            return self.0.contains(key);
        }
        self.0.remove(key)
    }

    fn class<K: Hash + ?Sized>(&self, key: &K) -> Option<Class> {
        self.0.class(key).filter(|_| NAMED)
    }

    harness::subject::delegate! { self.0: count memory_bytes }
}

/// An exact set, which accepts a key that it holds.
struct Exact(Mutex<HashSet<u64>>);

impl Subject for Exact {
    const NAME: &'static str = "exact";
    const DESCRIPTION: &'static str = "a set under a mutex";
    const GUARANTEES: &'static str = "linearizable; blocking";
    const SET: bool = true;

    fn with_buckets(_: usize) -> Result<Self> {
        Ok(Self(Mutex::default()))
    }

    fn insert<K: Hash + ?Sized>(&self, key: &K) -> bool {
        self.0.lock().unwrap().insert(FixedState.hash_one(key));
        true
    }

    fn contains<K: Hash + ?Sized>(&self, key: &K) -> bool {
        self.0.lock().unwrap().contains(&FixedState.hash_one(key))
    }

    fn remove<K: Hash + ?Sized>(&self, key: &K) -> bool {
        self.0.lock().unwrap().remove(&FixedState.hash_one(key))
    }

    fn class<K: Hash + ?Sized>(&self, key: &K) -> Option<Class> {
        Some(class(FixedState.hash_one(key), [0, 1]))
    }

    fn memory_bytes(&self) -> usize {
        size_of::<Self>()
    }
}

/// The growing filter as a set, which refuses what it finds: a key that it holds, or one that it takes for such a key.
struct RefusesFound(Growing);

impl Subject for RefusesFound {
    const NAME: &'static str = "refuses-found";
    const DESCRIPTION: &'static str = "growing, with each insert made unique";
    const GUARANTEES: &'static str = "as growing";
    const GROWS: bool = true;

    fn insert<K: Hash + ?Sized>(&self, key: &K) -> bool {
        self.0.insert_if_absent(key) == Ok(true)
    }

    harness::subject::delegate! { self.0: with_buckets contains remove class memory_bytes }
}

const SETTINGS: Settings = Settings {
    threads: 4,
    // A flaw is found in less than a second where cores are free.
    time: Duration::from_secs(120),
    seed: 1,
    round: None,
};

const A_SECOND: Duration = Duration::from_secs(1);

fn run(candidate: &Candidate, settings: &Settings) -> Result<Report> {
    check::run(candidate, settings, &AtomicBool::new(false), &mut |_| ())
}

fn flawed<const FLAW: Flaw, const NAMED: bool>() -> Candidate {
    Candidate::new::<Flawed<LockFree, FLAW, NAMED>>()
}

fn set<const FLAW: Flaw, const NAMED: bool>() -> Candidate {
    Candidate::new::<Flawed<Exact, FLAW, NAMED>>()
}

#[track_caller]
fn found(candidate: &Candidate, settings: &Settings) -> Finding {
    let (_, found) = run(candidate, settings).unwrap();
    let found = found.expect("the flaw is found");
    println!("{}\n{}", found.scenario, found.history);
    found
}

/// Looks for a flaw in histories; says so in all of these words.
#[track_caller]
fn is_found<const FLAW: Flaw, const NAMED: bool>(words: &[&str]) -> Finding {
    let found = found(&flawed::<FLAW, NAMED>(), &SETTINGS);
    for word in [&["<- no order is left"], words].concat() {
        assert!(found.history.contains(word), "{word}: {}", found.history);
    }
    found
}

#[test]
fn flaws_are_found_in_histories() {
    let missed = is_found::<FALSE_NEGATIVE, true>(&["copies before: ", "contains → no"]);
    assert!(!missed.fits_set);
    is_found::<MOVES, true>(&[]);
    is_found::<DROPS, true>(&[]);
    is_found::<TAKES_TWICE, true>(&[]);
    is_found::<LEAVES, true>(&[]);
    is_found::<LOSES_COPIES, true>(&[]);
    is_found::<LOOKS_FIRST, true>(&["insert"]);
    // Each refusal is checked where the table is checked as a whole.
    let found = is_found::<REFUSES, true>(&[]);
    let is_whole = |kind: &&str| found.scenario.contains(*kind);
    assert!(["two buckets", "holes"].iter().any(is_whole), "{found:?}");
}

#[test]
fn flaws_are_found_without_classes() {
    is_found::<FALSE_NEGATIVE, false>(&["key "]);
    is_found::<DROPS, false>(&["key "]);
    is_found::<MOVES, false>(&["key "]);
    is_found::<LOSES_COPIES, false>(&["key "]);
}

#[test]
fn final_content_of_table_is_checked() {
    is_found::<FINDS_NONE_AT_THE_END, true>(&["thread 4"]);
    is_found::<KEEPS_AT_THE_END, true>(&[]);
    is_found::<KEEPS_AT_THE_END, false>(&[]);
}

#[test]
fn flawless_subjects_pass() {
    let registry = Registry::standard();
    let ours = "lock-free growing lock-free-fitted lock-free-copies".split(' ');
    let ours = ours.map(|name| registry.get(name).unwrap().candidate);
    let others = [
        flawed::<NONE, true>(),
        flawed::<NONE, false>(),
        set::<NONE, true>(),
        set::<NONE, false>(),
        Candidate::new::<own_subject::ShardedMap>(),
        Candidate::new::<RefusesFound>(),
    ];
    assert!(others[4].names_classes().unwrap());
    for candidate in ours.chain(others) {
        let settings = Settings {
            time: A_SECOND,
            ..SETTINGS
        };
        let (totals, found) = run(&candidate, &settings).unwrap();
        assert_eq!(found, None);
        let t = &totals;
        let some = [t.rounds, t.inserts - t.refused, t.lookups, t.removes];
        assert!(!some.contains(&0) && t.undecided == 0, "{t:?}");
    }
}

#[test]
fn flaws_of_sets_are_found() {
    found(&set::<DROPS, true>(), &SETTINGS);
    found(&set::<DROPS, false>(), &SETTINGS);
    found(&set::<FALSE_NEGATIVE, true>(), &SETTINGS);
    found(&set::<FALSE_NEGATIVE, false>(), &SETTINGS);
    found(&set::<LEAVES, true>(), &SETTINGS);
    found(&set::<LEAVES, false>(), &SETTINGS);
    // One that is not declared, and a filter that is.
    for mut undeclared in [set::<NONE, true>(), set::<NONE, false>()] {
        undeclared.set = false;
        assert!(found(&undeclared, &SETTINGS).fits_set);
    }
    let mut filter = Candidate::new::<LockFree>();
    (filter.set, filter.grows) = (true, true);
    found(&filter, &SETTINGS);
}

#[test]
fn round_is_repeated_until_failure() {
    let round = Some(8);
    let settings = Settings { round, ..SETTINGS };
    let found = found(&flawed::<FALSE_NEGATIVE, true>(), &settings);
    assert_eq!(found.round, 8);
    assert!(found.scenario.contains("hops"), "{}", found.scenario);
}

/// Ends within a round, however long that would take: with slow calls, many seconds.
#[test]
fn check_ends_when_time_is_over() {
    let time = Duration::from_millis(100);
    let report = run(&flawed::<SLOW, true>(), &Settings { time, ..SETTINGS });
    let (totals, found) = report.unwrap();
    assert_eq!(found, None);
    // A whole round makes 2,000 calls and more.
    assert!(totals.rounds <= 1 && totals.calls() < 1_000, "{totals:?}");
}

#[test]
fn panics_and_impossible_settings_are_errors() {
    let many = Settings {
        threads: 65,
        ..SETTINGS
    };
    let cases = [
        (flawed::<PANICS, true>(), SETTINGS, "panicked in round 0"),
        (flawed::<NONE, true>(), many, "1 to 64"),
    ];
    for (candidate, settings, expected) in cases {
        let error = format!("{:#}", run(&candidate, &settings).unwrap_err());
        assert!(error.contains(expected), "{error}");
    }
}
