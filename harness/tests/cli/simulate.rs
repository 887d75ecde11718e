//! Tests of `simulate`.

use crate::place::{Place, TINY, has};

const SIMULATE: &str = "simulate tiny.toml --cores 1,4 --operations 2000 --rounds 2 --out";

fn simulate(place: &Place, more: &str) {
    place.run(&format!("{SIMULATE} {more}"));
}

#[test]
fn same_seed_gives_same_marked_bytes() {
    let place = Place::with_tiny("", "");
    let mark = "ice-lake-8375c";
    simulate(&place, "one");
    simulate(&place, "two");
    simulate(&place, "other --seed 2");
    let csv = |out: &str| place.text(&format!("{out}/simulated-tiny.csv"));
    assert_eq!(csv("one"), csv("two"));
    assert_ne!(csv("one"), csv("other"));
    // lookup-hit has three subjects, insert two.
    assert_eq!(csv("one").matches(",ice-lake-8375c\n").count(), 2 * 2 * 5);
    let svg = place.text("one/simulated-tiny.svg");
    has(&svg, &[mark, "simulated cores", "not measured"]);

    // Drawn again without its description, it still says so.
    std::fs::remove_file(place.path("one/simulated-tiny.machine.toml")).unwrap();
    place.run("plot one/simulated-tiny.csv");
    let svg = place.text("one/simulated-tiny.svg");
    has(&svg, &[mark, "not measured"]);
    place.run("report two");
    let page = place.text("two/report.html");
    has(&page, &[mark, "Simulated: ice-lake-8375c"]);
}

#[test]
fn unsimulatable_input_is_refused() {
    let place = Place::with_tiny("", "");
    let subjects = "\"lock-free\", \"segment-lock\", \"roofline\"";
    place.write("none.toml", TINY.replace(subjects, "\"null\""));
    for (line, why) in [
        ("tiny.toml --machine pdp-11", "machines are ice-lake-8375c"),
        ("tiny.toml --cores 99", "option --cores"),
        ("none.toml", "none of them can be simulated"),
    ] {
        place.ends(1, &format!("simulate {line}")).notes(&[why]);
    }
    assert!(place.files("results").is_empty());
    place.write("null.toml", TINY.replace("\"roofline\"", "\"null\""));
    place.run("simulate null.toml --cores 1").notes(&["null"]);
}
