//! Subjects that are wrong on purpose: a check must find each of these flaws within seconds, and
//! none in a correct subject.

use std::collections::HashSet;
use std::hash::{BuildHasher, Hash};
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Result;
use filter::{Class, FixedState};
use harness::check::perturbation;
use harness::check::{self, Candidate, Check, Found, Report, Rounds, Settings};
use harness::registry::Registry;
use harness::subject::Subject;
use harness::subjects::{Growing, LockFree};

// A structure as a user may bring one along. Its `main` is used by the example alone.
#[allow(dead_code)]
#[path = "../examples/own_subject.rs"]
mod own_subject;

#[path = "../src/run/runner/tests/flaws.rs"]
mod flaws;

use flaws::*;

/// No flaw: a number that none has.
const NONE: Flaw = 0;

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
        Some(Class {
            fingerprint: FixedState.hash_one(key),
            buckets: [0, 1],
        })
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
        self.0.insert_unique(key) == Ok(true)
    }

    harness::subject::delegate! { self.0: with_buckets contains remove class memory_bytes }
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

/// Flaws show in these without a disturbance, and rounds are shorter.
const ANSWERS: Settings = Settings {
    check: Check::Answers,
    perturb: false,
    ..SETTINGS
};

const A_SECOND: Duration = Duration::from_secs(1);

fn run(candidate: &Candidate, settings: &Settings) -> Result<Report> {
    check::run(candidate, settings, &AtomicBool::new(false), &mut |_| ())
}

fn of<const FLAW: Flaw, const NAMED: bool>() -> Candidate {
    Candidate::of::<Flawed<LockFree, FLAW, NAMED>>()
}

fn set<const FLAW: Flaw, const NAMED: bool>() -> Candidate {
    Candidate::of::<Flawed<Exact, FLAW, NAMED>>()
}

#[track_caller]
fn found(candidate: &Candidate, settings: &Settings) -> Found {
    let (_, found) = run(candidate, settings).unwrap();
    let found = found.expect("the flaw is found");
    println!("{}\n{}", found.scenario, found.history);
    found
}

/// Looks for a flaw in histories; says so in all of these words.
#[track_caller]
fn is_found<const FLAW: Flaw, const NAMED: bool>(words: &[&str]) -> Found {
    let found = found(&of::<FLAW, NAMED>(), &SETTINGS);
    for word in [&["<- no order is left"], words].concat() {
        assert!(found.history.contains(word), "{word}: {}", found.history);
    }
    found
}

/// Looks for a flaw in answers that threads foresee, in the scenario that must show it.
#[track_caller]
fn is_wrong<const FLAW: Flaw, const NAMED: bool>(scenario: &str, words: &str) {
    let candidate = of::<FLAW, NAMED>();
    let kinds = check::answers::Kind::suiting(&candidate).unwrap();
    let first = kinds.iter().position(|kind| kind.to_string() == scenario);
    let rounds = Rounds {
        first: first.unwrap() as u64,
        step: kinds.len() as u64,
    };
    let found = found(&candidate, &Settings { rounds, ..ANSWERS });
    assert!(found.scenario.starts_with(scenario), "{}", found.scenario);
    assert!(found.history.contains(words), "{}", found.history);
}

