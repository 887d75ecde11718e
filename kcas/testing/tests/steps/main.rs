//! Tests of what happens at each step of a thread.

mod conformance;
mod hooks;
