//! One panel of the figure: its axes, its lines, and the region in which threads exceed cores.

use crate::results::statistics::{Axis, Case, Quantity, Results};
use crate::results::summary::Summary;
use crate::show::chart::parts::{duration, rounded};
use crate::show::chart::{self, Guide, Line, Look, Panel, Scale};

pub(super) const OVERSUBSCRIBED: &str = "oversubscribed";

/// The subject that each ablation changes in one decision.
pub(super) const CONTROL: &str = "ablation-control";
/// What the names of ablations begin with.
const ABLATION: &str = "ablation-";

/// What a figure shows of its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    Throughput,
    /// Median and high percentiles.
    Latency,
    /// Throughput over that of the same subject at the lowest number of threads.
    Speedup,
    /// Throughput over that of the control.
    OverControl,
}

/// What a panel is drawn from.
pub(super) struct Drawn<'a> {
    pub(super) results: Results<'a>,
    pub(super) case: Case,
    pub(super) shown: Shown,
}

impl Drawn<'_> {
    pub(super) fn panel(&self, title: String) -> Panel {
        let Self {
            results,
            case,
            shown,
        } = self;
        let places = results.places(case);
        let ratio = |name: &str| chart::Axis {
            includes: vec![1.0],
            ..chart::Axis::new(name, Scale::Logarithmic, rounded)
        };
        let y = match shown {
            Shown::Throughput => chart::Axis::new(
                "million operations/s",
                // With frozen threads, some subjects do nothing at all.
                if results.axis() == Axis::Frozen {
                    Scale::FromZero
                } else {
                    Scale::BySpread
                },
                rounded,
            ),
            Shown::Latency => chart::Axis::new("latency", Scale::Logarithmic, duration),
            Shown::Speedup => chart::Axis::new("speedup", Scale::FromZero, rounded),
            Shown::OverControl => ratio("throughput over the control"),
        };
        let first = places.first().copied().unwrap_or(1.0);
        let guides = match shown {
            Shown::Throughput | Shown::Latency => Vec::new(),
            Shown::Speedup => vec![Guide {
                name: "ideal",
                points: places.iter().map(|&place| (place, place / first)).collect(),
            }],
            Shown::OverControl => vec![Guide {
                name: "the control",
                points: places.iter().map(|&place| (place, 1.0)).collect(),
            }],
        };
        let is_own = |subject: &&str| *shown != Shown::OverControl || *subject != CONTROL;
        let subjects = results.subjects().into_iter().filter(is_own);
        let lines = subjects.map(|subject| self.line(subject)).collect();
        let label = match results.axis() {
            Axis::Keys => power_of_two,
            _ => rounded,
        };
        let x = chart::Axis::measured(
            axis_label(results.axis(), case),
            scale(results.axis()),
            label,
        );
        let panel = Panel::new(&*case.workload, title, [x, y], lines);
        Panel {
            guides,
            shade: self.oversubscribed().map(|first| (first, OVERSUBSCRIBED)),
            in_rows: match shown {
                Shown::OverControl => true,
                // The ideal is another at each place.
                Shown::Speedup => false,
                Shown::Throughput | Shown::Latency => panel.in_rows,
            },
            ..panel
        }
    }

    fn line(&self, subject: &str) -> Line {
        let places = self.results.places(&self.case);
        let point = |&place: &f64| Some((self.x(place), self.point(place, subject)?));
        let points = places.iter().filter_map(point).collect();
        // Where chance decides whether anything is done at all, an interval hides too much.
        let rounds = places.iter().flat_map(|&place| {
            let rounds = self.results.rounds(&self.case, place, subject);
            rounds.map(move |row| (place, row.mops))
        });
        let is_by_chance = self.results.axis() == Axis::Frozen && self.shown == Shown::Throughput;
        Line {
            look: match self.shown {
                Shown::Latency => Look::Reach,
                _ => Look::Bars,
            },
            dots: rounds.filter(|_| is_by_chance).collect(),
            ..Line::new(subject.strip_prefix(ABLATION).unwrap_or(subject), points)
        }
    }

    /// Returns the place as the axis shows it: of tables of several sizes, their slots.
    fn x(&self, place: f64) -> f64 {
        let load = self.case.value(Axis::Load);
        match (self.results.axis(), load) {
            (Axis::Keys, Some(load)) => place / load,
            _ => place,
        }
    }

    fn point(&self, place: f64, subject: &str) -> Option<Summary> {
        let Self { results, case, .. } = self;
        match self.shown {
            Shown::Throughput => results.throughput(case, place, subject),
            Shown::OverControl => results.ratio(case, place, subject, CONTROL),
            Shown::Speedup => {
                let first = *results.places(case).first()?;
                results.ratio_across(case, (place, subject), (first, subject))
            }
            Shown::Latency => {
                let [p50, p99, p999] = [Quantity::P50, Quantity::P99, Quantity::P999]
                    .map(|quantity| results.summary(case, place, subject, quantity));
                Some(Summary {
                    low: p50?.median,
                    high: p999?.median,
                    ..p99?
                })
            }
        }
    }

    /// Returns the first place with more threads than cores, if the axis is one of threads.
    fn oversubscribed(&self) -> Option<f64> {
        (self.results.places(&self.case).into_iter())
            .find(|&place| self.results.oversubscribed(&self.case, place))
            .filter(|_| matches!(self.results.axis(), Axis::Threads | Axis::Frozen))
    }
}

/// Returns how places are laid out: numbers that double each time by their logarithms.
fn scale(axis: Axis) -> Scale {
    match axis {
        Axis::Threads | Axis::Rate | Axis::Keys => Scale::Logarithmic,
        Axis::Frozen | Axis::Offered | Axis::Load | Axis::Hit | Axis::Skew => Scale::Linear,
    }
}

/// Formats a number as the nearest power of two.
fn power_of_two(number: f64) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let exponent = format!("{:.0}", number.log2().max(0.0));
    let digit = |digit: char| DIGITS[digit.to_digit(10).unwrap_or(0) as usize];
    format!("2{}", exponent.chars().map(digit).collect::<String>())
}

/// Returns the label of the horizontal axis.
fn axis_label(axis: Axis, case: &Case) -> String {
    let other = |axis| case.value(axis).filter(|&value| value > 0.0);
    match axis {
        Axis::Threads => match other(Axis::Frozen) {
            None if !case.simulated.is_empty() => "simulated cores".into(),
            None => "threads".into(),
            Some(frozen) => format!("threads (besides {frozen} frozen)"),
        },
        Axis::Frozen => {
            let running = other(Axis::Threads).unwrap_or_default();
            format!("frozen threads (besides {running} running)")
        }
        Axis::Keys => "slots of the table".into(),
        Axis::Offered => "share of the closed loop's throughput due".into(),
        Axis::Rate => "million operations/s due".into(),
        Axis::Load => "load factor".into(),
        Axis::Hit => "lookups of present keys in %".into(),
        Axis::Skew => "skew (exponent of Zipf's law)".into(),
    }
}
