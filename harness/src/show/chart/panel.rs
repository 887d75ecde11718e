//! What a panel shows: two axes, and lines between them. `lines.rs` and `rows.rs` draw it.

use super::axis::Axis;
use super::style::COLOURS;
use crate::results::{Summary, distinct};

#[derive(Clone, Debug)]
pub(crate) struct Panel {
    /// Name of what it shows, such as a workload; several may share it.
    pub(crate) label: String,
    pub(crate) title: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) lines: Vec<Line>,
    /// Curves to compare with, dashed.
    pub(crate) guides: Vec<Guide>,
    /// The places of this number or more are shaded, with this name in the key.
    pub(crate) shade: Option<(f64, &'static str)>,
    /// Whether each subject has a row of its own, with its points beside each other.
    pub(crate) in_rows: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) subject: String,
    /// What stands behind its name in rows; may be empty.
    pub(crate) note: String,
    pub(crate) points: Vec<(f64, Summary)>,
    pub(crate) look: Look,
    /// Single measurements.
    pub(crate) dots: Vec<(f64, f64)>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Look {
    /// Joined, each with its interval as a bar.
    Bars,
    /// Joined, all intervals together as a band: suited to many points.
    Band,
    /// Not joined: each reaches from the median to the 99.9th percentile, which stand in place of
    /// the ends of an interval, with the 99th percentile, in place of the median, between them.
    Reach,
    /// Not joined, each with its interval as a bar, and its name beside it.
    #[allow(dead_code, reason = "studies are drawn by the crate `figures` already")]
    Named(Vec<String>),
}

#[derive(Clone, Debug)]
pub(crate) struct Guide {
    pub(crate) name: &'static str,
    pub(crate) points: Vec<(f64, f64)>,
}

impl Line {
    pub(crate) fn new(subject: impl Into<String>, points: Vec<(f64, Summary)>) -> Self {
        Self {
            subject: subject.into(),
            note: String::new(),
            points,
            look: Look::Bars,
            dots: Vec::new(),
        }
    }

    pub(super) fn named(&self) -> String {
        match &*self.note {
            "" => self.subject.clone(),
            note => format!("{} ({note})", self.subject),
        }
    }
}

impl Panel {
    pub(crate) fn new(
        label: impl Into<String>,
        title: impl Into<String>,
        [x, y]: [Axis; 2],
        lines: Vec<Line>,
    ) -> Self {
        Self {
            label: label.into(),
            title: title.into(),
            in_rows: is_for_rows(&x, &lines),
            x,
            y,
            lines,
            guides: Vec::new(),
            shade: None,
        }
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = f64> + Clone {
        self.lines.iter().flat_map(|line| {
            let points = line.points.iter();
            let ends = points.flat_map(|(_, of)| [of.low, of.high]);
            ends.chain(line.dots.iter().map(|&(_, y)| y))
        })
    }
}

/// Returns the places on the horizontal axis at which some lines have points, ascending.
pub(super) fn places<'l>(lines: impl IntoIterator<Item = &'l Line>) -> Vec<f64> {
    let points = lines.into_iter().flat_map(|line| &line.points);
    let mut places = distinct(points.map(|&(x, _)| x));
    places.sort_unstable_by(f64::total_cmp);
    places
}

/// Returns the places that rows have marks for: the same in all of these panels.
pub(super) fn places_of_rows(panels: &[Panel]) -> Vec<f64> {
    let in_rows = panels.iter().filter(|panel| panel.in_rows);
    places(in_rows.flat_map(|panel| &panel.lines))
}

/// More lines than there are colours cannot be followed.
pub(super) const MANY: usize = COLOURS.len();

/// Between two places there is nothing that a line could show, and more lines than there are
/// colours cannot be followed.
fn is_for_rows(x: &Axis, lines: &[Line]) -> bool {
    const FEW: usize = 4;
    let places = places(lines).len();
    let is_of_bars = |line: &Line| line.look == Look::Bars && line.dots.is_empty();
    let are_bars = lines.iter().all(is_of_bars);
    x.as_measured && are_bars && (places <= 2 || lines.len() > MANY && places <= FEW)
}
