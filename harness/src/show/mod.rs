//! Presents results to a reader: files, tables, charts, sentences and the page.

pub mod chart;
pub mod files;
pub mod findings;
pub(crate) mod matrix;
pub mod outputs;
pub(crate) mod page;
pub(crate) mod print;
pub(crate) mod progress;
pub mod sheet;
pub mod sidecar;
pub mod units;

pub(crate) use {findings::*, outputs::*, print::*, progress::*, sheet::*, sidecar::*, units::*};
