//! What the examples have in common as programs: output, errors, and options.

pub mod testing;

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};
use std::num::NonZeroUsize;
use std::process::ExitCode;

use anyhow::{Context, Error, Result};

/// Ends a program: an error is printed on one line.
pub fn ending(result: Result<()>) -> ExitCode {
    match result {
        Err(error) if !is_broken_pipe(&error) => {
            note(format_args!("error: {error:#}"));
            ExitCode::FAILURE
        }
        // If nobody reads on, as behind `| head`, that is an end and not an error.
        _ => ExitCode::SUCCESS,
    }
}

/// True if nobody reads any more what is written.
pub fn is_broken_pipe(error: &Error) -> bool {
    let io = error.downcast_ref::<io::Error>();
    io.is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}

/// Writes to the standard output.
pub fn write(bytes: &[u8]) -> Result<()> {
    let mut out = io::stdout().lock();
    let written = out.write_all(bytes).and_then(|()| out.flush());
    written.context("cannot write to the standard output")
}

/// Writes a line to the standard error, if anybody reads it.
pub fn note(line: impl Display) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Formats a count of things, whose plural is formed with an s.
pub fn counted(number: u64, thing: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{number} {thing}{ending}")
}

/// Parses the value of an option that must not be 0.
pub fn at_least_1(text: &str) -> Result<NonZeroUsize, String> {
    let number: usize = text.parse().map_err(|error| format!("{error}"))?;
    NonZeroUsize::new(number).ok_or_else(|| "it must be at least 1".to_owned())
}
