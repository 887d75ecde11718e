//! Rows → figures, as SVG: one file a kind of figure, and what they share.
//!
//! A figure is read without its CSV: it carries its title, what its lines and bars are, how many rounds and
//! keys there were, and the machine. All speak one visual language: a subject has one colour and one marker
//! everywhere, and its name stands where its line ends.

mod chart;
pub mod cuckoo_hashing;
mod frame;
pub mod growth;
pub mod kcas;
pub mod layouts;
pub mod memory;
mod style;
pub mod sweep;

pub use chart::{duration, grouped};
pub(crate) use frame::machine_line;
