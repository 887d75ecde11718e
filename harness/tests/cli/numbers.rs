//! `numbers`: the tables of our own pages are those of the committed results, and a page that says
//! something else is found.

use std::fs;
use std::path::Path;

use crate::place::{Place, committed};

#[test]
fn our_pages_say_what_the_results_say() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let pages = ["README.md", "paper-figures/README.md"].map(|page| top.join(page));
    let texts = pages.clone().map(|page| fs::read_to_string(page).unwrap());
    let has_numbers = texts.concat().contains("<!-- numbers: ");
    assert!(has_numbers, "no page has numbers");
    let place = Place::new();
    let mut command = place.command("numbers --check");
    assert!(command.args(&pages).status().unwrap().success());
}

#[test]
fn a_number_that_was_changed_is_found_and_mended() {
    let place = Place::new();
    place.write("quick.csv", fs::read(committed("quick.csv")).unwrap());
    let text = "<!-- numbers: quick.csv table -->\n<!-- end of numbers -->\n";
    place.write("page.md", text);
    let check = "numbers --check page.md";
    place.ends(1, check).notes(&["differs from the results"]);
    assert_eq!(place.text("page.md"), text, "it only checks");
    place.run("numbers page.md");
    place.run(check);
    let right = place.text("page.md");
    let wrong = right.replacen("| remove", "| removes", 1);
    assert_ne!(wrong, right);
    place.write("page.md", wrong);
    place.ends(1, check).notes(&["results: | remove"]);
}
