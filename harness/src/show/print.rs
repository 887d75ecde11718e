//! All that commands print: lints of this crate forbid every other way.
//!
//! When the standard output fails, the command goes on without it: what it measures is kept in files. Where only the
//! reader has gone, as behind `| head`, that is no error, and the exit code is as if all had been read. Any other failure,
//! such as a full disk, is one line of error at the end, and exit code 1. When standard error fails nobody can
//! be told.

use std::fmt::Arguments;
use std::io::{self, ErrorKind, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Prints a line to the standard output: what the command was asked for.
macro_rules! say {
    ($($text:tt)*) => { $crate::show::print::out(format_args!($($text)*)) };
}
pub(crate) use say;

/// Prints a line to standard error: progress, notes and errors.
macro_rules! note {
    ($($text:tt)*) => { $crate::show::print::err(format_args!("{}\n", format_args!($($text)*))) };
}
pub(crate) use note;

/// Why nothing is written to the standard output any more.
static FAILED: OnceLock<io::Error> = OnceLock::new();

/// Whether the command also leaves files.
static LEAVES_FILES: AtomicBool = AtomicBool::new(false);

/// The standard output. Writing to it always succeeds: its first failure is kept for [`finish`].
pub(crate) struct Stdout;

impl Stdout {
    fn attempt(write: impl FnOnce() -> io::Result<()>) {
        if FAILED.get().is_some() {
            return;
        }
        let Err(error) = write() else {
            return;
        };
        if error.kind() == ErrorKind::BrokenPipe && LEAVES_FILES.load(Ordering::Relaxed) {
            note!(
                "note: nobody reads the standard output any more; the command goes on, and leaves its files"
            );
        }
        // Of two threads that fail at once, one tells.
        let _ = FAILED.set(error);
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

/// Prints to standard error, without the end of a line.
pub(crate) fn err(text: Arguments) {
    let _ = io::stderr().lock().write_fmt(text);
}

/// Prints help to the standard output, and an error in the command line to standard error.
pub(crate) fn message(message: &clap::Error) {
    match message.use_stderr() {
        // Nobody else can be told.
        true => drop(message.print()),
        false => Stdout::attempt(|| message.print()),
    }
}

/// Lets a reader of standard error know when the standard output is not read any more: the command takes a while, and
/// its files are worth it.
pub(crate) fn leaves_files() {
    LEAVES_FILES.store(true, Ordering::Relaxed);
}

/// Writes out what is buffered.
///
/// # Errors
///
/// A standard output that failed at any time, unless its reader had gone.
pub(crate) fn finish() -> Result<(), &'static io::Error> {
    let _ = Stdout.flush();
    match FAILED.get() {
        Some(error) if error.kind() != ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}
