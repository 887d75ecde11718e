//! Tests of the `reproduce` command.

use crate::place::{Place, has, rows};

#[test]
fn reproduce_measures_pairs_and_leaves_page() {
    let place = Place::new();
    let tiny = "--subjects lock-free,word-lock,fastbloom --threads 1 --rounds 1 --seconds 0.001";
    let measured = place.run(&format!("reproduce {tiny}"));
    measured.prints(&["over itself", "over fastbloom"]);
    assert_eq!(rows(&place.text("results/pair.csv")), 4 * 3 + 2);
    has(
        &place.text("results/report.html"),
        &["over fastbloom", "pair.csv"],
    );
}
