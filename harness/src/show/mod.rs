//! Presents results to a reader: files, tables and charts.

pub mod chart;
pub mod files;
pub(crate) mod lock;
pub mod outputs;
pub(crate) mod print;
pub(crate) mod progress;
pub mod sheet;
pub mod sidecar;
pub mod units;

pub(crate) use {lock::*, outputs::*, print::*, progress::*, sheet::*, sidecar::*, units::*};
