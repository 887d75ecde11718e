//! The input, handed out in chunks of whole lines.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek};
use std::vec;

use anyhow::{Context, Result, ensure};
use indicatif::{ProgressBar, ProgressStyle};
use memchr::{memchr_iter, memrchr};

/// Number of bytes read at a time. They stay in the second-level cache until their lines have been
/// processed.
const READ_SIZE: usize = 1 << 18;

/// A number of whole lines, all of one file; the last one may lack its newline.
#[derive(Default)]
pub(crate) struct Chunk {
    /// Longer than what is used, so that room to read into is zeroed only once.
    buffer: Vec<u8>,
    used: usize,
}

impl Chunk {
    /// Returns the lines, without their newlines.
    pub(crate) fn lines(&self) -> impl Iterator<Item = &[u8]> {
        let bytes = &self.buffer[..self.used];
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let ends = memchr_iter(b'\n', bytes).chain([bytes.len()]);
        let mut start = 0;
        ends.map(move |end| {
            let line = &bytes[start..end];
            start = end + 1;
            line
        })
    }

    /// Returns the place for the next bytes.
    fn room(&mut self) -> &mut [u8] {
        let end = self.used + READ_SIZE;
        if self.buffer.len() < end {
            self.buffer.resize(end, 0);
        }
        &mut self.buffer[self.used..end]
    }

    fn append(&mut self, bytes: &[u8]) {
        self.buffer.truncate(self.used);
        self.buffer.extend_from_slice(bytes);
        self.used += bytes.len();
    }
}

/// One file, or the standard input.
struct Source {
    name: String,
    reader: Box<dyn Read + Send>,
    /// The size, if it is a regular file.
    size: Option<u64>,
    /// The mean length of its first lines, including newlines.
    line_length: Option<f64>,
}

impl Source {
    fn open(name: &str) -> Result<Source> {
        if name == "-" {
            return Ok(Source {
                name: "the standard input".to_owned(),
                reader: Box::new(io::stdin()),
                size: None,
                line_length: None,
            });
        }
        let cannot = || format!("cannot read {name}");
        let mut file = File::open(name).with_context(cannot)?;
        let metadata = file.metadata().with_context(cannot)?;
        ensure!(
            !metadata.is_dir(),
            "{name} is a directory: name the files in it"
        );
        let mut line_length = None;
        if metadata.is_file() {
            let mut beginning = Vec::new();
            let read = (&file).take(READ_SIZE as u64).read_to_end(&mut beginning);
            read.with_context(cannot)?;
            file.rewind().with_context(cannot)?;
            let lines = memchr_iter(b'\n', &beginning).count().max(1);
            line_length = Some(beginning.len().max(1) as f64 / lines as f64);
        }
        Ok(Source {
            name: name.to_owned(),
            reader: Box::new(file),
            size: metadata.is_file().then_some(metadata.len()),
            line_length,
        })
    }
}

/// Files, read one after the other.
pub(crate) struct Input {
    sources: vec::IntoIter<Source>,
    current: Option<Source>,
    /// The beginning of a line whose end has not been read yet.
    rest: Vec<u8>,
    progress: ProgressBar,
}

impl Input {
    /// Opens all of them, so that a wrong name is reported before anything is written.
    pub(crate) fn open(names: &[String]) -> Result<Input> {
        let standard_input = ["-".to_owned()];
        let names = if names.is_empty() {
            &standard_input
        } else {
            names
        };
        let sources: Vec<Source> = (names.iter())
            .map(|name| Source::open(name))
            .collect::<Result<_>>()?;
        Ok(Input {
            sources: sources.into_iter(),
            current: None,
            rest: Vec::new(),
            progress: ProgressBar::hidden(),
        })
    }

    /// Returns the number of bytes to read, unless the size of a source is unknown.
    fn size(&self) -> Option<u64> {
        self.sources.as_slice().iter().map(|s| s.size).sum()
    }

    /// Estimates the number of lines, if the sizes of the sources are known.
    pub(crate) fn estimated_lines(&self) -> Option<usize> {
        let lines = |s: &Source| Some(s.size? as f64 / s.line_length?);
        let lines: f64 = self
            .sources
            .as_slice()
            .iter()
            .map(lines)
            .sum::<Option<_>>()?;
        Some(lines.ceil().max(1.0) as usize)
    }

    /// Adds a progress bar on the standard error, if that is a terminal.
    pub(crate) fn with_progress(self) -> Input {
        let (progress, style) = match self.size() {
            Some(size) => (
                ProgressBar::new(size),
                "{bar:40} {bytes} of {total_bytes}, {eta} left",
            ),
            None => (
                ProgressBar::new_spinner(),
                "{spinner} {bytes} read, {bytes_per_sec}",
            ),
        };
        let style = ProgressStyle::with_template(style).expect("the template is valid");
        Input {
            progress: progress.with_style(style),
            ..self
        }
    }

    /// Returns the number of bytes read so far.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.progress.position()
    }

    /// Fills `chunk` with the next whole lines; false at the end. From a pipe it takes what is
    /// there, so that lines are passed on as they come.
    pub(crate) fn next_chunk(&mut self, chunk: &mut Chunk) -> Result<bool> {
        chunk.used = 0;
        chunk.append(&self.rest);
        self.rest.clear();
        loop {
            if self.current.is_none() {
                self.current = self.sources.next();
            }
            let Some(source) = &mut self.current else {
                self.progress.finish_and_clear();
                return Ok(false);
            };
            let read = match source.reader.read(chunk.room()) {
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => {
                    let name = source.name.clone();
                    self.end();
                    return Err(error).with_context(|| format!("cannot read {name}"));
                }
            };
            self.progress.inc(read as u64);
            if read == 0 {
                // A line does not continue in the next file.
                self.current = None;
                if chunk.used > 0 {
                    return Ok(true);
                }
                continue;
            }
            let new = chunk.used..chunk.used + read;
            chunk.used = new.end;
            // The bytes before these contain no newline.
            if let Some(last) = memrchr(b'\n', &chunk.buffer[new.clone()]) {
                chunk.used = new.start + last + 1;
                self.rest
                    .extend_from_slice(&chunk.buffer[chunk.used..new.end]);
                return Ok(true);
            }
        }
    }

    /// Stops reading.
    pub(crate) fn end(&mut self) {
        self.sources = Vec::new().into_iter();
        self.current = None;
        self.rest.clear();
    }
}
