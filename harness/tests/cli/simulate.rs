//! Tests of `simulate` and `calibrate`.

use predicates::str::contains;

use crate::place::{Place, TINY};

#[cfg(not(feature = "simulation"))]
#[test]
fn simulate_names_the_build_that_it_needs() {
    let place = Place::new();
    place.write("tiny.toml", TINY);
    place
        .run(&["simulate", "tiny.toml"])
        .code(1)
        .stderr(contains("--features simulation -- simulate"));
}

#[cfg(any(feature = "simulation", feature = "steps"))]
#[test]
fn a_build_that_observes_accesses_does_not_calibrate() {
    let place = Place::new();
    place
        .run(&["calibrate"])
        .code(1)
        .stderr(contains("cargo run --release -p harness -- calibrate"));
    assert!(!place.path("calibrated.toml").exists());
}

#[cfg(feature = "simulation")]
mod simulated {
    use super::*;

    /// An optimised one refuses; a test can only see one that is not.
    #[test]
    fn a_build_that_simulates_says_that_it_does_not_measure() {
        let place = Place::new();
        place
            .write("tiny.toml", TINY)
            .run(&["sweep", "tiny.toml"])
            .success()
            .stderr(contains("measure with `cargo run --release -p harness --`"));
        let described = place.text("results/tiny.machine.toml");
        assert!(described.contains("\nsimulation = true\n"), "{described}");
    }

    fn simulate(place: &Place, out: &str, more: &[&str]) -> assert_cmd::assert::Assert {
        let options = [
            "simulate",
            "tiny.toml",
            "--cores",
            "1,4",
            "--operations",
            "2000",
        ];
        let options = [&options[..], &["--rounds", "2", "--out", out], more].concat();
        place.write("tiny.toml", TINY).run(&options)
    }

    #[test]
    fn the_same_seed_gives_the_same_bytes_and_every_result_says_that_it_is_simulated() {
        let place = Place::new();
        let mark = "simulated on ice-lake-8375c";
        simulate(&place, "one", &[])
            .success()
            .stdout(contains(mark));
        simulate(&place, "two", &[]).success();
        simulate(&place, "other", &["--seed", "2"]).success();
        let csv = |out: &str| place.text(&format!("{out}/simulated-tiny.csv"));
        assert_eq!(csv("one"), csv("two"));
        assert_ne!(csv("one"), csv("other"));
        // lookup-hit has three subjects, insert two.
        assert_eq!(csv("one").matches(",ice-lake-8375c,").count(), 2 * 2 * 5);
        let svg = place.text("one/simulated-tiny.svg");
        assert!(
            svg.contains(mark) && svg.contains("simulated cores"),
            "{svg}"
        );

        // Drawn again without its description, it still says so.
        std::fs::remove_file(place.path("one/simulated-tiny.machine.toml")).unwrap();
        place.run(&["plot", "one/simulated-tiny.csv"]).success();
        let svg = place.text("one/simulated-tiny.svg");
        assert!(svg.contains(mark) && svg.contains("not measured"), "{svg}");
        place.run(&["report", "two"]).success();
        let page = place.text("two/report.html");
        assert!(
            page.contains(mark) && page.contains("Simulated: ice-lake-8375c"),
            "{page}"
        );
    }

    #[test]
    fn an_explanation_names_what_cores_contend_for() {
        simulate(&Place::new(), "results", &["--explain"])
            .success()
            .stdout(contains("stripe "))
            .stdout(contains("hand-overs of lines"));
    }

    #[test]
    fn predictions_are_compared_with_what_was_measured() {
        let place = Place::new();
        place
            .write("tiny.toml", TINY)
            .run(&["sweep", "tiny.toml"])
            .success();
        // Without the column of hand-overs, by which a busy machine leaves rows out.
        let csv = place.text("results/tiny.csv");
        let lines = csv.lines().map(|line| line.rsplit_once(',').unwrap().0);
        let lines: String = lines.map(|line| format!("{line}\n")).collect();
        place.write("results/tiny.csv", &lines);
        simulate(&place, "results", &["--against", "results"])
            .success()
            .stdout(contains("5 rows; the error is"));
        simulate(&place, "results", &["--against", "nowhere"])
            .code(1)
            .stderr(contains("nowhere/tiny.csv"));
    }

