//! The stopping rule of an experiment: when a workload has been measured often enough.
//!
//! `rounds` rounds are always made. More follow if the experiment sets a precision or a time
//! budget, until the interval of every ratio of the first subject to another is narrow enough, or
//! the rounds or the time run out. Stopping as soon as an interval is narrow favours lucky moments,
//! so the precision counts only after [`FEWEST`] rounds. What stopped each workload is printed and
//! kept with the results.

use std::fmt;
use std::time::Duration;

use crate::results::record::Row;
use crate::results::statistics::Results;
use crate::results::summary::Summary;
use crate::results::verdict::FEWEST;

/// The number of rounds of a workload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StoppingRule {
    /// The fewest rounds.
    pub least: usize,
    /// The most rounds.
    pub most: usize,
    /// The relative half-width that the interval of every ratio must reach; `None` means that only
    /// time counts.
    pub precision: Option<f64>,
    /// Time for all workloads together.
    pub budget: Option<Duration>,
}

/// The progress of a workload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Rounds made.
    pub rounds: usize,
    /// The greatest relative half-width of its intervals: see [`imprecision`].
    pub imprecision: f64,
    /// Time spent so far.
    pub spent: Duration,
    /// Duration of the last round.
    pub last_round: Duration,
    /// Its share of the budget.
    pub share: Option<Duration>,
}

/// Why no further round is made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reason {
    /// The experiment asks for exactly this many.
    AsPlanned,
    /// Every interval is narrow enough.
    Precise,
    /// `max_rounds` rounds are made; the widest interval still has this relative half-width.
    MostRounds(f64),
    /// Another round would not fit into the time; the widest interval still has this relative
    /// half-width.
    OutOfTime(f64),
}

impl StoppingRule {
    /// Returns whether there may be more rounds than the minimum.
    pub fn adapts(&self) -> bool {
        self.most > self.least
    }

    /// Returns the share of the budget for the next workload when `workloads_left` are left. All of
    /// them share the remaining time equally, so the others gain what one does not need.
    pub fn share(&self, elapsed: Duration, workloads_left: usize) -> Option<Duration> {
        let left = self.budget?.saturating_sub(elapsed);
        Some(left.div_f64(workloads_left.max(1) as f64))
    }

    /// Returns why no further round is to be made, or `None` if one is.
    pub fn reason(&self, progress: &Progress) -> Option<Reason> {
        let Progress {
            rounds,
            imprecision,
            ..
        } = *progress;
        if rounds < self.least {
            return None;
        }
        if !self.adapts() {
            return Some(Reason::AsPlanned);
        }
        let narrow = |precision| rounds >= FEWEST && imprecision <= precision;
        if self.precision.is_some_and(narrow) {
            return Some(Reason::Precise);
        }
        if rounds >= self.most {
            return Some(Reason::MostRounds(imprecision));
        }
        let ends = progress.spent + progress.last_round;
        let too_late = progress.share.is_some_and(|share| ends > share);
        too_late.then_some(Reason::OutOfTime(imprecision))
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let (reason, imprecision) = match self {
            Self::AsPlanned => return formatter.write_str("as planned"),
            Self::Precise => return formatter.write_str("as every ratio is precise enough"),
            Self::MostRounds(imprecision) => ("the most that are allowed", imprecision),
            Self::OutOfTime(imprecision) => ("as its part of the time is used up", imprecision),
        };
        write!(
            formatter,
            "{reason}; the least precise ratio is known to ±{:.1} %",
            imprecision * 100.0
        )
    }
}

/// Returns half the width of an interval, relative to the median.
pub fn relative_half_width(summary: &Summary) -> f64 {
    (summary.high - summary.low) / 2.0 / summary.median
}

