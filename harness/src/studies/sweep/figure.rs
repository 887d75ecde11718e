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
use crate::workload::latency::percent;

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
    if let Some(share) = value(Axis::Offered) {
        fixed.push(format!("{} % due", percent(share)));
    } else if let Some(rate) = value(Axis::Rate) {
        fixed.push(format!("{rate} M/s due"));
    } else if results.timed() && !matches!(results.axis(), Axis::Offered | Axis::Rate) {
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
    use super::*;
    use crate::results::record::sample;
    use crate::studies::sweep::panel::OVERSUBSCRIBED;

    fn render(rows: &[Row], sidecar: Option<&Sidecar>) -> Result<String> {
        Ok(of(rows, sidecar)?.render())
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

    /// Returns how many marks there are of each colour.
    fn marks(svg: &str) -> Vec<usize> {
        let marks = svg.lines().filter(|line| line.starts_with("<polygon"));
        let mut colours: Vec<_> = marks
            .filter_map(|line| line.split(" stroke=").nth(1)?.get(..9))
            .collect();
        colours.sort_unstable();
        colours.chunk_by(|a, b| a == b).map(<[_]>::len).collect()
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
        let named = svg.matches(">million operations/s<").count();
        assert_eq!(named, 1, "leftmost panel only");
        for subject in subjects {
            assert_eq!(svg.matches(&format!(">{subject}<")).count(), 1, "{subject}");
        }
        // Two panels of three points, and a name, for each subject.
        assert_eq!(marks(&svg), [7, 7, 7]);
    }

    /// Nothing is between two numbers of threads.
    #[test]
    fn two_places_are_drawn_in_rows() {
        let svg = render(
            &rows(&["lock-free", "segment-lock"], &[1, 2], &["insert"]),
            None,
        )
        .unwrap();
        assert!(svg.contains(">threads:<") && !svg.contains("<polyline points=\"0"));
        // Of the key, and of each subject.
        assert_eq!(marks(&svg), [2, 2, 2]);
    }

    /// The control itself is no row.
    #[test]
    fn ablations_are_shown_as_ratios_to_the_control() {
        let subjects = ["lock-free", CONTROL, "ablation-epoch"];
        let figure = of(&rows(&subjects, &[1, 2, 4], &["insert"]), None).unwrap();
        let [panel] = &figure.panels[..] else {
            panic!("one workload, one panel");
        };
        let shown = |line: &crate::show::chart::Line| {
            let (_, last) = line.points.last().unwrap();
            (line.subject.clone(), (last.median * 10.0).round() / 10.0)
        };
        let shown: Vec<_> = panel.lines.iter().map(shown).collect();
        assert_eq!(shown, [("lock-free".into(), 0.5), ("epoch".into(), 1.5)]);
        assert!(panel.in_rows);
    }

    #[test]
    fn speedup_is_over_the_lowest_number_of_threads() {
        let figure = speedup(&rows(&["lock-free"], &[2, 4, 8], &["insert"]), None).unwrap();
        let panel = &figure.panels[0];
        let ratios = panel.lines[0]
            .points
            .iter()
            .map(|(at, of)| (*at, of.median.round()));
        let expected = [(2.0, 1.0), (4.0, 2.0), (8.0, 4.0)];
        assert_eq!(ratios.collect::<Vec<_>>(), expected);
        assert_eq!(panel.guides[0].points, expected);
        let one = speedup(&rows(&["lock-free"], &[2], &["insert"]), None).unwrap_err();
        assert!(one.to_string().contains("--speedup"), "{one}");
    }

    /// Its round counts where throughput is drawn, and is left out, with a word, of ratios.
    #[test]
    fn a_subject_that_stood_still_is_drawn_at_zero() {
        let mut rows = rows(&["lock-free"], &[1, 2], &["insert"]);
        rows.retain(|row| row.round == 1);
        rows[1].mops = 0.0;
        let drawn = of(&rows, None).unwrap();
        assert_eq!(drawn.panels[0].lines[0].points[1].1.median, 0.0);
        let svg = drawn.render();
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        assert!(!svg.contains("Left out"));
        let ratios = speedup(&rows, None).unwrap();
        assert_eq!(ratios.panels[0].lines[0].points.len(), 1);
        assert!(
            ratios
                .render()
                .contains("Left out of ratios: 1 measurement")
        );
    }

    /// Percentiles of one subject are at one place, the median lowest.
    #[test]
    fn latency_reaches_from_the_median_to_the_highest_percentile() {
        let timed = |row: Row| Row {
            p50_ns: 100,
            p99_ns: 2_000,
            p999_ns: 30_000,
            max_ns: 400_000,
            ..row
        };
        let rows = rows(&["lock-free", "rwlock"], &[1, 2, 4], &["insert"]).into_iter();
        let rows: Vec<_> = rows.map(timed).collect();
        let figure = of(&rows, None).unwrap();
        assert_eq!(figure.panels.len(), 1);
        let (_, first) = figure.panels[0].lines[0].points[0];
        assert_eq!(
            (first.low, first.median, first.high),
            (100.0, 2_000.0, 30_000.0)
        );
        let svg = figure.render();
        let told = "rwlock at 4: median 100 ns, 99th percentile 2 µs, 99.9th 30 µs";
        assert!(svg.contains(told), "{svg}");
        // A mark at each end, a name, and what marks mean.
        assert_eq!(marks(&svg), [2, 7, 7]);
    }

    /// The throughput is four and a hundred times that of others, which are at 11 to 42.
    #[test]
    fn the_axis_is_logarithmic_where_throughputs_are_far_apart() {
        let axis = |times: f64| {
            let mut rows = rows(&["lock-free"], &[1, 2, 4], &["insert"]);
            let fast =
                |row: &Row| sample("null", "insert", row.threads, row.round, row.mops * times);
            rows.extend(rows.iter().map(fast).collect::<Vec<_>>());
            let svg = render(&rows, None).unwrap();
            (!svg.contains(">0<"), svg.contains(">1000<"))
        };
        assert_eq!(axis(4.0), (false, false));
        assert_eq!(axis(100.0), (true, true));
    }

    #[test]
    fn a_workload_stands_below_itself_on_another_machine() {
        let of = |machine: &'static str| {
            let on = move |row: Row| Row {
                simulated: machine.into(),
                ..row
            };
            rows(&["lock-free"], &[1, 2], &["insert", "remove", "lookup-hit"])
                .into_iter()
                .map(on)
        };
        let rows: Vec<_> = ["m", "n", "o", "p"].into_iter().flat_map(of).collect();
        let svg = render(&rows, None).unwrap();
        let places = |title: &str| {
            let titles = svg.lines().filter(|line| line.contains(title));
            let place = |line: &str| line.split('"').nth(1).map(str::to_owned);
            titles.map(place).collect::<Vec<_>>()
        };
        for title in [">insert", ">remove", ">lookup-hit"] {
            let found = places(title);
            assert_eq!(found, vec![found[0].clone(); 4], "{title}");
        }
        assert_ne!(places(">insert")[0], places(">remove")[0]);
    }

    #[test]
    fn only_more_threads_than_cores_are_marked() {
        let marked = |threads: &[usize]| {
            let svg = render(&rows(&["lock-free"], threads, &["insert"]), None).unwrap();
            (
                svg.contains(OVERSUBSCRIBED),
                svg.contains("Oversubscribed:"),
            )
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
            ">frozen threads (besides 1 running)<",
            ">frozen threads (besides 2 running)<",
            "Frozen threads stopped",
            ">3<",
            ">5<",
        ] {
            assert!(svg.contains(text), "{text}");
        }
        assert!(!svg.contains(">threads<"));
        // Two panels of three points, including those at zero, and a name.
        assert_eq!(marks(&svg), [7, 7]);
        assert_eq!(svg.matches("<circle").count(), rows.len(), "every round");
    }
}
