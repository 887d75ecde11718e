//! Draws a panel of lines.

use super::axis;
use super::axis::Span;
use super::key::{DASHES, SHADE};
use super::panel::{Line, Look, Panel, places};
use super::style::Style;
use super::svg::{Anchor, Canvas, Frame, Place, Stroke, WHITE};
use super::text::{TICK_SIZE, text_width};
use crate::results::Summary;

/// Half the width of a mark.
const MARK: f64 = 2.4;

/// Where the name of a mark may be, the best place first: how far right and down of the mark, and the share
/// of the name's width that is left of that.
const BESIDE: [(f64, f64, f64); 14] = [
    (4.0, 0.0, 0.0),
    (-4.0, 0.0, 1.0),
    (0.0, -7.0, 0.5),
    (0.0, 7.0, 0.5),
    (2.0, -6.5, 0.0),
    (2.0, 6.5, 0.0),
    (-2.0, -6.5, 1.0),
    (-2.0, 6.5, 1.0),
    (0.0, -13.0, 0.5),
    (0.0, 13.0, 0.5),
    (0.0, -13.0, 0.0),
    (0.0, 13.0, 0.0),
    (0.0, -13.0, 1.0),
    (0.0, 13.0, 1.0),
];

impl Panel {
    /// Lays out the axes within a frame.
    pub(super) fn spans(&self, frame: Frame) -> [Span; 2] {
        let are_bands = self.lines.iter().all(|line| line.look == Look::Band);
        let inset = if self.x.as_measured { 10.0 } else { 0.0 };
        let points = self.lines.iter().flat_map(|line| &line.points);
        let included = self.x.includes.iter().copied();
        let xs = points.map(|&(x, _)| x).chain(included);
        let across = Span::of(self.x.scale, xs, (frame.left + inset, frame.right - inset));
        let ys = self.values().chain(self.y.includes.iter().copied());
        let upwards = Span::of(self.y.scale, ys, (frame.bottom, frame.top)).with_room(0.06);
        let free = self.x.as_measured || are_bands;
        [if free { across } else { across.with_room(0.04) }, upwards]
    }

    pub(super) fn draw_lines(
        &self,
        canvas: &mut Canvas,
        frame: Frame,
        (name_below, name_beside): (bool, Option<f64>),
        style: impl Fn(&str) -> Style,
    ) {
        let [x, y] = self.spans(frame);
        let places = places(&self.lines);
        if let Some((from, _)) = self.shade {
            let before = places.iter().rev().find(|&&place| place < from);
            let middle = |before: &f64| f64::midpoint(x.place(*before), x.place(from));
            let left = before.map_or(frame.left, middle);
            canvas.rectangle(Frame { left, ..frame }, SHADE);
        }
        axis::below(canvas, (&self.x, &x, &places), frame, name_below);
        axis::beside(canvas, (&self.y, &y), frame, name_beside);
        for (guide, stroke) in self.guides.iter().zip(DASHES.into_iter().cycle()) {
            let ends = guide.points.windows(2).map(|ends| [ends[0], ends[1]]);
            let ends = ends.map(|ends| ends.map(|(a, b)| (x.place(a), y.place(b))));
            for ends in ends.filter_map(|ends| clipped(ends, frame)) {
                canvas.line(ends, stroke);
            }
        }
        let lines = self.lines.iter().map(|line| (line, style(&line.subject)));
        let lines: Vec<_> = lines.collect();
        let places = self.apart(&x, &y);
        for ((line, style), places) in lines.iter().zip(&places) {
            under(canvas, (line, style), places, (&x, &y));
        }
        // No line hides a mark.
        for (index, ((line, style), places)) in lines.iter().zip(&places).enumerate() {
            let turn = index as f64 / lines.len() as f64;
            marks(canvas, (line, style), (places, turn), &y);
        }
        self.names(canvas, &places, (&y, frame));
    }

