//! The command line over the subjects that come with this crate.

// All printing goes through `show::print`, which knows what to do when nobody reads.
#![warn(clippy::print_stdout, clippy::print_stderr)]

use std::process::ExitCode;

use harness::cli;
use harness::registry::Registry;

fn main() -> ExitCode {
    cli::main(&Registry::standard(), harness::program!())
}
