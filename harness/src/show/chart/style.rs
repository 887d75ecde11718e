//! How subjects look: the same colour and marker in every figure.

use plotters::prelude::*;

/// The colours of Okabe and Ito, which can be told apart with any colour vision; grey replaces
/// their yellow, which is too pale for lines.
pub(crate) const COLOURS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(0, 0, 0),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
    RGBColor(128, 128, 128),
];

/// Seven markers and eight colours make 56 different pairs. Each marker is a polygon around (0, 0)
/// in pixels, y growing downwards.
const MARKERS: [&[(i32, i32)]; 7] = [
    &[
        (6, 2),
        (2, 6),
        (-2, 6),
        (-6, 2),
        (-6, -2),
        (-2, -6),
        (2, -6),
        (6, -2),
    ],
    &[(-5, -5), (5, -5), (5, 5), (-5, 5)],
    &[(0, -7), (6, 5), (-6, 5)],
    &[(0, -7), (7, 0), (0, 7), (-7, 0)],
    &[(0, 7), (6, -5), (-6, -5)],
    &[
        (-2, -6),
        (2, -6),
        (2, -2),
        (6, -2),
        (6, 2),
        (2, 2),
        (2, 6),
        (-2, 6),
        (-2, 2),
        (-6, 2),
        (-6, -2),
        (-2, -2),
    ],
    &[
        (-6, -6),
        (0, -2),
        (6, -6),
        (2, 0),
        (6, 6),
        (0, 2),
        (-6, 6),
        (-2, 0),
    ],
];

/// Subjects whose colour and marker are the same in every figure, whatever else is measured.
const FIXED_STYLES: [&str; 45] = [
    "lock-free",
    "segment-lock",
    "global-lock",
    "roofline",
    "two-phase",
    "optimistic",
    "vector-quotient",
    "rwlock",
    "atomic-cuckoo-filter",
    "fastbloom",
    "blocked-bloom",
    "exact-set",
    "cuckoofilter-mutex",
    "lock-free-batch",
    "word-lock",
    "ablation-control",
    "ablation-two-phase-lookup",
    "ablation-one-round-lookup",
    "ablation-hop-by-hop",
    "ablation-random-walk",
    "ablation-epoch",
    "ablation-helping-readers",
    "ablation-uncounted",
    "smart-cuckoo",
    "plain-cuckoo",
    "count-min",
    "hyperloglog",
    "growing",
    "update-roofline",
    "bloom",
    "counting-bloom",
    "null",
    "lock-free-fitted",
    "scalable-bloom",
    "growing-reader",
    "batched-roofline",
    "striped-timestamps",
    "ablation-dcss",
    "kcas-2",
    "kcas-4",
    "kcas-8",
    "mutex-2",
    "mutex-4",
    "mutex-8",
    "lock-free-copies",
];

/// How a subject is drawn, in every panel.
#[derive(Clone, Copy)]
pub(crate) struct Style<'a> {
    pub(crate) subject: &'a str,
    pub(crate) colour: RGBColor,
    pub(crate) marker: &'static [(i32, i32)],
}

impl<'a> Style<'a> {
    /// Returns the style of this number, for a subject.
    pub(crate) fn numbered(index: usize, subject: &'a str) -> Self {
        Style {
            subject,
            colour: COLOURS[index % COLOURS.len()],
            marker: MARKERS[index % MARKERS.len()],
        }
    }
}

pub(crate) fn styles<'a>(subjects: &[&'a str]) -> Vec<Style<'a>> {
    let mut others = FIXED_STYLES.len()..;
    let style = |&subject: &&'a str| {
        let fixed = FIXED_STYLES.iter().position(|name| *name == subject);
        let index = fixed.or_else(|| others.next()).unwrap_or_default();
        Style::numbered(index, subject)
    };
    subjects.iter().map(style).collect()
}

pub(crate) fn marker(style: &Style) -> Polygon<(i32, i32)> {
    Polygon::new(style.marker.to_vec(), style.colour.filled())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_keeps_its_style_whatever_else_is_drawn() {
        let of = |subjects: &[&'static str]| {
            let styles = styles(subjects);
            let ours = styles
                .iter()
                .find(|style| style.subject == "segment-lock")
                .unwrap();
            (ours.colour, ours.marker)
        };
        let alone = of(&["segment-lock"]);
        assert_eq!(of(&["roofline", "mine", "segment-lock"]), alone);
        assert_eq!(of(&["lock-free", "segment-lock", "global-lock"]), alone);
    }

    #[test]
    fn many_subjects_are_told_apart() {
        let others = COLOURS.len() * MARKERS.len() - FIXED_STYLES.len();
        let names: Vec<String> = (0..others)
            .map(|number| format!("subject-{number}"))
            .collect();
        let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
        names.extend(FIXED_STYLES);
        let styles = styles(&names);
        for (index, style) in styles.iter().enumerate() {
            for other in &styles[..index] {
                let same = style.colour == other.colour && style.marker == other.marker;
                assert!(!same, "{} looks like {}", style.subject, other.subject);
            }
        }
    }

    /// Markers are small: where there are enough colours, nobody should need them.
    #[test]
    fn colours_alone_tell_the_subjects_of_a_figure_apart() {
        let directory =
            std::path::Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("experiments");
        let mut figures = 0;
        for name in [
            "quick",
            "full",
            "oversubscribed",
            "stalls",
            "hits",
            "mixes",
            "latency",
        ] {
            let file = directory.join(name).with_extension("toml");
            for experiment in crate::experiment::read(&file).unwrap() {
                let subjects: Vec<_> = experiment.subjects.iter().map(String::as_str).collect();
                let styles = styles(&subjects);
                for (index, style) in styles.iter().enumerate() {
                    let alike = styles[..index]
                        .iter()
                        .find(|other| other.colour == style.colour);
                    let alike = alike.map(|other| other.subject);
                    assert_eq!(alike, None, "{} in {name}", style.subject);
                }
                figures += 1;
            }
        }
        assert!(figures >= 7);
    }

    #[test]
    fn every_subject_of_ours_has_a_style_of_its_own() {
        for name in crate::subjects::registry::Registry::standard().names() {
            assert!(FIXED_STYLES.contains(&name), "{name}");
        }
    }
}
