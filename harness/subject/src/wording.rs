//! Wording of counts and names in messages.

use std::fmt::Display;

/// Formats a number with its digits in groups of three, as in `60,000`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().collect();
    String::from_utf8_lossy(&groups.join(&b',')).into_owned()
}

/// Returns a noun in the form for this count: `key` after 1, `keys` after any other.
pub fn noun<N: PartialEq + From<u8>>(count: N, singular: &str) -> String {
    let ending = match singular {
        _ if count == N::from(1) => "",
        _ if singular.ends_with('s') || singular.ends_with("sh") => "es",
        _ => "s",
    };
    format!("{singular}{ending}")
}

/// Formats a count with its noun: `1 key`, `2 keys`.
pub fn counted<N: Copy + Display + PartialEq + From<u8>>(count: N, singular: &str) -> String {
    format!("{count} {}", noun(count, singular))
}

/// Formats a large count with its noun: `60,000 keys`.
pub fn large(count: u64, singular: &str) -> String {
    format!("{} {}", grouped(count), noun(count, singular))
}

/// Returns a name without the number, or the numbers of a layout, that it ends in, unless the whole
/// name is known.
pub fn unnumbered(name: &str, is_known: impl Fn(&str) -> bool) -> &str {
    let is_number = |number: &str| number.parse::<u64>().is_ok();
    match name.rsplit_once('-') {
        Some((of, numbers)) if !is_known(name) && numbers.split('x').all(is_number) => of,
        _ => name,
    }
}

/// Describes an unknown name: gives the nearest known one, if one is near, and lists all of them.
pub fn unknown(name: &str, known: &[&str]) -> String {
    let lines: Vec<_> = known.chunks(6).map(|names| names.join(", ")).collect();
    let all = lines.join(",\n  ");
    match nearest(name, known) {
        Some(near) => format!("{name:?}: did you mean {near:?}? Expected one of: {all}"),
        None => format!("{name:?}; expected one of: {all}"),
    }
}

fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    // Low enough to match a name with a word missing, high enough not to match a different name.
    const NEAR: f64 = 0.85;
    let name = name.to_lowercase();
    let similar = |known: &&'a str| (strsim::jaro_winkler(&name, known), *known);
    let most = known.iter().map(similar).max_by(|a, b| a.0.total_cmp(&b.0));
    most.filter(|(similarity, _)| *similarity >= NEAR)
        .map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn count_of_one_is_singular() {
        assert_eq!(counted(1, "key"), "1 key");
        assert_eq!(counted(0, "key"), "0 keys");
        assert_eq!(counted(1.0, "thread"), "1 thread");
        assert_eq!(counted(2_u64, "hash"), "2 hashes");
        assert_eq!(counted(2_usize, "class"), "2 classes");
    }
}
