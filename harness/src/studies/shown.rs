//! Shows the rows of studies that say what they measured: one table and one figure.

use std::borrow::Cow;

use crate::results::{Comparison, INTERVAL, InRounds, Judge, Marks, Record, Results};
use crate::show::chart::{Axis, Figure, Line, Look, Panel, Scale};
use crate::show::{BANDS, Sheet, Sidecar, duration, latency, rounded, too_short};
use crate::studies::Presented;
use crate::wording::{counted, grouped};

/// Where a row stands.
pub(crate) struct At<'a> {
    pub(crate) subject: &'a str,
    pub(crate) round: usize,
    /// What is held fixed where subjects are compared.
    pub(crate) case: Cow<'a, str>,
    /// On the horizontal axis.
    pub(crate) place: f64,
    pub(crate) pinned: bool,
}

/// What rows say of a subject: a column of the table.
pub(crate) struct Quantity<R> {
    pub(crate) name: &'static str,
    of: fn(&R) -> Option<f64>,
    unit: Unit,
    /// Whether ratios of it are taken, and said in sentences.
    is_compared: bool,
    /// Whether it has a panel for each case.
    is_drawn: bool,
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Unit {
    /// Million operations per second.
    Throughput,
    /// Of single operations, in ns.
    Latency,
    Seconds,
    BitsAKey,
    /// A number without a unit.
    Number,
    /// A share that may be very small.
    Rate,
}

impl<R> Quantity<R> {
    /// Each subject by itself.
    pub(crate) const fn column(name: &'static str, unit: Unit, of: fn(&R) -> Option<f64>) -> Self {
        Self {
            name,
            of,
            unit,
            is_compared: false,
            is_drawn: false,
        }
    }

    pub(crate) const fn panel(name: &'static str, unit: Unit, of: fn(&R) -> Option<f64>) -> Self {
        let mut panel = Self::column(name, unit, of);
        panel.is_drawn = true;
        panel
    }

    /// Ours over each rival.
    pub(crate) const fn ratio(name: &'static str, unit: Unit, of: fn(&R) -> Option<f64>) -> Self {
        let mut ratio = Self::column(name, unit, of);
        ratio.is_compared = true;
        ratio
    }

    /// Ours over each rival, and a panel of each by itself.
    pub(crate) const fn both(name: &'static str, unit: Unit, of: fn(&R) -> Option<f64>) -> Self {
        let mut both = Self::panel(name, unit, of);
        both.is_compared = true;
        both
    }
}

impl Unit {
    fn axis(self) -> Axis {
        match self {
            Self::Throughput => Axis::new("million operations/s", Scale::FromZero, rounded),
            Self::Latency => Axis::new("latency", Scale::Logarithmic, duration),
            Self::Seconds => Axis::new("seconds", Scale::FromZero, rounded),
            Self::BitsAKey => Axis::new("bits a key", Scale::Logarithmic, |bits| {
                grouped(bits.round() as u64)
            }),
            Self::Number | Self::Rate => Axis::new("", Scale::FromZero, rounded),
        }
    }

    fn cell(self, value: f64, sidecar: Option<&Sidecar>) -> String {
        match self {
            Self::Throughput => format!("{} million/s", digits(value)),
            Self::Latency => latency(value, sidecar),
            Self::Seconds => format!("{value:.3} s"),
            Self::BitsAKey => format!("{value:.1}"),
            Self::Rate => format!("{value:.3e}"),
            Self::Number => ((value * 1e4).round() / 1e4).to_string(),
        }
    }
}

/// Lists these places in words, each formatted.
pub(crate) fn joined(places: &[f64], named: impl Fn(f64) -> String) -> String {
    let places: Vec<_> = places.iter().map(|&place| named(place)).collect();
    match &places[..] {
        [first @ .., before, last] => [first, &[format!("{before} and {last}")]]
            .concat()
            .join(", "),
        _ => places.concat(),
    }
}

/// A kind of rows, and what is to be shown of them.
pub(crate) trait Shown: Record + 'static {
    /// The columns of the table.
    const QUANTITIES: &'static [Quantity<Self>];

    fn at(&self) -> At<'_>;

    /// Names the horizontal axis of a case.
    fn axis(case: &str) -> Axis;

    /// Names places in a case.
    fn placed(case: &str, places: &[f64]) -> String;

    /// Keeps the places of the table and the sentences.
    fn tabled(_case: &str, places: Vec<f64>) -> Vec<f64> {
        places
    }

