//! Runs an experiment. A [`plan`] says what is measured, and in which [`order`]; the [`runner`]
//! measures, and [`resume`] continues after an interruption. The gate lets threads start together,
//! and [`ending`] is how a command ends.

mod bench;
pub(crate) mod crew;
pub mod ending;
mod gate;
pub mod order;
pub mod plan;
pub mod resume;
pub mod runner;
#[cfg(feature = "simulation")]
pub mod simulated;
mod stall;
