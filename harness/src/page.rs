//! The page of all results of a directory, `report.html`: figures and tables. A browser opens it from disk; it needs no
//! other file. The same tables in Markdown pages.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::row::{self, Rows};
use crate::sheet::Sheet;
use crate::show::{Outputs, Sidecar, files};
use crate::studies;
use crate::sweep_sheet;

const STYLE: &str = "
body { font: 16px/1.5 sans-serif; max-width: 60rem; margin: 1rem auto; padding: 0 1rem; color: #222; }
h2 { margin-top: 3rem; border-top: 1px solid #ccc; padding-top: 1rem; }
figure { margin: 0; overflow-x: auto; }
figure svg { max-width: 100%; height: auto; min-width: 34rem; }
.table { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.85rem; }
th, td { border: 1px solid #ccc; padding: 0.2rem 0.5rem; text-align: right; white-space: nowrap; }
td:first-child { white-space: normal; min-width: 9rem; text-align: left; }
.note { color: #555; font-size: 0.9rem; overflow-wrap: anywhere; }
.bad { color: #a33c00; }
";

/// Writes the page of the CSV files in a directory. Returns its path, and the errors of files that cannot be read,
/// which the page names as well.
pub fn write(directory: &Path) -> Result<(PathBuf, Vec<String>)> {
    let (mut sections, mut unreadable) = (Vec::new(), Vec::new());
    for csv in files::listed(directory, "csv")? {
        let name = csv.file_stem().unwrap_or_default().to_string_lossy();
        // Earlier results have names such as NAME.1.csv.
        if name.contains('.') || csv.is_dir() {
            continue;
        }
        match read(&csv) {
            Ok(result) => sections.push((name.to_string(), result)),
            Err(error) => unreadable.push(format!("{error:#}")),
        }
    }
    ensure!(
        !sections.is_empty(),
        "there are no results in {}; `harness reproduce` makes some\n  {}",
        directory.display(),
        unreadable.join("\n  ")
    );
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "Lock-free cuckoo filter: measurements" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { "Lock-free cuckoo filter: measurements" }
                ul {
                    @for (name, result) in &sections {
                        li { a href=(format!("#{name}")) { (name) ": " (result.title) } }
                    }
                    // The page may be published without its directory's name.
                    @for error in &unreadable {
                        li.bad { (error.replace(&format!("{}/", directory.display()), "")) }
                    }
                }
                @for (name, result) in &sections { (section(name, result)) }
            }
        }
    };
    let path = directory.join("report.html");
    files::write(&path, &page.into_string())?;
    Ok((path, unreadable))
}

/// A result of a sweep or of a study.
pub struct PageEntry {
    pub title: String,
    pub sheet: Sheet,
    pub sidecar: Option<Sidecar>,
    /// A warning about missing rows.
    missing: Option<String>,
}

pub fn read(csv: &Path) -> Result<PageEntry> {
    let files = Outputs::beside(csv);
    let sidecar = files.described()?;
    let (count, sheet) = match row::read(csv)? {
        Rows::Sweep(rows) if !rows.is_empty() => {
            (rows.len(), Ok(sweep_sheet::sheet(&rows, sidecar.as_ref())))
        }
        Rows::Study(samples) if !samples.is_empty() => {
            (samples.len(), studies::sheet(&samples, sidecar.as_ref()))
        }
        _ => bail!("{} has no rows", csv.display()),
    };
    let name = csv.file_stem().unwrap_or_default().display();
    let title = sidecar.as_ref().map(|sidecar| sidecar.run.title.clone());
    Ok(PageEntry {
        title: title.unwrap_or(name.to_string()),
        sheet: sheet.with_context(|| format!("in {}", csv.display()))?,
        missing: sidecar.as_ref().and_then(|sidecar| sidecar.missing(count)),
        sidecar,
    })
}

fn section(name: &str, result: &PageEntry) -> Markup {
    let draw = || result.sheet.figure.as_ref()?.svg().ok();
    html! {
        h2 id=(name) { (name) ": " (result.title) }
        @if let Some(sidecar) = &result.sidecar { p { (sidecar.run.question) } }
        @if let Some(missing) = &result.missing { p.bad { (missing) } }
        figure { (PreEscaped(draw().unwrap_or_default())) }
        details { summary { "Table" } (tables(&result.sheet)) }
        p.note {
            a href=(format!("{name}.csv")) { (name) ".csv" }
            @if let Some(sidecar) = &result.sidecar {
                ", " a href=(format!("{name}.machine.toml")) { (name) ".machine.toml" } ". "
                code { (sidecar.run.command) } ". " (sidecar.machine_line())
            }
        }
    }
}

fn tables(sheet: &Sheet) -> Markup {
    html! {
        p { (sheet.lead) }
        @for table in &sheet.tables {
            p { (table.title) }
            div.table { table {
                thead { tr { @for name in &table.header { th { (name) } } } }
                tbody { @for line in &table.lines { tr { @for cell in line { td { (cell) } } } } }
            } }
        }
        @for note in &sheet.notes { p.note { (note) } }
    }
}

const BEGIN: &str = "<!-- table: ";
const END: &str = "<!-- end of table -->";

/// Writes the tables of a Markdown page, each between two marks. The first names a CSV file, relative to the page.
/// With `only_checks`, fails if a table differs.
pub fn update_tables(page: &Path, only_checks: bool) -> Result<()> {
    let name = page.display();
    let old = fs::read_to_string(page).with_context(|| format!("cannot read {name}"))?;
    let mut new = String::new();
    let mut lines = old.lines();
    while let Some(line) = lines.next() {
        new += &format!("{line}\n");
        let csv = line
            .strip_prefix(BEGIN)
            .and_then(|mark| mark.strip_suffix(" -->"));
        let Some(csv) = csv else { continue };
        ensure!(
            lines.any(|line| line == END),
            "{name}: `{END}` is missing after `{line}`"
        );
        let result = read(&page.with_file_name(csv)).with_context(|| format!("{name}: {line}"))?;
        new += &format!("\n{}\n\n{END}\n", result.sheet.markdown());
    }
    if old != new {
        ensure!(
            !only_checks,
            "{name} differs from the results; `harness tables {name}` updates it"
        );
        files::write(page, &new)?;
    }
    Ok(())
}
