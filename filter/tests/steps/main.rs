//! Tests that stop threads at chosen steps.

#[path = "../common/identity.rs"]
mod identity;
#[path = "../common/small.rs"]
mod small;
#[path = "../common/small_expiring.rs"]
mod small_expiring;
#[path = "../common/small_growing.rs"]
mod small_growing;

mod at_step;
mod copy_at_steps;
mod expiring_hostile;
mod expiring_stalls;
mod expiring_turns;
mod growing_copy;
mod growing_late;
mod growing_stalls;
mod growing_wraps;
mod stalls;
mod timestamp_wrap;
