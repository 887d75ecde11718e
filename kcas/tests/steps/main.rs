//! Tests that stop threads at chosen steps.

mod exchange_raw;
mod helpers_in_turns;
mod helping_readers;
mod pieces;
mod stalls;
