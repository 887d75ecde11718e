//! Tests that stop threads at chosen steps.

#[path = "../common/small.rs"]
mod small;

mod at_step;
mod copy_at_steps;
mod expiring_hostile;
mod expiring_stalls;
mod expiring_turns;
mod growing_copy;
mod growing_late;
mod growing_stalls;
mod growing_wraps;
mod in_file;
mod stalls;
mod timestamp_wrap;
