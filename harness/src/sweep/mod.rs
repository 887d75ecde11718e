//! A sweep: an [`experiment`] names subjects and workloads, numbers of [`threads`], and perhaps ratios that are to be
//! reached, each a [`target`]; a [`plan`] says what is measured, and [`estimate`] how long that takes; the [`runner`]
//! measures until the [`stopping`] rule is content, and [`resume`] goes on after an interruption. [`targets`] holds what
//! was measured against what it was to be.

pub(crate) mod bench;
pub mod estimate;
pub mod experiment;
pub(crate) mod gate;
pub mod plan;
pub mod resume;
pub mod runner;
mod stall;
pub mod stopping;
pub mod target;
pub mod targets;
pub mod threads;
