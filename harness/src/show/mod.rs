//! The files of a run, and what commands print.

pub(crate) mod begin;
pub mod files;
pub mod outputs;
pub(crate) mod print;
pub(crate) mod progress;
pub mod sidecar;

pub(crate) use {begin::*, outputs::*, print::*, progress::*, sidecar::*};
