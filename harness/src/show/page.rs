//! Renders the results page as HTML that needs no other file.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::findings::{Finding, Findings};
use super::matrix::{self, Entry};
use crate::results::{EQUAL_AT_MOST, FEWEST, distinct};
use crate::show::{Sheet, Sidecar};

#[derive(Default)]
pub(crate) struct Section {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) question: String,
    /// Text of the SVG file; empty if there is none.
    pub(crate) figure: String,
    /// A note that rows are missing, if they are.
    pub(crate) missing: Option<String>,
    pub(crate) findings: Findings,
    pub(crate) sheet: Option<Sheet>,
    pub(crate) files: Vec<String>,
    pub(crate) sidecar: Option<Sidecar>,
}

const STYLE: &str = "
body { font: 16px/1.5 sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
h1, h2 { line-height: 1.2; }
h2 { margin-top: 3.5rem; border-top: 1px solid #ccc; padding-top: 1.5rem; }
h3 { margin-bottom: 0.3rem; }
.figure { overflow-x: auto; }
svg { max-width: 100%; height: auto; }
@media (max-width: 50rem) { .figure > svg { max-width: none; width: 50rem; } }
table { border-collapse: collapse; font-size: 0.85rem; margin: 1rem 0; display: block; overflow-x: auto; }
th, td { border: 1px solid #ccc; padding: 0.2rem 0.6rem; text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
.question { font-style: italic; font-size: 1.15rem; }
.lost { color: #a33c00; }
.note { color: #555; font-size: 0.9rem; margin: 0.2rem 0; }
nav li { margin: 0.1rem 0; }
";

/// Renders the page of these sections, with the reasons why files were left out.
pub(crate) fn render(sections: &[Section], left_out: &[String]) -> String {
    let headline = (sections.iter()).find(|section| !section.findings.headlines.is_empty());
    let sources: Vec<_> = sections.iter().map(source).collect();
    let entries = sections.iter().zip(&sources).flat_map(|(section, source)| {
        section.findings.cells.iter().map(|cell| Entry {
            section: &section.name,
            source,
            cell,
        })
    });
    let matrix = matrix::chosen(entries.collect());
    let sidecars = sections.iter().filter_map(|of| of.sidecar.as_ref());
    let machines = distinct(sidecars.map(Sidecar::machine_line));
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "Lock-free cuckoo filter: measurements" }
                style { (PreEscaped(STYLE)) (PreEscaped(matrix::STYLE)) }
            }
            body {
                h1 { "Lock-free cuckoo filter: measurements" }
                @if let Some(section) = headline { (describe(section, &titled(section, sections))) }
                (matrix::render(&matrix))
                (losses(sections, &matrix))
                nav {
                    h2 { "All results" }
                    p {
                        (format!("Every number here, and every sentence about one, is generated from the data. Ratios are taken within rounds; a value is the \
                         median over the rounds, with its exact interval from order statistics, of 95 % at least. Nothing is claimed with \
                         fewer than {FEWEST} rounds. Faster or slower: chance does not explain a ratio (signed ranks, corrected by Benjamini and \
                         Hochberg for all comparisons of this page with the same rival), and its whole interval is further from 1 than a subject \
                         is from itself under that workload. Equal: its whole interval is nearer, and within {:.0} %.", 100.0 * (EQUAL_AT_MOST - 1.0)))
                    }
                    details {
                        summary { "Machines and commits" }
                        @for line in &machines { p.note { (line) } }
                    }
                    ul {
                        @for section in sections {
                            li { a href=(format!("#{}", section.name)) { (titled(section, sections)) } }
                        }
                    }
                }
                @for section in sections.iter().filter(|of| headline.is_none_or(|first| first.name != of.name)) {
                    (describe(section, &titled(section, sections)))
                }
                @if !left_out.is_empty() {
                    h2 { "Left out" }
                    ul { @for why in left_out { li { (why) } } }
                }
            }
        }
    };
    page.into_string()
}

/// Returns the title of a section, with its name if another has the same.
fn titled(section: &Section, sections: &[Section]) -> String {
    let alike = sections.iter().filter(|other| other.title == section.title);
    match alike.count() {
        1 => section.title.clone(),
        _ => format!("{} ({})", section.title, section.name),
    }
}

fn source(section: &Section) -> String {
    let of = |sidecar: &Sidecar| {
        let commit = sidecar.harness.short();
        format!("{}, commit {commit}", sidecar.processor())
    };
    section.sidecar.as_ref().map_or_else(String::new, of)
}

/// Shows the losses that are not in the matrix: elsewhere than on one thread and on all cores, or where
/// other results have the place in the matrix.
fn losses(sections: &[Section], matrix: &[Entry]) -> Markup {
    let is_shown = |section: &Section, finding: &Finding| {
        finding.lost_at.iter().all(|&threads| {
            let own = matrix.iter().filter(|of| of.section == section.name);
            let mut there = own.filter(|of| of.cell.threads as f64 == threads);
            there.any(|of| of.is_at(&finding.case, &finding.other))
        })
    };
    let lost = |section: &'_ Section| -> Vec<Finding> {
        let findings = section.findings.comparisons.iter();
        let lost = findings.filter(|of| !of.lost_at.is_empty() && !is_shown(section, of));
        lost.cloned().collect()
    };
    let is_measured = |of: &&Section| {
        let sidecar = of.sidecar.as_ref();
        of.findings.is_of_ours && sidecar.is_none_or(|of| of.run.simulated.is_empty())
    };
    let lost = sections.iter().filter(is_measured).map(|of| (of, lost(of)));
    let lost: Vec<_> = lost.filter(|(_, findings)| !findings.is_empty()).collect();
    html! {
        @if !lost.is_empty() {
            h2 { "Where it loses" }
            p {
                "Losses that the table above does not show in orange. Those in pairs, latency, memory, K-CAS, ablations, targets and \
                 simulations are in their sections."
            }
            @for (section, findings) in lost {
                h3 { a href=(format!("#{}", section.name)) { (titled(section, sections)) } }
                ul {
                    @for finding in findings { li { (finding.case) ": " (finding.text) } }
                }
            }
        }
    }
}

