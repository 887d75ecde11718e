//! Counts and names, put into words.

use std::fmt::Display;

use crate::plot::grouped;

/// A noun as it stands after this count: `key` after 1, `keys` after any other.
pub fn noun<N: PartialEq + From<u8>>(count: N, singular: &str) -> String {
    let ending = match singular {
        _ if count == N::from(1) => "",
        _ if singular.ends_with('s') || singular.ends_with("sh") => "es",
        _ => "s",
    };
    format!("{singular}{ending}")
}

/// A count with its noun: `1 key`, `2 keys`.
pub fn counted<N: Copy + Display + PartialEq + From<u8>>(count: N, singular: &str) -> String {
    format!("{count} {}", noun(count, singular))
}

/// A count of many digits with its noun: `60,000 keys`.
pub fn large(count: u64, singular: &str) -> String {
    format!("{} {}", grouped(count), noun(count, singular))
}

/// What is said of a name that is not known: the nearest one that is, if one is near, and all of them.
pub fn unknown(name: &str, known: &[&str]) -> String {
    let all = known.join(", ");
    match nearest(name, known) {
        Some(near) => format!("{name:?}: did you mean {near:?}? Known are {all}"),
        None => format!("{name:?}; known are {all}"),
    }
}

fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    // Far enough for a word that is forgotten, too near for another name.
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
    use crate::registry::Registry;

    #[test]
    fn one_is_no_plural() {
        assert_eq!(counted(1, "key"), "1 key");
        assert_eq!(counted(0, "key"), "0 keys");
        assert_eq!(counted(1.0, "thread"), "1 thread");
        assert_eq!(counted(2_u64, "hash"), "2 hashes");
        assert_eq!(counted(2_usize, "class"), "2 classes");
    }

    #[test]
    fn the_name_that_was_meant_is_told_and_no_other() {
        let names = Registry::standard().names();
        for (typed, meant) in [
            ("lockfree", "lock-free"),
            ("lock_free", "lock-free"),
            ("Lock-Free", "lock-free"),
            ("segmentlock", "segment-lock"),
            ("segment", "segment-lock"),
            ("blom", "bloom"),
            ("exactset", "exact-set"),
        ] {
            assert_eq!(nearest(typed, &names), Some(meant), "{typed}");
        }
        for typed in ["balloon", "", "x", "my-own-map"] {
            assert_eq!(nearest(typed, &names), None, "{typed}");
        }
        let said = unknown("lockfree", &["lock-free", "rwlock"]);
        assert_eq!(
            said,
            "\"lockfree\": did you mean \"lock-free\"? Known are lock-free, rwlock"
        );
        assert_eq!(unknown("x", &["rwlock"]), "\"x\"; known are rwlock");
    }
}
