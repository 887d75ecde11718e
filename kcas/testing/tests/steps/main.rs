//! Tests of what happens at each step of a thread.

mod helping;
mod stalls;