    /// Returns where the marks of each line are: at their true places, or beside them where they
    /// would hide each other.
    fn apart(&self, x: &Span, y: &Span) -> Vec<Vec<Place>> {
        // Not as far as the next place.
        let across = places(&self.lines).into_iter().map(|at| x.place(at));
        let across: Vec<_> = across.collect();
        let most = |of: f64| {
            let others = across.iter().map(|at| (at - of).abs());
            let gaps = others.filter(|&gap| gap > 0.0);
            let gap = gaps.fold(f64::INFINITY, f64::min);
            (0.42 * gap).clamp(2.0, 10.0)
        };
        let mut drawn: Vec<Drawn> = Vec::new();
        let moved = |(index, line): (usize, &Line)| -> Vec<Place> {
            let of = |&(at, of): &(f64, Summary)| {
                let (x, middle) = (x.place(at), y.within(of.median));
                let [low, high] = [of.low, of.high].map(|end| y.within(end));
                let [low, high] = match line.look {
                    Look::Band => [middle; 2],
                    Look::Reach => [low + MARK, high - MARK],
                    Look::Bars | Look::Named(_) => [low, high],
                };
                let mut one = Drawn {
                    line: index,
                    x,
                    top: high.min(middle - MARK),
                    bottom: low.max(middle + MARK),
                };
                one.x += shift(&drawn, &one, most(x));
                let place = if line.look == Look::Band { x } else { one.x };
                drawn.push(one);
                (place, middle)
            };
            line.points.iter().map(of).collect()
        };
        self.lines.iter().enumerate().map(moved).collect()
    }

    /// Writes the names of points beside them: to the right, or elsewhere if a mark, another name or
    /// the edge is there. Crossing a bar is better than a mark; another name, or the edge, beyond which the
    /// numbers are, is worse.
    fn names(&self, canvas: &mut Canvas, places: &[Vec<Place>], (y, frame): (&Span, Frame)) {
        const BAR: usize = 1;
        const WORSE: usize = 4;
        const WORST: usize = 16;
        let around = |x: f64, half: f64, ends| Frame::new([x - half, x + half], ends);
        let points = self.lines.iter().zip(places);
        let points = points.flat_map(|(line, of)| of.iter().zip(&line.points));
        let marks = points.flat_map(|(&(x, at), (_, of))| {
            let bar = around(x, MARK / 2.0, [of.high, of.low].map(|end| y.within(end)));
            [(WORSE, around(x, MARK, [at - MARK, at + MARK])), (BAR, bar)]
        });
        let mut taken: Vec<(usize, Frame)> = marks.collect();
        for (line, of) in self.lines.iter().zip(places) {
            let Look::Named(names) = &line.look else {
                continue;
            };
            for (name, &(x, y)) in names.iter().zip(of) {
                let width = text_width(name, TICK_SIZE);
                let beside = |(by, down, share): (f64, f64, f64)| {
                    let (left, middle) = (x + by - share * width, y + down);
                    let half = TICK_SIZE / 2.0;
                    let place = Frame::new([left, left + width], [middle - half, middle + half]);
                    let is_beyond = [place.right > frame.right, place.left < frame.left];
                    let [right, left] = is_beyond.map(usize::from);
                    let clashes = taken.iter().filter(|(_, other)| {
                        place.left < other.right
                            && other.left < place.right
                            && place.top < other.bottom
                            && other.top < place.bottom
                    });
                    let clashes: usize = clashes.map(|(weight, _)| weight).sum();
                    (clashes + WORST * (right + 2 * left), place)
                };
                let tries = BESIDE.into_iter().map(beside);
                if let Some((_, place)) = tries.min_by_key(|(clashes, _)| *clashes) {
                    let start = (place.left, place.top + TICK_SIZE / 2.0 + 2.2);
                    canvas.text(start, TICK_SIZE, Anchor::Start, name);
                    taken.push((WORST, place));
                }
            }
        }
    }
}

