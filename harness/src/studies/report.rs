//! Writes all results of a directory as one page, `report.html`, that a browser opens from disk.
//! For each experiment it has the question, the figure, the answer in sentences generated from the
//! data, and the table of ratios.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::kinds::{NoResults, Rows, read_any};
use crate::results::Judge;
use crate::show::page::Section;
use crate::show::{Findings, Outputs, Run, Sheet, Sidecar, files, page};

/// The order in which a reader should meet the experiments; others follow by name.
const ORDER: &str = "pair pair-zen4 pair-zen5 quick full full-large oversubscribed latency stalls rivals rivals-large latency-large \
    relatives load-factor hits skew-cached skew-large sizes-lookups sizes-changes mixes \
    ablations kcas layouts memory targets theory soak cuckoo-hashing growth simulated-machines";

#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    pub path: PathBuf,
    /// Notes for its reader: files that were left out, and missing rows.
    pub notes: Vec<String>,
    /// Results that are not on the page because they cannot be read, with the reason.
    pub unreadable: Vec<String>,
}

/// Judges as the page of a directory does.
pub(crate) fn judge(directory: &Path) -> Result<Judge> {
    let files = listed(directory)?;
    let read: Vec<_> = files.iter().flat_map(|file| section(file)).collect();
    Ok(Judge::after(|judge| said(&read, judge)))
}

/// Returns the sentences and the table of each of these results.
fn said(read: &[(Box<dyn Rows>, Section)], judge: &Judge) -> Vec<(Findings, Option<Sheet>)> {
    let of = |(rows, section): &(Box<dyn Rows>, Section)| {
        let sidecar = section.sidecar.as_ref();
        (rows.findings(sidecar, judge), rows.sheet(sidecar, judge))
    };
    read.iter().map(of).collect()
}

/// Returns the CSV files of a directory, as they follow one another on its page.
fn listed(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut files = files::listed(directory, "csv")?;
    // Skip earlier results, which were renamed to NAME.1.csv and so on.
    files.retain(|file| !name_of(file).contains('.') && !file.is_dir());
    let place = |file: &PathBuf| {
        let name = name_of(file);
        let known = ORDER.split(' ').position(|of| of == name);
        (known.unwrap_or(usize::MAX), name)
    };
    files.sort_by_key(place);
    Ok(files)
}

/// Writes the page of all CSV files in a directory. Files that hold no results, or cannot be read,
/// are named on it instead.
pub fn write(directory: &Path) -> Result<Written> {
    let files = listed(directory)?;
    let (mut read, mut left_out) = (Vec::new(), Vec::new());
    let (mut notes, mut unreadable) = (Vec::new(), Vec::new());
    for file in &files {
        match section(file) {
            Ok(rows_and_section) => read.push(rows_and_section),
            Err(error) => {
                left_out.push(without_directory(file, &error));
                let is_none = error.is::<NoResults>();
                let reasons = if is_none { &mut notes } else { &mut unreadable };
                reasons.push(format!("{error:#}"));
            }
        }
    }
    ensure!(
        !read.is_empty(),
        "there are no results in {}; `harness reproduce` makes some{}",
        directory.display(),
        (notes.iter().chain(&unreadable))
            .map(|why| format!("\n  {why}"))
            .collect::<String>()
    );
    let judged = Judge::of_page(|judge| said(&read, judge));
    let (_, mut sections): (Vec<_>, Vec<_>) = read.into_iter().unzip();
    for (section, (findings, sheet)) in sections.iter_mut().zip(judged) {
        (section.findings, section.sheet) = (findings, sheet);
    }
    notes = (notes.iter().map(|why| format!("left out: {why}"))).collect();
    notes.extend(sections.iter().filter_map(|section| {
        let missing = section.missing.as_ref()?;
        Some(format!("{}.csv: {missing}", section.name))
    }));
    let path = directory.join("report.html");
    files::write(&path, &page::render(&sections, &left_out))?;
    Ok(Written {
        path,
        notes,
        unreadable,
    })
}

/// Says why a file is left out, without naming directories, as the page may be published.
fn without_directory(file: &Path, error: &anyhow::Error) -> String {
    let directory = file.parent().unwrap_or(Path::new(""));
    format!("{error:#}").replace(&format!("{}/", directory.display()), "")
}

fn name_of(file: &Path) -> String {
    let name = file.file_stem().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Returns the rows of a CSV file, and their section without table and sentences, which depend on all
/// sections of the page.
fn section(csv: &Path) -> Result<(Box<dyn Rows>, Section)> {
    let rows = read_any(csv)?;
    if rows.count() == 0 {
        return Err(NoResults::new(csv, "it has a header, but no rows").into());
    }
    let outputs = Outputs::beside(csv);
    let sidecar = outputs.described()?;
    let described = sidecar.as_ref();
    let run = described.map(|sidecar| &sidecar.run);
    let name = name_of(csv);
    let beside = [csv, &outputs.sidecar];
    let names = beside.iter().filter(|file| file.exists());
    let names = names.filter_map(|file| Some(file.file_name()?.to_string_lossy().into_owned()));
    let section = Section {
        title: run.map_or(&name, |run| &run.title).clone(),
        question: run.map_or_else(String::new, Run::asked),
        figure: figure(&*rows, &outputs, described)?,
        missing: described.and_then(|sidecar| rows.missing(sidecar)),
        findings: Findings::default(),
        sheet: None,
        files: names.collect(),
        name,
        sidecar,
    };
    Ok((rows, section))
}

/// Returns the figure beside the CSV file; draws it if it is not there.
fn figure(rows: &dyn Rows, outputs: &Outputs, sidecar: Option<&Sidecar>) -> Result<String> {
    if outputs.figure.exists() {
        return fs::read_to_string(&outputs.figure)
            .with_context(|| format!("cannot read the figure {}", outputs.figure.display()));
    }
    let figure = rows.figure(sidecar);
    Ok(figure.map_or_else(String::new, |figure| figure.render()))
}