#[test]
fn flaws_are_found_in_histories() {
    is_found::<FALSE_NEGATIVE, true>(&["contains → no"]);
    is_found::<MOVES, true>(&[]);
    is_found::<DROPS, true>(&[]);
    is_found::<TAKES_TWICE, true>(&[]);
    is_found::<LEAVES, true>(&[]);
    is_found::<LOSES_COPIES, true>(&[]);
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
fn what_the_table_holds_at_the_end_is_checked() {
    is_found::<FINDS_NONE_AT_THE_END, true>(&["thread 4"]);
    is_found::<KEEPS_AT_THE_END, true>(&[]);
    is_found::<KEEPS_AT_THE_END, false>(&[]);
}

#[test]
fn answers_that_a_thread_foresees_are_checked() {
    is_wrong::<FALSE_NEGATIVE, true>("windows", "key ");
    is_wrong::<FALSE_NEGATIVE, false>("windows", "key ");
    is_wrong::<DROPS, true>("windows", "key ");
    is_wrong::<FINDS_NONE_AT_THE_END, true>("windows", "key ");
    is_wrong::<LEAVES, true>("copies", "key ");
    is_wrong::<TAKES_TWICE, true>("copies", "key ");
    is_wrong::<KEEPS_AT_THE_END, true>("copies", "key ");
    is_wrong::<LOSES_COPIES, true>("copies", "key ");
    is_wrong::<REMOVES_NOTHING, true>("copies", "add up to -");
    is_wrong::<LOOKS_FIRST, true>("races", "inserted uniquely twice");
    for scenario in ["windows", "copies", "races"] {
        is_wrong::<REFUSES_ALL, true>(scenario, "the table was empty");
    }
    // All keys of windows are new.
    let growing = Candidate::of::<Flawed<Growing, REFUSES, true>>();
    let found = found(&growing, &ANSWERS);
    assert!(
        found.history.contains("although it takes each new key"),
        "{found:?}"
    );
}

#[test]
fn nothing_is_found_where_nothing_is_wrong() {
    let registry = Registry::standard();
    let ours = "lock-free growing lock-free-fitted lock-free-copies".split(' ');
    let ours = ours.map(|name| (registry.get(name).unwrap().candidate, Check::Answers));
    let own = Candidate::of::<own_subject::ShardedMap>();
    let others = [of::<NONE, true>(), of::<NONE, false>(), own].map(|of| (of, Check::History));
    let refuses_found = Candidate::of::<RefusesFound>();
    let sets = [set::<NONE, true>(), set::<NONE, false>(), refuses_found];
    let sets = [Check::History, Check::Answers].map(|check| sets.map(|set| (set, check)));
    for (candidate, check) in ours.chain(others).chain(sets.concat()) {
        let mut settings = SETTINGS;
        (settings.check, settings.time) = (check, A_SECOND);
        let (totals, found) = run(&candidate, &settings).unwrap();
        assert_eq!(found, None);
        let t = &totals;
        let some = [t.rounds, t.inserts - t.refused, t.lookups, t.removes];
        assert!(!some.contains(&0) && t.undecided == 0, "{t:?}");
    }
}

#[test]
fn a_set_with_a_flaw_is_found() {
    for settings in [SETTINGS, ANSWERS] {
        found(&set::<DROPS, true>(), &settings);
        found(&set::<DROPS, false>(), &settings);
        found(&set::<FALSE_NEGATIVE, true>(), &settings);
        found(&set::<FALSE_NEGATIVE, false>(), &settings);
    }
    found(&set::<LEAVES, true>(), &SETTINGS);
    found(&set::<LEAVES, false>(), &SETTINGS);
    // One that is not declared, and a filter that is.
    for mut undeclared in [set::<NONE, true>(), set::<NONE, false>()] {
        undeclared.set = false;
        found(&undeclared, &SETTINGS);
    }
    let mut filter = Candidate::of::<LockFree>();
    (filter.set, filter.grows) = (true, true);
    found(&filter, &SETTINGS);
}

#[test]
fn a_round_is_repeated_until_it_fails() {
    let rounds = Rounds::only(8);
    let settings = Settings { rounds, ..SETTINGS };
    let found = found(&of::<FALSE_NEGATIVE, true>(), &settings);
    assert_eq!(found.round, 8);
    assert!(found.scenario.contains("hops"), "{}", found.scenario);
}

/// Ends within a round, however long that would take: with slow calls, many seconds.
#[test]
fn a_check_ends_when_the_time_is_over() {
    let time = Duration::from_millis(100);
    let report = run(&of::<SLOW, true>(), &Settings { time, ..SETTINGS });
    let (totals, found) = report.unwrap();
    assert_eq!(found, None);
    // A whole round makes 2,000 calls and more.
    assert!(totals.rounds <= 1 && totals.calls() < 1_000, "{totals:?}");
}

const SIMULATED: Settings = Settings {
    perturb: false,
    simulate: true,
    ..SETTINGS
};

#[cfg(feature = "simulation")]
#[test]
fn simulated_cores_find_races_and_nothing_where_nothing_is_wrong() {
    found(&of::<MOVES, true>(), &SIMULATED);
    found(&of::<TAKES_TWICE, true>(), &SIMULATED);
    let time = 2 * A_SECOND;
    let settings = Settings { time, ..SIMULATED };
    let (totals, found) = run(&of::<NONE, true>(), &settings).unwrap();
    assert_eq!(found, None);
    assert!(totals.rounds > 0 && totals.undecided == 0, "{totals:?}");
}

#[test]
fn panics_and_impossible_settings_are_errors() {
    let many = Settings {
        threads: 65,
        ..SETTINGS
    };
    let mut cases = vec![
        (of::<PANICS, true>(), SETTINGS, "panicked in round 0"),
        (of::<NONE, true>(), many, "1 to 64"),
    ];
    if cfg!(not(feature = "simulation")) {
        cases.push((of::<NONE, true>(), SIMULATED, "--features simulation"));
    }
    for (candidate, settings, said) in cases {
        let error = format!("{:#}", run(&candidate, &settings).unwrap_err());
        assert!(error.contains(said), "{error}");
    }
}
