//! Tests of the `check` command.

use crate::place::{Place, has};

#[test]
fn linearizable_subjects_pass() {
    let subjects = "lock-free,segment-lock,global-lock,striped-timestamps,optimistic,word-lock,rwlock,vector-quotient,\
                    exact-set";
    let line = format!("check --subjects {subjects} --threads 4 --seconds 1 --seed 5");
    let checked = Place::new().run(&line).notes(&["steps"]);
    for text in ["refused;", "no violation"] {
        assert_eq!(checked.stdout.matches(text).count(), 9, "{checked:?}");
    }
    assert!(!checked.stdout.contains("not checked"), "{checked:?}");
    checked.prints(&["In all: "]);
}

#[test]
fn endless_round_is_given_up() {
    // No round ends in a nanosecond; but a few may before the watch begins.
    let check = "check --subjects lock-free --seed 5 --patience 0.000000001";
    let ended = Place::new().ends(1, check);
    let printed = ended.notes(&["does not return"]).stdout;
    let (_, after) = printed.split_once("STUCK after ").expect(&printed);
    let (rounds, _) = after.split_once(" round").expect(&printed);
    has(&printed, &[&format!("--seed 5 --round {rounds} ")]);
}
