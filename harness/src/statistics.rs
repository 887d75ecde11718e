//! Medians, spreads, and ratios that are paired within rounds.
//!
//! A shared machine is slower in one minute than in the next. Subjects of one round ran right after each
//! other, so a ratio taken within a round is disturbed far less than a ratio of two medians; the median
//! of those ratios is what is reported.

use statrs::statistics::{Data, Max, Min, OrderStatistics};

use crate::bootstrap;
use crate::record::Row;

/// Median and spread of some measurements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// How many measurements there were, at least 1.
    pub count: usize,
    /// The smallest.
    pub min: f64,
    /// A quarter of them are below this.
    pub lower: f64,
    /// Half of them are below this.
    pub median: f64,
    /// A quarter of them are above this.
    pub upper: f64,
    /// The largest.
    pub max: f64,
    /// The lower end of the median's [95 % interval](bootstrap::of_median).
    pub low: f64,
    /// The upper end of it.
    pub high: f64,
}

impl Summary {
    /// Summarises the values; `None` if there are none.
    pub fn of(values: Vec<f64>) -> Option<Self> {
        let (low, high) = bootstrap::of_median(&values)?;
        let mut data = Data::new(values);
        Some(Self {
            count: data.len(),
            min: data.min(),
            lower: data.lower_quartile(),
            median: data.median(),
            upper: data.upper_quartile(),
            max: data.max(),
            low,
            high,
        })
    }
}

/// What differs between the points of one panel of the figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// The number of threads that run.
    Threads,
    /// The number of threads that are frozen meanwhile.
    Frozen,
}

impl Axis {
    fn place(self, row: &Row) -> usize {
        match self {
            Self::Threads => row.threads,
            Self::Frozen => row.frozen,
        }
    }

    fn across(self) -> Self {
        match self {
            Self::Threads => Self::Frozen,
            Self::Frozen => Self::Threads,
        }
    }
}

/// What is held fixed when subjects are compared, apart from the axis: one panel of the figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Label of the workload.
    pub workload: String,
    /// Load factor of the workload.
    pub load_factor: f64,
    /// How many threads there are of the kind that is not on the axis: frozen ones, where the axis has
    /// those that run, and the other way round.
    pub others: usize,
}

/// The rows of one experiment, and the questions a figure or a table asks of them.
#[derive(Clone, Copy, Debug)]
pub struct Results<'a> {
    rows: &'a [Row],
    axis: Axis,
}

impl<'a> Results<'a> {
    /// The axis is the number of frozen threads, if that differs among the rows.
    pub fn of(rows: &'a [Row]) -> Self {
        let differs = rows.iter().any(|row| row.frozen != rows[0].frozen);
        let axis = if differs { Axis::Frozen } else { Axis::Threads };
        Self { rows, axis }
    }

    /// What differs between the points of a case.
    pub fn axis(&self) -> Axis {
        self.axis
    }

    /// All cases, in the order they first appear.
    pub fn cases(&self) -> Vec<Case> {
        distinct(self.rows.iter().map(|row| self.case(row)))
    }

    fn case(&self, row: &Row) -> Case {
        Case {
            workload: row.workload.clone(),
            load_factor: row.load_factor,
            others: self.axis.across().place(row),
        }
    }

    fn holds(&self, case: &Case, row: &Row) -> bool {
        row.workload == case.workload
            && row.load_factor == case.load_factor
            && self.axis.across().place(row) == case.others
    }