    /// Nobody sleeps here, but all take the times of one thread.
    #[test]
    fn assumed_numbers_are_varied() {
        let place = Place::new();
        let machine = include_str!("../../simulator/machines/ice-lake-8375c.toml");
        let few = "assumed = [\"waiting\"]\nrest = [";
        let machine = machine.replacen("assumed = [", few, 1);
        let (start, rest) = machine.split_once("rest = [").unwrap();
        let (_, end) = rest.split_once(']').unwrap();
        place.write("few.toml", format!("{start}{end}"));
        let options = ["--machine", "few.toml", "--vary-assumed"];
        let assert = simulate(&place, "results", &options);
        let out = String::from_utf8(assert.success().get_output().stdout.clone()).unwrap();
        let cells = |workload: &str, number: &str| -> Vec<String> {
            let cells = |line: &str| line.split('|').map(|cell| cell.trim().to_owned()).collect();
            let mut lines = out.lines().map(cells);
            let of = |cells: &Vec<String>| {
                cells.len() > 4 && cells[1].starts_with(workload) && cells[3] == number
            };
            lines
                .find(of)
                .unwrap_or_else(|| panic!("no {workload} {number} in\n{out}"))[4..]
                .to_vec()
        };
        for unused in ["waiting.call", "waiting.wake", "waiting.awake"] {
            assert_eq!(cells("lookup-hit", unused)[0], "1.00, 1.00", "{out}");
        }
        assert_ne!(cells("lookup-hit", "alone")[0], "1.00, 1.00", "{out}");
        // The throughputs themselves are the same to the last digit.
        let csv = place.text("results/simulated-tiny.csv");
        let seconds = |machine: &str| -> Vec<&str> {
            let rows = csv
                .lines()
                .filter(|row| row.contains(&format!(",{machine},")));
            rows.map(|row| row.split(',').nth(14).unwrap()).collect()
        };
        let as_it_is = seconds("ice-lake-8375c");
        assert!(!as_it_is.is_empty());
        assert_eq!(seconds("ice-lake-8375c with waiting.call * 2"), as_it_is);
        assert_ne!(seconds("ice-lake-8375c with alone * 2"), as_it_is);
        assert!(!place.path("results/simulated-tiny.svg").exists());
        place.run(&["report", "results"]).success();
        assert!(place.text("results/report.html").contains("waiting.awake"));
    }

    #[test]
    fn impossible_machines_and_cores_are_refused() {
        let place = Place::new();
        simulate(&place, "results", &["--machine", "pdp-11"])
            .code(1)
            .stderr(contains("machines are ice-lake-8375c"));
        place.write("bad.toml", "name = 'bad'");
        simulate(&place, "results", &["--machine", "bad.toml"])
            .code(1)
            .stderr(contains("in the machine file bad.toml"));
        // Only the process that simulates a subject finds out what that one lacks.
        let machine = include_str!("../../simulator/machines/graviton-3.toml");
        let lacks = format!("{machine}\n[alone.lock-free]\nlookup = 1.0\n");
        place.write("lacks.toml", &lacks);
        simulate(&place, "results", &["--machine", "lacks.toml"])
            .code(1)
            .stderr(contains(
                "\nerror: the machine graviton-3 lacks the time of ",
            ));
        place
            .run(&["simulate", "tiny.toml", "--cores", "99"])
            .code(1)
            .stderr(contains("option --cores"));
        assert!(!place.path("results").exists());
    }

    #[test]
    fn unobservable_subjects_are_skipped() {
        let place = Place::new();
        let text = TINY.replace("\"roofline\"", "\"null\"");
        place
            .write("null.toml", &text)
            .run(&["simulate", "null.toml", "--cores", "1"])
            .success()
            .stderr(contains("null"));
        let none = TINY.replace("\"lock-free\", \"segment-lock\", \"roofline\"", "\"null\"");
        place
            .write("none.toml", &none)
            .run(&["simulate", "none.toml"])
            .code(1)
            .stderr(contains("none of them can be simulated"));
    }
}
