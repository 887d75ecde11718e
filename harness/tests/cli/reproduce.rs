//! Tests of the `reproduce` command, and of targets.

use std::num::NonZero;

use crate::place::{Place, has, rows};

/// They are measured again only if something of them is missing.
#[test]
fn reproduce_measures_pairs_and_leaves_a_page() {
    let place = Place::new();
    let [csv, sidecar] = ["results/pair.csv", "results/pair.machine.toml"];
    let tiny = "--subjects lock-free,word-lock,fastbloom --threads 1 --rounds 1 --seconds 0.001";
    let reproduce = || place.run(&format!("reproduce {tiny} --resume"));
    let is_complete = || reproduce().stderr.contains("pair: complete");
    reproduce().prints(&["over itself", "over fastbloom"]);
    let (whole, described) = (place.text(csv), place.text(sidecar));
    assert_eq!(rows(&whole), 4 * 3 + 2);
    has(&place.text("results/report.html"), &["of 4 cases"]);
    assert!(is_complete());
    let (but_one, _) = whole.trim_end().rsplit_once('\n').unwrap();
    let unended = described.replace("\nended = ", "\n# ");
    for (file, text) in [(csv, but_one), (sidecar, &*unended), (sidecar, "torn")] {
        place.write(file, text);
        assert!(!is_complete(), "{text}");
    }
}

#[test]
fn targets_are_compared_with_what_was_measured() {
    let place = Place::new();
    // More than there are cores: otherwise turns that other tests disturb do not count.
    let threads = 2 * std::thread::available_parallelism().map_or(4, NonZero::get);
    // A target that any filter reaches, and one that none does.
    let target = |over, ratio| {
        format!(
            "[[pairs.target]]\nworkloads = ['lookup-hit']\nthreads = [{threads}]\nsubject = 'lock-free'\n\
             over = '{over}'\nat_least = {ratio}\naim = {ratio}\n"
        )
    };
    let pairs = &format!(
        "[[pairs]]\nname = 'first'\ntitle = 'Tiny tables'\nfirst = 'lock-free'\n\
                 against = ['segment-lock', 'roofline']\nworkload = ['lookup-hit']\n\
                 threads = [{threads}]\nkeys = 1000\n"
    );
    let targets = target("segment-lock", "0.001") + &target("roofline", "1000");
    let second = pairs.replace("first'\ntitle", "second'\ntitle") + &targets;
    place.write("own.toml", pairs.to_owned() + &second);
    let measured = place.run("targets own.toml --processes 9 --seconds 0.001");
    let counts = "Of 2 targets: aim reached 1, FALLS SHORT 1.";
    measured.prints(&[counts, "| segment-lock |"]);
    for name in ["first", "second"] {
        let csv = place.text(&format!("results/{name}.csv"));
        assert_eq!(rows(&csv), 4 * 9);
        let sidecar = place.text(&format!("results/{name}.machine.toml"));
        has(&sidecar, &["title = \"Tiny tables\"", "processes = 9"]);
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
