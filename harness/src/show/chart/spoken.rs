//! Describes a figure in words, for those who cannot see it.

use super::panel::{Line, Look, Panel};

/// Returns the question of the figure, and what each panel shows.
pub(super) fn description(question: &str, panels: &[Panel]) -> String {
    let panels = panels.iter().enumerate();
    let panels = panels.map(|(index, panel)| format!("{}. {}", index + 1, described(panel)));
    let question = Some(question.to_owned()).filter(|question| !question.is_empty());
    question
        .into_iter()
        .chain(panels)
        .collect::<Vec<_>>()
        .join("\n")
}

fn described(panel: &Panel) -> String {
    let title = match &*panel.title {
        "" => String::new(),
        title => format!("{title}: "),
    };
    let lines = panel.lines.iter().filter_map(|line| said(panel, line));
    format!(
        "{title}{} against {}. {}.",
        panel.y.name,
        panel.x.name,
        lines.collect::<Vec<_>>().join("; ")
    )
}

/// Says where a line ends, or where each of its named points is.
fn said(panel: &Panel, line: &Line) -> Option<String> {
    let (x, y) = (
        |at| (panel.x.label)(rounded(at)),
        |at| (panel.y.label)(rounded(at)),
    );
    let &(at, last) = line.points.last()?;
    Some(match &line.look {
        Look::Named(names) => {
            let points = names.iter().zip(&line.points);
            let points =
                points.map(|(name, (at, of))| format!("{name} {} at {}", y(of.median), x(*at)));
            format!(
                "{}: {}",
                line.subject,
                points.collect::<Vec<_>>().join(", ")
            )
        }
        Look::Reach => format!(
            "{} at {}: median {}, 99th percentile {}, 99.9th {}",
            line.subject,
            x(at),
            y(last.low),
            y(last.median),
            y(last.high)
        ),
        Look::Bars | Look::Band => {
            format!("{} at {}: median {}", line.subject, x(at), y(last.median))
        }
    })
}

/// Keeps three digits.
fn rounded(value: f64) -> f64 {
    format!("{value:.2e}").parse().unwrap_or(value)
}
