//! Subjects that are wrong on purpose: a check must find each of these flaws within seconds, and
//! none in a correct subject.

use std::hash::{BuildHasher, Hash};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, ThreadId};
use std::time::Duration;

use anyhow::Result;
use filter::{Class, FixedState, InsertError};
use harness::check::perturbation;
use harness::check::{self, Candidate, Check, Found, Report, Rounds, Settings};
use harness::registry::Registry;
use harness::subject::{Operations, Subject};
use harness::subjects::{LockFree, SegmentLock};
use papaya::HashSet;

/// The flaw of a subject.
type Flaw = u8;

/// No flaw.
const NONE: Flaw = 0;
/// Denies a key that is there, once in a thousand lookups.
const DENIES: Flaw = 1;
/// Occasionally removes a copy to put it elsewhere, so that for a moment it is nowhere.
const MOVES: Flaw = 2;
/// Refuses a key although there is room.
const REFUSES: Flaw = 3;
/// Accepts a key and drops it.
const DROPS: Flaw = 4;
/// Looks for a copy first and takes it afterwards: two threads may both be told that they took it.
const TAKES_TWICE: Flaw = 5;
/// Leaves a copy behind.
const LEAVES: Flaw = 6;
/// Panics when it is used.
const PANICS: Flaw = 7;
/// Denies all keys to the thread that made it, which looks only before and after the others.
const DENIES_IN_THE_END: Flaw = 8;
/// Lets that thread remove as many copies as it inserted, but none of the others'.
const KEEPS_IN_THE_END: Flaw = 9;
/// Is slow to look a key up.
const SLOW: Flaw = 10;
/// Claims to remove a key that is not there; in the end, finds nothing, so that only the sum of
/// copies tells.
const REMOVES_NOTHING: Flaw = 11;

/// Accepts a key that it holds, and adds no copy.
const LOSES_COPIES: Flaw = 12;

/// A filter with a flaw, which reveals classes or does not.
struct Flawed<const FLAW: Flaw, const NAMED: bool>(SegmentLock, AtomicU64, ThreadId);

impl<const FLAW: Flaw, const NAMED: bool> Flawed<FLAW, NAMED> {
    /// Returns true if it has this flaw, and this is the thread that made it.
    fn by_maker(&self, flaw: Flaw) -> bool {
        FLAW == flaw && thread::current().id() == self.2
    }

    /// Returns true if it has this flaw, and, once in `one_in` calls, it is time for it.
    fn now(&self, flaw: Flaw, one_in: u64) -> bool {
        FLAW == flaw && self.1.fetch_add(1, Ordering::Relaxed) % one_in == one_in - 1
    }
}

impl<const FLAW: Flaw, const NAMED: bool> Subject for Flawed<FLAW, NAMED> {
    const NAME: &'static str = "flawed";
    const DESCRIPTION: &'static str = "a filter with a flaw";
    const GUARANTEES: &'static str = "none";

    fn with_buckets(buckets: usize) -> Result<Self> {
        Ok(Self(
            SegmentLock::with_buckets(buckets)?,
            AtomicU64::new(0),
            thread::current().id(),
        ))
    }

