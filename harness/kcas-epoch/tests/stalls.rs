//! The test of `kcas` that stops threads at every step, unchanged, of this engine.

// What that file calls `kcas` is this crate here.
extern crate kcas_epoch as kcas;

#[path = "../../../kcas/tests/stalls.rs"]
mod stalls;
