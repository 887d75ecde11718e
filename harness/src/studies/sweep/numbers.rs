//! Numbers that a Markdown page takes from results. What stands between two marks is written from
//! the CSV file that the first one names:
//!
//! ```text
//! <!-- numbers: paper-figures/quick.csv over word-lock at 1, 2 threads -->
//! … the table …
//! <!-- end of numbers -->
//! ```
//!
//! Paths are relative to the page; intervals and marks are those of all tables. After the file stands
//! one of these:
//!
//! - `over RIVAL, RIVAL at 1, 2 threads`: a column of ratios for each rival at each of these numbers of
//!   threads. With `of SUBJECT` before it, they are those of another subject than ours.
//! - `said`: the sentences that the results page has of results of any kind.
//! - `predicted by FILE.csv`: how far the predictions in that file are from what was measured.
//! - `table`: the table that the results page has.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

use super::findings::{OURS, named};
use super::variants;
use crate::results::file;
use crate::results::statistics::Results;
use crate::results::verdict::{Judge, Marks};
use crate::show::files;
use crate::show::outputs::Outputs;
use crate::show::sheet::Sheet;
use crate::studies::kinds::read_any;
use crate::wording::counted;

const BEGIN: &str = "<!-- numbers: ";
const END: &str = "<!-- end of numbers -->";

pub fn renew(page: &Path) -> Result<()> {
    let (old, new) = old_and_new(page)?;
    if old != new {
        files::write(page, &new)?;
    }
    Ok(())
}

pub fn check(page: &Path) -> Result<()> {
    let (old, new) = old_and_new(page)?;
    let differs = (old.lines().zip(new.lines())).find(|(old, new)| old != new);
    if let Some((old, new)) = differs {
        bail!(
            "{} does not say what the results say; `harness numbers {0}` mends it\n  page:    {old}\n  results: {new}",
            page.display()
        );
    }
    ensure!(old == new, "{} lacks numbers", page.display());
    Ok(())
}

fn old_and_new(page: &Path) -> Result<(String, String)> {
    let old =
        fs::read_to_string(page).with_context(|| format!("cannot read {}", page.display()))?;
    let directory = page.parent().unwrap_or(Path::new(""));
    let new = Judge::of_page(|judge| renewed(&old, judge, directory))
        .with_context(|| page.display().to_string())?;
    Ok((old, new))
}

/// The page with its numbers written anew from the results in a directory.
fn renewed(page: &str, judge: &Judge, directory: &Path) -> Result<String> {
    let mut new = String::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        new += line;
        new.push('\n');
        let Some(mark) = line.strip_prefix(BEGIN) else {
            continue;
        };
        let mark = mark.strip_suffix(" -->").unwrap_or(mark);
        let numbers = numbers(mark, judge, directory);
        let numbers = numbers.with_context(|| format!("the mark \"{mark}\""))?;
        new += &format!("\n{numbers}\n\n{END}\n");
        ensure!(
            lines.any(|line| line == END),
            "\"{END}\" is missing after the mark \"{mark}\""
        );
    }
    Ok(new)
}

/// What a mark asks for: a table with its notes, or a list.
fn numbers(mark: &str, judge: &Judge, directory: &Path) -> Result<String> {
    let (csv, what) = mark.split_once(' ').context("it names no CSV file")?;
    let lacks = || format!("{csv} has no such results");
    let csv = directory.join(csv);
    if what == "said" || what == "table" {
        let (rows, sidecar) = (read_any(&csv)?, Outputs::beside(&csv).described()?);
        if what == "table" {
            let sheet = rows.sheet(sidecar.as_ref(), judge);
            return Ok(markdown(&sheet.with_context(lacks)?));
        }
        let findings = rows.findings(sidecar.as_ref(), judge);
        ensure!(!findings.sentences.is_empty(), lacks());
        let lines = findings.sentences.iter().map(|line| format!("- {line}"));
        return Ok(lines.collect::<Vec<_>>().join("\n"));
    }
    let rows = file::read(&csv)?;
    if let Some(predictions) = what.strip_prefix("predicted by ") {
        let predicted = file::read(&directory.join(predictions))?;
        let sheet = variants::predictions(&predicted, &rows).with_context(lacks)?;
        return Ok(sheet.notes.join(" "));
    }
    let (what, threads) = (what.strip_suffix(" threads"))
        .and_then(|what| what.rsplit_once(" at "))
        .context("it names no numbers of threads")?;
    let (of, rivals) = what.split_once("over ").context("it names no rival")?;
    let subject = of.strip_prefix("of ").map_or(OURS, str::trim_end);
    let sheet = ratios(&Results::of(&rows), (subject, rivals), threads, judge)?;
    ensure!(!sheet.lines.is_empty(), lacks());
    Ok(markdown(&sheet))
}

/// A column for each rival at each number of threads.
fn ratios(
    results: &Results,
    (subject, rivals): (&str, &str),
    threads: &str,
    judge: &Judge,
) -> Result<Sheet> {
    let number = |text: &str| text.parse().with_context(|| format!("\"{text}\""));
    let threads: Vec<usize> = threads.split(", ").map(number).collect::<Result<_>>()?;
    let columns = |rival| threads.iter().map(move |&threads| (rival, threads));
    let columns: Vec<_> = rivals.split(", ").flat_map(columns).collect();
    let header = columns
        .iter()
        .map(|&(rival, threads)| format!("over {rival}, {}", counted(threads, "thread")));
    let (mut lines, mut marks) = (Vec::new(), Marks::default());
    for case in results.cases() {
        let found: Vec<_> = (columns.iter())
            .map(|&(rival, threads)| results.comparison(&case, threads as f64, subject, rival))
            .collect();
        if found.iter().any(Option::is_some) {
            let cells = found.into_iter().map(|of| marks.ratio(judge, of));
            lines.push([named(&case)].into_iter().chain(cells).collect());
        }
    }
    Ok(Sheet {
        lead: String::new(),
        header: [subject.to_owned()].into_iter().chain(header).collect(),
        lines,
        notes: marks.explained().chain(results.left_out()).collect(),
    })
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
            let error = Judge::of_page(|judge| renewed(page, judge, &results)).unwrap_err();
            format!("{error:#}")
        };
        for (mark, error) in [
            ("nowhere.csv over word-lock at 1 threads", "nowhere.csv"),
            ("quick.csv", "it names no CSV file"),
            ("quick.csv word-lock at 1 threads", "it names no rival"),
            ("quick.csv over word-lock", "it names no numbers of threads"),
            ("quick.csv over word-lock at many threads", "\"many\""),
            ("quick.csv over word-lock at 64 threads", "no such results"),
            ("quick.csv said", "no such results"),
            ("quick.csv predicted by quick.csv", "no such results"),
        ] {
            let message = renewed(&format!("{BEGIN}{mark} -->\n{END}\n"));
            assert!(
                message.contains(error) && message.contains(mark),
                "{message}"
            );
        }
        let open = renewed(&format!(
            "{BEGIN}quick.csv over word-lock at 1 threads -->\n"
        ));
        assert!(open.contains("is missing"), "{open}");
    }
}
