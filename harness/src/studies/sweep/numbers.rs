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
//! - `of SUBJECT, SUBJECT from 32 to 64 threads`: the throughput of each at one number of threads over
//!   that at another.
//! - `predicted by FILE.csv`: how the predictions in that file compare with what was measured.
//! - `shown`: the table that commands print and the page has, of results of any kind.
//! - `said`: the sentences that the page has of results of any kind.
//! - `bits a key`: the memory of `growth`, by the number of keys.
//! - `varied`: what the assumed numbers of simulated machines do.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

use super::headlines::{OURS, named};
use super::{assumed, prediction};
use crate::results::file;
use crate::results::record::Row;
use crate::results::statistics::Results;
use crate::results::verdict::{Judge, Marks};
use crate::show::files;
use crate::show::outputs::Outputs;
use crate::show::sheet::Sheet;
use crate::studies::growth;
use crate::studies::kinds::read_any;
use crate::wording::counted;

const BEGIN: &str = "<!-- numbers: ";
const END: &str = "<!-- end of numbers -->";

/// Writes the numbers of a page anew.
///
/// # Errors
///
/// A page that cannot be read or written, a mark that means nothing or is never closed, or results
/// that do not hold what it asks for. The page is then as it was.
pub fn renew(page: &Path) -> Result<()> {
    let (old, new) = old_and_new(page)?;
    if old != new {
        files::write(page, &new)?;
    }
    Ok(())
}

/// Checks that the numbers of a page are those of the results.
///
/// # Errors
///
/// As for [`renew`], and the first line that differs.
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
    let any = |csv: &str| {
        let csv = directory.join(csv);
        Ok::<_, anyhow::Error>((read_any(&csv)?, Outputs::beside(&csv).described()?))
    };
    let from = Files {
        rows: &|csv| file::read(&directory.join(csv)),
        sheet: &|csv, judge| {
            let (rows, sidecar) = any(csv)?;
            Ok(rows.sheet(sidecar.as_ref(), judge))
        },
        bits: &|csv| growth::bits_by_size(&directory.join(csv)),
        said: &|csv, judge| {
            let (rows, sidecar) = any(csv)?;
            Ok(rows.story(sidecar.as_ref(), judge).sentences)
        },
    };
    let new = Judge::of_page(|judge| renewed(&old, judge, from))
        .with_context(|| page.display().to_string())?;
    Ok((old, new))
}

/// How the results that a mark names are read.
#[derive(Clone, Copy)]
struct Files<'a> {
    /// The rows of a sweep.
    rows: &'a dyn Fn(&str) -> Result<Vec<Row>>,
    /// The table of any results.
    sheet: &'a dyn Fn(&str, &Judge) -> Result<Option<Sheet>>,
    /// The bits a key of results of `growth`.
    bits: &'a dyn Fn(&str) -> Result<Option<Sheet>>,
    /// What any results say, in sentences.
    said: &'a dyn Fn(&str, &Judge) -> Result<Vec<String>>,
}

/// The page with its numbers written anew.
fn renewed(page: &str, judge: &Judge, files: Files) -> Result<String> {
    let mut new = String::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        new += line;
        new.push('\n');
        let Some(mark) = line.strip_prefix(BEGIN) else {
            continue;
        };
        let mark = mark.strip_suffix(" -->").unwrap_or(mark);
        let table = table(mark, judge, files).with_context(|| format!("the mark \"{mark}\""))?;
        new += &format!("\n{}\n\n{END}\n", table.join("\n"));
        ensure!(
            lines.any(|line| line == END),
            "\"{END}\" is missing after the mark \"{mark}\""
        );
    }
    Ok(new)
}

/// The lines of a Markdown table, and what its marks mean; or those of a list.
fn table(mark: &str, judge: &Judge, files: Files) -> Result<Vec<String>> {
    let (csv, what) = mark.split_once(' ').context("it names no CSV file")?;
    if what == "shown" {
        let lines = of_sheet((files.sheet)(csv, judge)?);
        ensure!(!lines.is_empty(), "{csv} has no table");
        return Ok(lines);
    }
    if what == "bits a key" {
        return Ok(of_sheet((files.bits)(csv)?));
    }
    if what == "said" {
        let lines: Vec<_> = (files.said)(csv, judge)?;
        ensure!(!lines.is_empty(), "{csv} says nothing in sentences");
        return Ok(lines.iter().map(|line| format!("- {line}")).collect());
    }
    let read = files.rows;
    let rows = read(csv)?;
    let results = Results::of(&rows);
    let mut marks = Marks::default();
    let mut of_ratios = false;
    let mut lines = if let Some(predictions) = what.strip_prefix("predicted by ") {
        of_sheet(prediction::by_subject(&read(predictions)?, &rows))
    } else if what == "varied" {
        of_sheet(assumed::sheet_of_what_matters(&rows))
    } else {
        of_ratios = true;
        let (what, threads) = (what.strip_suffix(" threads"))
            .and_then(|what| what.rsplit_once(" at ").or(what.rsplit_once(" from ")))
            .context("it names no numbers of threads")?;
        let of = what.strip_prefix("of ");
        match (of, what.rsplit_once("over "), threads.split_once(" to ")) {
            (Some(subjects), None, Some(ends)) => {
                from_to(&results, subjects, [ends.0, ends.1], judge, &mut marks)?
            }
            (of, Some((_, rivals)), None) => {
                let subject = of
                    .and_then(|of| of.split_once(' '))
                    .map_or(OURS, |(of, _)| of);
                ratios(&results, (subject, rivals), threads, judge, &mut marks)?
            }
            _ => bail!("it names no rival"),
        }
    };
    // The header, and the line below it.
    ensure!(lines.len() > 2, "{csv} has no such results");
    let left_out = results.left_out().filter(|_| of_ratios);
    let explained: Vec<_> = marks.explained().chain(left_out).collect();
    if !explained.is_empty() {
        lines.extend([String::new(), explained.join(" ")]);
    }
    Ok(lines)
}