    /// The subject that others are compared with; `None` if each is shown by itself.
    const OURS: Option<&'static str> = None;

    /// Says how it was measured, and what words mean.
    fn how(rows: &[Self]) -> String;

    /// Adds panels, or lines to compare with.
    fn complete(_rows: &[Self], _panels: &mut Vec<Panel>) {}
}

impl<R: Shown> InRounds for R {
    type Axis = ();
    type Case = String;

    fn subject(&self) -> &str {
        self.at().subject
    }

    fn round(&self) -> usize {
        self.at().round
    }

    fn case(&self, (): ()) -> String {
        self.at().case.into_owned()
    }

    fn is_of(&self, case: &String, (): ()) -> bool {
        self.at().case == *case
    }

    fn place(&self, (): ()) -> f64 {
        self.at().place
    }
}

/// The rows of one kind, and how they are judged.
struct View<'a, R: Shown> {
    results: Results<'a, R>,
    sidecar: Option<&'a Sidecar>,
}

impl<'a, R: Shown> View<'a, R> {
    fn of(rows: &'a [R], sidecar: Option<&'a Sidecar>) -> Self {
        let results = Results::along((), rows);
        Self { results, sidecar }
    }

    /// Returns all subjects, ours first.
    fn subjects(&self) -> Vec<&'a str> {
        let mut subjects = self.results.subjects();
        subjects.sort_by_key(|&subject| R::OURS.is_some_and(|ours| ours != subject));
        subjects
    }

    /// Returns all others, if ours was measured.
    fn rivals(&self) -> Vec<&'a str> {
        match &self.subjects()[..] {
            [first, rivals @ ..] if R::OURS == Some(*first) => rivals.to_vec(),
            _ => Vec::new(),
        }
    }

    fn places(&self, case: &String) -> Vec<f64> {
        R::tabled(case, self.results.places(case))
    }

    fn median(&self, of: &Quantity<R>, (case, place): Place, subject: &str) -> Option<f64> {
        Some(self.results.summary(case, place, subject, of.of)?.median)
    }

    /// Compares ours with a rival; `None` if either took less time than the clock can tell from none.
    fn compared(&self, of: &Quantity<R>, at: Place, rival: &str) -> Option<Comparison> {
        let ours = R::OURS.filter(|&ours| of.is_compared && ours != rival)?;
        let shortest = self.sidecar.map_or(0.0, Sidecar::shortest_ns);
        let medians = [ours, rival].map(|subject| self.median(of, at, subject));
        let mut medians = medians.into_iter().flatten();
        let is_too_short = of.unit == Unit::Latency && medians.any(|of| of < shortest);
        let ends = [ours, rival].map(|subject| (at.1, subject));
        let compared = || self.results.comparison_of(at.0, ends, of.of);
        (!is_too_short).then(compared).flatten()
    }
}

/// A case, and a place in it.
type Place<'a> = (&'a String, f64);

impl<R: Shown> Presented for Vec<R> {
    /// A line for each case, place and subject: ours by itself, and over each rival.
    fn sheet(&self, sidecar: Option<&Sidecar>, judge: &Judge) -> Option<Sheet> {
        self.first()?;
        let view = View::of(self, sidecar);
        let (cases, rivals) = (view.results.cases(), view.rivals());
        let (mut marks, mut lines) = (Marks::default(), Vec::new());
        for case in &cases {
            for place in view.places(case) {
                for subject in view.subjects() {
                    let is_rival = rivals.contains(&subject);
                    let mut cell = |of: &Quantity<R>| {
                        // The memory of both says more than their ratio.
                        let compared = view.compared(of, (case, place), subject);
                        let compared = compared.filter(|_| of.unit != Unit::BitsAKey);
                        let own = of
                            .unit
                            .cell(view.median(of, (case, place), subject)?, sidecar);
                        Some(match compared {
                            Some(ratio) => marks.number(judge, &ratio, digits),
                            None if is_rival => format!("({own})"),
                            None => own,
                        })
                    };
                    let cells = R::QUANTITIES.iter().map(&mut cell);
                    let cells: Vec<Option<_>> = cells.collect();
                    if cells.iter().all(Option::is_none) {
                        continue;
                    }
                    let cells = cells.into_iter().map(|cell| cell.unwrap_or("–".into()));
                    let over = if is_rival { "over " } else { "" };
                    let named = [R::placed(case, &[place]), format!("{over}{subject}")];
                    let case = cases.get(1).map(|_| case.clone());
                    lines.push(case.into_iter().chain(named).chain(cells).collect());
                }
            }
        }
        let names = R::QUANTITIES.iter().map(|of| of.name);
        let named = ["", "", "subject"].into_iter();
        let named = named.skip(usize::from(cases.len() == 1));
        let mut notes = Vec::new();
        if !rivals.is_empty() {
            notes.push(format!(
                "Over a rival stand ratios within rounds: median over the rounds [{INTERVAL}]; or, in parentheses, the median of \
                 the rival by itself, as for memory, and for times where the clock cannot tell one of the two from nothing. All else is \
                 the median of each subject by itself."
            ));
        }
        notes.extend(marks.explained());
        notes.extend(sidecar.and_then(too_short));
        Some(Sheet {
            lead: R::how(self),
            labels: named.len(),
            header: named.chain(names).map(str::to_owned).collect(),
            lines,
            notes,
        })
    }

