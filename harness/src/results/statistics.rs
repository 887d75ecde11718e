//! Statistics of rows: medians, spreads, and ratios that are paired within rounds. One mechanism for
//! the rows of all studies.
//!
//! Rows name their subject, their round, a *case*, which is all that is held fixed when subjects are
//! compared (one panel of a figure), and a *place* on the axis of that panel.

use crate::results::{Comparison, Row, SMALLEST_EFFECT, Series, Summary};
use crate::subjects::BOUNDS;
use crate::wording::counted;

/// Rows of subjects that take turns in rounds.
pub trait InRounds {
    /// Which quantity is the horizontal axis; `()` if it is always the same one.
    type Axis: Copy;

    /// What is held fixed when subjects are compared.
    type Case: Clone + PartialEq;

    fn subject(&self) -> &str;

    fn round(&self) -> usize;

    fn case(&self, axis: Self::Axis) -> Self::Case;

    fn is_of(&self, case: &Self::Case, axis: Self::Axis) -> bool {
        self.case(axis) == *case
    }

    fn place(&self, axis: Self::Axis) -> f64;

    /// Returns whether the comparison of these subjects has a certain outcome.
    fn is_foregone(_case: &Self::Case, _subjects: [&str; 2]) -> bool {
        false
    }

    fn smallest_effect(_case: &Self::Case, _place: f64) -> f64 {
        SMALLEST_EFFECT
    }
}

/// The rows of one experiment, with the queries that figures and tables need.
#[derive(Debug)]
pub struct Results<'a, R: InRounds = Row> {
    pub all: &'a [R],
    /// What differs between the points of a case.
    pub axis: R::Axis,
}

impl<'a, R: InRounds> Results<'a, R> {
    pub fn along(axis: R::Axis, all: &'a [R]) -> Self {
        Self { all, axis }
    }

    /// Returns all cases, in the order in which they first appear.
    pub fn cases(&self) -> Vec<R::Case> {
        distinct(self.all.iter().map(|row| row.case(self.axis)))
    }

    /// Returns all subjects, in the order of round 1 as far as it goes.
    pub fn subjects(&self) -> Vec<&'a str> {
        distinct(self.all.iter().map(R::subject))
    }

    /// Returns the places on the axis at which a case was measured, ascending.
    pub fn places(&self, case: &R::Case) -> Vec<f64> {
        let rows = self.all.iter().filter(|row| row.is_of(case, self.axis));
        let mut places = distinct(rows.map(|row| row.place(self.axis)));
        places.sort_unstable_by(f64::total_cmp);
        places
    }

    pub fn rows(&self, case: &R::Case, subject: &str) -> impl Iterator<Item = &'a R> {
        let axis = self.axis;
        let of = move |row: &&R| row.is_of(case, axis) && row.subject() == subject;
        self.all.iter().filter(of)
    }

    pub fn rounds(&self, case: &R::Case, place: f64, subject: &str) -> impl Iterator<Item = &'a R> {
        let axis = self.axis;
        let of = move |row: &&R| row.place(axis) == place;
        self.rows(case, subject).filter(of)
    }

    /// Returns a quantity of a subject, round by round, where it was measured.
    pub fn series(
        &self,
        case: &R::Case,
        place: f64,
        subject: &str,
        quantity: impl Fn(&R) -> Option<f64>,
    ) -> Series {
        let rounds = self.rounds(case, place, subject);
        let value = |row: &R| Some((row.round(), quantity(row)?));
        rounds.filter_map(value).collect()
    }

    /// Summarises a quantity over the rounds; `None` if nothing was measured.
    pub fn summary(
        &self,
        case: &R::Case,
        place: f64,
        subject: &str,
        quantity: impl Fn(&R) -> Option<f64>,
    ) -> Option<Summary> {
        let series = self.series(case, place, subject, quantity);
        Summary::of(series.into_iter().map(|(_, value)| value).collect())
    }

    /// Summarises a quantity at each place where it was measured: the points of a line.
    pub fn points(
        &self,
        case: &R::Case,
        subject: &str,
        quantity: impl Fn(&R) -> Option<f64> + Copy,
    ) -> Vec<(f64, Summary)> {
        let point = |place| Some((place, self.summary(case, place, subject, quantity)?));
        self.places(case).into_iter().filter_map(point).collect()
    }

    /// Compares any quantity, of subjects at two places, or of one subject at two places.
    pub fn comparison_of(
        &self,
        case: &R::Case,
        ends: [(f64, &str); 2],
        quantity: impl Fn(&R) -> Option<f64> + Copy,
    ) -> Option<Comparison> {
        let [a, b] = ends.map(|(place, subject)| self.series(case, place, subject, quantity));
        let subjects = ends.map(|(_, subject)| subject);
        let smallest = R::smallest_effect(case, ends[0].0);
        let comparison = Comparison::between(&a, &b, subjects[1], smallest)?;
        Some(comparison.foregone(R::is_foregone(case, subjects)))
    }
}

/// A quantity that may differ between measurements of the same subject and workload of a sweep. One of
/// them is the horizontal axis of a figure, and the others are constant within a panel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// The words that an operation of K-CAS changes.
    Entries,
    /// The keys that fill a table to its load factor, and so its size.
    Keys,
    Threads,
    Frozen,
    /// The rate at which operations are due, as a share of the closed loop's throughput.
    Offered,
    Load,
    /// The percentage of lookups for a key that is present.
    Hit,
    /// The exponent of the Zipf law by which keys are chosen.
    Skew,
}

impl Axis {
    /// All axes, in the order in which the axis of a figure is chosen: the first that differs.
    const ALL: [Self; 8] = {
        use Axis::*;
        [Entries, Frozen, Keys, Threads, Offered, Load, Hit, Skew]
    };

