//! Tests of the command line, run as a program, on valid and invalid input.

mod check;
#[cfg(unix)]
mod interrupted;
mod outputs;
mod place;
mod refused;
#[cfg(feature = "simulation")]
mod simulate;
#[cfg(unix)]
mod studies;
mod sweep;
