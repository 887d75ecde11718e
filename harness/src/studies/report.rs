//! The page of all results of a directory, `report.html`: figures and tables. A browser opens it from disk; it needs no
//! other file. And the same tables in Markdown pages.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::kinds::read_any;
use crate::show::{Outputs, Sheet, Sidecar, files};

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

/// Writes the page of the CSV files in a directory. Returns its path, and the errors of files that cannot be read, which
/// the page names as well.
pub fn write(directory: &Path) -> Result<(PathBuf, Vec<String>)> {
    let (mut sections, mut unreadable) = (Vec::new(), Vec::new());
    for csv in files::listed(directory, "csv")? {
        let name = csv.file_stem().unwrap_or_default().to_string_lossy();
        // Earlier results have names such as NAME.1.csv.
        if name.contains('.') || csv.is_dir() {
            continue;
        }
        match section(&csv, &name) {
            Ok((title, section)) => {
                sections.push((name.to_string(), format!("{name}: {title}"), section))
            }
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
                    @for (name, title, _) in &sections { li { a href=(format!("#{name}")) { (title) } } }
                    @for why in &unreadable { li.bad { (without(directory, why)) } }
                }
                @for (name, title, section) in &sections { h2 id=(name) { (title) } (section) }
            }
        }
    };
    let path = directory.join("report.html");
    files::write(&path, &page.into_string())?;
    Ok((path, unreadable))
}

/// Removes the directory from a message, as the page may be published.
fn without(directory: &Path, message: &str) -> String {
    message.replace(&format!("{}/", directory.display()), "")
}

/// Returns the title of a result, and its figure and table.
fn section(csv: &Path, name: &str) -> Result<(String, Markup)> {
    let (rows, outputs) = (read_any(csv)?, Outputs::beside(csv));
    ensure!(rows.count() > 0, "{} has no rows", csv.display());
    let described = outputs.described()?;
    let sidecar = described.as_ref();
    let title = sidecar.map_or(name, |of| &of.run.title).to_owned();
    let figure = match rows.figure(sidecar) {
        _ if outputs.figure.exists() => fs::read_to_string(&outputs.figure)?,
        figure => figure.map_or_else(String::new, |of| of.render()),
    };
    let section = html! {
        @if let Some(missing) = sidecar.and_then(|of| rows.missing(of)) { p.bad { (missing) } }
        figure { (PreEscaped(figure)) }
        @if let Some(sheet) = rows.printed(sidecar) { details { summary { "Table" } (table(&sheet)) } }
        p.note {
            a href=(format!("{name}.csv")) { (name) ".csv" }
            @if let Some(Sidecar { run, .. }) = sidecar {
                ", " a href=(format!("{name}.machine.toml")) { (name) ".machine.toml" } ". "
                code { (run.command) } ". " (sidecar.map_or_else(String::new, Sidecar::machine_line))
            }
        }
    };
    Ok((title, section))
}

fn table(sheet: &Sheet) -> Markup {
    html! {
        p { (sheet.lead) }
        div.table { table {
            thead { tr { @for name in &sheet.header { th { (name) } } } }
            tbody { @for line in &sheet.lines { tr { @for cell in line { td { (cell) } } } } }
        } }
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
        let mark = line
            .strip_prefix(BEGIN)
            .and_then(|of| of.strip_suffix(" -->"));
        let Some(csv) = mark else { continue };
        ensure!(
            lines.any(|of| of == END),
            "{name}: `{END}` is missing after `{line}`"
        );
        let csv = page.with_file_name(csv);
        let rows = read_any(&csv).with_context(|| format!("{name}: {line}"))?;
        let sheet = rows.printed(Outputs::beside(&csv).described()?.as_ref());
        let sheet = sheet.with_context(|| format!("{} has no table", csv.display()))?;
        new += &format!("\n{}\n\n{END}\n", sheet.markdown());
    }
    if old == new {
        return Ok(());
    }
    if only_checks {
        bail!("{name} differs from the results; `harness tables {name}` updates it");
    }
    files::write(page, &new)
}
