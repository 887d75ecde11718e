//! Decides which claims the measurements over rounds allow, and how they are shown: one rule for all
//! tables, sentences and marks.
//!
//! A value is reported as the median over the rounds, with its [95 % interval](mod@crate::results::median).
//! A claim needs [`FEWEST`] rounds. The claim that one subject is faster than another also needs a
//! ratio whose whole interval is above the smallest effect that counts, and chance must not explain that it is.
//! Two subjects are equal if the whole interval is within that effect, and within [`EQUAL_AT_MOST`] (two one-sided
//! tests); within the effect alone, they differ too little to count. All but claims that one is faster have a
//! [mark](Verdict::mark) in tables, and a [reservation](Verdict::reservation) in sentences.
//!
//! Of many comparisons some seem to differ by chance: one in twenty where nothing does. A [`Judge`]
//! therefore asks for more the more comparisons a page makes with a rival, by the rule of Benjamini and Hochberg
//! (*Controlling the False Discovery Rate*, Journal of the Royal Statistical Society B 57(1), 1995):
//! of all claims that one is faster, one in twenty is false on average, or fewer, if comparisons are independent or
//! depend on one another positively. So a comparison near the limit may be claimed on one page, and not
//! on another; numbers in Markdown are judged as on the results page of their directory. That two are equal is judged
//! one by one. Those that were [foregone](Comparison::foregone) are not among the many: each is judged by itself.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::hash::BuildHasher;

use filter::FixedState;

use crate::results::{CONFIDENCE, Series, Summary, over, over_itself, signed_rank};

/// The fewest rounds, or processes of pairs, that allow a claim.
pub const FEWEST: usize = 9;

/// A claim needs the whole interval of a ratio, or of its inverse, above this, unless rows have another number for
/// their [workload](crate::results::statistics::InRounds::smallest_effect): 19 of 20 medians of a subject over
/// itself are nearer to 1 (`experiments/same.toml`).
pub const SMALLEST_EFFECT: f64 = 1.1;

/// Subjects that may differ by more are never called equal, whatever the smallest effect that counts.
pub const EQUAL_AT_MOST: f64 = 1.03;

/// Name of the interval, for the notes under a table.
pub const INTERVAL: &str = "its exact interval of 95 % at least; below six rounds, their range";

/// An interval is wide if its upper end is more than this many times its lower end.
pub const TOO_WIDE: f64 = 2.0;

/// Above this probability, chance explains a single ratio.
const UNCORRECTED: f64 = 1.0 - CONFIDENCE;

/// What may be said of a ratio of throughputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Faster,
    Slower,
    /// They differ by less than the smallest effect that counts, and than [`EQUAL_AT_MOST`].
    Equal,
    /// They differ by less than the smallest effect that counts, but maybe by more than [`EQUAL_AT_MOST`].
    TooSmall,
    /// None of these: they may differ by more than counts, or chance explains that they do.
    TooCloseToCall,
    /// As before, and the interval is wider than a factor of [`TOO_WIDE`]; or it is wider than the smallest effect
    /// that counts, and one of the subjects has an interval against itself, one round later, that is as wide as
    /// that factor.
    TooNoisy,
    /// There are fewer than [`FEWEST`] rounds.
    TooFewRounds,
}

impl Verdict {
    pub fn is_claim(self) -> bool {
        matches!(self, Self::Faster | Self::Slower | Self::Equal)
    }

    /// Returns what prevents a claim about any value over this many rounds.
    pub fn of_rounds(rounds: usize) -> Option<Self> {
        (rounds < FEWEST).then_some(Self::TooFewRounds)
    }

