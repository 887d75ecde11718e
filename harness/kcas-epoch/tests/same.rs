//! Runs the tests of `kcas`, unchanged, on this engine.

// Those files call this crate `kcas`.
extern crate kcas_epoch as kcas;

#[path = "../../../kcas/tests/misuse.rs"]
mod misuse;
#[path = "../../../kcas/tests/sequential.rs"]
mod sequential;
#[path = "../../../kcas/tests/stress.rs"]
mod stress;
