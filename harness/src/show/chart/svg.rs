//! An SVG file under way: lines, marks and text, in points of a 72nd of an inch.

use std::fmt::Write;

use maud::html;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Colour(pub(crate) u8, pub(crate) u8, pub(crate) u8);

pub(super) const BLACK: Colour = Colour(0, 0, 0);
pub(super) const WHITE: Colour = Colour(255, 255, 255);
/// Of axes.
pub(super) const DARK: Colour = Colour(70, 70, 70);
/// Of grid lines.
pub(super) const PALE: Colour = Colour(222, 222, 222);

impl Colour {
    pub(super) fn hex(self) -> String {
        let Self(red, green, blue) = self;
        format!("#{red:02x}{green:02x}{blue:02x}")
    }

    /// Mixes it with white: nothing of the colour is left at 0, all at 1.
    pub(super) fn share(self, share: f64) -> Self {
        let part = |of: u8| (255.0 - share * f64::from(255 - of)).round() as u8;
        Self(part(self.0), part(self.1), part(self.2))
    }
}

/// A place, x growing to the right and y downwards.
pub(super) type Place = (f64, f64);

#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) right: f64,
    pub(super) bottom: f64,
}

impl Frame {
    pub(super) fn new([left, right]: [f64; 2], [top, bottom]: [f64; 2]) -> Self {
        Self {
            left,
            top,
            right,
            bottom,
        }
    }
}

/// How a line is drawn: its colour, its width, and whether it is dashed.
#[derive(Clone, Copy)]
pub(super) struct Stroke(pub(super) Colour, pub(super) f64, pub(super) bool);

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// The elements of a figure, in the order in which they are drawn.
#[derive(Default)]
pub(super) struct Canvas(String);

impl Canvas {
    pub(super) fn line(&mut self, places: impl IntoIterator<Item = Place>, stroke: Stroke) {
        let Stroke(colour, width, dashed) = stroke;
        let dashes = " stroke-dasharray=\"3 2\"";
        let dashes = if dashed { dashes } else { "" };
        self.add(format_args!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{width}\"{dashes}/>",
            joined(places),
            colour.hex()
        ));
    }

    pub(super) fn rectangle(&mut self, frame: Frame, fill: Colour) {
        let (width, height) = (frame.right - frame.left, frame.bottom - frame.top);
        self.add(format_args!(
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{}\"/>",
            frame.left,
            frame.top,
            fill.hex()
        ));
    }

    /// Draws an area that lets through what is under it.
    pub(super) fn area(&mut self, places: impl IntoIterator<Item = Place>, fill: Colour) {
        self.add(format_args!(
            "<path d=\"M{}Z\" fill=\"{}\" fill-opacity=\"0.18\"/>",
            joined(places),
            fill.hex()
        ));
    }

    pub(super) fn dot(&mut self, (x, y): Place, fill: Colour) {
        self.add(format_args!(
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"0.8\" fill=\"{}\" fill-opacity=\"0.5\"/>",
            fill.hex()
        ));
    }

    /// Draws a mark; nothing else is a polygon.
    pub(super) fn mark(&mut self, places: impl IntoIterator<Item = Place>, paint: [Colour; 2]) {
        let [fill, edge] = paint.map(Colour::hex);
        self.add(format_args!(
            "<polygon points=\"{}\" fill=\"{fill}\" stroke=\"{edge}\" stroke-width=\"0.7\"/>",
            joined(places)
        ));
    }

    /// Writes a line of text whose foot is there.
    pub(super) fn text(&mut self, place: Place, size: f64, anchor: Anchor, text: &str) {
        self.write(place, size, anchor, text, "");
    }

    pub(super) fn title(&mut self, place: Place, size: f64, text: &str) {
        self.write(place, size, Anchor::Start, text, " font-weight=\"bold\"");
    }

    /// Writes a line upwards, centred there.
    pub(super) fn upwards(&mut self, (x, y): Place, size: f64, text: &str) {
        let turn = format!(" transform=\"rotate(-90 {x:.1} {y:.1})\"");
        self.write((x, y), size, Anchor::Middle, text, &turn);
    }

    fn write(&mut self, (x, y): Place, size: f64, anchor: Anchor, text: &str, how: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        self.add(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\"{anchor}{how}>{}</text>",
            escaped(text)
        ));
    }

    fn add(&mut self, element: std::fmt::Arguments) {
        // A string never fails to take text.
        let _ = writeln!(self.0, "{element}");
    }

    /// Returns the file; `title` and `description` are for those who cannot see it.
    pub(super) fn file(self, (width, height): Place, title: &str, description: &str) -> String {
        // A page may hold many figures, each with names of its own.
        let name = description.bytes().chain(title.bytes());
        let name = name.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        });
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}in\" height=\"{:.3}in\" \
             viewBox=\"0 0 {width:.0} {height:.1}\" role=\"img\" \
             aria-labelledby=\"title-{name:x} description-{name:x}\" \
             font-family=\"Helvetica, Arial, sans-serif\">\n\
             <title id=\"title-{name:x}\">{}</title>\n\
             <desc id=\"description-{name:x}\">{}</desc>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n{}</svg>\n",
            width / 72.0,
            height / 72.0,
            escaped(title),
            escaped(description),
            self.0
        )
    }
}

fn joined(places: impl IntoIterator<Item = Place>) -> String {
    let place = |(x, y)| format!("{x:.1},{y:.1}");
    let places: Vec<_> = places.into_iter().map(place).collect();
    places.join(" ")
}

fn escaped(text: &str) -> String {
    html! { (text) }.into_string()
}
