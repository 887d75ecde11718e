//! Text in charts: its sizes in points, its width, and where lines break.

pub(super) const TITLE_SIZE: f64 = 9.0;
/// Of panels' titles, and of the key.
pub(super) const TEXT_SIZE: f64 = 7.0;
pub(super) const CAPTION_SIZE: f64 = 6.5;
/// Of numbers at axes. No text is smaller: printed, it must be readable.
pub(super) const TICK_SIZE: f64 = 6.2;

pub(super) fn line_height(size: f64) -> f64 {
    size * 1.35
}

/// Estimates the width of a text, on the high side, as only the viewer knows the font.
pub(super) fn text_width(text: &str, size: f64) -> f64 {
    let width = |letter| match letter {
        'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '|' | '\'' => 0.33,
        'f' | 'r' | 't' | '(' | ')' | '-' | ' ' | '/' => 0.42,
        'm' | 'w' | 'M' | 'W' | '%' | '×' | '–' => 0.97,
        'A'..='Z' => 0.72,
        _ => 0.63,
    };
    size * text.chars().map(width).sum::<f64>()
}

/// Returns the width of the widest of these texts.
pub(super) fn widest<'t>(texts: impl IntoIterator<Item = &'t str>, size: f64) -> f64 {
    let widths = texts.into_iter().map(|text| text_width(text, size));
    widths.fold(0.0, f64::max)
}

/// Breaks a text between words so that each line fits the width.
pub(super) fn wrap(text: &str, width: f64, size: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if text_width(&format!("{line} {word}"), size) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.retain(|line| !line.is_empty());
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_broken_between_words() {
        let text = "one two three four five six";
        let lines = wrap(text, text_width("one two three", 10.0), 10.0);
        assert_eq!(lines, ["one two three", "four five six"]);
        assert_eq!(wrap("", 100.0, 10.0), [""; 0]);
    }
}
