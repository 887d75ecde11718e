//! Tests of the `check` command.

use crate::place::{Place, committed, has, rows};

#[test]
fn nothing_is_found_in_what_is_linearizable() {
    let subjects = "lock-free,segment-lock,global-lock,striped-timestamps,optimistic,word-lock,rwlock,vector-quotient,\
                    exact-set";
    let line = format!("check --subjects {subjects} --threads 4 --seconds 1 --seed 5");
    let checked = Place::new().run(&line).notes(&["ns a call", "steps"]);
    for text in ["refused;", "no violation"] {
        assert_eq!(checked.stdout.matches(text).count(), 9, "{checked:?}");
    }
    assert!(!checked.stdout.contains("not checked"), "{checked:?}");
    let announced = checked.stderr.matches("4 threads, seed 5").count();
    assert_eq!(announced, 9, "{checked:?}");
}

#[test]
fn a_round_that_does_not_end_is_given_up() {
    // No round ends in a nanosecond; but a few may before the watch begins.
    let check = "check --subjects lock-free --seed 5 --patience 0.000000001";
    let ended = Place::new().ends(1, check);
    let printed = ended.notes(&["does not return"]).stdout;
    let (_, after) = printed.split_once("STUCK after ").expect(&printed);
    let (rounds, _) = after.split_once(" round").expect(&printed);
    has(&printed, &[&format!("--seed 5 --round {rounds} ")]);

    // A tally remembers it.
    let place = Place::new();
    let tally = "check --subjects lock-free --tally results --seconds";
    place.ends(1, &format!("{tally} 20 --patience 0.000000001"));
    let remembered = place.ends(1, &format!("{tally} 0.1"));
    remembered.notes(&["a violation", "a call does not return"]);
}

#[test]
fn a_tally_is_continued_after_a_torn_row() {
    let place = Place::new();
    let check = || {
        let check = "check --subjects lock-free,growing --threads 2 --seconds 1 --tally results";
        place.run(check).prints(&["lock-free", "results/soak.csv"])
    };
    check();
    let first = place.text("results/soak.csv");
    assert!(rows(&first) > 0);

    let torn = "history,lock-free,cut o";
    place.write("results/soak.csv", format!("{first}{torn}"));
    check().notes(&["the last row was cut off", torn]);
    let second = place.text("results/soak.csv");
    let added = second.strip_prefix(&first).unwrap();
    assert!(!added.is_empty() && !added.contains(torn));
    let sidecar = place.text("results/soak.machine.toml");
    has(&sidecar, &["resumed = ", "ended = "]);
    place.run("report");
    has(&place.text("results/report.html"), &["Violations: none"]);

    let foreign = "fruit,price\napple,1\n";
    place.write("results/soak.csv", foreign);
    let refused = place.ends(1, "check --tally results");
    refused.notes(&["soak.csv, line 1", "choose another directory"]);
    assert_eq!(place.text("results/soak.csv"), foreign);
}

/// It goes on with the piece after the last: cut off before a row, with the piece of that row. (With others, three
/// seconds may be too few for a round.)
#[test]
fn the_published_tally_is_continued() {
    let place = Place::new();
    let published = std::fs::read_to_string(committed("soak.csv")).unwrap();
    let end = published.rfind("\nhistory,lock-free,").unwrap() + 1;
    let (kept, next) = published.split_at(end);
    let piece: Vec<&str> = next.split(',').take(4).collect();
    place.write("results/soak.csv", kept);
    place.run("check --tally results --seconds 3");
    let continued = place.text("results/soak.csv");
    let added = continued.strip_prefix(kept).unwrap();
    assert!(added.starts_with(&piece.join(",")), "{added}");
}
