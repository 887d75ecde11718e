//! Which claims the measurements over rounds allow, and how they are shown: one rule for all
//! tables, sentences and marks.
//!
//! A value is reported as the median over the rounds, with its [95 % bootstrap
//! interval](crate::results::bootstrap). A claim needs [`FEWEST`] rounds; the claim that one
//! subject is faster than another also needs an interval of their ratio that excludes 1. Where no
//! claim is possible, a table has a [mark](Verdict::mark) and a sentence a
//! [reservation](Verdict::reservation).

use crate::results::series::Series;
use crate::results::summary::Summary;

/// The fewest rounds that allow a claim: with fewer, the interval is the range, and
/// [covers](crate::results::bootstrap) the truth less often than it promises.
pub const FEWEST: usize = 5;

/// Name of the interval, for the notes under a table.
pub const INTERVAL: &str = "its 95 % bootstrap interval";

/// An interval is wide if its upper end is more than this many times its lower end.
pub const TOO_WIDE: f64 = 2.0;

/// What the interval of a ratio of throughputs says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The whole interval is above 1.
    Faster,
    /// The whole interval is below 1.
    Slower,
    /// The interval includes 1.
    TooCloseToCall,
    /// The interval includes 1 and is wider than a factor of [`TOO_WIDE`], or that of one of its
    /// subjects against itself one round later is this wide.
    TooNoisy,
    /// There are fewer than [`FEWEST`] rounds.
    TooFewRounds,
}

/// A value over rounds, with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Number of rounds.
    pub rounds: usize,
    /// The value.
    pub value: f64,
    /// The lower end of its interval.
    pub low: f64,
    /// The upper end of its interval.
    pub high: f64,
}

impl From<&Summary> for Spread {
    /// Uses the median as the value.
    fn from(summary: &Summary) -> Self {
        Self {
            rounds: summary.count,
            value: summary.median,
            low: summary.low,
            high: summary.high,
        }
    }
}

impl Verdict {
    /// Judges this ratio by itself.
    pub fn of(ratio: impl Into<Spread>) -> Self {
        let ratio = &ratio.into();
        if let Some(too_few) = Self::of_rounds(ratio.rounds) {
            too_few
        } else if ratio.low > 1.0 {
            Self::Faster
        } else if ratio.high < 1.0 {
            Self::Slower
        } else if is_too_wide(ratio) {
            Self::TooNoisy
        } else {
            Self::TooCloseToCall
        }
    }

    /// Returns what prevents a claim about any value over this many rounds.
    pub fn of_rounds(rounds: usize) -> Option<Self> {
        (rounds < FEWEST).then_some(Self::TooFewRounds)
    }

    /// Returns what a sentence adds after a ratio that allows no claim; empty for others.
    pub fn reservation(self) -> &'static str {
        match self {
            Self::Faster | Self::Slower => "",
            Self::TooCloseToCall => ", too close to call",
            Self::TooNoisy => ", on a machine too noisy for a claim",
            Self::TooFewRounds => ", from too few rounds for a claim",
        }
    }

    /// Returns what a table puts after a ratio that allows no claim; empty for others.
    pub fn mark(self) -> &'static str {
        match self {
            Self::Faster | Self::Slower => "",
            Self::TooCloseToCall => "~",
            Self::TooNoisy => "?",
            Self::TooFewRounds => "#",
        }
    }

    /// Explains its mark.
    pub fn explanation(self) -> String {
        match self {
            Self::Faster => "faster: the interval is above 1".into(),
            Self::Slower => "slower: the interval is below 1".into(),
            Self::TooCloseToCall => "too close to call: the interval includes 1".into(),
            Self::TooNoisy => format!(
                "no claim, the machine was too noisy: the interval includes 1, and spans more than a factor of \
                 {TOO_WIDE}, or that of a subject over itself one round later does"
            ),
            Self::TooFewRounds => format!(
                "no claim: fewer than {FEWEST} rounds, and the interval is no more than their range"
            ),
        }
    }
}

/// One subject compared with another, for tables, sentences and marks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// The ratio, taken within rounds.
    pub ratio: Summary,
    /// The claim it allows.
    pub verdict: Verdict,
}

impl Comparison {
    /// Judges the ratio by itself.
    pub fn of(ratio: Summary) -> Self {
        Self {
            ratio,
            verdict: Verdict::of(&ratio),
        }
    }

    /// Compares two series; `None` if no round has both. If either varies too much [from round to
    /// round](Series::over_itself), they are not called close.
    pub fn between(a: &Series, b: &Series) -> Option<Self> {
        let comparison = Self::of(a.over(b).summary()?);
        let mut themselves = [a, b]
            .into_iter()
            .filter_map(|series| series.over_itself().summary());
        Some(match comparison.verdict {
            // The ratio may be wide only because the speed of the machine varied.
            Verdict::TooCloseToCall if themselves.any(|of| is_too_wide(&(&of).into())) => Self {
                verdict: Verdict::TooNoisy,
                ..comparison
            },
            _ => comparison,
        })
    }
}

/// The verdicts that have a mark.
const NO_CLAIM: [Verdict; 3] = [
    Verdict::TooCloseToCall,
    Verdict::TooNoisy,
    Verdict::TooFewRounds,
];

