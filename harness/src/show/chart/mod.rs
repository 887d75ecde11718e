//! Draws rows as SVG figures: panels are data, and what they share draws them.
//!
//! A figure has a physical width, and no text of it is smaller than 6 points at that width. By
//! default it can be read without its CSV file: it has its title, an explanation of its lines and
//! bars, the number of rounds and keys, and the machine. All figures share one visual language: a
//! subject has the same colour and mark wherever no other of the figure has them.

mod axis;
mod figure;
mod key;
mod lines;
mod panel;
mod rows;
mod style;
mod svg;
mod text;

pub(crate) use axis::{Axis, Scale};
pub use figure::{COLUMN, Figure, PAGE};
pub(crate) use panel::{Guide, Line, Look, Panel};
