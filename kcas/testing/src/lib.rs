//! What checks `kcas`: models under loom (`model.rs`), threads that stop at chosen [`steps`], and a watch over the
//! protocol, whose every write must be an action of the proof (`conformance.rs`), also if threads are [`killed`].
//!
//! The tests are in `tests/loom`, which `scripts/loom.sh` runs, and in `tests/steps` and `tests/conformance.rs`, which
//! need the feature `steps`.

#[cfg(any(kcas_loom, feature = "steps"))]
pub mod conformance;
#[cfg(any(kcas_loom, feature = "steps"))]
pub mod killed;
#[cfg(kcas_loom)]
pub mod model;
pub mod steps;
