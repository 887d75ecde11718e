//! Text in charts: its sizes in pixels, its width, and where lines break.

use plotters::prelude::*;

pub(crate) const TITLE_SIZE: u32 = 21;
pub(crate) const TEXT_SIZE: u32 = 15;
pub(crate) const CAPTION_SIZE: u32 = 13;

pub(crate) fn text_style<'a>(size: u32) -> TextStyle<'a> {
    ("sans-serif", size).into_text_style(&(1, 1)).color(&BLACK)
}

pub(crate) fn line_height(size: u32) -> i32 {
    size as i32 * 7 / 5
}

/// Estimates the width of a text, on the high side, as only the viewer knows the font: half the
/// size for each character.
pub(crate) fn text_width(text: &str, size: u32) -> i32 {
    text.chars().count() as i32 * size as i32 / 2
}

/// Breaks a text between words so that each line fits the width.
pub(crate) fn wrap(text: &str, width: i32, size: u32) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if text_width(&format!("{line} {word}"), size) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_broken_between_words() {
        let text = "one two three four five six";
        let lines = wrap(text, text_width("one two three", 10), 10);
        assert_eq!(lines, ["one two three", "four five six"]);
        assert_eq!(wrap("", 100, 10), [""; 0]);
    }
}