    /// Returns what a sentence adds after a ratio; nothing if it is faster or slower.
    pub fn reservation(self) -> &'static str {
        match self {
            Self::Faster | Self::Slower => "",
            Self::Equal => ", equal",
            Self::TooSmall => ", too small to count",
            Self::TooCloseToCall => ", too close to call",
            Self::TooNoisy => ", from rounds that vary too much for a claim",
            Self::TooFewRounds => ", from too few rounds for a claim",
        }
    }

    /// Returns the mark that a table puts after a ratio; none if it is faster or slower.
    pub fn mark(self) -> &'static str {
        match self {
            Self::Faster | Self::Slower => "",
            Self::Equal => "=",
            Self::TooSmall => "≈",
            Self::TooCloseToCall => "~",
            Self::TooNoisy => "?",
            Self::TooFewRounds => "#",
        }
    }

    pub fn word(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::Equal => "equal",
            Self::TooSmall | Self::TooCloseToCall | Self::TooNoisy | Self::TooFewRounds => {
                "unknown"
            }
        }
    }

    pub fn explanation(self) -> String {
        match self {
            Self::Faster | Self::Slower => self.word().into(),
            Self::Equal => format!(
                "equal: the whole interval is as near to 1 as a subject is to itself under that workload, and within {:.0} %",
                100.0 * (EQUAL_AT_MOST - 1.0)
            ),
            Self::TooSmall => format!(
                "too small to count: the whole interval is as near to 1 as a subject may be to itself under that workload, but not \
                 within {:.0} %",
                100.0 * (EQUAL_AT_MOST - 1.0)
            ),
            Self::TooCloseToCall => "too close to call: the interval reaches as near to 1 as a subject may be to itself under that \
                 workload, or chance explains the ratio among so many comparisons with this rival"
                .into(),
            Self::TooNoisy => format!(
                "no claim, the rounds vary too much: the interval reaches too near to 1, and spans more than a \
                 factor of {TOO_WIDE}, or more than what counts where that of a subject over itself one round later \
                 spans that factor"
            ),
            Self::TooFewRounds => format!("no claim: fewer than {FEWEST} rounds"),
        }
    }
}

/// One subject compared with another, for tables, sentences and marks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    pub ratio: Summary,
    /// Whether a subject varies so much from round to round that an undecided ratio is put down to a noisy machine.
    varies: bool,
    /// Whether the outcome was open: bounds are faster by nature, and simulations do not vary.
    is_open: bool,
    /// How likely chance explains that the ratio is beyond the smallest effect, by signed ranks.
    by_chance: f64,
    pub smallest_effect: f64,
    /// The rival, by the hash of its name.
    rival: u64,
}

impl Comparison {
    /// Compares by ratios that were taken one by one; `None` if there are none.
    pub fn of(ratios: Vec<f64>, rival: &str, smallest_effect: f64) -> Option<Self> {
        let ratio = Summary::of(ratios.clone())?;
        // How far each is beyond the smallest effect, on the side of the median.
        let side = if ratio.median < 1.0 { -1.0 } else { 1.0 };
        let beyond = |ratio: &f64| side * ratio.ln() - smallest_effect.ln();
        let beyond: Vec<_> = ratios.iter().map(beyond).collect();
        let is_beyond = ratio.median > smallest_effect || ratio.median < 1.0 / smallest_effect;
        Some(Self {
            ratio,
            varies: false,
            is_open: true,
            by_chance: if is_beyond { signed_rank(&beyond) } else { 1.0 },
            smallest_effect,
            rival: FixedState.hash_one(rival),
        })
    }

    /// Compares two series; `None` if no round has both.
    pub fn between(a: &Series, b: &Series, rival: &str, smallest_effect: f64) -> Option<Self> {
        let itself = |series| Summary::of(over_itself(series));
        let mut both = [a, b].into_iter().filter_map(itself);
        Some(Self {
            varies: both.any(|of| is_too_wide(&of)),
            ..Self::of(over(a, b), rival, smallest_effect)?
        })
    }

    /// Sets whether the outcome was certain. If so, it is judged by itself, and a page is not corrected for it.
    pub fn foregone(mut self, is_foregone: bool) -> Self {
        self.is_open &= !is_foregone;
        self
    }
}

/// Judges all comparisons of one page.
#[derive(Debug, Default)]
pub struct Judge {
    /// For each rival, the probability above which chance explains a ratio.
    levels: BTreeMap<u64, f64>,
    /// How likely chance explains each ratio judged so far, by rival.
    judged: RefCell<BTreeMap<u64, Vec<f64>>>,
}

