//! Shows the rows of `growth`: the filter that grows against each rival, by the number of keys in the
//! set.

use super::run::GROWTH;
use super::{OURS, RIVALS, Row};
use crate::results::statistics::Results;
use crate::results::verdict::{INTERVAL, Judge, Marks};
use crate::show::chart::{Axis, Figure, Line, Look, Panel, Scale};
use crate::show::findings::{Finding, Findings, Judged, THROUGHPUT, Words, clauses};
use crate::show::sheet::Sheet;
use crate::show::sidecar::Sidecar;
use crate::show::units::{BANDS, duration, rounded};
use crate::show::units::{latency, too_short};
use crate::studies::study::Presented;
use crate::wording::{counted, grouped};

/// A quantity that a table, a figure or a sentence shows: its name in titles and sentences, its
/// value, and how a sentence says that ours has more of it, or less.
type Quantity = (&'static str, fn(&Row) -> Option<f64>, Words);

/// Latencies of single operations.
const LATENCY: Words = Words {
    is_good: false,
    above_one: "longer",
    below_one: "shorter",
    quantity: "the latency",
};

const MEMORY: Words = Words {
    above_one: "larger",
    below_one: "smaller",
    quantity: "the memory",
    ..LATENCY
};

const TIME: Words = Words {
    quantity: "the time",
    ..LATENCY
};

fn ns(latency: Option<u64>) -> Option<f64> {
    latency.map(|ns| ns as f64)
}

fn bits_a_key(row: &Row) -> Option<f64> {
    Some(8.0 * row.memory_bytes as f64 / row.keys as f64)
}

const INSERTS: Quantity = ("inserts alone", |row| Some(row.insert_mops), THROUGHPUT);
const ELAPSED: Quantity = ("the whole way", |row| Some(row.elapsed), TIME);

/// What the panels show, row by row. The table has ratios of the first, of inserts alone, and of the
/// next three.
const PANELS: [Quantity; 7] = [
    ("lookups and inserts", |row| Some(row.mops), THROUGHPUT),
    ("lookup, median", |row| ns(row.lookup_p50_ns), LATENCY),
    (
        "lookup, 99th percentile",
        |row| ns(row.lookup_p99_ns),
        LATENCY,
    ),
    (
        "insert, 99th percentile",
        |row| ns(row.insert_p99_ns),
        LATENCY,
    ),
    (
        "insert, 99.99th percentile",
        |row| ns(row.insert_p9999_ns),
        LATENCY,
    ),
    ("insert, longest", |row| ns(row.insert_max_ns), LATENCY),
    ("memory", bits_a_key, MEMORY),
];

fn is_latency(words: &Words) -> bool {
    words.quantity == LATENCY.quantity
}

/// Returns the medians of both subjects, in ns, if they are latencies and the clock cannot tell one
/// of them from none.
fn too_short_of(
    (_, of, words): Quantity,
    results: Results<Row>,
    keys: f64,
    subjects: [&str; 2],
    sidecar: Option<&Sidecar>,
) -> Option<[f64; 2]> {
    let shortest = sidecar.map_or(0.0, Sidecar::shortest_ns);
    let [a, b] = subjects.map(|subject| results.summary(&(), keys, subject, of));
    let both = [a?.median, b?.median];
    (is_latency(&words) && both.iter().any(|&ns| ns < shortest)).then_some(both)
}

impl Presented for Vec<Row> {
    /// Compares ours with each rival at a few sizes.
    fn sheet(&self, sidecar: Option<&Sidecar>, judge: &Judge) -> Option<Sheet> {
        let first = self.first()?;
        let results = Results::along((), self);
        let header = ["keys in the set", "over"].map(str::to_owned).into_iter();
        let ratios = [PANELS[0], INSERTS, PANELS[1], PANELS[2], PANELS[3]];
        let header = header.chain(ratios.map(|(name, ..)| name.to_owned()));
        let header = header.chain([format!("bits a key, {OURS}"), "rival".to_owned()]);
        let mut marks = Marks::default();
        let mut lines = Vec::new();
        for rival in RIVALS {
            for keys in sizes(&results) {
                let ratios = ratios.map(|quantity| {
                    let subjects = [OURS, rival];
                    if let Some(both) = too_short_of(quantity, results, keys, subjects, sidecar) {
                        return both.map(|ns| latency(ns, sidecar)).join(" over ");
                    }
                    let [ours, rival] = [(keys, OURS), (keys, rival)];
                    marks.ratio(judge, results.comparison_of(&(), ours, rival, quantity.1))
                });
                let bits = [OURS, rival].map(|subject| {
                    let bits = results.summary(&(), keys, subject, bits_a_key);
                    bits.map_or("–".into(), |bits| format!("{:.1}", bits.median))
                });
                let place = [grouped(keys as u64), rival.to_owned()].into_iter();
                lines.push(place.chain(ratios).chain(bits).collect());
            }
        }
        let mut notes = vec![format!(
            "A line is of the slice that ends there. Ratios are taken within rounds: median over the rounds [{INTERVAL}]; of \
             latencies, below 1 is better."
        )];
        let all = first.all_keys as f64;
        notes.extend(RIVALS.into_iter().filter_map(|rival| {
            let ends = [(all, OURS), (all, rival)];
            let of = results.comparison_of(&(), ends[0], ends[1], ELAPSED.1)?;
            let times = marks.ratio(judge, Some(of));
            Some(format!(
                "The whole way takes {OURS} {times} times as long as {rival}."
            ))
        }));
        notes.extend(marks.explained());
        notes.extend(sidecar.and_then(too_short));
        if first.oversubscribed {
            notes.push("There were more threads than cores.".into());
        }
        Some(Sheet {
            lead: format!(
                "{OURS} over each rival while {} together insert {} keys, with {} after each.",
                counted(first.threads, "thread"),
                grouped(first.all_keys),
                counted(first.lookups_per_insert, "lookup")
            ),
            header: header.collect(),
            lines,
            notes,
        })
    }

    /// Draws throughput, latency of lookups and inserts, and memory against the number of keys, with a
    /// line for each set.
    fn figure(&self, sidecar: Option<&Sidecar>) -> Option<Figure> {
        let first = self.first()?;
        let results = Results::along((), self);
        let mut caption = vec![format!(
            "{} keys, inserted by {}, with {} after each, half of them of keys that are in. A point is what was measured between \
             the size to its left and its own. Every insert was timed, and one of 16 lookups. Lines: median of {}. {BANDS}",
            grouped(first.all_keys),
            threads(first),
            counted(first.lookups_per_insert, "lookup"),
            counted(results.last_round(), "round"),
        )];
        if self.iter().any(|row| !row.pinned) {
            caption.push("Threads were not always pinned.".into());
        }
        if let Some(sidecar) = sidecar {
            caption.extend(too_short(sidecar));
            caption.extend(sidecar.meanings());
        }
        let mut panels = PANELS.map(|quantity| panel(quantity, results)).to_vec();
        // Older rows lack one.
        panels.retain(|panel| panel.lines.iter().any(|line| !line.points.is_empty()));
        let mut figure = Figure::new("Sets that grow", caption, panels, sidecar);
        figure.title += &format!(" ({})", threads(first));
        Some(figure)
    }

    /// Compares the filter that grows with each rival at a few sizes of the set, except for latencies
    /// that the clock cannot tell from none.
    fn findings(&self, sidecar: Option<&Sidecar>, judge: &Judge) -> Findings {
        let results = Results::along((), self);
        let mut findings = Findings {
            is_of_ours: true,
            ..Findings::default()
        };
        for rival in RIVALS {
            for quantity in PANELS.into_iter().chain([ELAPSED]) {
                let finding = finding(quantity, rival, results, sidecar, judge);
                findings.comparisons.extend(finding);
            }
        }
        findings
    }
}

fn finding(
    quantity: Quantity,
    rival: &str,
    results: Results<Row>,
    sidecar: Option<&Sidecar>,
    judge: &Judge,
) -> Option<Finding> {
    let first = results.all().first()?;
    let (name, of, words) = quantity;
    let sizes = if name == ELAPSED.0 {
        vec![first.all_keys as f64]
    } else {
        sizes(&results)
    };
    let judged = |keys| {
        let too_short = too_short_of(quantity, results, keys, [OURS, rival], sidecar);
        let compared = results.comparison_of(&(), (keys, OURS), (keys, rival), of)?;
        (too_short.is_none()).then(|| Judged::at(keys, &compared, judge))
    };
    let at: Vec<_> = sizes.into_iter().filter_map(judged).collect();
    let [worse, _] = words.losing_first();
    let lost = at.iter().filter(|of| of.verdict == worse);
    (!at.is_empty()).then(|| Finding {
        case: format!(
            "{} keys, {}",
            grouped(first.all_keys),
            counted(first.threads, "thread")
        ),
        other: rival.to_owned(),
        lost_at: lost.map(|of| of.place).collect(),
        text: format!(
            "{OURS} against {rival}, {name}: {}.",
            clauses(&words, named_sizes, &at)
        ),
    })
}

/// Returns a few of the numbers of keys at which slices end: the nearest to a thousandth, a hundredth,
/// a tenth, and all of the keys.
fn sizes(results: &Results<Row>) -> Vec<f64> {
    let ends = results.places(&());
    let all = results.all().first().map_or(0, |row| row.all_keys);
    let shares = (0..=GROWTH.ilog10()).rev();
    let nearest = |tens| {
        let keys = (all / 10_u64.pow(tens)) as f64;
        let off = |end: &f64| (end - keys).abs();
        let ends = ends.iter().copied();
        ends.min_by(|a, b| off(a).total_cmp(&off(b)))
    };
    let mut sizes: Vec<_> = shares.filter_map(nearest).collect();
    sizes.dedup();
    sizes
}

fn named_sizes(sizes: &[f64]) -> String {
    let sizes: Vec<_> = sizes.iter().map(|&keys| grouped(keys as u64)).collect();
    format!("{} keys", sizes.join(", "))
}

/// Formats the number of threads, and whether there are more threads than cores.
fn threads(row: &Row) -> String {
    let label = if row.oversubscribed {
        ", oversubscribed: more than cores"
    } else {
        ""
    };
    format!("{}{label}", counted(row.threads, "thread"))
}

fn panel((name, of, words): Quantity, results: Results<Row>) -> Panel {
    let measured = results.subjects();
    let subjects = [OURS].into_iter().chain(RIVALS);
    let lines = subjects.filter(|subject| measured.contains(subject));
    let line = |subject: &str| Line {
        look: Look::Band,
        ..Line::new(subject, results.points(&(), subject, of))
    };
    let y = if words.is_good {
        Axis::new("million operations/s", Scale::FromZero, rounded)
    } else if is_latency(&words) {
        Axis::new("latency", Scale::Logarithmic, duration)
    } else {
        Axis::new("bits a key", Scale::Logarithmic, |bits| {
            grouped(bits.round() as u64)
        })
    };
    let x = Axis::new("keys in the set", Scale::Logarithmic, short);
    let title = capitalised(name);
    Panel::new(name, title, [x, y], lines.map(line).collect())
}

/// Formats a number of keys with the suffix that suits it.
fn short(keys: f64) -> String {
    match keys.round() {
        thousands @ 1e3..1e6 => format!("{} k", thousands / 1e3),
        millions @ 1e6.. => format!("{} M", millions / 1e6),
        keys => keys.to_string(),
    }
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters.as_str().chars()).collect()
}
