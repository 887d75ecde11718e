//! Everything that commands print goes through here: lints of this crate forbid every other way.
//!
//! When standard output fails, the command continues without it: its measurements are kept in files. If only the reader
//! has gone, as with `| head`, that is no error. Any other failure, such as a full disk, gives one line of error at the
//! end, and exit code 1.

use std::fmt::Arguments;
use std::io::{self, ErrorKind, Write};
use std::sync::OnceLock;

/// Prints a line to standard output: what the user asked for.
macro_rules! say {
    ($($text:tt)*) => { $crate::show::print::out(format_args!($($text)*)) };
}
pub(crate) use say;

/// Prints a line to standard error: progress, notes and errors.
macro_rules! note {
    ($($text:tt)*) => { $crate::show::print::err(format_args!($($text)*)) };
}
pub(crate) use note;

/// The error because of which standard output is no longer written.
static FAILED: OnceLock<io::Error> = OnceLock::new();

/// Standard output. Writing to it always succeeds: its first failure is kept for [`finish`].
pub(crate) struct Stdout;

impl Stdout {
    fn attempt(write: impl FnOnce() -> io::Result<()>) {
        if FAILED.get().is_none()
            && let Err(error) = write()
        {
            // If two threads fail at once, one reports it.
            let _ = FAILED.set(error);
        }
    }
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Self::attempt(|| io::stdout().write_all(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Self::attempt(|| io::stdout().flush());
        Ok(())
    }
}

pub(crate) fn out(text: Arguments) {
    let _ = writeln!(Stdout, "{text}");
}

pub(crate) fn err(text: Arguments) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// Prints help to standard output, and an error in the command line to standard error.
pub(crate) fn message(message: &clap::Error) {
    if message.use_stderr() {
        drop(message.print());
    } else {
        Stdout::attempt(|| message.print());
    }
}

/// Flushes buffered output.
pub(crate) fn finish() -> Result<(), &'static io::Error> {
    let _ = Stdout.flush();
    match FAILED.get() {
        Some(error) if error.kind() != ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}