/// Formats values with their intervals for the cells of a table, and remembers which marks it used.
#[derive(Clone, Debug, Default)]
pub struct Marks(Vec<Verdict>);

impl Marks {
    /// Formats a ratio with the mark of its verdict; a dash if nothing was measured.
    pub fn ratio(&mut self, comparison: Option<Comparison>) -> String {
        match comparison {
            None => "–".into(),
            Some(Comparison { ratio, verdict }) => {
                self.shown(&ratio, Some(verdict), |ratio| format!("{ratio:.2}"))
            }
        }
    }

    /// Formats a value that is no ratio, marked if there are too few rounds.
    pub fn value(&mut self, value: &Summary, number: impl Fn(f64) -> String) -> String {
        self.shown(value, Verdict::of_rounds(value.count), number)
    }

    /// Formats a value with `number`, and the mark of this verdict.
    pub fn shown(
        &mut self,
        value: impl Into<Spread>,
        verdict: Option<Verdict>,
        number: impl Fn(f64) -> String,
    ) -> String {
        self.0.extend(verdict);
        let value = value.into();
        let [low, middle, high] = [value.low, value.value, value.high].map(number);
        let mark = verdict.map_or("", Verdict::mark);
        let shown = format!("{middle} [{low}–{high}] {mark}");
        shown.trim_end().to_owned()
    }

    /// Explains the marks that were used.
    pub fn explained(&self) -> impl Iterator<Item = String> {
        let used = NO_CLAIM
            .into_iter()
            .filter(|verdict| self.0.contains(verdict));
        used.map(|verdict| format!("{} {}.", verdict.mark(), verdict.explanation()))
    }
}

/// Returns whether the interval is too wide for a claim; true also if it is not a number.
fn is_too_wide(ratio: &Spread) -> bool {
    let width = ratio.high / ratio.low;
    width.is_nan() || width > TOO_WIDE
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::record::{Row, sample};
    use crate::results::statistics::{Case, Results};

    fn ratio(low: f64, high: f64, count: usize) -> Summary {
        let median = f64::midpoint(low, high);
        Summary {
            count,
            low,
            high,
            ..Summary::of(vec![median]).unwrap()
        }
    }

    #[test]
    fn the_interval_decides() {
        use Verdict::*;
        for (low, high, verdict) in [
            (1.01, 1.5, Faster),
            (0.7, 0.99, Slower),
            (0.9, 1.1, TooCloseToCall),
            (1.0, 1.1, TooCloseToCall),
            (0.9, 1.0, TooCloseToCall),
            (2.0, 4.0, Faster),
            (2.0, 4.1, Faster),
            (0.7, 1.5, TooNoisy),
            (0.0, f64::INFINITY, TooNoisy),
            (f64::NAN, f64::NAN, TooNoisy),
        ] {
            assert_eq!(Verdict::of(&ratio(low, high, 5)), verdict, "{low}–{high}");
            assert_eq!(Verdict::of(&ratio(low, high, 4)), TooFewRounds);
        }
    }

    /// Returns rounds of two subjects with these speeds; the first subject is alternately faster by
    /// the two factors in `times`.
    fn rounds_of(times: [f64; 2], speeds: &[f64]) -> Vec<Row> {
        let row = |subject, round, mops| sample(subject, "lookup-hit", 2, round, mops);
        let pair = |(round, speed): (usize, &f64)| {
            [
                row("a", round + 1, times[round % 2] * speed),
                row("b", round + 1, *speed),
            ]
        };
        speeds.iter().enumerate().flat_map(pair).collect()
    }

    fn verdict(times: [f64; 2], speeds: &[f64]) -> Option<Verdict> {
        let rows = rounds_of(times, speeds);
        let results = Results::of(&rows);
        let found = results.comparison(&results.cases()[0], 2.0, "a", "b");
        found.map(|found| found.verdict)
    }

    #[test]
    fn a_machine_that_differs_from_itself_allows_no_claim_of_nearness() {
        let (calm, twice, near) = ([10.0; 7], [1.5, 1.5], [0.9, 1.1]);
        assert_eq!(verdict(twice, &calm), Some(Verdict::Faster));
        assert_eq!(verdict(near, &calm), Some(Verdict::TooCloseToCall));
        let drifting = [10.0, 9.0, 8.0, 7.0, 6.0, 5.0, 4.0];
        assert_eq!(verdict(near, &drifting), Some(Verdict::TooCloseToCall));
        let jumping = [10.0, 2.0, 10.0, 2.0, 10.0, 2.0, 10.0];
        assert_eq!(verdict(near, &jumping), Some(Verdict::TooNoisy));
        // Ratios within rounds hide it.
        assert_eq!(verdict(twice, &jumping), Some(Verdict::Faster));
        assert_eq!(verdict(near, &jumping[..3]), Some(Verdict::TooFewRounds));
        let rows = rounds_of(twice, &[1.0]);
        assert_eq!(Results::of(&rows).comparison(&case(), 2.0, "a", "c"), None);
    }

    fn case() -> Case {
        Results::of(&rounds_of([1.0; 2], &[1.0])).cases()[0].clone()
    }
}
