//! Tests of the command line, run as a program, on valid and invalid input.

mod check;
#[cfg(unix)]
mod interrupted;
mod outputs;
mod place;
mod plot;
mod refused;
mod reproduce;
#[cfg(feature = "simulation")]
mod simulate;
mod studies;
mod sweep;