/// The lines of a table that commands print as well, and its notes.
fn of_sheet(sheet: Option<Sheet>) -> Vec<String> {
    let Some(sheet) = sheet else {
        return Vec::new();
    };
    let mut cells = sheet.header.into_iter();
    let first = cells.next().unwrap_or_default();
    let mut lines = head(&first, cells);
    lines.extend(sheet.lines.into_iter().map(|cells| line(cells.into_iter())));
    lines.extend([String::new(), sheet.notes.join(" ")]);
    lines
}

fn number(text: &str) -> Result<u32> {
    text.parse().with_context(|| format!("\"{text}\""))
}

/// A column for each rival at each number of threads.
fn ratios(
    results: &Results,
    (subject, rivals): (&str, &str),
    threads: &str,
    judge: &Judge,
    marks: &mut Marks,
) -> Result<Vec<String>> {
    let threads = threads
        .split(", ")
        .map(number)
        .collect::<Result<Vec<_>>>()?;
    let rivals = rivals.split(", ");
    let columns: Vec<_> = rivals
        .flat_map(|rival| threads.iter().map(move |&threads| (rival, threads)))
        .collect();
    let header = (columns.iter())
        .map(|&(rival, n)| format!("over {rival}, {}", counted(n as usize, "thread")));
    let mut lines = head(subject, header);
    for case in results.cases() {
        let found: Vec<_> = (columns.iter())
            .map(|&(rival, threads)| results.comparison(&case, f64::from(threads), subject, rival))
            .collect();
        if found.iter().any(Option::is_some) {
            let cells = found
                .into_iter()
                .map(|comparison| marks.ratio(judge, comparison));
            lines.push(line([named(&case)].into_iter().chain(cells)));
        }
    }
    Ok(lines)
}

/// A column for each subject.
fn from_to(
    results: &Results,
    subjects: &str,
    ends: [&str; 2],
    judge: &Judge,
    marks: &mut Marks,
) -> Result<Vec<String>> {
    let [from, to] = [number(ends[0])?, number(ends[1])?];
    let subjects: Vec<_> = subjects.split(", ").collect();
    let header = subjects.iter().map(|&subject| subject.to_owned());
    let mut lines = head(&format!("{to} threads over {from}"), header);
    for case in results.cases() {
        let found: Vec<_> = (subjects.iter())
            .map(|subject| {
                let [to, from] = [to, from].map(|threads| (f64::from(threads), *subject));
                results.comparison_across(&case, to, from)
            })
            .collect();
        if found.iter().any(Option::is_some) {
            let cells = found.into_iter().map(|of| marks.ratio(judge, of));
            lines.push(line([named(&case)].into_iter().chain(cells)));
        }
    }
    Ok(lines)
}

fn head(first: &str, columns: impl Iterator<Item = String>) -> Vec<String> {
    let columns: Vec<_> = columns.collect();
    let below = format!("|---|{}", "---:|".repeat(columns.len()));
    vec![line([first.to_owned()].into_iter().chain(columns)), below]
}

