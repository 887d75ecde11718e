//! The files of a run, and what commands print.

pub mod files;
pub(crate) mod lock;
pub mod outputs;
pub(crate) mod print;
pub(crate) mod progress;
pub mod sidecar;

pub(crate) use {lock::*, outputs::*, print::*, progress::*, sidecar::*};
