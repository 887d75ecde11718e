//! Draws the rows of a sweep as one figure: a panel for each workload, with a line or a row for each
//! subject. The horizontal axis is the quantity that differs: see [`Results::of`].

use super::table::flaws;
use crate::results::{Axis, Case, Results, Row, Summary, distances, distinct};
use crate::show::chart::{Figure, Guide, Line, Look, Panel, Scale};
use crate::show::{BARS, Sidecar, chart, duration, rounded, too_short};
use crate::wording::{counted, grouped, noun};
use crate::workload::percent;

/// Draws latencies where there are any, ratios where there is a control, or else throughput.
pub(super) fn of(rows: &[Row], sidecar: Option<&Sidecar>) -> Figure {
    let results = Results::of(rows);
    let shown = if results.timed() {
        View::Latency
    } else if results.subjects().contains(&CONTROL) {
        View::OverControl
    } else {
        View::Throughput
    };
    let panel = |case: &Case| shown.panel(&results, case, panel_title(&results, case, sidecar));
    let panels = results.cases().iter().map(panel).collect();
    let caption = caption(&results, shown, sidecar);
    let title = &results.all[0].experiment;
    Figure::new(title, caption, panels, sidecar)
}

/// Describes what the threads do, and what is constant in the whole panel.
pub(super) fn panel_title(results: &Results, case: &Case, sidecar: Option<&Sidecar>) -> String {
    let described = sidecar.and_then(|sidecar| sidecar.panel(results.axis, case));
    let mut title = described.map_or_else(|| case.workload.clone(), |panel| panel.title.clone());
    let value = |axis| case.value(axis).filter(|&value| value > 0.0);
    let mut fixed = Vec::new();
    fixed.extend(value(Axis::Load).map(|load| format!("load factor {load}")));
    // Other titles name a share of hits that is not the usual one.
    if title == "Lookup" {
        fixed.extend(case.value(Axis::Hit).map(|hit| format!("{hit} % present")));
    }
    fixed.extend(value(Axis::Skew).map(|skew| format!("Zipf {skew}")));
    if let Some(share) = value(Axis::Offered) {
        fixed.push(format!("{} % due", percent(share)));
    } else if results.timed() && results.axis != Axis::Offered {
        fixed.push("closed loop".into());
    }
    if !matches!(results.axis, Axis::Threads | Axis::Frozen) {
        let more = |&place: &f64| results.oversubscribed(case, place);
        let more = match results.axis {
            Axis::Entries if results.places(case).iter().any(more) => ", more than cores",
            _ => "",
        };
        let threads = value(Axis::Threads).map(|threads| counted(threads, "thread") + more);
        fixed.extend(threads);
    }
    if !fixed.is_empty() {
        title += &format!(" ({})", fixed.join(", "));
    }
    case.marked(title)
}

/// The subject that each ablation changes in one decision.
const CONTROL: &str = "ablation-control";
/// What the names of ablations begin with.
const ABLATION: &str = "ablation-";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum View {
    Throughput,
    /// Median and high percentiles.
    Latency,
    /// Throughput over that of the control.
    OverControl,
}

impl View {
    fn panel(self, results: &Results, case: &Case, title: String) -> Panel {
        let (axis, places) = (results.axis, results.places(case));
        let is_over_control = self == Self::OverControl;
        // With frozen threads, some subjects do nothing at all.
        let spread = match axis {
            Axis::Frozen => Scale::FromZero,
            _ => Scale::BySpread,
        };
        let y = match self {
            Self::Throughput => chart::Axis::new("million operations/s", spread, rounded),
            Self::Latency => chart::Axis::new("latency", Scale::Logarithmic, duration),
            Self::OverControl => chart::Axis {
                includes: vec![1.0],
                ..chart::Axis::new("throughput over the control", Scale::Logarithmic, rounded)
            },
        };
        let control = Guide {
            name: "the control",
            points: places.iter().map(|&place| (place, 1.0)).collect(),
        };
        let mut subjects = results.subjects();
        subjects.retain(|subject| !is_over_control || *subject != CONTROL);
        let line = |subject: &&str| self.line(results, case, subject);
        let lines = subjects.iter().map(line).collect();
        // Numbers that double each time are laid out by their logarithms.
        let (scale, label): (_, fn(f64) -> String) = match axis {
            Axis::Keys => (Scale::Logarithmic, power_of_two),
            Axis::Threads => (Scale::Logarithmic, rounded),
            _ => (Scale::Linear, rounded),
        };
        let x = chart::Axis::measured(axis_label(axis, case), scale, label);
        let panel = Panel::new(&*case.workload, title, [x, y], lines);
        let are_threads = matches!(axis, Axis::Threads | Axis::Frozen);
        let is_over = |place: &f64| are_threads && results.oversubscribed(case, *place);
        let over = places.into_iter().find(is_over);
        Panel {
            guides: is_over_control.then_some(control).into_iter().collect(),
            shade: over.map(|from| (from, "oversubscribed")),
            in_rows: is_over_control || panel.in_rows,
            ..panel
        }
    }