fn line(cells: impl Iterator<Item = String>) -> String {
    format!("| {} |", cells.collect::<Vec<_>>().join(" | "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::record::sample as row;

    fn renewed_by(page: &str, read: impl Fn(&str) -> Result<Vec<Row>>) -> Result<String> {
        Judge::of_page(|judge| renewed(page, judge, files(&read)))
    }

    const MARK: &str = "<!-- numbers: quick.csv over word-lock at 1, 2 threads -->";

    /// Ours is twice as fast as the rival on one thread; on two, that depends on the round.
    fn results(csv: &str) -> Result<Vec<Row>> {
        ensure!(csv == "quick.csv", "there is no {csv}");
        let rounds = (1..=9).flat_map(|round| {
            let on_two = if round % 2 == 0 { 0.9 } else { 1.1 };
            [
                row(OURS, "remove", 1, round, 2.0),
                row("word-lock", "remove", 1, round, 1.0),
                row(OURS, "remove", 2, round, on_two),
                row("word-lock", "remove", 2, round, 1.0),
            ]
        });
        Ok(rounds.collect())
    }

    fn files(rows: &dyn Fn(&str) -> Result<Vec<Row>>) -> Files<'_> {
        Files {
            rows,
            bits: &|_| unreachable!(),
            sheet: &|_, _| {
                Ok(Some(Sheet {
                    lead: "What it is.".into(),
                    header: vec!["name".into(), "measured".into()],
                    lines: vec![vec!["a".into(), "1".into()]],
                    notes: vec!["All of it.".into()],
                }))
            },
            said: &|csv, _| {
                let said = ["It stops.", "It goes on."].map(str::to_owned);
                Ok(said.into_iter().filter(|_| csv == "stalls.csv").collect())
            },
        }
    }

    #[test]
    fn a_block_is_written_from_the_results_and_the_rest_is_left_alone() {
        let page = format!("Before.\n\n{MARK}\nold\n{END}\nAfter.\n");
        let new = renewed_by(&page, results).unwrap();
        let table = "| lock-free | over word-lock, 1 thread | over word-lock, 2 threads |\n\
                     |---|---:|---:|\n\
                     | remove (load factor 0.92) | 2.00 [2.00–2.00] | 1.10 [0.90–1.10] ~ |\n\n~ ";
        let start = format!("Before.\n\n{MARK}\n\n{table}");
        assert!(new.starts_with(&start), "{new}");
        assert!(new.ends_with(&format!(".\n\n{END}\nAfter.\n")), "{new}");
        assert_eq!(renewed_by(&new, results).unwrap(), new);
    }

    #[test]
    fn each_kind_of_mark_has_its_table() {
        let simulated = |csv: &str| {
            let mark = |row: Row| Row {
                simulated: "m".into(),
                ..row
            };
            let varied = |row: Row| Row {
                simulated: "m with kept * 2".into(),
                mops: row.mops * 3.0,
                ..row
            };
            let rows = results("quick.csv")?;
            let marked = rows.iter().cloned().map(mark);
            Ok(match csv {
                "quick.csv" => rows,
                "varied.csv" => marked.chain(rows.iter().cloned().map(varied)).collect(),
                _ => marked.collect(),
            })
        };
        for (mark, expected) in [
            (
                "quick.csv of word-lock over lock-free at 1 threads",
                "| word-lock | over lock-free, 1 thread |\n|---|---:|\n\
                 | remove (load factor 0.92) | 0.50 [0.50–0.50] |\n",
            ),
            (
                "quick.csv of lock-free, word-lock from 1 to 2 threads",
                "| 2 threads over 1 | lock-free | word-lock |\n|---|---:|---:|\n\
                 | remove (load factor 0.92) | 0.55 [0.45–0.55] | 1.00 [1.00–1.00] ~ |\n",
            ),
            (
                "quick.csv predicted by simulated.csv",
                "| lock-free | 2 | 1.00 | 1.00 | 1.00 |\n| word-lock | 2 | 1.00 | 1.00 | 1.00 |\n\n4 rows;",
            ),
            (
                "targets.csv shown",
                "| name | measured |\n|---|---:|\n| a | 1 |\n\nAll of it.\n",
            ),
            ("stalls.csv said", "\n- It stops.\n- It goes on.\n"),
            (
                "varied.csv varied",
                "| remove (load factor 0.92), simulated on m | 1 | kept | –, 3.00 | –, 3.00 |\n",
            ),
        ] {
            let page = renewed_by(&format!("{BEGIN}{mark} -->\n{END}\n"), simulated).unwrap();
            assert!(page.contains(expected), "{page}");
        }
    }

    #[test]
    fn a_mark_that_means_nothing_is_an_error_that_names_it() {
        for (mark, error) in [
            (
                "nowhere.csv over word-lock at 1 threads",
                "there is no nowhere.csv",
            ),
            ("quick.csv", "it names no CSV file"),
            ("quick.csv word-lock at 1 threads", "it names no rival"),
            ("quick.csv word-lock", "it names no numbers of threads"),
            ("quick.csv varied", "no such results"),
            ("quick.csv said", "says nothing"),
            ("quick.csv predicted by quick.csv", "no such results"),
            ("quick.csv of lock-free from 1 to many threads", "\"many\""),
            ("quick.csv over word-lock", "it names no numbers of threads"),
            ("quick.csv over word-lock at many threads", "\"many\""),
            ("quick.csv over word-lock at 4 threads", "no such results"),
        ] {
            let told = renewed_by(&format!("{BEGIN}{mark} -->\n{END}\n"), results).unwrap_err();
            let told = format!("{told:#}");
            assert!(told.contains(error) && told.contains(mark), "{told}");
        }
        let open = renewed_by(&format!("{MARK}\n"), results).unwrap_err();
        assert!(format!("{open:#}").contains("is missing"), "{open:#}");
    }
}