    fn figure(&self, sidecar: Option<&Sidecar>) -> Option<Figure> {
        self.first()?;
        let view = View::of(self, sidecar);
        let cases = view.results.cases();
        let mut panels = Vec::new();
        for of in R::QUANTITIES.iter().filter(|of| of.is_drawn) {
            for case in &cases {
                let line = |subject: &str| Line {
                    look: R::OURS.map_or(Look::Bars, |_| Look::Band),
                    ..Line::new(subject, view.results.points(case, subject, of.of))
                };
                let axes = [R::axis(case), of.unit.axis()];
                let title = match cases.len() {
                    1 => of.name.to_owned(),
                    _ => format!("{} ({case})", of.name),
                };
                let lines = view.subjects().into_iter().map(line).collect();
                panels.push(Panel::new(of.name, title, axes, lines));
            }
        }
        panels.retain(|panel| panel.lines.iter().any(|line| !line.points.is_empty()));
        R::complete(self, &mut panels);
        let mut caption = vec![R::how(self)];
        if R::OURS.is_some() {
            let last = self.iter().map(R::round).max().unwrap_or_default();
            let rounds = counted(last, "round");
            caption.push(format!("Lines: median of {rounds}. {BANDS}"));
        }
        if self.iter().any(|row| !row.at().pinned) {
            caption.push("Threads were not always pinned.".into());
        }
        caption.extend(sidecar.and_then(too_short));
        let subjects = sidecar.iter().flat_map(|sidecar| &sidecar.subjects);
        caption.extend(subjects.map(|(name, meaning)| format!("{name}: {meaning}.")));
        (!panels.is_empty()).then(|| Figure::new("", caption, panels, sidecar))
    }
}

/// Formats a ratio or a throughput, which may be small.
fn digits(value: f64) -> String {
    match value {
        ..0.01 if value > 0.0 => format!("{value:.1e}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::studies::growth::Row;

    #[test]
    fn places_are_listed_in_words() {
        let listed = |places: &[f64]| joined(places, |place| place.to_string());
        assert_eq!(listed(&[1.0]), "1");
        assert_eq!(listed(&[1.0, 2.0]), "1 and 2");
        assert_eq!(listed(&[1.0, 2.0, 8.0]), "1, 2 and 8");
    }

    /// An interrupted run can leave such rows.
    #[test]
    fn nothing_is_over_a_rival_where_ours_was_not_measured() {
        let names = |subjects: &[&str]| {
            let row = |subject: &&str| Row {
                subject: (*subject).into(),
                round: 1,
                keys: 10,
                all_keys: 10,
                mops: 1.0,
                ..Row::default()
            };
            let rows: Vec<_> = subjects.iter().map(row).collect();
            let sheet = rows.printed(None).unwrap();
            let bits = sheet.header.iter().position(|name| name == "bits a key");
            let of = |line: &Vec<String>| [&line[1], &line[bits.unwrap()]].map(String::clone);
            sheet.lines.iter().map(of).collect::<Vec<_>>()
        };
        let rivals = ["lock-free", "scalable-bloom"];
        assert_eq!(names(&rivals), rivals.map(|name| [name, "0.0"]));
        let all = ["lock-free", "growing", "scalable-bloom"];
        let [first, second] = rivals.map(|name| [format!("over {name}"), "(0.0)".into()]);
        // What is no ratio is marked.
        assert_eq!(
            names(&all),
            [["growing", "0.0"].map(str::to_owned), first, second]
        );
    }
}
