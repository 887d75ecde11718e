//! Tests of the `plot` command.

use std::fs;

use crate::place::{Place, column, committed, has};

#[test]
fn a_figure_is_drawn_again_from_its_files() {
    let place = Place::with_tiny("", "");
    place.run("sweep tiny.toml");
    let figure = place.text("results/tiny.svg");
    place.remove("results/tiny.svg");
    place.run("plot results/tiny.csv");
    assert_eq!(place.text("results/tiny.svg"), figure);

    place.remove("results/tiny.machine.toml");
    let plotted = place.run("plot results/tiny.csv --out other.svg");
    plotted.notes(&["there is no", "tiny.machine.toml"]);
    assert!(!place.text("other.svg").contains("A tiny sweep"));
}

/// Returns the header and the first row of published rows, of lock-free.
fn published() -> [String; 2] {
    let csv = fs::read_to_string(committed("full.csv")).unwrap();
    [0, 1].map(|line| csv.lines().nth(line).unwrap().to_owned())
}

/// Returns them with other values in the row, such as `mops=1 seconds=2`.
fn changed([header, row]: &[String; 2], changes: &str) -> String {
    let names: Vec<_> = header.split(',').collect();
    let mut values: Vec<_> = row.split(',').collect();
    for change in changes.split(' ') {
        let (name, value) = change.split_once('=').unwrap();
        values[names.iter().position(|of| *of == name).unwrap()] = value;
    }
    format!("{header}\n{}\n", values.join(","))
}

#[test]
fn files_that_cannot_be_drawn_are_located() {
    let (place, published) = (Place::new(), published());
    let [header, row] = &published;
    let columns = header.split(',').count();
    let values = columns + 1;
    let too_many: &str = &format!("line 2: {values} values where the header has {columns}");
    let refuses = |text: &str, why: &str| {
        place.write("rows.csv", text);
        let refused = place.ends(1, "plot rows.csv");
        refused.notes(&["rows.csv", why]);
        assert_eq!(place.files("."), ["rows.csv"]);
    };
    let rows = format!("{header}\n{row}\n");
    let operations = column(&rows, "operations")[0];
    let idle: &str = &format!("`mops` is 0, but `operations` is {operations}");
    refuses("", "column `experiment` is missing");
    refuses(&format!("{header}\n"), "no rows");
    let twice = "line 3: round 1 of lock-free under lookup-hit";
    refuses(&format!("{rows}{row}\n"), twice);
    let other = row.replace("full", "other");
    refuses(&format!("{rows}{other}\n"), "line 3: column `experiment`");
    let foreign = rows.replace("mops", "speed");
    refuses(&foreign, "column `mops` is missing");
    for (changes, why) in [
        ("mops=fast", "line 2, column `mops`"),
        ("mops=NaN", "line 2: column `mops` is NaN"),
        ("mops=1,1", too_many),
        ("mops=0", idle),
        ("seconds=-0.01", "`seconds` is -0.01"),
        ("hit=101", "`hit` is 101"),
        ("skew=-1", "`skew` is -1"),
        ("threads=0", "`threads`"),
        ("subject=", "`subject` is empty"),
        ("p99_ns=9 p999_ns=8 max_ns=9", "are [0, 9, 8, 9]"),
        ("remove_p50_ns=2 remove_p99_ns=1", "are [2, 1, 0]"),
    ] {
        refuses(&changed(&published, changes), why);
    }
    for (name, from, to, why) in [
        ("layouts", "\n8,7,", "\n8,many,", "line 2, column `bits`"),
        ("cuckoo-hashing", "100/0/0", "99/0/0", "column `mix`"),
        ("growth", ",10000,1", ",10000001,1", "column `keys`"),
        ("theory", ",true", ",false", "column `holds`"),
    ] {
        let right = fs::read_to_string(committed(&format!("{name}.csv"))).unwrap();
        assert!(right.contains(from), "{name}");
        refuses(&right.replacen(from, to, 1), why);
        let header = right.lines().next().unwrap();
        refuses(header, "no rows");
    }
    place.write("rows.csv", &rows);
    place.run("plot rows.csv");
    assert!(place.path("rows.svg").exists(), "rows of one's own");
    place.write("rows.machine.toml", "[run]\n");
    place.ends(1, "plot rows.csv").notes(&["rows.machine.toml"]);
}

/// Draws the committed rows of this name with these options. Returns the SVG file.
fn drawn(name: &str, options: &str) -> String {
    let place = Place::new();
    let csv = committed(name);
    place.run(&format!("plot {csv} --out drawn.svg{options}"));
    place.text("drawn.svg")
}

#[test]
fn a_paper_gets_a_figure_of_its_width_without_words_around_it() {
    let around = ["font-weight=\"bold\"", ">lock-free: "];
    let full = drawn("full.csv", "");
    has(&full, &["width=\"7in\"", "viewBox=\"0 0 504 "]);
    has(&full, &around);
    let bare = drawn("full.csv", " --bare --width column");
    has(&bare, &["width=\"3.5in\"", "viewBox=\"0 0 252 "]);
    assert!(!around.iter().any(|text| bare.contains(text)));
    // Readers who cannot see it hear what it shows.
    has(&bare, &["<title id=", "lock-free at 8: median "]);
    has(&drawn("full.csv", " --width 5.2"), &["width=\"5.2in\""]);
}

#[test]
fn what_is_drawn_can_be_chosen() {
    let options = " --subjects lock-free,roofline --panels insert,2";
    let svg = drawn("full.csv", options);
    let chosen = [">lock-free<", ">roofline<", "2. Insert, from empty"];
    has(&svg, &chosen);
    for text in [">segment-lock<", ">global-lock<", "3. ", "Remove"] {
        assert!(!svg.contains(text), "{text}");
    }
    let has_zero =
        |options| drawn("load-factor.csv", &format!(" --panels insert{options}")).contains(">0<");
    // The scale is logarithmic where a bound is far above the rest.
    assert!(!has_zero("") && has_zero(" --subjects lock-free,segment-lock"));
}

#[test]
fn two_results_are_drawn_together() {
    let (place, published) = (Place::new(), published());
    for (name, mops) in [("a.csv", "mops=0.1"), ("b.csv", "mops=0.2")] {
        place.write(name, changed(&published, mops));
    }
    place.run("plot a.csv b.csv --subjects lock-free --out both.svg");
    let svg = place.text("both.svg");
    has(&svg, &[">lock-free (a)<", ">lock-free (b)<", "median 0.2"]);
}
