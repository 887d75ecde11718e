//! The form in which rows are shown: tables, notes and a figure.

use std::fmt;

use figures::plot::{Figure, Form, Series};
use figures::stats::{MIN_VALUES, Summary, Verdict};
use figures::table;

use crate::wording::counted;

/// Describes the cells with brackets.
pub(crate) const MEDIANS: &str =
    "Median over the rounds [interval of 95 %; of fewer than 6 rounds, the range].";

#[derive(Clone, Debug, Default)]
pub struct Sheet {
    /// Describes the numbers, and how they were measured.
    pub lead: String,
    pub tables: Vec<Table>,
    pub notes: Vec<String>,
    pub figure: Option<Figure>,
}

#[derive(Clone, Debug, Default)]
pub struct Table {
    /// Empty if there is one table.
    pub title: String,
    pub header: Vec<String>,
    /// The first cell names the line.
    pub lines: Vec<Vec<String>>,
}

impl Sheet {
    fn text(&self, format: fn(&[String], &[Vec<String>]) -> String) -> String {
        let mut parts = vec![self.lead.clone()];
        for table in &self.tables {
            parts.extend(Some(table.title.clone()).filter(|title| !title.is_empty()));
            parts.push(format(&table.header, &table.lines));
        }
        parts.extend((!self.notes.is_empty()).then(|| self.notes.join("\n")));
        parts.join("\n\n")
    }

    pub fn markdown(&self) -> String {
        self.text(table::markdown)
    }
}

/// Formats the sheet for a terminal.
impl fmt::Display for Sheet {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str(&self.text(table::terminal))
    }
}

/// Returns these places, ascending, each once.
pub(crate) fn ascending(places: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut places: Vec<_> = places.collect();
    places.sort_unstable_by(f64::total_cmp);
    places.dedup();
    places
}

/// Formats a ratio, judged against that of a subject to itself. If too few rounds count, says how many.
pub(crate) fn judged(ratio: Option<Summary>, itself: Option<Summary>) -> String {
    let Some(ratio) = ratio else {
        return "–".into();
    };
    let itself = itself.unwrap_or(Summary { count: 0, ..ratio });
    let mut verdict = Verdict::new(&ratio, &itself).to_string();
    let count = ratio.count.min(itself.count);
    if count < MIN_VALUES {
        verdict += &format!(" ({})", counted(count, "round"));
    }
    format!("{} {verdict}", ratio.format(|ratio| format!("{ratio:.2}")))
}

/// Returns a line of a panel for each subject that has points.
pub(crate) fn series(
    subjects: &[&str],
    places: &[f64],
    form: Form,
    point: impl Fn(&str, f64) -> Option<Summary>,
) -> Vec<Series> {
    let series = |subject: &&str| {
        let points = places
            .iter()
            .map(|&place| Some((place, point(subject, place)?)));
        Series {
            name: (*subject).into(),
            form,
            points: points.flatten().collect(),
            ..Series::default()
        }
    };
    let mut series: Vec<_> = subjects.iter().map(series).collect();
    series.retain(|series| !series.points.is_empty());
    series
}

/// Keeps the first of equal values.
pub(crate) fn dedup<T: PartialEq>(values: &mut Vec<T>) {
    let mut kept: Vec<T> = Vec::new();
    for value in values.drain(..) {
        if !kept.contains(&value) {
            kept.push(value);
        }
    }
    *values = kept;
}