    fn line(self, results: &Results, case: &Case, subject: &str) -> Line {
        let (axis, places) = (results.axis, results.places(case));
        // Of tables of several sizes, the axis shows the slots.
        let load = case.value(Axis::Load).filter(|_| axis == Axis::Keys);
        let x = |place: f64| place / load.unwrap_or(1.0);
        let point = |&place: &f64| Some((x(place), self.point(results, case, place, subject)?));
        let points = places.iter().filter_map(point).collect();
        // Where chance decides whether anything is done at all, an interval hides too much.
        let rounds = places.iter().flat_map(|&place| {
            let rounds = results.rounds(case, place, subject);
            rounds.map(move |row| (place, row.mops))
        });
        let is_by_chance = axis == Axis::Frozen && self == Self::Throughput;
        Line {
            look: match self {
                Self::Latency => Look::Reach,
                _ => Look::Bars,
            },
            dots: rounds.filter(|_| is_by_chance).collect(),
            ..Line::new(subject.strip_prefix(ABLATION).unwrap_or(subject), points)
        }
    }

    fn point(self, results: &Results, case: &Case, place: f64, subject: &str) -> Option<Summary> {
        match self {
            Self::Throughput => results.summary(case, place, subject, |row| Some(row.mops)),
            Self::OverControl => Some(results.comparison(case, place, subject, CONTROL)?.ratio),
            Self::Latency => {
                let of: [fn(&Row) -> u64; 3] =
                    [|row| row.p50_ns, |row| row.p99_ns, |row| row.p999_ns];
                let timed = |row: &Row| row.max_ns > 0;
                let [p50, p99, p999] = of.map(|ns| {
                    let ns = |row: &Row| timed(row).then(|| ns(row) as f64);
                    results.summary(case, place, subject, ns)
                });
                Some(Summary {
                    low: p50?.median,
                    high: p999?.median,
                    ..p99?
                })
            }
        }
    }
}

/// Formats a number as the nearest power of two.
fn power_of_two(number: f64) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let exponent = format!("{:.0}", number.log2().max(0.0));
    let digit = |digit: char| DIGITS[digit.to_digit(10).unwrap_or(0) as usize];
    format!("2{}", exponent.chars().map(digit).collect::<String>())
}

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
        Axis::Entries => "k: words of an operation".into(),
        Axis::Load => "load factor".into(),
        Axis::Hit => "lookups of present keys in %".into(),
        Axis::Skew => "skew (exponent of Zipf's law)".into(),
    }
}

/// What must be said of simulated rows wherever they are shown.
pub(super) const SIMULATED: &str = "Simulated: predicted by a model of the machine that is named, which runs the real code on \
     simulated cores; not measured. On two cores, such predictions were off by 3 to 9 % in the median and by at most 44 %; if the \
     cores are far apart and the table exceeds their caches, by 35 % and by at most 88 %.";

/// What must be said of rates that are shares.
pub(super) const DUE: &str = "Rates that are due are shares of each subject's own throughput in the closed loop of the same round, with as many \
     threads, every operation timed.";

fn caption(results: &Results, shown: View, sidecar: Option<&Sidecar>) -> Vec<String> {
    let mut lines = vec![how(results, shown, sidecar)];
    lines.extend(remarks(results).map(str::to_owned));
    let measured = |row: &&Row| row.threads > 1 && row.simulated.is_empty();
    let several = results.all.iter().filter(measured);
    lines.extend(distances(several, |row| row.hand_over_ns));
    lines.extend(flaws(results));
    if shown == View::OverControl {
        lines.extend(results.left_out());
    }
    if let Some(sidecar) = sidecar {
        if sidecar.compiler.steps {
            lines.push(
                "Built so that threads can be stopped at any access to shared memory, which makes every such \
                 access slower: throughputs are lower than those of other figures."
                    .into(),
            );
        }
        lines.extend(too_short(sidecar).filter(|_| results.timed()));
        lines.extend(described(results, sidecar));
    }
    lines
}

/// Says what each subject is; of those that are described alike, once.
fn described(results: &Results, sidecar: &Sidecar) -> Vec<String> {
    let subjects = results.subjects();
    let of = |subject: &&str| sidecar.subjects.get(*subject);
    let line = |description: &String| {
        let alike = subjects
            .iter()
            .filter(|&subject| of(subject) == Some(description));
        let alike: Vec<_> = alike.copied().collect();
        format!("{}: {description}", alike.join(", "))
    };
    let descriptions = distinct(subjects.iter().filter_map(of));
    descriptions.into_iter().map(line).collect()
}

