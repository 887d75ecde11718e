//! Medians, spreads, and ratios that are paired within rounds.
//!
//! A shared machine is slower in one minute than in the next. Subjects of one round ran right after each
//! other, so a ratio taken within a round is disturbed far less than a ratio of two medians; the median
//! of those ratios is what is reported.

use statrs::statistics::{Data, Distribution, Max, Min, OrderStatistics};

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
}

impl Summary {
    /// Summarises the values; `None` if there are none.
    pub fn of(values: Vec<f64>) -> Option<Self> {
        let mut data = Data::new(values);
        (!data.is_empty()).then(|| Self {
            count: data.len(),
            min: data.min(),
            lower: data.lower_quartile(),
            median: data.median(),
            upper: data.upper_quartile(),
            max: data.max(),
        })
    }
}

/// Arithmetic mean; `None` if there are no values.
pub fn mean(values: Vec<f64>) -> Option<f64> {
    Data::new(values).mean().filter(|mean| mean.is_finite())
}

/// What is held fixed when subjects are compared, apart from the threads: one panel of the figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Label of the workload.
    pub workload: String,
    /// Load factor of the workload.
    pub load_factor: f64,
}

impl Case {
    fn holds(&self, row: &Row) -> bool {
        row.workload == self.workload && row.load_factor == self.load_factor
    }
}

/// The rows of one experiment, and the questions a figure or a table asks of them.
#[derive(Clone, Copy, Debug)]
pub struct Results<'a>(pub &'a [Row]);

impl<'a> Results<'a> {
    /// All cases, in the order they first appear.
    pub fn cases(&self) -> Vec<Case> {
        distinct(self.0.iter().map(|row| Case {
            workload: row.workload.clone(),
            load_factor: row.load_factor,
        }))
    }

    /// All subjects, in the order of round 1 as far as it goes.
    pub fn subjects(&self) -> Vec<&'a str> {
        distinct(self.0.iter().map(|row| row.subject.as_str()))
    }

    /// The numbers of threads a case was measured with, ascending.
    pub fn threads(&self, case: &Case) -> Vec<usize> {
        let rows = self.0.iter().filter(|row| case.holds(row));
        let mut threads = distinct(rows.map(|row| row.threads));
        threads.sort_unstable();
        threads
    }

    /// Whether that many threads were more than the machine has cores.
    pub fn oversubscribed(&self, threads: usize) -> bool {
        let of = |row: &Row| row.threads == threads && row.oversubscribed;
        self.0.iter().any(of)
    }

    /// Throughput over the rounds, in million operations per second; `None` where nothing was measured.
    pub fn throughput(&self, case: &Case, threads: usize, subject: &str) -> Option<Summary> {
        let rounds = self.rounds(case, threads, subject);
        Summary::of(rounds.map(|row| row.mops).collect())
    }

    /// Throughput of subject `a` over that of subject `b`, taken within each round that has both.
    pub fn ratio(&self, case: &Case, threads: usize, a: &str, b: &str) -> Option<Summary> {
        let pairs = self.rounds(case, threads, a).filter_map(|of_a| {
            self.rounds(case, threads, b)
                .find(|of_b| of_b.round == of_a.round)
                .map(|of_b| of_a.mops / of_b.mops)
        });
        Summary::of(pairs.collect())
    }

    /// All rows of a subject under a case, whatever the number of threads.
    pub fn rows(&self, case: &Case, subject: &str) -> impl Iterator<Item = &'a Row> {
        let of = move |row: &&Row| case.holds(row) && row.subject == subject;
        self.0.iter().filter(of)
    }

    fn rounds(&self, case: &Case, threads: usize, subject: &str) -> impl Iterator<Item = &'a Row> {
        let of = move |row: &&Row| row.threads == threads;
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
        let single = Summary::of(vec![7.0]).unwrap();
        assert_eq!((single.lower, single.median, single.upper), (7.0, 7.0, 7.0));
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
        let ratio = Results(&rows).ratio(&case(), 1, "a", "b").unwrap();
        assert_eq!(ratio.count, 3);
        assert_eq!((ratio.min, ratio.median, ratio.max), (2.0, 2.0, 2.0));
        let inverse = Results(&rows).ratio(&case(), 1, "b", "a").unwrap();
        assert_eq!((inverse.count, inverse.median), (3, 0.5));
    }

    #[test]
    fn a_ratio_needs_a_round_with_both() {
        let rows = [
            row("a", 1, 1, 1.0),
            row("b", 1, 2, 1.0),
            row("b", 2, 1, 1.0),
        ];
        let results = Results(&rows);
        assert_eq!(results.ratio(&case(), 1, "a", "b"), None);
        assert_eq!(results.ratio(&case(), 2, "a", "b"), None);
        assert_eq!(results.ratio(&case(), 1, "a", "c"), None);
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
        let results = Results(&rows);
        assert_eq!(results.cases().len(), 2);
        assert_eq!(results.subjects(), ["b", "a"]);
        assert_eq!(results.threads(&case()), [1, 4]);
        assert_eq!(results.throughput(&case(), 1, "a").unwrap().max, 1.0);
        assert_eq!(results.throughput(&case(), 4, "a").unwrap().median, 4.0);
        assert_eq!(results.throughput(&case(), 1, "b"), None);
        assert!(!results.oversubscribed(1) && results.oversubscribed(4));
    }

    #[test]
    fn the_mean_of_nothing_is_nothing() {
        assert_eq!(mean(vec![1.0, 2.0, 6.0]), Some(3.0));
        assert_eq!(mean(vec![]), None);
    }
}
