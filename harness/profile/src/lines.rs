//! Keys as the lines of a text.

use anyhow::{Result, ensure};
use subject::wording::counted;

/// What stands for the standard input where a file of keys is named.
pub const STANDARD_INPUT: &str = "-";
/// Longest line a file of keys may have, in bytes.
pub const MAX_LINE: usize = 1 << 20;

/// What is hardly meant among keys: NUL bytes, of which text has none, but for UTF-16.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NotText {
    /// Keys that hold a NUL byte.
    keys: u64,
    /// Whether one of them begins with the byte order mark of UTF-16.
    marked: bool,
}

impl NotText {
    /// Looks at a key.
    pub fn look_at(&mut self, key: &[u8]) {
        if key.contains(&0) {
            self.keys += 1;
            self.marked |= key.starts_with(b"\xff\xfe") || key.starts_with(b"\xfe\xff");
        }
    }

    /// Adds what was seen elsewhere.
    pub fn merge(&mut self, other: Self) {
        self.keys += other.keys;
        self.marked |= other.marked;
    }

    /// What is odd about a file of so many keys, and what to do; `None` if nothing is.
    pub fn warning(&self, file: &str, keys: u64) -> Option<String> {
        let looks = match self.marked {
            true => "It has the byte order mark of UTF-16",
            false => "It is binary, or UTF-16 without a byte order mark",
        };
        (self.keys > 0).then(|| {
            format!(
                "warning: {} of the {} of {file} {} NUL bytes, which are taken as they are. {looks}; if it is \
                 UTF-16, convert it first: iconv -f UTF-16 -t UTF-8 {file} > keys.txt",
                self.keys,
                counted(keys, "key"),
                if self.keys == 1 { "holds" } else { "hold" },
            )
        })
    }
}

/// The key that a line of a file is: all of it but its line break; none if it is blank.
///
/// # Errors
///
/// A line longer than [`MAX_LINE`].
pub fn key_of(line: &[u8]) -> Result<Option<&[u8]>> {
    let text = line.strip_suffix(b"\n").unwrap_or(line);
    let text = text.strip_suffix(b"\r").unwrap_or(text);
    ensure!(
        text.len() <= MAX_LINE,
        "it is longer than {MAX_LINE} bytes; give a text file, one key a line"
    );
    Ok((!text.trim_ascii().is_empty()).then_some(text))
}