/// Says what the lines are, how many rounds and keys they are made of, and what is marked.
fn how(results: &Results, shown: View, sidecar: Option<&Sidecar>) -> String {
    let rows = results.all;
    let rounds = rounds(results);
    let most = rounds.iter().copied().max().unwrap_or_default();
    let numbers = match results.axis {
        Axis::Entries => String::new(),
        _ => format!(" Keys: {}", range(rows.iter().map(|row| row.keys))),
    };
    let (what, more) = match shown {
        View::Latency => ("Percentiles", " The table has their intervals.".into()),
        View::Throughput => ("Points", format!(" {BARS}")),
        View::OverControl => ("Points", format!(" Ratios are taken within rounds. {BARS}")),
    };
    let (rounds, noun) = (range(rounds.into_iter()), noun(most, "round"));
    let mut how = format!("{what}: median of {rounds} {noun}.{more}{numbers}");
    match sidecar {
        _ if numbers.is_empty() => {}
        Some(sidecar) => how += &format!(" ({}).", sidecar.run.keys),
        None => how += ".",
    }
    let across_threads = matches!(results.axis, Axis::Threads | Axis::Frozen);
    if across_threads && rows.iter().any(|row| row.oversubscribed) {
        how += " Oversubscribed: more threads than cores.";
    }
    if rows.iter().any(|row| !row.pinned && row.stuck == 0) {
        how += " Threads were not all pinned.";
    }
    how
}

fn rounds(results: &Results) -> Vec<u64> {
    let mut rounds = Vec::new();
    for case in results.cases() {
        for subject in results.subjects() {
            let points = results.points(&case, subject, |row| Some(row.mops));
            rounds.extend(points.iter().map(|(_, of)| of.count as u64));
        }
    }
    rounds
}

fn remarks(results: &Results) -> impl Iterator<Item = &'static str> {
    let rows = results.all;
    [
        (rows.iter().any(|row| !row.simulated.is_empty()), SIMULATED),
        (
            results.timed(),
            "Latency of single operations: where a rate is due, from the moment at which an operation was due, whether or \
             not the thread was still busy with earlier ones (no coordinated omission); in a closed loop, from its start. \
             The cost of looking at the clock is in it.",
        ),
        (rows.iter().any(|row| row.offered > 0.0), DUE),
        (
            results.axis == Axis::Entries,
            "An operation reads k words and increases each by one, all at one moment, again and again until it succeeds. \
             Disjoint: each thread has 64 words of its own. Contended: all threads have the same 16.",
        ),
        (
            rows.iter().any(|row| row.frozen > 0),
            "Frozen threads stopped in the middle of an insert or remove, at a step drawn at random anew in \
             every round, before the others were measured, and stayed there. What is shown is the \
             throughput of those others. Dots: single rounds.",
        ),
    ]
    .into_iter()
    .filter_map(|(applies, remark)| applies.then_some(remark))
}

/// Formats one number if all are equal, otherwise the smallest and the largest.
pub(super) fn range(numbers: impl Iterator<Item = u64> + Clone) -> String {
    let ends = [numbers.clone().min(), numbers.max()].into_iter();
    distinct(ends.map(|end| grouped(end.unwrap_or_default()))).join(" to ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::sample;

    /// It is left out of ratios, with a word, and is drawn at zero.
    #[test]
    fn a_round_in_which_nothing_was_done_has_no_ratio() {
        let of = |subject, threads, mops| sample(subject, "insert", threads, 1, mops);
        let rows = [1, 2, 4].map(|threads| {
            let idle = if threads == 2 { 0.0 } else { 20.0 };
            [of(CONTROL, threads, 10.0), of("lock-free", threads, idle)]
        });
        let points = |rows: &[Row], line: usize| {
            let figure = super::of(rows, None);
            let svg = figure.render();
            assert!(!svg.contains("NaN") && !svg.contains("inf"));
            let points = figure.panels[0].lines[line].points.iter();
            let points: Vec<_> = points.map(|(at, of)| (*at, of.median)).collect();
            (points, svg.contains("Left out of ratios: 1 measurement"))
        };
        let ratios = (vec![(1.0, 2.0), (4.0, 2.0)], true);
        assert_eq!(points(&rows.concat(), 0), ratios);
        let alone = rows.map(|[_, other]| other);
        let throughputs = (vec![(1.0, 20.0), (2.0, 0.0), (4.0, 20.0)], false);
        assert_eq!(points(&alone, 0), throughputs);
    }
}
