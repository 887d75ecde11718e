//! Numbers that a Markdown page takes from results. What stands between two marks is written from
//! the CSV file that the first one names:
//!
//! ```text
//! <!-- numbers: paper-figures/pair.csv table -->
//! … the table …
//! <!-- end of numbers -->
//! ```
//!
//! Paths are relative to the page; intervals and marks are those of all tables, and judged as on the results page of
//! the file's directory. After the file stands one of these:
//!
//! - `said`: the sentences that the results page has of results of any kind, and what it compares.
//! - `predicted by FILE.csv`: how far the predictions in that file are from what was measured.
//! - `table`: the table that the results page has.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use super::predictions;
use crate::results::{Judge, read};
use crate::show::{Outputs, Sheet, files};
use crate::studies::{read_any, report};

const BEGIN: &str = "<!-- numbers: ";
const END: &str = "<!-- end of numbers -->";

/// Writes the numbers of a page anew, or only checks that it has them.
pub fn renew(page: &Path, only_checks: bool) -> Result<()> {
    let old =
        fs::read_to_string(page).with_context(|| format!("cannot read {}", page.display()))?;
    let directory = page.parent().unwrap_or(Path::new(""));
    let new = renewed(&old, directory).with_context(|| page.display().to_string())?;
    if old == new {
        return Ok(());
    }
    if !only_checks {
        return files::write(page, &new);
    }
    if let Some((old, new)) = (old.lines().zip(new.lines())).find(|(old, new)| old != new) {
        bail!(
            "{} differs from the results; `harness numbers {0}` updates it\n  page:    {old}\n  results: {new}",
            page.display()
        );
    }
    bail!(
        "{} has other line ends than it should; `harness numbers {0}` updates it",
        page.display()
    )
}

/// The judges of directories.
type Judges = HashMap<PathBuf, Judge>;

fn renewed(page: &str, directory: &Path) -> Result<String> {
    let (mut new, mut judges) = (String::new(), Judges::new());
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        new += line;
        new.push('\n');
        let Some(mark) = line.strip_prefix(BEGIN) else {
            continue;
        };
        let mark = mark.strip_suffix(" -->").unwrap_or(mark);
        let is_ended = lines.any(|line| line == END);
        ensure!(is_ended, "\"{END}\" is missing after the mark \"{mark}\"");
        let numbers = numbers(mark, &mut judges, directory);
        let numbers = numbers.with_context(|| format!("the mark \"{mark}\""))?;
        new += &format!("\n{numbers}\n\n{END}\n");
    }
    Ok(new)
}

/// What a mark asks for: a table with its notes, or a list.
fn numbers(mark: &str, judges: &mut Judges, directory: &Path) -> Result<String> {
    let (csv, what) = mark.split_once(' ').context("it names no CSV file")?;
    let lacks = || format!("{csv} has no such results");
    let csv = directory.join(csv);
    if what == "said" || what == "table" {
        let (rows, sidecar) = (read_any(&csv)?, Outputs::beside(&csv).described()?);
        let place = csv.parent().filter(|of| !of.as_os_str().is_empty());
        let place = place.unwrap_or(Path::new("."));
        if !judges.contains_key(place) {
            judges.insert(place.to_owned(), report::judge(place)?);
        }
        let judge = &judges[place];
        if what == "table" {
            let sheet = rows.sheet(sidecar.as_ref(), judge);
            return Ok(markdown(&sheet.with_context(lacks)?));
        }
        let findings = rows.findings(sidecar.as_ref(), judge);
        let sentences = findings.sentences.iter().map(|line| format!("- {line}"));
        let compared = findings.comparisons.iter();
        let compared = compared.map(|of| format!("- {}: {}", of.case, of.text));
        let lines: Vec<_> = sentences.chain(compared).collect();
        ensure!(!lines.is_empty(), lacks());
        return Ok(lines.join("\n"));
    }
    let predictions = what.strip_prefix("predicted by ");
    let predictions =
        predictions.context("it is none of `said`, `table` and `predicted by FILE.csv`")?;
    let predicted = read(&directory.join(predictions))?;
    let sheet = predictions::predictions(&predicted, &read(&csv)?).with_context(lacks)?;
    Ok(sheet.notes.join(" "))
}

/// A table without padding, so that a change of one number changes one line, and its notes.
fn markdown(sheet: &Sheet) -> String {
    let line = |cells: &Vec<String>| format!("| {} |", cells.join(" | "));
    let mut lines = vec![
        line(&sheet.header),
        format!("|---|{}", "---:|".repeat(sheet.header.len() - 1)),
    ];
    lines.extend(sheet.lines.iter().map(line));
    if !sheet.notes.is_empty() {
        lines.extend([String::new(), sheet.notes.join(" ")]);
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_marks_are_named() {
        let results = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("paper-figures");
        let renewed = |page: &str| {
            let error = renewed(page, &results).unwrap_err();
            format!("{error:#}")
        };
        for (mark, error) in [
            ("nowhere.csv table", "nowhere.csv"),
            ("quick.csv", "it names no CSV file"),
            (
                "quick.csv tables",
                "it is none of `said`, `table` and `predicted by FILE.csv`",
            ),
            ("theory.csv said", "no such results"),
            ("quick.csv predicted by quick.csv", "no such results"),
        ] {
            let message = renewed(&format!("{BEGIN}{mark} -->\n{END}\n"));
            let is_named = message.contains(error) && message.contains(mark);
            assert!(is_named, "{message}");
        }
        let open = renewed(&format!("{BEGIN}quick.csv table -->\n"));
        assert!(open.contains("is missing"), "{open}");
    }
}