impl Judge {
    /// Makes a page twice: first to see which comparisons it makes, then with a judge that corrects for
    /// their number.
    pub fn of_page<T>(page: impl Fn(&Self) -> T) -> T {
        page(&Self::after(&page))
    }

    /// Corrects for the comparisons that a page makes. One that is shown twice counts twice.
    pub fn after<T>(page: impl Fn(&Self) -> T) -> Self {
        let first = Self::default();
        page(&first);
        let judged = first.judged.into_inner().into_iter();
        let level = |(rival, all): (u64, Vec<f64>)| (rival, benjamini_hochberg(&all, UNCORRECTED));
        Self {
            levels: judged.map(level).collect(),
            ..Self::default()
        }
    }

    pub fn verdict(&self, of: &Comparison) -> Verdict {
        let ratio = &of.ratio;
        if let Some(too_few) = Verdict::of_rounds(ratio.count) {
            return too_few;
        }
        // A certain outcome must not make other claims easier, nor must they make it harder to claim.
        let mut level = UNCORRECTED;
        if of.is_open {
            let mut judged = self.judged.borrow_mut();
            judged.entry(of.rival).or_default().push(of.by_chance);
            level = self.levels.get(&of.rival).copied().unwrap_or(level);
        }
        let (effect, is_likely) = (of.smallest_effect, of.by_chance > level);
        match ratio.apart() {
            _ if !is_likely && ratio.low > effect => Verdict::Faster,
            _ if !is_likely && ratio.high < 1.0 / effect => Verdict::Slower,
            apart if apart <= effect.min(EQUAL_AT_MOST) => Verdict::Equal,
            apart if apart <= effect => Verdict::TooSmall,
            // The ratio may be wide only because the speed of the machine varied.
            _ if of.varies && width(ratio) > effect || is_too_wide(ratio) => Verdict::TooNoisy,
            _ => Verdict::TooCloseToCall,
        }
    }
}

/// Returns the level up to which probabilities pass, so that at most this share of those that pass is
/// expected to be due to chance.
fn benjamini_hochberg(by_chance: &[f64], share: f64) -> f64 {
    let mut sorted = by_chance.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let levels = (1..=sorted.len()).map(|rank| rank as f64 * share / sorted.len() as f64);
    let passed = sorted.iter().zip(levels).filter(|&(p, level)| *p <= level);
    passed.last().map_or(0.0, |(_, level)| level)
}

/// The verdicts that have a mark.
pub(crate) const MARKED: [Verdict; 5] = [
    Verdict::Equal,
    Verdict::TooSmall,
    Verdict::TooCloseToCall,
    Verdict::TooNoisy,
    Verdict::TooFewRounds,
];

/// Formats values with their intervals for the cells of a table, and remembers which marks it used.
#[derive(Clone, Debug, Default)]
pub struct Marks(Vec<Verdict>);

impl Marks {
    /// Formats a ratio with `number`, and the mark of its verdict.
    pub fn number(
        &mut self,
        judge: &Judge,
        of: &Comparison,
        number: impl Fn(f64) -> String,
    ) -> String {
        let verdict = judge.verdict(of);
        self.marked(of.ratio.shown(number), Some(verdict))
    }

    /// Adds the mark of a verdict to a formatted value.
    pub fn marked(&mut self, shown: String, verdict: Option<Verdict>) -> String {
        self.0.extend(verdict);
        let mark = verdict.map_or("", Verdict::mark);
        format!("{shown} {mark}").trim_end().to_owned()
    }

    /// Explains the marks that were used.
    pub fn explained(&self) -> impl Iterator<Item = String> {
        let used = MARKED.into_iter().filter(|of| self.0.contains(of));
        used.map(|verdict| format!("{} {}.", verdict.mark(), verdict.explanation()))
    }
}

/// Returns how many times its lower end the upper end of an interval is; infinity if that is no number.
fn width(ratio: &Summary) -> f64 {
    let width = ratio.high / ratio.low;
    if width.is_nan() { f64::INFINITY } else { width }
}

fn is_too_wide(ratio: &Summary) -> bool {
    width(ratio) > TOO_WIDE
}

