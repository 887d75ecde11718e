//! `numbers`: the tables of our own pages are those of the committed results, and a page that says
//! something else is found.

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use predicates::str::contains;

fn harness() -> Command {
    Command::new(env!("CARGO_BIN_EXE_harness"))
}

fn top() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

#[test]
fn our_pages_say_what_the_results_say() {
    let pages = ["README.md", "paper-figures/README.md"].map(|page| top().join(page));
    let marks = pages.iter().map(|page| {
        let text = fs::read_to_string(page).unwrap();
        text.matches("<!-- numbers: ").count()
    });
    assert!(marks.sum::<usize>() > 0, "no page has numbers");
    harness()
        .args(["numbers", "--check"])
        .args(&pages)
        .assert()
        .success();
}

#[test]
fn a_number_that_was_changed_is_found_and_mended() {
    let place = tempfile::tempdir().unwrap();
    let page = place.path().join("page.md");
    fs::copy(
        top().join("paper-figures/quick.csv"),
        place.path().join("quick.csv"),
    )
    .unwrap();
    let text =
        "<!-- numbers: quick.csv over word-lock at 1, 2 threads -->\n<!-- end of numbers -->\n";
    fs::write(&page, text).unwrap();
    let check = || harness().args(["numbers", "--check"]).arg(&page).assert();
    check().failure().code(1).stderr(contains("does not say"));
    assert_eq!(fs::read_to_string(&page).unwrap(), text, "it only checks");
    harness().arg("numbers").arg(&page).assert().success();
    check().success();
    let right = fs::read_to_string(&page).unwrap();
    let wrong = right.replacen("| remove", "| removes", 1);
    assert_ne!(wrong, right);
    fs::write(&page, wrong).unwrap();
    check().failure().stderr(contains("results: | remove"));
}
