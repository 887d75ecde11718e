//! Tests of the `reproduce` command, and of targets.

use crate::place::{Place, TINY, TINY_ROWS, has, rows};

#[test]
fn reproduce_measures_pairs_and_leaves_a_page() {
    let place = Place::new();
    let tiny = "--subjects lock-free,word-lock,fastbloom --threads 1 --rounds 1 --seconds 0.001";
    let reproduced = place.run(&format!("reproduce {tiny}"));
    reproduced.prints(&["over itself", "over fastbloom"]);
    assert_eq!(rows(&place.text("results/pair.csv")), 4 * 3 + 2);
    has(&place.text("results/report.html"), &["of 4 cases"]);
}

#[test]
fn targets_are_compared_with_what_was_measured() {
    let place = Place::new();
    // TINY twice, as two experiments of one file. The second has two targets: one that any filter
    // reaches and one that none does.
    let target = |over, ratio| {
        format!(
            "[[experiment.target]]\nworkloads = ['lookup-hit']\nthreads = [2]\nsubject = 'lock-free'\n\
             over = '{over}'\nat_least = {ratio}\naim = {ratio}\n"
        )
    };
    let tables = TINY.replace("[[workload]]", "[[experiment.workload]]");
    let tables = format!("[[experiment]]\n{tables}\n").replace("rounds = 2", "rounds = 9");
    let targets = target("segment-lock", "0.001") + &target("roofline", "1000");
    let second = tables.replace("tiny", "second") + &targets;
    place.write("speed.toml", tables.replace("tiny", "first") + &second);
    let counts = "Of 2 targets: aim reached 1, FALLS SHORT 1.";
    let swept = place.run("sweep speed.toml");
    swept.prints(&[counts, "| segment-lock |"]);
    for name in ["first", "second"] {
        let csv = place.text(&format!("results/{name}.csv"));
        assert_eq!(rows(&csv), TINY_ROWS / 2 * 9);
    }
    let csv = place.text("results/targets.csv");
    let ends = csv.lines().map(|row| row.rsplit(',').next().unwrap());
    let verdicts: Vec<_> = ends.collect();
    assert_eq!(verdicts, ["verdict", "aim reached", "FALLS SHORT"]);
    assert!(csv.contains("\nsecond,"));
    let sidecar = place.text("results/targets.machine.toml");
    has(&sidecar, &["at_least = ", "ended = "]);
    place.run("report");
    let page = place.text("results/report.html");
    has(&page, &["aim reached 1, FALLS SHORT 1"]);
}
