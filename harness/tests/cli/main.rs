//! Tests of the command line, run as a program, on valid and invalid input.

mod check;
#[cfg(unix)]
mod interrupted;
mod outputs;
mod place;
#[cfg(processes)]
mod processes;
mod refused;
#[cfg(feature = "simulation")]
mod simulate;
#[cfg(unix)]
mod studies;
mod sweep;
