//! The tests of `kcas`, unchanged, of this engine.

// What those files call `kcas` is this crate here.
extern crate kcas_epoch as kcas;

#[path = "../../../kcas/tests/misuse.rs"]
mod misuse;
#[path = "../../../kcas/tests/sequential.rs"]
mod sequential;
#[path = "../../../kcas/tests/stress.rs"]
mod stress;
