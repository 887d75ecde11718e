//! The key: what colours, marks and dashes stand for.

use super::panel::{Look, Panel, places_of_rows};
use super::style::{MARKS, Mark, Style, corners};
use super::svg::{Anchor, BLACK, Canvas, Colour, DARK, Frame, Place, Stroke};
use super::text::{TEXT_SIZE, text_width};
use crate::results::distinct;

pub(super) const SHADE: Colour = Colour(236, 236, 236);
/// Of guides.
pub(super) const DASHES: [Stroke; 2] = [
    Stroke(BLACK, 0.8, true),
    Stroke(Colour(128, 128, 128), 0.8, true),
];
/// The height of a line of the key.
const LINE: f64 = 10.0;
const GLYPH: f64 = 17.0;
const GAP: f64 = 9.0;

/// A sign, with its meaning.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    sign: Sign,
    text: String,
}

#[derive(Clone, Debug, PartialEq)]
enum Sign {
    /// None: the text introduces the entries that follow.
    Lead,
    Subject(Style, Look),
    /// The mark of a place in rows, with the share of colour inside.
    Mark(Mark, f64),
    Tick,
    Guide(usize),
    Shade,
}

/// Returns the mark of each of some places in rows, with the share of colour inside: the more, the
/// later the place.
pub(super) fn marks_of_places(count: usize) -> impl Iterator<Item = (Mark, f64)> {
    (0..count).map(move |index| {
        let share = match count {
            1 => 1.0,
            _ => index as f64 / (count - 1) as f64,
        };
        (MARKS[index % MARKS.len()], share)
    })
}

/// Returns what must be explained of these panels, each once. `style` returns a subject's.
pub(super) fn of(panels: &[Panel], style: impl Fn(&str) -> Style) -> Vec<Entry> {
    let entry = |sign, text: &str| Entry {
        sign,
        text: text.to_owned(),
    };
    let (mut entries, mut notes) = (Vec::new(), Vec::new());
    let rows = places_of_rows(panels);
    for panel in panels {
        if panel.in_rows {
            let shaded = |place: f64| match panel.shade {
                Some((from, name)) if place >= from => format!(" ({name})"),
                _ => String::new(),
            };
            entries.push(entry(Sign::Lead, &format!("{}:", panel.x.name)));
            let marks = marks_of_places(rows.len()).zip(rows.iter().copied());
            entries.extend(marks.map(|((mark, share), place)| {
                let text = (panel.x.label)(place) + &shaded(place);
                entry(Sign::Mark(mark, share), &text)
            }));
        } else {
            for line in panel.lines.iter().filter(|line| !line.points.is_empty()) {
                let look = match line.look {
                    Look::Named(_) => Look::Reach,
                    ref look => look.clone(),
                };
                let sign = Sign::Subject(style(&line.subject), look);
                entries.push(entry(sign, &line.subject));
            }
            notes.extend(panel.shade.map(|(_, name)| entry(Sign::Shade, name)));
        }
        let guides = panel.guides.iter().enumerate();
        notes.extend(guides.map(|(index, guide)| entry(Sign::Guide(index), guide.name)));
        if panel.lines.iter().any(|line| line.look == Look::Reach) {
            notes.push(entry(Sign::Mark(MARKS[0], 1.0), "median"));
            notes.push(entry(Sign::Tick, "99th percentile"));
            notes.push(entry(Sign::Mark(MARKS[0], 0.0), "99.9th percentile"));
        }
    }
    distinct(entries.into_iter().chain(notes))
}

/// Draws the entries in lines of this width. Returns the height.
pub(super) fn draw(canvas: &mut Canvas, entries: &[Entry], (left, top): Place, width: f64) -> f64 {
    let (mut x, mut y) = (0.0, 0.0);
    for entry in entries {
        let needed = entry.width();
        if x > 0.0 && x + needed - GAP > width {
            (x, y) = (0.0, y + LINE);
        }
        entry.draw(canvas, (left + x, top + y + LINE / 2.0));
        x += needed;
    }
    if entries.is_empty() { 0.0 } else { y + LINE }
}

impl Entry {
    fn width(&self) -> f64 {
        self.sign.width()
            + text_width(&self.text, TEXT_SIZE)
            + if self.sign == Sign::Lead { 4.0 } else { GAP }
    }

    fn draw(&self, canvas: &mut Canvas, (x, y): Place) {
        let width = self.sign.width();
        let middle = (x + width / 2.0 - 2.0, y);
        let line = [(x, y), (x + width - 4.0, y)];
        match &self.sign {
            Sign::Lead => {}
            Sign::Subject(style, look) => {
                if *look != Look::Reach {
                    canvas.line(line, Stroke(style.colour, 1.2, style.open));
                }
                canvas.mark(style.mark_at(middle), style.paint());
            }
            Sign::Mark(mark, share) => {
                canvas.mark(corners(mark, middle), [BLACK.share(*share), BLACK]);
            }
            Sign::Tick => {
                let ends = [(middle.0 - 2.5, y), (middle.0 + 2.5, y)];
                canvas.line(ends, Stroke(BLACK, 1.0, false));
            }
            Sign::Guide(index) => canvas.line(line, DASHES[index % 2]),
            Sign::Shade => {
                let (left, right, top, bottom) = (x, x + width - 4.0, y - 3.0, y + 3.0);
                canvas.rectangle(Frame::new([left, right], [top, bottom]), SHADE);
                let corners = [(left, top), (right, top), (right, bottom), (left, bottom)];
                let edge = corners.into_iter().chain([(left, top)]);
                canvas.line(edge, Stroke(DARK, 0.2, false));
            }
        }
        canvas.text((x + width, y + 2.5), TEXT_SIZE, Anchor::Start, &self.text);
    }
}

impl Sign {
    fn width(&self) -> f64 {
        match self {
            Self::Lead => 0.0,
            Self::Mark(..) | Self::Tick => 9.0,
            Self::Subject(_, Look::Reach) => 9.0,
            _ => GLYPH,
        }
    }
}
