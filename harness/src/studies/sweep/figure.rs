//! Draws the rows of a sweep as one figure: a panel for each workload, with a line or a row for each
//! subject. The horizontal axis is the quantity that differs: see [`Results::of`].

use anyhow::{Context, Result, ensure};

use super::caption::caption;
use super::panel::{CONTROL, Drawn, Shown};
use crate::results::record::Row;
use crate::results::statistics::{Axis, Case, Results};
use crate::show::chart::Figure;
use crate::show::sidecar::Sidecar;
use crate::wording::counted;

/// Draws latencies where operations were timed one by one, ratios where there is a control, and
/// throughput otherwise.
pub(super) fn of(rows: &[Row], sidecar: Option<&Sidecar>) -> Result<Figure> {
    let results = Results::of(rows);
    let shown = if results.timed() {
        Shown::Latency
    } else if results.subjects().contains(&CONTROL) {
        Shown::OverControl
    } else {
        Shown::Throughput
    };
    draw(results, shown, sidecar)
}

/// Draws throughput over that at the lowest number of threads.
///
/// # Errors
///
/// Fails if the number of threads is not what differs.
pub(super) fn speedup(rows: &[Row], sidecar: Option<&Sidecar>) -> Result<Figure> {
    let results = Results::of(rows);
    let cases = results.cases();
    let has_some = |case: &Case| results.places(case).len() > 1;
    ensure!(
        results.axis() == Axis::Threads && cases.iter().any(has_some),
        "--speedup needs throughputs at several numbers of threads, which these rows have not"
    );
    draw(results, Shown::Speedup, sidecar)
}

fn draw(results: Results, shown: Shown, sidecar: Option<&Sidecar>) -> Result<Figure> {
    let first = results.all().first().context("there are no rows to draw")?;
    let panel = |case: Case| {
        let title = panel_title(&results, &case, sidecar);
        Drawn {
            results,
            case,
            shown,
        }
        .panel(title)
    };
    let panels = results.cases().into_iter().map(panel).collect();
    let caption = caption(&results, shown, sidecar);
    Ok(Figure::new(&first.experiment, caption, panels, sidecar))
}

/// Describes what the threads do, and what is constant in the whole panel.
pub(super) fn panel_title(results: &Results, case: &Case, sidecar: Option<&Sidecar>) -> String {
    // An insert adds one to some words, and a remove takes it away again; they fill no table.
    if results.are_of_words() {
        return case.marked("Add to words".into());
    }
    let described = sidecar.and_then(|sidecar| sidecar.panel(results.axis(), case));
    let mut title = described.map_or_else(|| case.workload.clone(), |panel| panel.title.clone());
    let value = |axis| case.value(axis).filter(|&value| value > 0.0);
    let mut fixed = Vec::new();
    fixed.extend(value(Axis::Load).map(|load| format!("load factor {load}")));
    // Other titles name a share of hits that is not the usual one.
    if title == "Lookup" {
        fixed.extend(case.value(Axis::Hit).map(|hit| format!("{hit} % present")));
    }
    fixed.extend(value(Axis::Skew).map(|skew| format!("Zipf {skew}")));
    if let Some(offered) = value(Axis::Offered) {
        fixed.push(format!("{offered} M/s due"));
    } else if results.timed() && results.axis() != Axis::Offered {
        fixed.push("closed loop".into());
    }
    if !matches!(results.axis(), Axis::Threads | Axis::Frozen) {
        fixed.extend(value(Axis::Threads).map(|threads| counted(threads, "thread")));
    }
    if !fixed.is_empty() {
        title += &format!(" ({})", fixed.join(", "));
    }
    case.marked(title)
}

#[cfg(test)]
mod tests {
    use plotters::style::RGBColor;

    use super::*;
    use crate::results::record::sample;
    use crate::show::chart::{Style, styles};
    use crate::studies::sweep::panel::OVERSUBSCRIBED;

    fn render(rows: &[Row], sidecar: Option<&Sidecar>) -> Result<String> {
        of(rows, sidecar)?.render()
    }

    /// Returns two rounds of every subject under every workload.
    fn rows(subjects: &[&str], threads: &[usize], workloads: &[&str]) -> Vec<Row> {
        let mut rows = Vec::new();
        for (index, &subject) in subjects.iter().enumerate() {
            for &threads in threads {
                for &workload in workloads {
                    for round in [1, 2] {
                        let mops = (10 * (index + 1) * threads + round) as f64;
                        rows.push(sample(subject, workload, threads, round, mops));
                    }
                }
            }
        }
        rows
    }

    fn colour(style: &Style) -> String {
        let RGBColor(red, green, blue) = style.colour;
        format!("#{red:02X}{green:02X}{blue:02X}")
    }

