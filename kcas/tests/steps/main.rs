//! Tests that stop threads at chosen steps.

mod helpers_in_turns;
mod stalls;
