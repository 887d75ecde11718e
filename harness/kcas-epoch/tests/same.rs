//! Runs the tests of `kcas`, unchanged, on this engine.

// Those files call this crate `kcas`.
extern crate kcas_epoch as kcas;

#[path = "../../../kcas/tests/ordinary/misuse.rs"]
mod misuse;
#[path = "../../../kcas/tests/ordinary/sequential.rs"]
mod sequential;
#[cfg(feature = "steps")]
#[path = "../../../kcas/testing/tests/steps/stalls.rs"]
mod stalls;
#[path = "../../../kcas/tests/ordinary/stress.rs"]
mod stress;