    /// Words have neither inserts nor a load factor, nor do keys fill them; and what is said of three
    /// subjects is said once.
    #[test]
    fn words_are_not_described_as_a_table() {
        let described = |subjects: &[&str]| {
            let rows = rows(subjects, &[1, 2], &["mix-0-50-50"]);
            let mut sidecar = crate::show::sidecar::sample();
            sidecar.subjects = (subjects.iter())
                .map(|subject| (subject.to_string(), "words under K-CAS".to_owned()))
                .collect();
            render(&rows, Some(&sidecar)).unwrap()
        };
        let svg = described(&["kcas-2", "kcas-4", "mutex-2"]);
        for text in [
            "Add to words",
            "Words:",
            "16,305",
            "kcas-2, kcas-4, mutex-2: words under K-CAS",
        ] {
            assert!(svg.contains(text), "{text}");
        }
        for text in ["load factor", "Keys:", "insert"] {
            assert!(!svg.contains(text), "{text}");
        }
        let svg = described(&["kcas-2", "lock-free"]);
        for text in ["load factor", "Keys:"] {
            assert!(svg.contains(text), "{text}");
        }
    }

    #[test]
    fn an_empty_file_is_a_clear_error() {
        let error = render(&[], None).unwrap_err().to_string();
        assert!(error.contains("no rows"), "{error}");
    }

    #[test]
    fn every_panel_and_subject_is_drawn() {
        let subjects = ["lock-free", "roofline", "mine"];
        let svg = render(&rows(&subjects, &[1, 2, 4], &["insert", "remove"]), None).unwrap();
        for text in [
            "insert (load factor 0.92)",
            "remove (load factor 0.92)",
            "median of 2 rounds",
            "60,000",
        ] {
            assert!(svg.contains(text), "{text}");
        }
        assert_eq!(
            svg.matches("million operations per second").count(),
            1,
            "leftmost panel only"
        );
        for style in styles(&subjects) {
            assert!(
                svg.contains(&format!("\n{}\n", style.subject)),
                "{}",
                style.subject
            );
            // Two panels of three points, and a name, for each subject of this colour.
            let marker = format!("<polygon opacity=\"1\" fill=\"{}\"", colour(&style));
            let alike = styles(&subjects)
                .iter()
                .filter(|other| colour(other) == colour(&style))
                .count();
            assert_eq!(svg.matches(&marker).count(), 8 * alike, "{}", style.subject);
        }
    }

    /// The throughput is ten and a hundred times that of others, which are at 11 and 12.
    #[test]
    fn the_axis_is_logarithmic_where_throughputs_are_far_apart() {
        let caption = |times: f64| {
            let mut rows = rows(&["lock-free"], &[1], &["insert"]);
            let fast = |row: &Row| sample("null", "insert", 1, row.round, row.mops * times);
            rows.extend(rows.iter().map(fast).collect::<Vec<_>>());
            let svg = render(&rows, None).unwrap();
            (svg.contains("Logarithmic axis"), svg.contains("\n1000\n"))
        };
        assert_eq!(caption(10.0), (false, false));
        assert_eq!(caption(100.0), (true, true));
    }

    #[test]
    fn only_more_threads_than_cores_are_marked() {
        let marked = |threads: &[usize]| {
            let svg = render(&rows(&["lock-free"], threads, &["insert"]), None).unwrap();
            (svg.contains(OVERSUBSCRIBED), svg.contains("Shaded:"))
        };
        assert_eq!(marked(&[1, 2, 4]), (true, true));
        assert_eq!(marked(&[1, 2]), (false, false));
        assert_eq!(marked(&[4]), (true, true));
    }

    #[test]
    fn frozen_threads_are_the_horizontal_axis_where_their_number_differs() {
        let mut rows = rows(&["lock-free", "global-lock"], &[1, 2], &["insert"]);
        let svg = render(&rows, None).unwrap();
        assert!(!svg.contains("frozen") && !svg.contains("Frozen"));
        for frozen in [3, 5] {
            let stopped = |row: &Row| Row {
                frozen,
                mops: if row.subject == "lock-free" {
                    row.mops
                } else {
                    0.0
                },
                ..row.clone()
            };
            rows.extend(rows[..8].iter().map(stopped).collect::<Vec<_>>());
        }
        let svg = render(&rows, None).unwrap();
        for text in [
            "\nfrozen threads (besides 1 running)\n",
            "\nfrozen threads (besides 2 running)\n",
            "Frozen threads stopped",
            "\n3\n",
            "\n5\n",
        ] {
            assert!(svg.contains(text), "{text}");
        }
        assert!(!svg.contains("\nthreads\n"));
        for style in styles(&["lock-free", "global-lock"]) {
            // Two panels of three points, including those at zero, and a name.
            let marker = format!("<polygon opacity=\"1\" fill=\"{}\"", colour(&style));
            assert_eq!(svg.matches(&marker).count(), 8, "{}", style.subject);
        }
        assert_eq!(svg.matches("<circle").count(), rows.len(), "every round");
    }
}