#[cfg(test)]
mod tests {
    use super::*;

    use rand::SeedableRng;
    use rand::rngs::SmallRng;
    use rand_distr::{Distribution, Normal};

    fn of(ratios: Vec<f64>) -> Comparison {
        Comparison::of(ratios, "rival", SMALLEST_EFFECT).unwrap()
    }

    fn alone(ratios: &[f64]) -> Verdict {
        Judge::of_page(|judge| judge.verdict(&of(ratios.to_vec())))
    }

    #[test]
    fn the_sides_of_one_decide() {
        use Verdict::*;
        let nine = |below: usize, [low, high]: [f64; 2]| {
            let ratios = (0..9).map(|at| if at < below { low } else { high });
            ratios.collect::<Vec<_>>()
        };
        for (below, ends, verdict) in [
            (0, [0.9, 1.2], Faster),
            (1, [1.09, 1.2], Faster),
            // The one below weighs more than two of the others.
            (1, [0.95, 1.2], TooCloseToCall),
            (2, [0.9, 1.2], TooCloseToCall),
            (7, [0.9, 1.2], TooCloseToCall),
            (8, [0.85, 0.9], Slower),
            (0, [0.9, SMALLEST_EFFECT], TooSmall),
            (0, [0.9, SMALLEST_EFFECT + 1e-9], Faster),
            (9, [1.0 / SMALLEST_EFFECT, 1.2], TooSmall),
            (9, [1.0 / SMALLEST_EFFECT - 1e-9, 1.2], Slower),
            // Chance does not explain it, and it does not count.
            (0, [0.9, EQUAL_AT_MOST], Equal),
            (9, [1.0 / EQUAL_AT_MOST, 1.1], Equal),
            (4, [0.98, 1.02], Equal),
            (4, [0.96, 1.02], TooSmall),
            (4, [0.98, 1.04], TooSmall),
            (4, [0.5, 1.5], TooNoisy),
            (1, [0.0, f64::INFINITY], Faster),
            (3, [0.0, f64::INFINITY], TooNoisy),
        ] {
            assert_eq!(alone(&nine(below, ends)), verdict, "{below} {ends:?}");
            assert_eq!(alone(&nine(below, ends)[..8]), TooFewRounds);
        }
    }

    /// Two of a hundred comparisons with a rival differ.
    #[test]
    fn many_comparisons_with_a_rival_are_asked_for_more() {
        let of = |below: usize, rounds: usize, rival: &str, effect: f64| {
            // The nearer to 1, the earlier the round.
            let ratio = |round: usize| {
                let sign = if (4..4 + below).contains(&round) {
                    -1.0
                } else {
                    1.0
                };
                f64::exp(sign * 0.05 * (round as f64 + 1.0))
            };
            Comparison::of((0..rounds).map(ratio).collect(), rival, effect).unwrap()
        };
        let claims = |differing: &Comparison, count: usize, rival: &str| {
            Judge::of_page(|judge| {
                let same = (2..count).map(|_| of(7, 15, rival, 1.04));
                let all = same.chain([*differing; 2]);
                all.filter(|of| judge.verdict(of) == Verdict::Faster)
                    .count()
            })
        };
        // The ranks of three of 15 below 1 are at most these, by chance, in 1.5 % of all cases.
        let some = of(3, 15, "hard", 1.04);
        assert_eq!([2, 100].map(|count| claims(&some, count, "hard")), [2, 0]);
        // Those with another rival change nothing.
        assert_eq!(claims(&some, 100, "easy"), 2);
        // Chance does not make all of 15.
        let all = of(0, 15, "hard", 1.04);
        assert_eq!([2, 100].map(|count| claims(&all, count, "hard")), [2, 2]);
        assert_eq!(claims(&of(0, 15, "hard", 1.6), 2, "hard"), 0);
        // Too few rounds, and what is certain beforehand, change nothing for others.
        let judge = Judge::default();
        judge.verdict(&of(0, 8, "hard", 1.04));
        judge.verdict(&of(0, 15, "hard", 1.04).foregone(true));
        assert!(judge.judged.borrow().is_empty());
        // Nor do others change anything for what is certain beforehand.
        for others in [0, 100] {
            let verdict = Judge::of_page(|judge| {
                (0..others).for_each(|_| _ = judge.verdict(&of(7, 15, "hard", 1.04)));
                judge.verdict(&of(0, 9, "hard", 1.04).foregone(true))
            });
            assert_eq!(verdict, Verdict::Faster, "{others} others");
        }
    }

