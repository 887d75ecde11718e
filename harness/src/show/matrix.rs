//! The matrix that the page opens with: workloads across rivals, with a tab for each size of the
//! tables, on one thread and on all cores.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use maud::{Markup, PreEscaped, html};

use crate::results::{Summary, Verdict, distinct};
use crate::wording::{counted, grouped};

/// Our filter beside one rival under one workload.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cell {
    pub(crate) workload: String,
    pub(crate) rival: String,
    pub(crate) keys: u64,
    pub(crate) threads: usize,
    pub(crate) ratio: Summary,
    pub(crate) verdict: Verdict,
}

pub(crate) const STYLE: &str = "
.tabs > input { position: absolute; left: 0; opacity: 0; }
.tabs > label { display: inline-block; padding: 0.3rem 0.8rem; border: 1px solid #bbb; cursor: pointer; }
.tabs > input:checked + label { background: #333; color: #fff; }
.tabs > input:focus-visible + label { outline: 3px solid #56b4e9; }
.tabs small { display: block; font-size: 0.7rem; }
.tab { display: none; }
.matrix td { min-width: 4.5rem; text-align: center; }
.matrix td:first-child { white-space: normal; min-width: 13rem; text-align: left; }
.matrix td small { display: block; color: #333; font-size: 0.7rem; }
.matrix td.open { background: #e4e4e4; }
";

/// A cell, and where it comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry<'a> {
    pub(crate) section: &'a str,
    /// Machine and commit.
    pub(crate) source: &'a str,
    pub(crate) cell: &'a Cell,
}

impl<'a> Entry<'a> {
    fn tab(&self) -> (u64, usize) {
        (self.cell.keys, self.cell.threads)
    }

    pub(crate) fn is_at(&self, workload: &str, rival: &str) -> bool {
        (&*self.cell.workload, &*self.cell.rival) == (workload, rival)
    }
}

/// Keeps one entry for each place in the matrix: the one with the most rounds. All entries of a tab are of
/// one machine and commit: the one that has the most entries for it.
pub(crate) fn chosen(mut entries: Vec<Entry>) -> Vec<Entry> {
    entries.sort_by_key(|of| Reverse(of.cell.ratio.count));
    let count = |tab, source: &str| {
        let is_like = |of: &&Entry| (of.tab(), of.source) == (tab, source);
        entries.iter().filter(is_like).count()
    };
    let mut sources = distinct(entries.iter().map(|of| (of.tab(), of.source)));
    sources.sort_by_key(|&(tab, source)| count(tab, source));
    // Of a tab, the last one stays.
    let fullest: HashMap<_, _> = sources.into_iter().collect();
    entries.retain(|of| fullest[&of.tab()] == of.source);
    let mut taken = HashSet::new();
    entries.retain(|of| taken.insert((of.tab(), &of.cell.workload, &of.cell.rival)));
    entries
}

/// Renders the matrix of at most one entry a place.
pub(crate) fn render(entries: &[Entry]) -> Markup {
    let mut tabs = distinct(entries.iter().map(Entry::tab));
    tabs.sort_unstable();
    let of_tab = |of| entries.iter().filter(move |entry| entry.tab() == of);
    // The fullest is open, and of several that on all cores.
    let open = tabs.iter().max_by_key(|of| of_tab(**of).count());
    let sources = distinct(entries.iter().map(|of| of.source));
    html! {
        @if !tabs.is_empty() {
            h2 { "Ours over each rival" }
            p.note {
                "Throughput of lock-free over the rival's, with its interval: "
                span style=(colour(Verdict::Faster, 2.0)) { "blue above 1, where it is faster" } ", "
                span style=(colour(Verdict::Slower, 0.5)) { "orange below 1, where it is slower" }
                ", stronger up to a factor of two; white where they are equal, grey where nothing can be claimed, with the reason \
                 on hovering. A cell leads to its figure."
                @if let [source] = &sources[..] { " " (source) "." }
            }
            div.tabs {
                style {
                    @for tab in 0..tabs.len() {
                        (PreEscaped(format!("#tab-{tab}:checked ~ #matrix-{tab} {{ display: block; }}\n")))
                    }
                }
                @for (number, tab) in tabs.iter().enumerate() {
                    input type="radio" name="tab" id=(format!("tab-{number}")) checked[Some(tab) == open];
                    label for=(format!("tab-{number}")) {
                        (grouped(tab.0)) " keys, " (counted(tab.1, "thread"))
                        @if let ([_, _, ..], Some(one)) = (&sources[..], of_tab(*tab).next()) {
                            small { (one.source) }
                        }
                    }
                }
                @for (number, tab) in tabs.iter().enumerate() {
                    div.tab id=(format!("matrix-{number}")) { (table(of_tab(*tab))) }
                }
            }
        }
    }
}

fn table<'a>(entries: impl Iterator<Item = &'a Entry<'a>> + Clone) -> Markup {
    let rivals = distinct(entries.clone().map(|of| &of.cell.rival));
    let workloads = distinct(entries.clone().map(|of| &of.cell.workload));
    let at = |workload: &str, rival: &str| entries.clone().find(|of| of.is_at(workload, rival));
    html! {
        table.matrix {
            thead { tr { th {} @for rival in &rivals { th { (rival) } } } }
            tbody {
                @for workload in &workloads {
                    tr {
                        td { (workload) }
                        @for rival in &rivals {
                            @match at(workload, rival) {
                                Some(entry) => (shown(entry.section, entry.cell)),
                                None => td {},
                            }
                        }
                    }
                }
            }
        }
    }
}

fn shown(section: &str, Cell { ratio, verdict, .. }: &Cell) -> Markup {
    let number = |number: f64| match number {
        ..9.95 => format!("{number:.2}"),
        _ => format!("{number:.1}"),
    };
    html! {
        td.open[!verdict.is_claim()] style=(colour(*verdict, ratio.median)) title=(verdict.explanation()) {
            a href=(format!("#{section}")) { (number(ratio.median)) }
            small { (number(ratio.low)) "–" (number(ratio.high)) }
        }
    }
}

/// Blue for a gain and orange for a loss, which can be told apart with any colour vision, the
/// stronger the further the ratio is from 1, up to a factor of two.
fn colour(verdict: Verdict, ratio: f64) -> String {
    let hue = match verdict {
        Verdict::Faster => "0, 114, 178",
        Verdict::Slower => "213, 94, 0",
        _ => return String::new(),
    };
    let strength = 0.12 + 0.4 * ratio.log2().abs().min(1.0);
    format!("background: rgba({hue}, {strength:.2})")
}
