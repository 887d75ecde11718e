//! Draws rows as SVG figures: one file per kind of figure, and what they share.
//!
//! A figure can be read without its CSV file: it has its title, an explanation of its lines and
//! bars, the number of rounds and keys, and the machine. All figures share one visual language: a
//! subject has the same colour and marker everywhere, and its name stands where its line ends.

pub(crate) mod figure;
pub(crate) mod panel;
pub(crate) mod parts;
pub(crate) mod scale;
pub(crate) mod style;
pub(crate) mod text;

pub use figure::Figure;
pub(crate) use figure::machine_line;
pub(crate) use panel::{Axis, Interval, Line, Panel};
pub use parts::duration;
pub(crate) use scale::Scale;
pub(crate) use style::{Style, styles};
