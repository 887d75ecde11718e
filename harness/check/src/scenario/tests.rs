//! Scenarios are what they are said to be.

use std::collections::HashSet;
use std::ops::Range;

use harness::subjects::{GlobalLock, Growing, LockFree, SegmentLock};
use subject::layout::{geometry, locate};

use super::draft::{MOST_HOPPERS, MOST_WRITERS_OF_WHOLE};
use super::*;

const ROUNDS: Range<u64> = 0..60;

fn candidate(subject: &str) -> Candidate {
    let all = [
        Candidate::of::<LockFree>(),
        Candidate::of::<Growing>(),
        Candidate::of::<GlobalLock>(),
        Candidate::of::<SegmentLock>(),
    ];
    all.into_iter().find(|of| of.name == subject).unwrap()
}

fn scenarios(subject: &str, threads: usize, seed: u64) -> Vec<Scenario> {
    let candidate = candidate(subject);
    let mut scenarios = Scenarios::new(&candidate, threads, seed).unwrap();
    ROUNDS
        .map(|round| scenarios.of_round(round).unwrap())
        .collect()
}

fn of_kind(kind: Kind, threads: usize) -> Vec<Scenario> {
    let mut scenarios = scenarios("lock-free", threads, 1);
    scenarios.retain(|scenario| scenario.kind == kind);
    assert_eq!(scenarios.len() as u64, ROUNDS.end / Kind::ALL.len() as u64);
    scenarios
}

/// Returns the operations of a script one by one, with the groups.
fn operations(script: &Script) -> impl Iterator<Item = (Operation, usize)> {
    script.actions.iter().flat_map(|action| match *action {
        Action::Call(operation, key) => vec![(operation, key.group)],
        Action::Renew { insert, remove } => vec![
            (Operation::Insert, insert.group),
            (Operation::Remove, remove.group),
        ],
        Action::Rest => vec![],
    })
}

fn changes(operation: Operation) -> bool {
    !matches!(operation, Operation::Contains | Operation::Count)
}

/// Returns the number of threads that change a group.
fn writers(scenario: &Scenario, group: usize) -> usize {
    let writes = |script: &&Script| {
        operations(script).any(|(operation, of)| changes(operation) && of == group)
    };
    scenario.scripts.iter().filter(writes).count()
}

#[test]
fn a_round_follows_from_its_seed_and_number() {
    let first = scenarios("lock-free", 3, 1);
    assert_eq!(first, scenarios("lock-free", 3, 1));
    assert_ne!(first, scenarios("lock-free", 3, 2));
    let candidate = candidate("lock-free");
    let mut alone = Scenarios::new(&candidate, 3, 1).unwrap();
    assert_eq!(alone.of_round(37).unwrap(), first[37]);
    assert_ne!(first[0].groups, first[4].groups);
}

#[test]
fn all_classes_of_two_buckets_share_both() {
    for scenario in of_kind(Kind::TwoBuckets, 9) {
        assert_eq!((scenario.buckets, scenario.residents.len()), (2, 8));
        let geometry = geometry(2).unwrap();
        for key in scenario.keys() {
            let location = locate(&geometry, &key.number);
            assert_ne!(location.first, location.second);
        }
        assert_eq!(writers(&scenario, 0), MOST_WRITERS_OF_WHOLE);
    }
}