    /// All subjects, in the order of round 1 as far as it goes.
    pub fn subjects(&self) -> Vec<&'a str> {
        distinct(self.rows.iter().map(|row| row.subject.as_str()))
    }

    /// The places on the axis that a case was measured at, ascending.
    pub fn places(&self, case: &Case) -> Vec<usize> {
        let rows = self.rows.iter().filter(|row| self.holds(case, row));
        let mut places = distinct(rows.map(|row| self.axis.place(row)));
        places.sort_unstable();
        places
    }

    /// Whether more threads ran there than the machine has cores.
    pub fn oversubscribed(&self, case: &Case, place: usize) -> bool {
        let there = |row: &&Row| self.holds(case, row) && self.axis.place(row) == place;
        self.rows.iter().filter(there).any(|row| row.oversubscribed)
    }

    /// Throughput over the rounds, in million operations per second; `None` where nothing was measured.
    pub fn throughput(&self, case: &Case, place: usize, subject: &str) -> Option<Summary> {
        let rounds = self.rounds(case, place, subject);
        Summary::of(rounds.map(|row| row.mops).collect())
    }

    /// Throughput of subject `a` over that of subject `b`, taken within each round that has both.
    pub fn ratio(&self, case: &Case, place: usize, a: &str, b: &str) -> Option<Summary> {
        self.ratio_across(case, (place, a), (place, b))
    }

    /// Throughput of one subject at one place over that of another, or of the same one, elsewhere, taken within
    /// each round that has both.
    pub fn ratio_across(&self, case: &Case, a: (usize, &str), b: (usize, &str)) -> Option<Summary> {
        let ratios = self.ratios_by_round(case, a, b);
        Summary::of(ratios.into_iter().map(|(_, ratio)| ratio).collect())
    }

    /// The ratios that [`ratio_across`](Self::ratio_across) summarises, each with its round.
    pub fn ratios_by_round(
        &self,
        case: &Case,
        a: (usize, &str),
        b: (usize, &str),
    ) -> Vec<(usize, f64)> {
        let pair = |of_a: &Row| {
            self.rounds(case, b.0, b.1)
                .find(|of_b| of_b.round == of_a.round)
                .map(|of_b| (of_a.round, of_a.mops / of_b.mops))
        };
        self.rounds(case, a.0, a.1).filter_map(pair).collect()
    }

    /// All rows of a subject under a case, wherever on the axis.
    pub fn rows(&self, case: &Case, subject: &str) -> impl Iterator<Item = &'a Row> {
        let of = move |row: &&Row| self.holds(case, row) && row.subject == subject;
        self.rows.iter().filter(of)
    }

    /// All rows of a subject at one place on the axis, one a round.
    pub fn rounds(
        &self,
        case: &Case,
        place: usize,
        subject: &str,
    ) -> impl Iterator<Item = &'a Row> {
        let of = move |row: &&Row| self.axis.place(row) == place;
        self.rows(case, subject).filter(of)
    }
}

