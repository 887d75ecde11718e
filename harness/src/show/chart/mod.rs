//! Rows → figures, as SVG: one file a kind of figure, and what they share.
//!
//! A figure is read without its CSV: it carries its title, what its lines and bars are, how many rounds and
//! keys there were, and the machine. All speak one visual language: a subject has one colour and one marker
//! everywhere, and its name stands where its line ends.

pub(crate) mod figure;
pub(crate) mod panel;
pub(crate) mod parts;
pub(crate) mod scale;
pub(crate) mod style;

pub use figure::Figure;
pub(crate) use figure::machine_line;
pub(crate) use panel::{Axis, Interval, Line, Panel};
pub use parts::duration;
pub(crate) use scale::Scale;
pub(crate) use style::{Style, styles};