#[test]
fn the_keys_that_hop_prefer_different_buckets() {
    let hops = of_kind(Kind::Hops, 8);
    let differ = |scenario: &&Scenario| {
        let geometry = geometry(scenario.buckets).unwrap();
        let keys = scenario.groups[0].keys.iter();
        let preferred: HashSet<_> = keys.map(|key| locate(&geometry, key).first).collect();
        assert_eq!(scenario.groups[0].keys.len(), KEYS_OF_HOPPER);
        preferred.len() == 2
    };
    assert!(hops.iter().filter(differ).count() >= hops.len() - 3);
    let alone = |scenario: &&Scenario| scenario.groups.len() == 1;
    assert!((1..hops.len()).contains(&hops.iter().filter(alone).count()));
    let hoppers = |scenario| writers(scenario, 0);
    let numbers: HashSet<usize> = hops.iter().map(hoppers).collect();
    assert!(numbers.len() > 1 && numbers.iter().all(|n| (1..=MOST_HOPPERS).contains(n)));
    for scenario in hops {
        assert_eq!(
            scenario
                .residents
                .iter()
                .filter(|key| key.group == 0)
                .count(),
            1
        );
        // An unconditional remove could take the last copy.
        for action in scenario.scripts.iter().flat_map(|script| &script.actions) {
            assert!(!matches!(action, Action::Call(Operation::Remove, key) if key.group == 0));
        }
        let fillers = (1..scenario.groups.len()).map(|group| writers(&scenario, group));
        assert_eq!(fillers.sum::<usize>() > 0, scenario.groups.len() > 1);
    }
}

#[test]
fn a_tossed_copy_can_move_and_nothing_else_can() {
    for scenario in of_kind(Kind::Tosses, 8) {
        assert_eq!(scenario.residents.len(), 2 * SLOTS_PER_BUCKET - 1);
        let buckets = |group: usize| scenario.groups[group].class.unwrap().buckets;
        assert_eq!(buckets(0), [0, 1]);
        assert!((1..scenario.groups.len()).all(|group| buckets(group)[0] == buckets(group)[1]));
        let repeating: Vec<_> = (scenario.scripts.iter())
            .filter(|script| script.repeats)
            .collect();
        assert_eq!(repeating.len(), 1);
        let pushing: HashSet<usize> = operations(repeating[0])
            .filter(|call| changes(call.0))
            .map(|call| call.1)
            .collect();
        assert_eq!(pushing.len(), 2);
        assert!(
            scenario
                .residents
                .iter()
                .all(|key| !pushing.contains(&key.group))
        );
    }
}

#[test]
fn a_hole_is_always_there() {
    for scenario in of_kind(Kind::Holes, 8) {
        assert_eq!(scenario.residents.len(), 2 * SLOTS_PER_BUCKET - 1);
        let moves = &scenario.scripts[0];
        assert!(moves.repeats);
        for [remove, insert, _] in moves.actions.as_chunks().0 {
            let (Action::Call(removes, left), Action::Call(inserts, come)) = (remove, insert)
            else {
                assert!([remove, insert].contains(&&Action::Rest));
                continue;
            };
            assert_eq!((removes, inserts), (&Operation::Remove, &Operation::Insert));
            assert_eq!(left.group, come.group);
        }
        assert!((1..=2).contains(&writers(&scenario, 0)));
        let geometry = geometry(2).unwrap();
        let preferred: HashSet<_> = (scenario.keys())
            .map(|key| locate(&geometry, &key.number).first)
            .collect();
        assert_eq!(preferred.len(), 2);
    }
}

#[test]
fn what_only_some_subjects_can_do_is_asked_of_those_only() {
    let asked = |subject: &str| -> HashSet<Operation> {
        (scenarios(subject, 4, 1)
            .iter()
            .flat_map(|scenario| &scenario.scripts))
        .flat_map(operations)
        .map(|call| call.0)
        .collect()
    };
    assert_eq!(asked("lock-free").len(), 5);
    assert_eq!(asked("segment-lock").len(), 3);
}

#[test]
fn of_a_subject_that_grows_each_class_has_one_key() {
    let scenarios = scenarios("growing", 4, 1);
    let kinds: HashSet<Kind> = scenarios.iter().map(|scenario| scenario.kind).collect();
    assert_eq!(kinds, [Kind::Chains, Kind::Hops, Kind::Churn].into());
    for group in scenarios.iter().flat_map(|scenario| &scenario.groups) {
        assert!(group.class.is_some() && group.keys.len() == 1);
    }
}
