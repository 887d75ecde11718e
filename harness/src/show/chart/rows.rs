//! Draws a panel in rows: a row for each subject, and in it a mark for each place.

use super::axis;
use super::axis::{Scale, Span};
use super::key::{DASHES, marks_of_places};
use super::panel::{Line, MANY, Panel};
use super::style::{Style, corners};
use super::svg::{Anchor, BLACK, Canvas, DARK, Frame, PALE, Stroke};
use super::text::{TEXT_SIZE, widest};

/// The distance of two marks of a row.
const STEP: f64 = 3.6;
/// The room around a row's marks.
const ROOM: f64 = 7.0;

fn row_height(places: &[f64]) -> f64 {
    ROOM + STEP * places.len().saturating_sub(1) as f64
}

impl Panel {
    pub(super) fn height_of_rows(&self, places: &[f64]) -> f64 {
        row_height(places) * self.lines.len() as f64
    }

    pub(super) fn width_of_names(&self) -> f64 {
        widest(self.lines.iter().map(Line::named), TEXT_SIZE) + 4.0
    }

    pub(super) fn draw_rows(
        &self,
        canvas: &mut Canvas,
        frame: Frame,
        (places, name_below, name_beside): (&[f64], bool, bool),
        style: impl Fn(&str) -> Style,
    ) {
        let values = self.values().chain(self.y.includes.iter().copied());
        // Nothing begins at zero, so logarithms show small values better.
        let scale = match self.y.scale {
            Scale::BySpread if self.values().all(|value| value > 0.0) => Scale::Logarithmic,
            scale => scale,
        };
        let across = Span::of(scale, values, (frame.left, frame.right)).with_room(0.04);
        axis::below(canvas, (&self.y, &across, &[]), frame, name_below);
        for (guide, stroke) in self.guides.iter().zip(DASHES) {
            // Against places it is level.
            for &(_, value) in guide.points.iter().take(1).filter(|of| across.has(of.1)) {
                let x = across.place(value);
                canvas.line([(x, frame.top), (x, frame.bottom)], stroke);
            }
        }
        for (row, line) in self.lines.iter().enumerate() {
            // Names tell rows apart; so many colours would not.
            let colour = match self.lines.len() {
                ..=MANY => style(&line.subject).colour,
                _ => BLACK,
            };
            let top = frame.top + row as f64 * row_height(places);
            let middle = top + row_height(places) / 2.0;
            if row > 0 {
                let ends = [(frame.left, top), (frame.right, top)];
                canvas.line(ends, Stroke(PALE, 0.4, false));
            }
            if name_beside {
                let place = (frame.left - 4.0, middle + 2.4);
                canvas.text(place, TEXT_SIZE, Anchor::End, &line.named());
            }
            let marks = marks_of_places(places.len());
            for (index, (&place, (mark, share))) in places.iter().zip(marks).enumerate() {
                let y = middle + STEP * (index as f64 - (places.len() - 1) as f64 / 2.0);
                let point = line.points.iter().find(|(at, _)| *at == place);
                if let Some((_, of)) = point {
                    let ends = [of.low, of.high].map(|end| (across.within(end), y));
                    canvas.line(ends, Stroke(colour, 0.7, false));
                    let corners = corners(mark, (across.within(of.median), y));
                    canvas.mark(corners, [colour.share(share), colour]);
                }
            }
        }
        let sides = [(frame.left, frame.top), (frame.left, frame.bottom)];
        canvas.line(sides, Stroke(DARK, 0.6, false));
    }
}
