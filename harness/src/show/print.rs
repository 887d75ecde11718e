//! Everything that commands print goes through here: lints of this crate forbid every other way.
//!
//! When standard output fails, the command continues without it: its measurements are kept in files. If only the reader
//! has gone, as with `| head`, that is no error. Any other failure, such as a full disk, gives one line of error at the
//! end, and exit code 1.

use std::fmt::Arguments;
use std::io::{self, ErrorKind, Write};
use std::sync::OnceLock;

const WIDTH: usize = figures::table::WIDTH as usize;

/// Prints a line to standard output: what the user asked for.
macro_rules! say {
    (as is: $($text:tt)*) => { $crate::show::print::as_is(format_args!($($text)*)) };
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

/// Breaks lines that are wider than a terminal at spaces, except those of tables and errors. A continued line keeps
/// the indentation.
fn wrapped(text: &str) -> String {
    let mut lines = Vec::new();
    for line in text.split('\n') {
        let stays = line.starts_with('|') || line.starts_with("error: ");
        if line.chars().count() <= WIDTH || stays {
            lines.push(line.to_owned());
            continue;
        }
        let indent = &line[..line.len() - line.trim_start().len()];
        let mut words = line.split_whitespace();
        let mut last = format!("{indent}{}", words.next().unwrap_or_default());
        for word in words {
            if last.chars().count() + 1 + word.chars().count() > WIDTH {
                lines.push(std::mem::replace(&mut last, format!("{indent}{word}")));
            } else {
                last += &format!(" {word}");
            }
        }
        lines.push(last);
    }
    lines.join("\n")
}

pub(crate) fn out(text: Arguments) {
    let _ = writeln!(Stdout, "{}", wrapped(&text.to_string()));
}

/// Prints text whose lines must not be broken, such as commands to copy.
pub(crate) fn as_is(text: Arguments) {
    let _ = writeln!(Stdout, "{text}");
}

pub(crate) fn err(text: Arguments) {
    let _ = writeln!(io::stderr(), "{}", wrapped(&text.to_string()));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_lines_are_broken_at_spaces() {
        let text = format!("short\n  {}\n| {}", "word ".repeat(30), "cell ".repeat(30));
        let printed = wrapped(&text);
        let lines: Vec<_> = printed.lines().collect();
        assert_eq!((lines.len(), lines[0]), (4, "short"));
        assert!(lines[1].starts_with("  word") && lines[2].starts_with("  word"));
        assert!(lines[1..3].iter().all(|line| line.len() <= WIDTH));
        assert_eq!(printed.matches("word").count(), 30);
        assert_eq!(wrapped(&"x".repeat(200)), "x".repeat(200));
    }
}
