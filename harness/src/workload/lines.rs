//! Keys as the lines of a text file.

use anyhow::{Result, ensure};
use subject::wording::counted;

/// Names the standard input instead of a file of keys.
pub const STANDARD_INPUT: &str = "-";
/// Longest line allowed in a file of keys, in bytes.
pub const MAX_LINE: usize = 1 << 20;

/// Counts keys with NUL bytes. Text has none, unless it is UTF-16, so they are hardly intended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NotText {
    /// Keys that contain a NUL byte.
    keys: u64,
    /// Whether one of them begins with the byte order mark of UTF-16.
    marked: bool,
}

impl NotText {
    pub fn look_at(&mut self, key: &[u8]) {
        if key.contains(&0) {
            self.keys += 1;
            self.marked |= key.starts_with(b"\xff\xfe") || key.starts_with(b"\xfe\xff");
        }
    }

    /// Says what is odd about a file of `keys` keys, and what to do; `None` if nothing is.
    pub fn warning(&self, file: &str, keys: u64) -> Option<String> {
        let looks = if self.marked {
            "It has the byte order mark of UTF-16"
        } else {
            "It is binary, or UTF-16 without a byte order mark"
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

/// Returns the key of a line: the line without its line break; `None` if it is blank.
pub fn key_of(line: &[u8]) -> Result<Option<&[u8]>> {
    let text = line.strip_suffix(b"\n").unwrap_or(line);
    let text = text.strip_suffix(b"\r").unwrap_or(text);
    ensure!(
        text.len() <= MAX_LINE,
        "it is longer than {MAX_LINE} bytes; give a text file, one key a line"
    );
    Ok((!text.trim_ascii().is_empty()).then_some(text))
}
