//! Rows → figures, as SVG: one file a kind of figure, and what they share.
//!
//! A figure is read without its CSV: it carries its title, what its lines and bars are, how many rounds and
//! keys there were, and the machine. All speak one visual language: a subject has one colour and one marker
//! everywhere, and its name stands where its line ends.

pub(crate) mod frame;
pub(crate) mod parts;
pub(crate) mod style;

pub(crate) use frame::machine_line;
pub use parts::duration;
