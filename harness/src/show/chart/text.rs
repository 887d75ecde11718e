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
        'f' | 'r' | 't' | '(' | ')' | '-' | ' ' | '/' => 0.4,
        'm' | 'w' | 'M' | 'W' | '%' | '×' | '–' => 0.97,
        'A'..='Z' => 0.7,
        _ => 0.59,
    };
    size * text.chars().map(width).sum::<f64>()
}

pub(super) fn widest(texts: impl Iterator<Item = String>, size: f64) -> f64 {
    let widths = texts.map(|text| text_width(&text, size));
    widths.fold(0.0, f64::max)
}

/// Breaks a text between words, but not after a number, so that each line fits the width.
pub(super) fn wrap(text: &str, width: f64, size: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for words in kept_together(text) {
        match lines.last_mut() {
            Some(line) if text_width(&format!("{line} {words}"), size) <= width => {
                line.push(' ');
                line.push_str(&words);
            }
            _ => lines.push(words),
        }
    }
    lines
}

/// Returns the words of a text, each number with its unit and what it counts.
fn kept_together(text: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut is_number = false;
    for word in text.split_whitespace() {
        match parts.last_mut() {
            Some(part) if is_number => {
                part.push(' ');
                part.push_str(word);
            }
            _ => parts.push(word.to_owned()),
        }
        is_number = word == "%" || word.parse::<f64>().is_ok();
    }
    parts
}

/// Breaks a title, if it does not fit, before what it says in brackets.
pub(super) fn wrap_title(text: &str, width: f64, size: f64) -> Vec<String> {
    match text.find(" (") {
        Some(bracket) if text_width(text, size) > width => {
            let (what, remark) = text.split_at(bracket);
            let mut lines = wrap(what, width, size);
            lines.extend(wrap(remark.trim_start(), width, size));
            lines
        }
        _ => wrap(text, width, size),
    }
}