/// Returns the greatest relative half-width of the ratios of `first` to each other subject, over
/// all of the rows, which must be of one workload; 0 if there is no ratio.
pub fn imprecision(rows: &[Row], first: &str) -> f64 {
    let results = Results::of(rows);
    let mut greatest = 0.0_f64;
    for case in results.cases() {
        for place in results.places(&case) {
            for other in results.subjects() {
                if other != first
                    && let Some(ratio) = results.ratio(&case, place, first, other)
                {
                    greatest = greatest.max(relative_half_width(&ratio));
                }
            }
        }
    }
    greatest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::record::sample;

    const SECOND: Duration = Duration::from_secs(1);

    fn rule() -> StoppingRule {
        StoppingRule {
            least: 10,
            most: 20,
            precision: Some(0.05),
            budget: Some(100 * SECOND),
        }
    }

    fn progress(rounds: usize, imprecision: f64, spent: Duration) -> Progress {
        Progress {
            rounds,
            imprecision,
            spent,
            last_round: SECOND,
            share: Some(10 * SECOND),
        }
    }

    #[test]
    fn rounds_go_on_until_precise_or_at_an_end() {
        let reason = |rounds, imprecision, spent| {
            rule().reason(&progress(rounds, imprecision, spent * SECOND))
        };
        assert_eq!(reason(9, 0.0, 99), None, "the least is always made");
        assert_eq!(reason(10, 0.05, 7), Some(Reason::Precise));
        assert_eq!(reason(10, 0.051, 7), None);
        assert_eq!(reason(19, 0.051, 9), None, "a round still fits");
        assert_eq!(reason(20, 0.051, 9), Some(Reason::MostRounds(0.051)));
        assert_eq!(reason(10, 0.06, 10), Some(Reason::OutOfTime(0.06)));
        assert_eq!(reason(20, 0.04, 99), Some(Reason::Precise));
    }

    #[test]
    fn few_rounds_are_never_precise() {
        let rule = StoppingRule { least: 1, ..rule() };
        assert_eq!(rule.reason(&progress(FEWEST - 1, 0.0, SECOND)), None);
        assert_eq!(
            rule.reason(&progress(FEWEST, 0.0, SECOND)),
            Some(Reason::Precise)
        );
    }

    #[test]
    fn without_more_rounds_all_ends_as_planned() {
        let rule = StoppingRule { most: 10, ..rule() };
        assert_eq!(rule.reason(&progress(9, 0.0, SECOND)), None);
        let planned = rule.reason(&progress(10, 9.0, 99 * SECOND));
        assert_eq!(planned, Some(Reason::AsPlanned));
    }

    #[test]
    fn time_or_precision_alone_suffices() {
        let timed = StoppingRule {
            precision: None,
            ..rule()
        };
        assert_eq!(timed.reason(&progress(9, 0.0, 9 * SECOND)), None);
        let late = timed.reason(&progress(10, 0.0, 10 * SECOND));
        assert_eq!(late, Some(Reason::OutOfTime(0.0)));
        let precise = StoppingRule {
            budget: None,
            ..rule()
        };
        let without_share = Progress {
            share: None,
            ..progress(9, 0.2, 999 * SECOND)
        };
        assert_eq!(precise.reason(&without_share), None);
    }

    #[test]
    fn time_that_is_left_over_goes_on_to_later_workloads() {
        assert_eq!(rule().share(Duration::ZERO, 5), Some(20 * SECOND));
        // The first of five took 4 seconds instead of 20.
        assert_eq!(rule().share(4 * SECOND, 4), Some(24 * SECOND));
        assert_eq!(rule().share(120 * SECOND, 1), Some(Duration::ZERO));
        assert_eq!(
            StoppingRule {
                budget: None,
                ..rule()
            }
            .share(SECOND, 5),
            None
        );
    }

    #[test]
    fn the_least_precise_ratio_counts() {
        let row = |subject, threads, round, mops| sample(subject, "insert", threads, round, mops);
        let of_round = |round: usize| {
            [
                row("a", 1, round, 10.0),
                row("b", 1, round, 10.0),
                row("a", 2, round, 10.0 + round as f64),
                row("b", 2, round, 10.0),
                row("c", 2, round, 10.0 + 2.0 * round as f64),
            ]
        };
        let rows: Vec<Row> = (1..=5).flat_map(of_round).collect();
        // a over b at 2 threads: 1.3 [1.1–1.5]; others are steadier.
        let found = imprecision(&rows, "a");
        assert!((found - 0.2 / 1.3).abs() < 1e-9, "{found}");
        assert_eq!(imprecision(&rows[..1], "a"), 0.0);
    }
}
