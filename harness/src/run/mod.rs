//! Runs an experiment. A [`plan`] says what is measured, and in which [`order`]; the [`runner`]
//! measures.
//! [`ending`] has Ctrl-C.

mod bench;
pub mod ending;
pub mod order;
pub mod plan;
pub mod runner;
#[cfg(feature = "simulation")]
pub mod simulated;
mod stall;

pub(crate) use crate::crew::{Arrival, Crew, Done, Member};
pub(crate) use bench::ensure_rare;
pub use ending::{Ending, INTERRUPTED, stop_on_ctrl_c};
pub use plan::{Measurement, Part, Plan};
pub use runner::Sweep;
