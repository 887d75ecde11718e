//! Runs the test of `kcas` that stops threads at every step, unchanged, on this engine.

// That file calls this crate `kcas`.
extern crate kcas_epoch as kcas;

#[path = "../../../kcas/tests/steps/stalls.rs"]
mod stalls;
