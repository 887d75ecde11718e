//! How subjects look: the same colour and marker in every figure.

use super::svg::{Colour, WHITE};
use crate::wording::unnumbered;

/// A mark in points.
const UNIT: f64 = 0.4;

/// The corners of a polygon around (0, 0), each right and down, in units of [`UNIT`].
pub(super) type Mark = &'static [i32];

/// The colours of Okabe and Ito, which can be told apart with any colour vision; grey replaces
/// their yellow, which is too pale for lines.
pub(crate) const COLOURS: [Colour; 8] = [
    Colour(0, 114, 178),
    Colour(213, 94, 0),
    Colour(0, 158, 115),
    Colour(0, 0, 0),
    Colour(204, 121, 167),
    Colour(86, 180, 233),
    Colour(230, 159, 0),
    Colour(128, 128, 128),
];

/// Seven marks and eight colours make 56 different pairs.
pub(super) const MARKS: [Mark; 7] = [
    &[6, 2, 2, 6, -2, 6, -6, 2, -6, -2, -2, -6, 2, -6, 6, -2],
    &[-5, -5, 5, -5, 5, 5, -5, 5],
    &[0, -7, 6, 5, -6, 5],
    &[0, -7, 7, 0, 0, 7, -7, 0],
    &[0, 7, 6, -5, -6, -5],
    &[
        -2, -6, 2, -6, 2, -2, 6, -2, 6, 2, 2, 2, 2, 6, -2, 6, -2, 2, -6, 2, -6, -2, -2, -2,
    ],
    &[-6, -6, 0, -2, 6, -6, 2, 0, 6, 6, 0, 2, -6, 6, -2, 0],
];

/// Subjects that have the colour and mark of this number in every figure, unless an earlier one in
/// the figure has that colour: then the first free one.
const FIXED_STYLES: &str = "lock-free|segment-lock|global-lock|roofline|two-phase|optimistic|vector-quotient|rwlock|\
    atomic-cuckoo-filter|fastbloom|blocked-bloom|exact-set|cuckoofilter-mutex|\
    lock-free-batch|word-lock|ablation-control|ablation-two-phase-lookup|\
    ablation-one-round-lookup|ablation-hop-by-hop|ablation-random-walk|ablation-epoch|\
    ablation-helping-readers|ablation-uncounted|smart-cuckoo|plain-cuckoo|count-min|\
    hyperloglog|growing|update-roofline|bloom|counting-bloom|null|lock-free-fitted|\
    scalable-bloom|mutex|batched-roofline|striped-timestamps|ablation-dcss|\
    lock-free-copies|ours|ours-by-dcss|ours, epoch|\
    crate kcas|crate mwcas|growing-batch|lock bits";

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Style {
    pub(super) colour: Colour,
    pub(super) mark: Mark,
    /// Whether it is drawn dashed, with open marks: another subject has its colour, too.
    pub(super) open: bool,
}

impl Style {
    pub(super) fn mark_at(&self, place: (f64, f64)) -> impl Iterator<Item = (f64, f64)> {
        corners(self.mark, place)
    }

    pub(super) fn paint(&self) -> [Colour; 2] {
        [if self.open { WHITE } else { self.colour }, self.colour]
    }
}

pub(super) fn corners(mark: Mark, (x, y): (f64, f64)) -> impl Iterator<Item = (f64, f64)> {
    let corners = mark.chunks_exact(2);
    corners.map(move |of| (x + UNIT * f64::from(of[0]), y + UNIT * f64::from(of[1])))
}

/// Returns the styles of the subjects of a figure, in their order. No two have both colour and mark
/// in common; up to eight differ in colour.
pub(super) fn styles(subjects: &[&str]) -> Vec<Style> {
    let fixed: Vec<_> = FIXED_STYLES.split('|').collect();
    let mut others = fixed.len()..;
    let wanted = subjects.iter().enumerate().map(|(place, subject)| {
        // With another number of stripes, a subject looks alike.
        let kind = unnumbered(subject, |name| fixed.contains(&name));
        let fixed = fixed.iter().position(|&name| name == kind);
        (fixed.or_else(|| others.next()).unwrap_or_default(), place)
    });
    let mut wanted: Vec<(usize, usize)> = wanted.collect();
    wanted.sort_unstable();
    let mut taken: Vec<(usize, Style)> = Vec::new();
    for (index, place) in wanted {
        let all = (0..COLOURS.len() * MARKS.len()).map(|step| {
            // First the other colours, then the other marks.
            let colour = COLOURS[(index + step) % COLOURS.len()];
            let mark = MARKS[(index + step / COLOURS.len()) % MARKS.len()];
            let open = taken.iter().any(|(_, other)| other.colour == colour);
            Style { colour, mark, open }
        });
        let is_taken = |style: &Style| {
            let alike = |other: &Style| (other.colour, other.mark) == (style.colour, style.mark);
            taken.iter().any(|(_, other)| alike(other))
        };
        let style = all.min_by_key(|style| (is_taken(style), style.open));
        taken.extend(style.map(|style| (place, style)));
    }
    taken.sort_unstable_by_key(|&(place, _)| place);
    taken.into_iter().map(|(_, style)| style).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Marks are small, so colours must suffice where there are enough of them.
    #[test]
    fn subjects_of_an_experiment_differ_in_colour() {
        let harness = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let files = std::fs::read_dir(harness.with_file_name("experiments")).unwrap();
        let read = |file: std::fs::DirEntry| crate::experiment::read(&file.path()).unwrap();
        let experiments = files.flat_map(|file| read(file.unwrap()));
        let has_colours = |of: &crate::experiment::Experiment| of.subjects.len() <= COLOURS.len();
        let experiments: Vec<_> = experiments.filter(has_colours).collect();
        assert!(experiments.len() >= 20, "{}", experiments.len());
        for experiment in experiments {
            let subjects: Vec<_> = experiment.subjects.iter().map(String::as_str).collect();
            let colours: Vec<_> = styles(&subjects).iter().map(|of| of.colour.hex()).collect();
            let different = std::collections::HashSet::<&String>::from_iter(&colours);
            assert_eq!(different.len(), subjects.len(), "{}", experiment.name);
        }
    }

    #[test]
    fn every_subject_of_ours_has_the_style_of_its_kind() {
        let fixed: Vec<_> = FIXED_STYLES.split('|').collect();
        for name in crate::subjects::registry::Registry::standard().names() {
            let kind = unnumbered(name, |name| fixed.contains(&name));
            assert!(fixed.contains(&kind), "{name}");
        }
    }
}