    fn insert<K: Hash + ?Sized>(&self, key: &K) -> bool {
        assert!(FLAW != PANICS, "this subject panics on purpose");
        if self.by_maker(KEEPS_IN_THE_END) {
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

    fn contains<K: Hash + ?Sized>(&self, key: &K) -> bool {
        if FLAW == SLOW {
            thread::sleep(Duration::from_millis(20));
        }
        !self.now(DENIES, 1_000)
            && !self.by_maker(DENIES_IN_THE_END)
            && !self.by_maker(REMOVES_NOTHING)
            && self.0.contains(key)
    }

    fn remove<K: Hash + ?Sized>(&self, key: &K) -> bool {
        if self.by_maker(KEEPS_IN_THE_END) && self.1.load(Ordering::Relaxed) == 0 {
            return false;
        }
        if self.by_maker(KEEPS_IN_THE_END) {
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
        self.0.remove(key) || FLAW == REMOVES_NOTHING
    }

    fn class<K: Hash + ?Sized>(&self, key: &K) -> Option<Class> {
        self.0.class(key).filter(|_| NAMED)
    }

    harness::subject::delegate! { self.0: slots memory_bytes }
}

const SETTINGS: Settings = Settings {
    check: Check::History,
    threads: 4,
    // A flaw is found in less than a second where cores are free.
    time: Duration::from_secs(120),
    seed: 1,
    rounds: Rounds::ALL,
    perturb: perturbation::AVAILABLE,
    simulate: false,
};

fn run<const FLAW: Flaw, const NAMED: bool>(settings: &Settings) -> Result<Report> {
    let mut registry = Registry::new();
    registry.add::<Flawed<FLAW, NAMED>>();
    let stop = AtomicBool::new(false);
    check::run(
        registry.get("flawed")?.candidate(),
        settings,
        &stop,
        &mut |_| (),
    )
}

fn found<const FLAW: Flaw, const NAMED: bool>() -> Found {
    let report = run::<FLAW, NAMED>(&SETTINGS).unwrap();
    let found = report.found.expect("the flaw is found");
    println!("{}\n{}", found.scenario, found.history);
    assert_eq!(report.totals.rounds, found.round + 1, "it ends there");
    assert!(
        found.history.contains("<- no order is left"),
        "{}",
        found.history
    );
    found
}

#[test]
fn a_denied_key_is_found() {
    let found = found::<DENIES, true>();
    assert!(found.history.contains("contains → no"), "{}", found.history);
}

#[test]
fn a_key_that_is_moved_without_care_is_found() {
    found::<MOVES, true>();
}

#[test]
fn a_refusal_without_need_is_found() {
    let found = found::<REFUSES, true>();
    let whole = ["two buckets", "holes"];
    let checked = whole.iter().any(|kind| found.scenario.contains(kind));
    assert!(checked, "{}", found.scenario);
}

#[test]
fn a_dropped_key_is_found() {
    found::<DROPS, true>();
}

#[test]
fn a_copy_that_is_taken_twice_is_found() {
    found::<TAKES_TWICE, true>();
}

#[test]
fn a_copy_that_is_left_behind_is_found() {
    found::<LEAVES, true>();
}

#[test]
fn missed_keys_are_found_without_classes() {
    for found in [
        found::<DENIES, false>(),
        found::<DROPS, false>(),
        found::<MOVES, false>(),
    ] {
        assert!(found.history.starts_with("key "), "{}", found.history);
    }
}

#[test]
fn what_the_table_holds_in_the_end_is_checked() {
    let named = found::<DENIES_IN_THE_END, true>();
    assert!(named.history.contains("thread 4"), "{}", named.history);
    found::<KEEPS_IN_THE_END, true>();
    found::<KEEPS_IN_THE_END, false>();
}

#[test]
fn nothing_is_found_where_nothing_is_wrong() {
    let settings = Settings {
        time: Duration::from_secs(1),
        ..SETTINGS
    };
    for report in [run::<NONE, true>(&settings), run::<NONE, false>(&settings)] {
        let Report { totals, found } = report.unwrap();
        assert_eq!(found, None);
        assert!(totals.rounds > 0 && totals.undecided == 0, "{totals:?}");
        assert!(totals.inserts > totals.refused && totals.lookups > 0 && totals.removes > 0);
    }
}

const ANSWERS: Settings = Settings {
    check: Check::Answers,
    ..SETTINGS
};

/// Looks for a flaw in answers that threads foresee, in the scenario that must show it.
fn wrong<const FLAW: Flaw, const NAMED: bool>(first: u64, scenario: &str) -> Found {
    let rounds = Rounds {
        first,
        step: if NAMED { 2 } else { 1 },
    };
    let report = run::<FLAW, NAMED>(&Settings { rounds, ..ANSWERS }).unwrap();
    let found = report.found.expect("the flaw is found");
    println!("{}: {}", found.scenario, found.history);
    assert!(found.scenario.starts_with(scenario), "{}", found.scenario);
    assert!(found.history.starts_with("key "), "{}", found.history);
    found
}

#[test]
fn more_removes_than_inserts_are_found() {
    let found = wrong::<REMOVES_NOTHING, true>(1, "copies");
    assert!(found.history.contains("add up to -"), "{}", found.history);
}

#[test]
fn answers_that_a_thread_foresees_are_checked() {
    wrong::<DENIES, true>(0, "windows");
    wrong::<DENIES, false>(0, "windows");
    wrong::<DROPS, true>(0, "windows");
    wrong::<LEAVES, true>(1, "copies");
    wrong::<TAKES_TWICE, true>(1, "copies");
    wrong::<DENIES_IN_THE_END, true>(0, "windows");
    wrong::<KEEPS_IN_THE_END, true>(1, "copies");
}

/// Inserts uniquely in two steps, so that two threads may both be told that they did.
struct LooksFirst(LockFree);

impl Subject for LooksFirst {
    const NAME: &'static str = "looks-first";
    const DESCRIPTION: &'static str = "looks for a key before it inserts it";
    const GUARANTEES: &'static str = "none";
    const OPERATIONS: Operations = LockFree::OPERATIONS;

    fn with_buckets(buckets: usize) -> Result<Self> {
        LockFree::with_buckets(buckets).map(Self)
    }

    fn insert_unique<K: Hash + ?Sized>(&self, key: &K) -> Result<bool, InsertError> {
        if self.0.contains(key) {
            return Ok(false);
        }
        thread::yield_now();
        self.0.insert(key).then_some(true).ok_or(InsertError::Full)
    }

    fn count<K: Hash + ?Sized>(&self, key: &K) -> u64 {
        self.0.count(key)
    }

    fn class<K: Hash + ?Sized>(&self, key: &K) -> Option<Class> {
        self.0.class(key)
    }

    harness::subject::delegate! { self.0: insert contains remove slots memory_bytes }
}

#[test]
fn a_race_with_two_winners_is_found() {
    let mut registry = Registry::new();
    registry.add::<LooksFirst>();
    let settings = Settings {
        rounds: Rounds { first: 2, step: 3 },
        ..ANSWERS
    };
    let candidate = registry.get("looks-first").unwrap().candidate();
    let report = check::run(candidate, &settings, &AtomicBool::new(false), &mut |_| ());
    let found = report.unwrap().found.expect("the flaw is found");
    assert!(found.scenario.starts_with("races"), "{}", found.scenario);
    assert!(
        found.history.contains("inserted uniquely twice"),
        "{}",
        found.history
    );
}

/// Refuses every key.
struct Refuses(LockFree);

impl Subject for Refuses {
    const NAME: &'static str = "refuses";
    const DESCRIPTION: &'static str = "refuses every key";
    const GUARANTEES: &'static str = "none";
    const OPERATIONS: Operations = LockFree::OPERATIONS;

    fn with_buckets(buckets: usize) -> Result<Self> {
        LockFree::with_buckets(buckets).map(Self)
    }

    fn insert<K: Hash + ?Sized>(&self, _: &K) -> bool {
        false
    }

    fn class<K: Hash + ?Sized>(&self, key: &K) -> Option<Class> {
        self.0.class(key)
    }

    harness::subject::delegate! { self.0: contains remove slots memory_bytes }
}

#[test]
fn a_filter_that_refuses_everything_is_found() {
    let mut registry = Registry::new();
    registry.add::<Refuses>();
    let candidate = registry.get("refuses").unwrap().candidate();
    for (first, scenario) in (0..).zip(["windows", "copies", "races"]) {
        let settings = Settings {
            rounds: Rounds { first, step: 3 },
            time: Duration::from_secs(1),
            ..ANSWERS
        };
        let report = check::run(candidate, &settings, &AtomicBool::new(false), &mut |_| ());
        let found = report.unwrap().found.expect("the flaw is found");
        assert!(found.scenario.starts_with(scenario), "{}", found.scenario);
        assert!(
            found.history.contains("the table was empty"),
            "{}",
            found.history
        );
    }
}

#[test]
fn no_answer_is_wrong_where_nothing_is_wrong() {
    let registry = Registry::standard();
    for name in [
        "lock-free",
        "growing",
        "lock-free-fitted",
        "lock-free-copies",
    ] {
        let settings = Settings {
            time: Duration::from_secs(1),
            ..ANSWERS
        };
        let candidate = registry.get(name).unwrap().candidate();
        let report = check::run(candidate, &settings, &AtomicBool::new(false), &mut |_| ());
        let Report { totals, found } = report.unwrap();
        assert_eq!(found, None);
        assert!(
            totals.inserts > totals.refused && totals.removes > 0,
            "{totals:?}"
        );
    }
}

/// An exact set that accepts a key it holds, with a flaw; it reveals classes or does not, and
/// declares that it is a set or does not.
struct Set<const FLAW: Flaw, const NAMED: bool, const DECLARED: bool> {
    held: HashSet<u64>,
    flawed: Flawed<FLAW, false>,
}

impl<const FLAW: Flaw, const NAMED: bool, const DECLARED: bool> Subject
    for Set<FLAW, NAMED, DECLARED>
{
    const NAME: &'static str = "set";
    const DESCRIPTION: &'static str = "a set";
    const GUARANTEES: &'static str = "linearizable, but for the flaw";
    const SET: bool = DECLARED;
    const GROWS: bool = !DECLARED;

    fn with_buckets(buckets: usize) -> Result<Self> {
        Ok(Self {
            held: HashSet::new(),
            flawed: Flawed::with_buckets(buckets)?,
        })
    }

    fn insert<K: Hash + ?Sized>(&self, key: &K) -> bool {
        if !self.flawed.now(DROPS, 1_000) {
            self.held.pin().insert(FixedState.hash_one(key));
        }
        true
    }

    fn contains<K: Hash + ?Sized>(&self, key: &K) -> bool {
        let found = self.held.pin().contains(&FixedState.hash_one(key));
        found && !self.flawed.now(DENIES, 1_000)
    }

    fn remove<K: Hash + ?Sized>(&self, key: &K) -> bool {
        let (held, hash) = (self.held.pin(), FixedState.hash_one(key));
        if self.flawed.now(LEAVES, 1_000) {
            return held.contains(&hash);
        }
        held.remove(&hash)
    }

    fn class<K: Hash + ?Sized>(&self, key: &K) -> Option<Class> {
        NAMED.then(|| Class {
            fingerprint: FixedState.hash_one(key),
            buckets: [0, 1],
        })
    }

    harness::subject::delegate! { self.flawed: slots memory_bytes }
}

fn of_set<const FLAW: Flaw, const NAMED: bool, const DECLARED: bool>(
    settings: Settings,
) -> Option<Found> {
    let candidate = Candidate::of::<Set<FLAW, NAMED, DECLARED>>();
    let report = check::run(&candidate, &settings, &AtomicBool::new(false), &mut |_| ());
    let Report { totals, found } = report.unwrap();
    assert!(totals.rounds > 0 && totals.removes > 0, "{totals:?}");
    found
}

#[test]
fn a_set_that_is_declared_passes() {
    for settings in [SETTINGS, ANSWERS] {
        let time = Duration::from_secs(1);
        let settings = Settings { time, ..settings };
        assert_eq!(of_set::<NONE, true, true>(settings), None);
        assert_eq!(of_set::<NONE, false, true>(settings), None);
    }
}

#[test]
fn a_set_with_a_flaw_is_found() {
    for settings in [SETTINGS, ANSWERS] {
        assert!(of_set::<DROPS, true, true>(settings).is_some());
        assert!(of_set::<DROPS, false, true>(settings).is_some());
        assert!(of_set::<DENIES, true, true>(settings).is_some());
        assert!(of_set::<DENIES, false, true>(settings).is_some());
    }
    assert!(of_set::<LEAVES, true, true>(SETTINGS).is_some());
    assert!(of_set::<LEAVES, false, true>(SETTINGS).is_some());
}

#[test]
fn a_set_that_is_not_declared_is_found() {
    assert!(of_set::<NONE, true, false>(SETTINGS).is_some());
    assert!(of_set::<NONE, false, false>(SETTINGS).is_some());
}

#[test]
fn a_filter_that_loses_second_copies_is_found() {
    found::<LOSES_COPIES, true>();
    found::<LOSES_COPIES, false>();
    wrong::<LOSES_COPIES, true>(1, "copies");
}

#[test]
fn a_filter_of_copies_that_is_declared_a_set_is_found() {
    let mut candidate = *Registry::standard().get("lock-free").unwrap().candidate();
    (candidate.set, candidate.grows) = (true, true);
    let stop = AtomicBool::new(false);
    let report = check::run(&candidate, &SETTINGS, &stop, &mut |_| ());
    assert!(report.unwrap().found.is_some());
}

#[test]
fn a_round_is_repeated_until_it_fails() {
    let settings = Settings {
        rounds: Rounds::only(8),
        ..SETTINGS
    };
    let found = run::<DENIES, true>(&settings).unwrap().found.unwrap();
    assert_eq!(found.round, 8);
    assert!(found.scenario.contains("hops"), "{}", found.scenario);
}

/// Ends within a round, however long that would take: with slow calls, many seconds.
#[test]
fn it_ends_when_the_time_is_over() {
    let settings = Settings {
        time: Duration::from_millis(100),
        ..SETTINGS
    };
    let Report { totals, found } = run::<SLOW, true>(&settings).unwrap();
    assert_eq!(found, None);
    // A whole round makes 2,000 calls and more.
    assert!(totals.rounds <= 1 && totals.calls() < 1_000, "{totals:?}");
}

#[cfg(feature = "simulation")]
const SIMULATED: Settings = Settings {
    perturb: false,
    simulate: true,
    ..SETTINGS
};

#[cfg(feature = "simulation")]
#[test]
fn simulated_cores_find_races_and_nothing_where_nothing_is_wrong() {
    for report in [
        run::<MOVES, true>(&SIMULATED),
        run::<TAKES_TWICE, true>(&SIMULATED),
    ] {
        let found = report.unwrap().found.expect("the flaw is found");
        assert!(found.history.contains("<- no order is left"));
    }
    let settings = Settings {
        time: Duration::from_secs(2),
        ..SIMULATED
    };
    let Report { totals, found } = run::<NONE, true>(&settings).unwrap();
    assert_eq!(found, None);
    assert!(totals.rounds > 0 && totals.undecided == 0, "{totals:?}");
}

#[cfg(not(feature = "simulation"))]
#[test]
fn an_ordinary_build_simulates_no_cores() {
    let settings = Settings {
        simulate: true,
        ..SETTINGS
    };
    let error = run::<NONE, true>(&settings).unwrap_err().to_string();
    assert!(error.contains("--features simulation"), "{error}");
}

#[test]
fn a_panic_is_an_error() {
    let error = format!("{:#}", run::<PANICS, true>(&SETTINGS).unwrap_err());
    assert!(
        error.contains("round 0") && error.contains("panicked"),
        "{error}"
    );
}

#[test]
fn impossible_settings_are_errors() {
    let settings = Settings {
        threads: 65,
        ..SETTINGS
    };
    let error = run::<NONE, true>(&settings).unwrap_err().to_string();
    assert!(error.contains("1 to 64"), "{error}");
    let registry = Registry::standard();
    let stop = AtomicBool::new(false);
    let roofline = registry.get("roofline").unwrap();
    let error = check::run(roofline.candidate(), &SETTINGS, &stop, &mut |_| ())
        .unwrap_err()
        .to_string();
    assert!(error.contains("cannot insert"), "{error}");
}