/// Draws what is under the marks of a line.
fn under(
    canvas: &mut Canvas,
    (line, style): (&Line, &Style),
    places: &[Place],
    (x, y): (&Span, &Span),
) {
    let thin = Stroke(style.colour, 0.6, false);
    for &(at, value) in &line.dots {
        // Below the mark of its place, if that was moved.
        let points = line.points.iter().zip(places);
        let moved = points.into_iter().find(|((place, _), _)| *place == at);
        let x = moved.map_or(x.place(at), |(_, &(x, _))| x);
        canvas.dot((x, y.within(value)), style.colour);
    }
    let ends = places.iter().zip(&line.points);
    let ends = ends.map(|(&(x, _), (_, of))| (x, [of.low, of.high].map(|end| y.within(end))));
    match line.look {
        Look::Band => {
            let lower = ends.clone().map(|(x, [low, _])| (x, low));
            let upper = ends.rev().map(|(x, [_, high])| (x, high));
            canvas.area(lower.chain(upper), style.colour);
        }
        Look::Reach => ends.for_each(|(x, [low, high])| canvas.line([(x, low), (x, high)], thin)),
        Look::Bars | Look::Named(_) => {
            for (x, [low, high]) in ends.filter(|(_, [low, high])| low != high) {
                canvas.line([(x, low), (x, high)], thin);
                for end in [low, high] {
                    canvas.line([(x - 1.2, end), (x + 1.2, end)], thin);
                }
            }
        }
    }
    if matches!(line.look, Look::Bars | Look::Band) && places.len() > 1 {
        let stroke = Stroke(style.colour, 1.0, style.open);
        canvas.line(places.iter().copied(), stroke);
    }
}

/// Draws the marks of a line. Of a band's many points, only some have one; `turn`, from 0 to 1, shifts the
/// first of them, so that lines have marks at different places.
fn marks(
    canvas: &mut Canvas,
    (line, style): (&Line, &Style),
    (places, turn): (&[Place], f64),
    y: &Span,
) {
    const MARKED: usize = 6;
    if line.look == Look::Reach {
        for (&(x, middle), (_, of)) in places.iter().zip(&line.points) {
            let stroke = Stroke(style.colour, 1.2, false);
            canvas.line([(x - 1.8, middle), (x + 1.8, middle)], stroke);
            canvas.mark(style.mark_at((x, y.within(of.high))), [WHITE, style.colour]);
            canvas.mark(style.mark_at((x, y.within(of.low))), [style.colour; 2]);
        }
        return;
    }
    let every = match line.look {
        Look::Band => places.len().div_ceil(MARKED).max(1),
        _ => 1,
    };
    let first = (turn * every as f64) as usize;
    for &place in places.iter().skip(first).step_by(every) {
        canvas.mark(style.mark_at(place), style.paint());
    }
}

/// Returns the part of a straight line that is within the frame.
fn clipped([(x0, y0), (x1, y1)]: [Place; 2], frame: Frame) -> Option<[Place; 2]> {
    let (mut from, mut to) = (0.0_f64, 1.0_f64);
    for (start, way, least, most) in [
        (x0, x1 - x0, frame.left, frame.right),
        (y0, y1 - y0, frame.top, frame.bottom),
    ] {
        if way == 0.0 {
            if !(least..=most).contains(&start) {
                return None;
            }
            continue;
        }
        let [a, b] = [(least - start) / way, (most - start) / way];
        (from, to) = (from.max(a.min(b)), to.min(a.max(b)));
    }
    let at = |share: f64| (x0 + share * (x1 - x0), y0 + share * (y1 - y0));
    (from < to).then(|| [at(from), at(to)])
}

/// What is drawn at a place: for which line, and from where down to where.
struct Drawn {
    line: usize,
    x: f64,
    top: f64,
    bottom: f64,
}

/// Returns how far to move one to the right, or to the left: the least that keeps it apart from those
/// of other lines before it, or, if there is no such room within `most`, what keeps it farthest from them.
fn shift(before: &[Drawn], one: &Drawn, most: f64) -> f64 {
    const APART: f64 = 4.0;
    let hides = |of: &&Drawn| of.line != one.line && of.top < one.bottom && one.top < of.bottom;
    let nearest = |x: f64| {
        let gaps = before.iter().filter(hides).map(|of| (of.x - x).abs());
        gaps.fold(f64::INFINITY, f64::min)
    };
    let tries = (0..).map(|step| f64::from(step) * APART / 8.0);
    let tries = tries.take_while(|&by| by <= most);
    let mut best = (0.0, f64::NEG_INFINITY);
    for by in tries.flat_map(|by| [by, -by]) {
        let gap = nearest(one.x + by).min(APART);
        if gap > best.1 + 1e-9 {
            best = (by, gap);
        }
    }
    best.0
}
