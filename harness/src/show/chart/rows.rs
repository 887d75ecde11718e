//! Draws a panel in rows: a row for each subject, and in it a mark for each place.

use super::axes;
use super::key::{DASHES, marks_of_places};
use super::panel::Panel;
use super::scale::{Scale, Span};
use super::style::{Style, corners};
use super::svg::{Anchor, Canvas, Frame, PALE, Stroke};
use super::text::{TEXT_SIZE, widest};

/// The distance of two marks of a row.
const STEP: f64 = 3.6;
/// The room around a row's marks.
const ROOM: f64 = 6.4;

impl Panel {
    fn row_height(&self) -> f64 {
        ROOM + STEP * (self.places().len().max(1) - 1) as f64 + 1.0
    }

    pub(super) fn height_of_rows(&self) -> f64 {
        self.row_height() * self.lines.len() as f64 + 2.0
    }

    /// Returns the width of the names beside the rows.
    pub(super) fn width_of_names(&self) -> f64 {
        let names = self.lines.iter().map(|line| &*line.subject);
        widest(names, TEXT_SIZE) + 4.0
    }

    pub(super) fn draw_rows(
        &self,
        canvas: &mut Canvas,
        frame: Frame,
        (name_below, name_beside): (bool, bool),
        style: impl Fn(&str) -> Style,
    ) {
        let places = self.places();
        let values = self.values().chain(self.y.includes.iter().copied());
        // Nothing begins at zero, so logarithms show small values better.
        let scale = match self.y.scale {
            Scale::BySpread if self.values().all(|value| value > 0.0) => Scale::Logarithmic,
            scale => scale,
        };
        let across = Span::of(scale, values, (frame.left, frame.right)).with_room(0.04);
        axes::below(canvas, (&self.y, &across, &[]), frame, name_below);
        for (guide, stroke) in self.guides.iter().zip(DASHES) {
            // Against places it is level.
            for &(_, value) in guide.points.iter().take(1).filter(|of| across.has(of.1)) {
                let x = across.place(value);
                canvas.line([(x, frame.top), (x, frame.bottom)], stroke);
            }
        }
        for (row, line) in self.lines.iter().enumerate() {
            let style = style(&line.subject);
            let top = frame.top + row as f64 * self.row_height();
            let middle = top + self.row_height() / 2.0;
            if row > 0 {
                canvas.line(
                    [(frame.left, top), (frame.right, top)],
                    Stroke(PALE, 0.4, false),
                );
            }
            if name_beside {
                let place = (frame.left - 4.0, middle + 2.4);
                canvas.text(place, TEXT_SIZE, Anchor::End, &line.subject);
            }
            let marks = marks_of_places(places.len());
            for (index, (&place, (mark, share))) in places.iter().zip(marks).enumerate() {
                let y = middle + STEP * (index as f64 - (places.len() - 1) as f64 / 2.0);
                let point = line.points.iter().find(|(at, _)| *at == place);
                if let Some((_, of)) = point {
                    let ends = [of.low, of.high].map(|end| (across.within(end), y));
                    canvas.line(ends, Stroke(style.colour, 0.7, false));
                    let corners = corners(mark, (across.within(of.median), y));
                    canvas.mark(corners, [style.colour.share(share), style.colour]);
                }
            }
        }
        let sides = [(frame.left, frame.top), (frame.left, frame.bottom)];
        canvas.line(sides, Stroke(super::svg::DARK, 0.6, false));
    }
}
