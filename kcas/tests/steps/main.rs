//! Tests that stop threads at chosen steps.

mod helping;
mod stalls;
