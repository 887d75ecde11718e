//! What checks `kcas`: models under loom (`model.rs`), and a watch over the protocol, whose every write must be an
//! action of the proof ([`conformance`]).
//!
//! The tests are in `tests/loom`, which `scripts/loom.sh` runs, and in `tests/steps`, which need the feature `steps`.

#[cfg(any(kcas_loom, feature = "steps"))]
pub mod conformance;
#[cfg(kcas_loom)]
pub mod model;
