//! Scenarios have the properties that their kinds promise.

use std::collections::HashSet;
use std::ops::Range;

use harness::subjects::{Growing, LockFree, SegmentLock};
use subject::SLOTS_PER_BUCKET;
use subject::layout::{geometry, locate};

use super::draft::{MAX_HOPPERS, MAX_WRITERS_OF_WHOLE};
use super::*;

const ROUNDS: Range<u64> = 0..60;

const OURS: Candidate = Candidate::new::<LockFree>();

fn scenarios(candidate: &Candidate, threads: usize, seed: u64) -> Vec<Scenario> {
    let mut scenarios = Scenarios::new(candidate, threads, seed).unwrap();
    let all = ROUNDS.map(|round| scenarios.in_round(round).unwrap());
    all.collect()
}

fn in_kind(kind: Kind) -> Vec<Scenario> {
    let mut scenarios = scenarios(&OURS, 9, 1);
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

fn changed(script: &Script) -> HashSet<usize> {
    let changes = |operation| !matches!(operation, Operation::Contains | Operation::Count);
    let changing = operations(script).filter(|(operation, _)| changes(*operation));
    changing.map(|(_, group)| group).collect()
}

/// Returns the number of threads that change a group.
fn writers(scenario: &Scenario, group: usize) -> usize {
    let scripts = scenario.scripts.iter();
    scripts
        .filter(|script| changed(script).contains(&group))
        .count()
}

/// Returns the buckets that these keys prefer.
fn preferred<'a>(scenario: &Scenario, keys: impl IntoIterator<Item = &'a u64>) -> HashSet<usize> {
    let geometry = geometry(scenario.buckets).unwrap();
    let first = |key: &u64| locate(&geometry, key).first;
    keys.into_iter().map(first).collect()
}

#[test]
fn round_follows_from_seed_and_number() {
    let first = scenarios(&OURS, 3, 1);
    assert_eq!(first, scenarios(&OURS, 3, 1));
    assert_ne!(first, scenarios(&OURS, 3, 2));
    let mut alone = Scenarios::new(&OURS, 3, 1).unwrap();
    assert_eq!(alone.in_round(37).unwrap(), first[37]);
    assert_ne!(first[0].groups, first[4].groups);
}

#[test]
fn classes_of_two_buckets_share_both() {
    for scenario in in_kind(Kind::TwoBuckets) {
        assert_eq!((scenario.buckets, scenario.residents.len()), (2, 8));
        let both = |group: &Group| group.has_buckets([0, 1]);
        assert!(scenario.groups.iter().all(both));
        assert_eq!(writers(&scenario, 0), MAX_WRITERS_OF_WHOLE);
    }
}

#[test]
fn hopping_keys_prefer_different_buckets() {
    let hops = in_kind(Kind::Hops);
    let differ = |scenario: &&Scenario| preferred(scenario, &scenario.groups[0].keys).len() == 2;
    assert!(hops.iter().filter(differ).count() >= hops.len() - 3);
    let alone = hops
        .iter()
        .filter(|scenario| scenario.groups.len() == 1)
        .count();
    assert!((1..hops.len()).contains(&alone));
    let hoppers: HashSet<usize> = hops.iter().map(|scenario| writers(scenario, 0)).collect();
    assert!(hoppers.len() > 1 && hoppers.iter().all(|n| (1..=MAX_HOPPERS).contains(n)));
    for scenario in hops {
        assert_eq!(scenario.groups[0].keys.len(), KEYS_OF_HOPPER);
        let hopping = scenario.residents.iter().filter(|key| key.group == 0);
        assert_eq!(hopping.count(), 1);
        // An unconditional remove could take the last copy.
        for action in scenario.scripts.iter().flat_map(|script| &script.actions) {
            assert!(!matches!(action, Action::Call(Operation::Remove, key) if key.group == 0));
        }
        let mut fillers = 1..scenario.groups.len();
        let filled = fillers.any(|group| writers(&scenario, group) > 0);
        assert_eq!(filled, scenario.groups.len() > 1);
    }
}

#[test]
fn tossed_copy_alone_can_move() {
    for scenario in in_kind(Kind::Tosses) {
        assert_eq!(scenario.residents.len(), 2 * SLOTS_PER_BUCKET - 1);
        let moves = |group: &Group| {
            let buckets = group.class.map(|class| class.buckets());
            buckets.is_some_and(|[first, second]| first != second)
        };
        let moving: Vec<bool> = scenario.groups.iter().map(moves).collect();
        assert!(moving[0] && !moving[1..].contains(&true));
        let mut repeating = scenario.scripts.iter().filter(|script| script.repeats);
        let pushing = changed(repeating.next().unwrap());
        assert_eq!((pushing.len(), repeating.count()), (2, 0));
        let mut residents = scenario.residents.iter();
        assert!(residents.all(|key| !pushing.contains(&key.group)));
    }
}

#[test]
fn table_always_has_hole() {
    for scenario in in_kind(Kind::Holes) {
        assert_eq!(scenario.residents.len(), 2 * SLOTS_PER_BUCKET - 1);
        let moves = &scenario.scripts[0];
        assert!(moves.repeats);
        for [remove, insert, _] in moves.actions.as_chunks().0 {
            if let (Action::Call(removes, left), Action::Call(inserts, come)) = (remove, insert) {
                assert_eq!((removes, inserts), (&Operation::Remove, &Operation::Insert));
                assert_eq!(left.group, come.group);
            } else {
                assert!([remove, insert].contains(&&Action::Rest));
            }
        }
        assert!((1..=2).contains(&writers(&scenario, 0)));
        let keys = scenario.groups.iter().flat_map(|group| &group.keys);
        assert_eq!(preferred(&scenario, keys).len(), 2);
    }
}

#[test]
fn missing_operations_are_not_called() {
    for (candidate, number) in [(OURS, 5), (Candidate::new::<SegmentLock>(), 3)] {
        let scenarios = scenarios(&candidate, 4, 1);
        let scripts = scenarios.iter().flat_map(|scenario| &scenario.scripts);
        let operations_used: HashSet<_> = scripts.flat_map(operations).map(|call| call.0).collect();
        assert_eq!(operations_used.len(), number, "{operations_used:?}");
    }
    // In a subject that grows each class has one key.
    let scenarios = scenarios(&Candidate::new::<Growing>(), 4, 1);
    let kinds: HashSet<Kind> = scenarios.iter().map(|scenario| scenario.kind).collect();
    assert_eq!(kinds, [Kind::Chains, Kind::Hops, Kind::Churn].into());
    for group in scenarios.iter().flat_map(|scenario| &scenario.groups) {
        assert!(group.class.is_some() && group.keys.len() == 1);
    }
}