    pub fn place(self, row: &Row) -> f64 {
        match self {
            Self::Keys => row.keys as f64,
            Self::Threads => row.threads as f64,
            Self::Frozen => row.frozen as f64,
            Self::Offered => row.offered,
            Self::Entries => row.entries as f64,
            Self::Load => row.load_factor,
            Self::Hit => f64::from(row.hit),
            Self::Skew => row.skew,
        }
    }
}

/// What is held fixed when subjects of a sweep are compared, apart from the axis: one panel of the figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    pub workload: String,
    /// Name of the simulated machine; empty if rows were measured.
    pub simulated: String,
    /// The values on all axes but that of the figure.
    fixed: Vec<(Axis, f64)>,
}

impl Case {
    pub fn on(&self, machine: impl Into<String>) -> Self {
        Self {
            simulated: machine.into(),
            ..self.clone()
        }
    }

    /// Adds to a name that the rows are simulated, and on which machine, if they are.
    pub fn marked(&self, name: String) -> String {
        match &*self.simulated {
            "" => name,
            machine => format!("{name}, simulated on {machine}"),
        }
    }

    pub fn value(&self, axis: Axis) -> Option<f64> {
        let found = self.fixed.iter().find(|(of, _)| *of == axis);
        found.map(|&(_, value)| value)
    }
}

impl InRounds for Row {
    type Axis = Axis;
    type Case = Case;

    fn subject(&self) -> &str {
        &self.subject
    }

    fn round(&self) -> usize {
        self.round
    }

    fn case(&self, axis: Axis) -> Case {
        // Along the load factor, a table of the same slots has other keys.
        let goes_with = |other| other == axis || (axis, other) == (Axis::Load, Axis::Keys);
        let others = Axis::ALL.into_iter().filter(|&other| !goes_with(other));
        Case {
            workload: self.workload.clone(),
            simulated: self.simulated.clone(),
            fixed: others.map(|axis| (axis, axis.place(self))).collect(),
        }
    }

    fn is_of(&self, case: &Case, _: Axis) -> bool {
        let stands = |&(axis, value): &(Axis, f64)| axis.place(self) == value;
        (&self.workload, &self.simulated) == (&case.workload, &case.simulated)
            && case.fixed.iter().all(stands)
    }

    fn place(&self, axis: Axis) -> f64 {
        axis.place(self)
    }

    /// Bounds are faster by nature, and simulations do not vary.
    fn is_foregone(case: &Case, subjects: [&str; 2]) -> bool {
        subjects.iter().any(|of| BOUNDS.contains(of)) || !case.simulated.is_empty()
    }

    /// More than 19 of 20 medians of a subject over itself reach, in the widest of seven measurements of
    /// `experiments/same.toml`, on several processors. They differ: for lookups of present keys, from 1.02 to 1.11.
    fn smallest_effect(case: &Case, place: f64) -> f64 {
        // Along the axis of hits, the place is their share.
        let is_half_present = case.value(Axis::Hit).unwrap_or(place) == 50.0;
        match &*case.workload {
            "insert" => 1.07,
            "remove" => 1.13,
            "lookup" if is_half_present => 1.09,
            "lookup-hit" => 1.12,
            "lookup-miss" => 1.06,
            "mix-90-5-5" => 1.08,
            _ => SMALLEST_EFFECT,
        }
    }
}

impl<'a> Results<'a> {
    /// Chooses as axis what differs among the rows of one workload: the first, in this order, of
    /// entries, frozen threads, keys, threads, offered rate, load factor, hit ratio and skew. If nothing differs,
    /// the axis is threads.
    pub fn of(rows: &'a [Row]) -> Self {
        let differs = |axis: &Axis| {
            rows.iter().any(|row| {
                let same = |other: &&Row| {
                    other.workload == row.workload
                        && (*axis != Axis::Keys || other.load_factor == row.load_factor)
                };
                let first = rows.iter().find(same);
                first.is_some_and(|first| axis.place(first) != axis.place(row))
            })
        };
        let axis = Axis::ALL.into_iter().find(differs);
        Self::along(axis.unwrap_or(Axis::Threads), rows)
    }

    /// Compares the throughput of `a` with that of `b`, within each round that has both.
    pub fn comparison(&self, case: &Case, place: f64, a: &str, b: &str) -> Option<Comparison> {
        self.comparison_of(case, [(place, a), (place, b)], Row::throughput)
    }

    pub fn oversubscribed(&self, case: &Case, place: f64) -> bool {
        let there = |row: &&Row| row.is_of(case, self.axis) && row.place(self.axis) == place;
        self.all.iter().filter(there).any(|row| row.oversubscribed)
    }

    /// Returns whether operations were timed one by one.
    pub fn timed(&self) -> bool {
        self.all.iter().any(|row| row.max_ns > 0)
    }

    /// Returns the least number of threads of a case, and the greatest without more threads than
    /// cores, each once. The axis must be of threads.
    pub fn one_and_all(&self, case: &Case) -> Vec<f64> {
        let mut places = self.places(case);
        places.retain(|&place| !self.oversubscribed(case, place));
        let ends = places.first().into_iter().chain(places.last());
        distinct(ends.copied())
    }

    /// Says how many measurements are left out of ratios, if any.
    pub fn left_out(&self) -> Option<String> {
        let count = self.all.iter().filter(|row| row.stood_still()).count();
        let measurements = counted(count, "measurement");
        (count > 0).then(|| {
            format!("Left out of ratios: {measurements} in which not one operation was done.")
        })
    }
}

/// Returns each value once, in the order in which they first appear.
pub(crate) fn distinct<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = Vec::new();
    for value in values {
        if !seen.contains(&value) {
            seen.push(value);
        }
    }
    seen
}
