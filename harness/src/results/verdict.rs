//! What a measured ratio allows to claim: faster, slower, or nothing.

use crate::results::bootstrap;
use crate::results::statistics::{Case, Results, Summary};

/// An interval is wide if its upper end is more than so many times its lower end.
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
    /// The interval includes 1, and is wider than a factor of [`TOO_WIDE`], or that of one of its subjects against
    /// itself one round later is.
    TooNoisy,
    /// There are fewer than [`bootstrap::FEWEST`] rounds.
    TooFewRounds,
}

impl Verdict {
    /// The verdict on the throughput of `a` over that of `b`; `None` where no round has both.
    pub fn on(results: &Results, case: &Case, place: f64, a: &str, b: &str) -> Option<Self> {
        let ratio = results.ratio(case, place, a, b)?;
        let mut themselves = [a, b]
            .into_iter()
            .filter_map(|subject| against_itself(results, case, place, subject));
        Some(match Self::of(&ratio) {
            // Perhaps only because the machine differed from itself.
            Self::TooCloseToCall if themselves.any(|ratio| is_too_wide(&ratio)) => Self::TooNoisy,
            verdict => verdict,
        })
    }

    /// What this ratio says by itself.
    pub fn of(ratio: &Summary) -> Self {
        if ratio.count < bootstrap::FEWEST {
            Self::TooFewRounds
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

    /// What a table puts after a ratio that allows no claim; nothing after others.
    pub fn mark(self) -> &'static str {
        match self {
            Self::Faster | Self::Slower => "",
            Self::TooCloseToCall => "~",
            Self::TooNoisy => "?",
            Self::TooFewRounds => "#",
        }
    }

    /// What its mark means.
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
                "no claim: fewer than {} rounds, and the interval is no more than their range",
                bootstrap::FEWEST
            ),
        }
    }
}

/// Throughput of a subject over its own in the next round. On a machine that stays the same it is 1.
pub fn against_itself(
    results: &Results,
    case: &Case,
    place: f64,
    subject: &str,
) -> Option<Summary> {
    let mut rounds: Vec<_> = results.rounds(case, place, subject).collect();
    rounds.sort_by_key(|row| row.round);
    let neighbours = rounds.windows(2);
    Summary::of(neighbours.map(|pair| pair[0].mops / pair[1].mops).collect())
}

/// A value that is no number is too wide for any claim, too.
fn is_too_wide(ratio: &Summary) -> bool {
    let width = ratio.high / ratio.low;
    width.is_nan() || width > TOO_WIDE
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::record::{Row, sample};

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

    /// Rounds of two subjects, the first one as many times as fast as the second, in turns, as these tell.
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
        Verdict::on(&results, &results.cases()[0], 2.0, "a", "b")
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
        // Ratios within rounds do not see it.
        assert_eq!(verdict(twice, &jumping), Some(Verdict::Faster));
        assert_eq!(verdict(near, &jumping[..3]), Some(Verdict::TooFewRounds));
        let rows = rounds_of(twice, &[1.0]);
        assert_eq!(
            Verdict::on(&Results::of(&rows), &case(), 2.0, "a", "c"),
            None
        );
    }

    fn case() -> Case {
        Results::of(&rounds_of([1.0; 2], &[1.0])).cases()[0].clone()
    }
}
