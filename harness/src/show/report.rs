//! All results of a directory → one page, `report.html`, that a browser opens from disk: for each experiment the
//! question, the figure, what the data answer in sentences generated from them, and the table of ratios.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::machine::Sidecar;
use crate::results::record::Row;
use crate::results::statistics::Results;
use crate::show::any_rows::{AnyRows, NoResults};
use crate::show::outputs::{self, Outputs};
use crate::show::sheet::Sheet;
use crate::studies::cuckoo_hashing;
use crate::studies::sweep::figure;
use crate::studies::sweep::table;
use crate::studies::{growth, memory, theory};

use super::findings::{self, Finding};
use super::page;

/// The order in which a reader should meet experiments; others follow, by name.
const ORDER: [&str; 20] = [
    "quick",
    "full",
    "full-large",
    "oversubscribed",
    "latency",
    "stalls",
    "rivals",
    "relatives",
    "load-factor",
    "hits",
    "skew-cached",
    "skew-large",
    "mixes",
    "ablations",
    "kcas",
    "layouts",
    "memory",
    "theory",
    "cuckoo-hashing",
    "growth",
];

/// A page that was written.
#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    /// Where it is.
    pub path: PathBuf,
    /// What its reader should know: files that were left out, and rows that are missing.
    pub notes: Vec<String>,
    /// Results that are not on the page because they cannot be read, and why.
    pub unreadable: Vec<String>,
}

/// One experiment as the page shows it.
pub(super) struct Section {
    pub(super) name: String,
    pub(super) title: String,
    pub(super) question: String,
    pub(super) figure: String,
    /// Says that rows are missing.
    pub(super) missing: Option<String>,
    /// Whether it is our filter that others are compared with.
    pub(super) is_of_ours: bool,
    /// Sentences to hold against the paper's.
    pub(super) headlines: Vec<String>,
    pub(super) findings: Vec<Finding>,
    /// What else the data say.
    pub(super) sentences: Vec<String>,
    pub(super) sheet: Option<Sheet>,
    /// Files beside the page.
    pub(super) files: Vec<String>,
    pub(super) sidecar: Option<Sidecar>,
}

/// Writes the page of all CSV files in a directory. Files that hold no results, or cannot be read, are named on it
/// instead.
///
/// # Errors
///
/// A directory of which nothing can be shown, or in which the page cannot be written.
pub fn write(directory: &Path) -> Result<Written> {
    let entries = fs::read_dir(directory)
        .with_context(|| format!("cannot list the directory {}", directory.display()))?;
    let mut files = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<_>>>()?;
    // Earlier results that were moved aside are NAME.1.csv and so on.
    files.retain(|file| {
        let is_csv = file.extension().is_some_and(|extension| extension == "csv");
        is_csv && !name_of(file).contains('.') && !file.is_dir()
    });
    let place = |file: &PathBuf| {
        let name = name_of(file);
        let known = ORDER.iter().position(|of| *of == name);
        (known.unwrap_or(ORDER.len()), name)
    };
    files.sort_by_key(place);
    let (mut sections, mut left_out) = (Vec::new(), Vec::new());
    let (mut notes, mut unreadable) = (Vec::new(), Vec::new());
    for file in &files {
        match section(file) {
            Ok(section) => sections.push(section),
            Err(error) => {
                left_out.push(without_directory(file, &error));
                let told = match error.is::<NoResults>() {
                    true => &mut notes,
                    false => &mut unreadable,
                };
                told.push(format!("{error:#}"));
            }
        }
    }
    ensure!(
        !sections.is_empty(),
        "there are no results in {}; `harness reproduce` makes some{}",
        directory.display(),
        (notes.iter().chain(&unreadable))
            .map(|told| format!("\n  {told}"))
            .collect::<String>()
    );
    notes = (notes.iter().map(|told| format!("left out: {told}"))).collect();
    notes.extend(sections.iter().filter_map(|section| {
        let missing = section.missing.as_ref()?;
        Some(format!("{}.csv: {missing}", section.name))
    }));
    let path = directory.join("report.html");
    outputs::write(&path, &page::render(&sections, &left_out))?;
    Ok(Written {
        path,
        notes,
        unreadable,
    })
}

/// Why a file is left out, as anybody may read it.
fn without_directory(file: &Path, error: &anyhow::Error) -> String {
    let directory = file.parent().unwrap_or(Path::new(""));
    format!("{error:#}").replace(&format!("{}/", directory.display()), "")
}

fn name_of(file: &Path) -> String {
    file.file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// What there is to show of a CSV file.
fn section(csv: &Path) -> Result<Section> {
    let rows = AnyRows::read(csv)?;
    if rows.is_empty() {
        return Err(NoResults::new(csv, "it has a header, but no rows").into());
    }
    let outputs = Outputs::beside(csv);
    let sidecar = match outputs.sidecar.exists() {
        true => Some(Sidecar::read(&outputs.sidecar)?),
        false => None,
    };
    let name = name_of(csv);
    let run = sidecar.as_ref().map(|sidecar| &sidecar.run);
    let mut section = Section {
        title: run.map_or(&name, |run| &run.title).clone(),
        question: run.map_or_else(String::new, |run| run.question.clone()),
        figure: match &rows {
            AnyRows::Theory(_) => String::new(),
            rows => (rows.figure(sidecar.as_ref()))
                .with_context(|| format!("cannot draw {}", csv.display()))?,
        },
        missing: sidecar.as_ref().and_then(|sidecar| rows.missing(sidecar)),
        is_of_ours: false,
        headlines: Vec::new(),
        findings: Vec::new(),
        sentences: Vec::new(),
        sheet: None,
        files: Vec::new(),
        sidecar: None,
        name,
    };
    let described = sidecar.as_ref();
    match &rows {
        AnyRows::Sweep(rows) => section.describe_sweep(rows, described),
        AnyRows::Layouts(rows) => section.sentences = findings::of_layouts(rows),
        AnyRows::Kcas(rows) => section.sentences = findings::of_kcas(rows),
        AnyRows::Memory(rows) => {
            section.sentences = findings::of_memory(rows);
            section.sheet = Some(memory::sheet(rows));
        }
        AnyRows::Theory(rows) => section.sheet = Some(theory::sheet(rows)),
        AnyRows::CuckooHashing(rows) => {
            section.sentences = findings::of_cuckoo_hashing(rows);
            section.sheet = cuckoo_hashing::sheet(rows);
        }
        AnyRows::Growth(rows) => {
            section.is_of_ours = true;
            section.findings = findings::of_growth(rows);
            section.sheet = growth::sheet(rows);
        }
    }
    let beside = [csv.to_owned(), outputs.sidecar];
    let names = beside.iter().filter(|file| file.exists());
    let names = names.filter_map(|file| Some(file.file_name()?.to_string_lossy().into_owned()));
    section.files = names.collect();
    section.sidecar = sidecar;
    Ok(section)
}

impl Section {
    fn describe_sweep(&mut self, rows: &[Row], sidecar: Option<&Sidecar>) {
        let results = Results::of(rows);
        let title = |case: &_| figure::panel_title(&results, case, sidecar);
        if results.timed() {
            self.sentences = findings::of_latency(&results, title);
        } else if rows.iter().any(|row| row.frozen > 0) {
            self.sentences = findings::of_frozen(&results, title);
        } else {
            self.is_of_ours = results.subjects().first() == Some(&table::OURS);
            self.headlines = table::headlines(&results);
            self.findings = findings::of_throughput(&results, title);
        }
        self.sheet = table::summary(rows);
    }
}
