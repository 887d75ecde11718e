//! Reads a file of keys, and hands it out to threads in chunks of whole lines.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::lines::{MAX_LINE, STANDARD_INPUT, key_of};

/// Bytes that are read at a time, besides the rest of the last line.
const READ_SIZE: u64 = 1 << 18;

type Source = BufReader<Box<dyn Read + Send>>;

/// The file, until its end is reached.
pub(super) struct Input {
    file: Option<Source>,
}

impl Input {
    /// Opens a file or a named pipe, or takes the [standard input](STANDARD_INPUT).
    pub(super) fn open(path: &Path) -> Result<Self> {
        if path == Path::new(STANDARD_INPUT) {
            return Ok(Self::of(io::stdin()));
        }
        let name = path.display();
        let cannot_open = || format!("cannot open the keys file {name}");
        let file = File::open(path).with_context(cannot_open)?;
        let metadata = file.metadata().with_context(cannot_open)?;
        ensure!(
            !metadata.is_dir(),
            "{name} is a directory; give a text file, one key a line"
        );
        Ok(Self::of(file))
    }

    fn of(source: impl Read + Send + 'static) -> Self {
        Self {
            file: Some(BufReader::new(Box::new(source))),
        }
    }

    /// Fills `chunk` with the next whole lines. Returns false at the end; an error also ends the
    /// input.
    pub(super) fn next_chunk(&mut self, chunk: &mut Vec<u8>) -> Result<bool> {
        chunk.clear();
        let Some(file) = &mut self.file else {
            return Ok(false);
        };
        let read = read_lines(file, chunk);
        if chunk.is_empty() || read.is_err() {
            self.end();
        }
        read.context("cannot read further")?;
        Ok(!chunk.is_empty())
    }

    /// Stops reading.
    pub(super) fn end(&mut self) {
        self.file = None;
    }
}

/// Reads about [`READ_SIZE`] bytes, and to the end of the line that was begun, up to the longest
/// line allowed.
fn read_lines(file: &mut Source, chunk: &mut Vec<u8>) -> std::io::Result<()> {
    file.by_ref().take(READ_SIZE).read_to_end(chunk)?;
    if !chunk.ends_with(b"\n") {
        // With room for a line break of two bytes.
        let mut limited = file.take(MAX_LINE as u64 + 2);
        limited.read_until(b'\n', chunk)?;
    }
    Ok(())
}

/// Returns the keys in a chunk, and `None` for each blank line.
///
/// # Errors
///
/// Fails at a line that is too long.
pub(super) fn keys(chunk: &[u8]) -> impl Iterator<Item = Result<Option<&[u8]>>> {
    let lines = chunk.strip_suffix(b"\n").unwrap_or(chunk);
    lines.split(|&byte| byte == b'\n').map(|line| {
        let shown = || format!("the line that begins with {:?}", super::shown(line));
        key_of(line).with_context(shown)
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use tempfile::NamedTempFile;

    use super::*;

    fn all_keys(text: &[u8]) -> Result<Vec<Option<Vec<u8>>>> {
        let mut file = NamedTempFile::new().unwrap();
        file.write_all(text).unwrap();
        let mut input = Input::open(file.path()).unwrap();
        let (mut chunk, mut found) = (Vec::new(), Vec::new());
        while input.next_chunk(&mut chunk)? {
            for key in keys(&chunk) {
                found.push(key?.map(<[u8]>::to_vec));
            }
        }
        Ok(found)
    }

    #[test]
    fn lines_are_whole_wherever_a_chunk_ends() {
        for length in [
            1,
            1_000,
            READ_SIZE as usize - 1,
            READ_SIZE as usize,
            MAX_LINE,
        ] {
            let line = vec![0xff; length];
            let lines = [
                &line[..],
                b"short",
                b"",
                &line,
                b"last, without a line break",
            ];
            let mut expected: Vec<_> = lines.map(|line| Some(line.to_vec())).into();
            expected[2] = None;
            for line_break in ["\n", "\r\n"] {
                let text = lines.join(line_break.as_bytes());
                assert_eq!(all_keys(&text).unwrap(), expected, "{length}");
            }
        }
        assert!(all_keys(b"").unwrap().is_empty());
        assert_eq!(all_keys(b"a\n").unwrap().len(), 1);
    }

    #[test]
    fn an_endless_line_is_an_error_that_shows_its_beginning() {
        for before in [0, 1, READ_SIZE as usize - 3] {
            let mut text = vec![b'\n'; before];
            text.extend(vec![b'x'; MAX_LINE + 1]);
            let error = format!("{:#}", all_keys(&text).unwrap_err());
            assert!(error.contains("begins with \"xxx"), "{error}");
            assert!(error.contains("longer than 1048576 bytes"), "{error}");
            assert!(error.len() < 300, "{error}");
        }
    }
}