fn describe(section: &Section, title: &str) -> Markup {
    html! {
        h2 id=(section.name) { (title) }
        @if !section.question.is_empty() { p.question { (section.question) } }
        @if let Some(missing) = &section.missing { p.lost { (missing) } }
        div.figure { (PreEscaped(&section.figure)) }
        @for line in &section.findings.headlines { p { (line) } }
        @for line in &section.findings.sentences { p { (line) } }
        @let cases = distinct(section.findings.comparisons.iter().map(|finding| &*finding.case));
        @if !cases.is_empty() {
            details open[cases.len() < 5] {
                summary { "What the data say" }
                @for case in cases {
                    h3 { (case) }
                    ul {
                        @for finding in section.findings.comparisons.iter().filter(|finding| finding.case == case) {
                            li.lost[!finding.lost_at.is_empty()] { (finding.text) }
                        }
                    }
                }
            }
        }
        @if let Some(sheet) = &section.sheet {
            details {
                summary { "Table" }
                (table(sheet))
            }
        }
        p.note {
            "Files: "
            @for file in &section.files { a href=(file) { (file) } " " }
        }
        @if let Some(sidecar) = &section.sidecar {
            p.note {
                code { (sidecar.run.command) } ", " (sidecar.run.started) ". " (sidecar.machine_line()) " " (sidecar.load_line().unwrap_or_default())
            }
        }
    }
}

fn table(sheet: &Sheet) -> Markup {
    html! {
        p { (sheet.lead) }
        table {
            thead { tr { @for name in &sheet.header { th { (name) } } } }
            tbody {
                @for line in &sheet.lines { tr { @for cell in line { td { (cell) } } } }
            }
        }
        @for note in &sheet.notes { p.note { (note) } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Summary, Verdict};
    use crate::show::Run;
    use crate::show::matrix::Cell;

    /// A section that loses on these numbers of threads, with a cell of `rounds` rounds on one thread.
    fn section(name: &str, rounds: usize, lost_at: &[f64]) -> Section {
        let cell = Cell {
            workload: "Insert".into(),
            rival: "word-lock".into(),
            keys: 1_000,
            threads: 1,
            ratio: Summary::of(vec![0.8; rounds]).unwrap(),
            verdict: Verdict::Slower,
        };
        let finding = Finding {
            case: "Insert".into(),
            other: "word-lock".into(),
            text: format!("slower in {name}"),
            lost_at: lost_at.to_vec(),
        };
        Section {
            name: name.into(),
            title: name.into(),
            findings: Findings {
                is_of_ours: true,
                comparisons: vec![finding],
                cells: vec![cell],
                ..Findings::default()
            },
            ..Section::default()
        }
    }

    /// Above the sections themselves, which have all.
    fn losses(sections: &[Section]) -> String {
        let page = render(sections, &[]);
        page.split("All results").next().unwrap().to_owned()
    }

    #[test]
    fn a_loss_is_in_the_matrix_or_among_the_losses() {
        let alone = losses(&[section("quick", 9, &[1.0])]);
        assert!(!alone.contains("slower in quick"), "the matrix shows it");
        let hidden = losses(&[section("quick", 9, &[1.0]), section("full", 15, &[])]);
        assert!(hidden.contains("slower in quick"), "another has its place");
        let oversubscribed = losses(&[section("quick", 9, &[1.0, 8.0])]);
        assert!(oversubscribed.contains("slower in quick"));
        assert!(!losses(&[section("quick", 9, &[])]).contains("slower in quick"));
        let mut simulated = section("quick", 9, &[8.0]);
        let run = Run {
            simulated: vec!["milan".into()],
            ..Run::default()
        };
        simulated.sidecar = Some(Sidecar::describe(run, &[]).unwrap());
        assert!(!losses(&[simulated]).contains("slower in quick"));
    }
}