fn distinct<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = Vec::new();
    for value in values {
        if !seen.contains(&value) {
            seen.push(value);
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::sample;

    fn row(subject: &str, threads: usize, round: usize, mops: f64) -> Row {
        sample(subject, "lookup-hit", threads, round, mops)
    }

    fn case() -> Case {
        Case {
            workload: "lookup-hit".into(),
            load_factor: 0.92,
            others: 0,
        }
    }

    #[test]
    fn a_summary_has_the_order_statistics() {
        let summary = Summary::of(vec![5.0, 1.0, 4.0, 2.0, 3.0]).unwrap();
        assert_eq!((summary.count, summary.min, summary.max), (5, 1.0, 5.0));
        assert_eq!(summary.median, 3.0);
        assert!((1.0..=2.0).contains(&summary.lower), "{summary:?}");
        assert!((4.0..=5.0).contains(&summary.upper), "{summary:?}");
        assert_eq!(Summary::of(vec![2.0, 4.0]).unwrap().median, 3.0);
        assert_eq!((summary.low, summary.high), (1.0, 5.0));
        let single = Summary::of(vec![7.0]).unwrap();
        assert_eq!((single.lower, single.median, single.upper), (7.0, 7.0, 7.0));
        assert_eq!((single.low, single.high), (7.0, 7.0));
        assert_eq!(Summary::of(vec![]), None);
    }

    #[test]
    fn ratios_are_paired_within_rounds() {
        // The machine halves its speed every round. Within rounds a is twice b, exactly; the unpaired
        // ratio of medians would be 20 / 5 = 4, as b's slowest round is missing a's fastest.
        let rows = [
            row("a", 1, 1, 40.0),
            row("b", 1, 1, 20.0),
            row("b", 1, 2, 10.0),
            row("a", 1, 2, 20.0),
            row("a", 1, 3, 10.0),
            row("b", 1, 3, 5.0),
            row("b", 1, 4, 2.5),
            row("b", 1, 5, 1.25),
        ];
        let ratio = Results::of(&rows).ratio(&case(), 1, "a", "b").unwrap();
        assert_eq!(ratio.count, 3);
        assert_eq!((ratio.min, ratio.median, ratio.max), (2.0, 2.0, 2.0));
        let inverse = Results::of(&rows).ratio(&case(), 1, "b", "a").unwrap();
        assert_eq!((inverse.count, inverse.median), (3, 0.5));
    }

    #[test]
    fn a_ratio_needs_a_round_with_both() {
        let rows = [
            row("a", 1, 1, 1.0),
            row("b", 1, 2, 1.0),
            row("b", 2, 1, 1.0),
        ];
        let results = Results::of(&rows);
        assert_eq!(results.ratio(&case(), 1, "a", "b"), None);
        assert_eq!(results.ratio(&case(), 2, "a", "b"), None);
        assert_eq!(results.ratio(&case(), 1, "a", "c"), None);
    }

    #[test]
    fn a_subject_may_be_compared_with_itself_elsewhere() {
        let rows = [
            row("a", 1, 1, 10.0),
            row("a", 2, 1, 15.0),
            row("a", 1, 2, 1.0),
            row("a", 2, 2, 1.5),
        ];
        let ratio = Results::of(&rows).ratio_across(&case(), (2, "a"), (1, "a"));
        assert_eq!(ratio.map(|ratio| (ratio.min, ratio.max)), Some((1.5, 1.5)));
    }

    #[test]
    fn loads_and_threads_are_kept_apart() {
        let denser = Row {
            load_factor: 0.95,
            ..row("a", 1, 1, 100.0)
        };
        let rows = [
            row("b", 4, 1, 8.0),
            row("a", 1, 1, 1.0),
            denser,
            row("a", 4, 1, 4.0),
        ];
        let results = Results::of(&rows);
        assert_eq!(results.cases().len(), 2);
        assert_eq!(results.subjects(), ["b", "a"]);
        assert_eq!(results.places(&case()), [1, 4]);
        assert_eq!(results.throughput(&case(), 1, "a").unwrap().max, 1.0);
        assert_eq!(results.throughput(&case(), 4, "a").unwrap().median, 4.0);
        assert_eq!(results.throughput(&case(), 1, "b"), None);
        assert!(!results.oversubscribed(&case(), 1) && results.oversubscribed(&case(), 4));
    }

    #[test]
    fn frozen_threads_are_the_axis_where_their_number_differs() {
        let frozen = |frozen, threads, mops| Row {
            frozen,
            ..row("a", threads, 1, mops)
        };
        let rows = [frozen(4, 2, 1.0), frozen(0, 2, 2.0), frozen(0, 4, 3.0)];
        let results = Results::of(&rows);
        assert_eq!(results.axis(), Axis::Frozen);
        let threads: Vec<_> = results.cases().iter().map(|case| case.others).collect();
        assert_eq!(threads, [2, 4]);
        let of_two = &results.cases()[0];
        assert_eq!(results.places(of_two), [0, 4]);
        assert_eq!(results.throughput(of_two, 4, "a").unwrap().median, 1.0);
        assert_eq!(results.throughput(of_two, 2, "a"), None);
        assert!(!results.oversubscribed(of_two, 4));
        assert!(results.oversubscribed(&results.cases()[1], 0));

        let always_frozen = [frozen(1, 2, 1.0), frozen(1, 4, 1.0)];
        let results = Results::of(&always_frozen);
        assert_eq!(results.axis(), Axis::Threads);
        assert_eq!(results.places(&results.cases()[0]), [2, 4]);
    }
}
