//! The command line over the subjects that come with this crate.

use std::process::ExitCode;

use harness::cli;
use harness::registry::Registry;

fn main() -> ExitCode {
    cli::main(&Registry::standard(), harness::program!())
}
