//! Runs an experiment. A [`plan`] says what is measured, in which [`order`], and [`estimate`] how long that takes; the
//! [`runner`] measures until the [stopping rule](crate::experiment::stopping) is satisfied, and
//! [`resume`] continues after an interruption. The gate lets threads start together, and [`ending`]
//! is how a command ends.

mod bench;
pub mod ending;
pub mod estimate;
pub(crate) mod gate;
pub mod order;
pub mod plan;
pub mod resume;
pub mod runner;
#[cfg(feature = "simulation")]
pub mod simulated;
mod stall;