    /// Half of them differ by what just does not count; the other half vary much.
    #[test]
    fn differences_that_do_not_count_make_no_other_claim_easier() {
        let random = &mut SmallRng::seed_from_u64(1);
        let mut compared = |logarithm: f64, deviation: f64| {
            let normal = Normal::new(logarithm, deviation).unwrap();
            of((0..9).map(|_| normal.sample(random).exp()).collect())
        };
        let mut page = || {
            let compared = |at| match at % 2 {
                0 => compared(SMALLEST_EFFECT.ln(), 0.005),
                _ => compared(0.0, 0.5),
            };
            let all: Vec<_> = (0..100).map(compared).collect();
            Judge::of_page(|judge| all.iter().any(|of| judge.verdict(of) == Verdict::Faster))
        };
        let false_claims = (0..200).filter(|_| page()).count();
        assert!(false_claims <= 14, "on {false_claims} of 200 pages");
    }

    #[test]
    fn the_level_is_that_of_benjamini_and_hochberg() {
        let corrected = |judged: &[f64]| benjamini_hochberg(judged, 0.05);
        // The example of their article, section 3.2: the four smallest pass.
        let article = [
            0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262,
            0.5719, 0.6528, 0.7590, 1.0,
        ];
        let level = corrected(&article);
        assert_eq!(article.iter().filter(|&&p| p <= level).count(), 4);
        assert_eq!(corrected(&[0.5, 0.9]), 0.0);
        assert_eq!(corrected(&[]), 0.0);
    }

    /// Compares two subjects with these speeds; the first is faster by each factor in turn.
    fn verdict(times: [f64; 2], speeds: &[f64]) -> Option<Verdict> {
        let b: Series = speeds.iter().copied().enumerate().collect();
        let of_a = |&(round, speed): &(usize, f64)| (round, times[round % 2] * speed);
        let found = Comparison::between(&b.iter().map(of_a).collect(), &b, "b", SMALLEST_EFFECT);
        found.map(|found| Judge::of_page(|judge| judge.verdict(&found)))
    }

    #[test]
    fn a_machine_that_differs_from_itself_is_named_where_nothing_is_claimed() {
        let (calm, twice, near) = ([10.0; 9], [1.5, 1.5], [0.9, 1.1]);
        assert_eq!(verdict(twice, &calm), Some(Verdict::Faster));
        assert_eq!(verdict(near, &calm), Some(Verdict::TooCloseToCall));
        let drifting = [10.0, 9.5, 9.0, 8.5, 8.0, 7.5, 7.0, 6.5, 6.0];
        assert_eq!(verdict(near, &drifting), Some(Verdict::TooCloseToCall));
        let jumping = [10.0, 2.0, 10.0, 2.0, 10.0, 2.0, 10.0, 2.0, 10.0];
        assert_eq!(verdict(near, &jumping), Some(Verdict::TooNoisy));
        // Ratios within rounds hide it.
        assert_eq!(verdict(twice, &jumping), Some(Verdict::Faster));
        assert_eq!(verdict([1.0; 2], &jumping), Some(Verdict::Equal));
        // So does a narrow interval, wherever it lies.
        assert_eq!(verdict([1.04; 2], &jumping), Some(Verdict::TooSmall));
        assert_eq!(
            verdict([1.08, 1.12], &jumping),
            Some(Verdict::TooCloseToCall)
        );
        assert_eq!(verdict(near, &jumping[..3]), Some(Verdict::TooFewRounds));
        let alone = vec![(1, 1.5)];
        let none = Comparison::between(&alone, &Series::new(), "b", SMALLEST_EFFECT);
        assert_eq!(none, None);
    }
}
