//! The thread counts that an experiment asks for.

use std::fmt;

use anyhow::{Result, bail, ensure};
use serde::{Deserialize, Deserializer, de};

/// The thread counts of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub enum Threads {
    /// 1, 2, 4 … below the number of cores, the number of cores, and two and four times as many.
    Auto,
    /// A list of counts, some of which may coincide on a given machine.
    List(Vec<Count>),
}

/// One thread count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Count {
    /// Exactly this many.
    Exactly(usize),
    /// This many times the number of cores.
    PerCore(usize),
}

/// The most threads an experiment may ask for.
pub const MAX_THREADS: usize = 1_024;

impl Threads {
    /// Checks that the counts are possible.
    pub fn validate(&self) -> Result<()> {
        if let Self::List(list) = self {
            ensure!(
                !list.is_empty(),
                "field `threads`: name at least one number, or \"auto\""
            );
            for count in list {
                let (Count::Exactly(threads) | Count::PerCore(threads)) = count;
                ensure!(
                    (1..=MAX_THREADS).contains(threads),
                    "field `threads`: {count} is not between 1 and {MAX_THREADS}"
                );
            }
            let again = |at: &usize| list[..*at].contains(&list[*at]);
            if let Some(at) = (1..list.len()).find(again) {
                bail!("field `threads`: {} appears twice", list[at]);
            }
        }
        Ok(())
    }

    /// Returns the thread counts, ascending, on a machine with this many cores.
    pub fn counts(&self, cores: usize) -> Vec<usize> {
        let mut counts: Vec<usize> = match self {
            Self::List(list) => (list.iter())
                .map(|count| match *count {
                    Count::Exactly(threads) => threads,
                    Count::PerCore(times) => (times * cores).min(MAX_THREADS),
                })
                .collect(),
            Self::Auto => std::iter::successors(Some(1), |threads| Some(threads * 2))
                .take_while(|&threads| threads < cores)
                .chain([cores, 2 * cores, 4 * cores])
                .filter(|&threads| threads <= MAX_THREADS)
                .collect(),
        };
        counts.sort_unstable();
        counts.dedup();
        counts
    }
}

impl fmt::Display for Count {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Exactly(threads) => write!(formatter, "{threads}"),
            Self::PerCore(times) => write!(formatter, "\"{times}x\""),
        }
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl de::Visitor<'_> for Visitor {
            type Value = Count;

            fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
                formatter.write_str(
                    "a number of threads such as 4, or of threads per core such as \"2x\" in field `threads`",
                )
            }

            fn visit_u64<E: de::Error>(self, threads: u64) -> Result<Count, E> {
                Ok(Count::Exactly(
                    usize::try_from(threads).unwrap_or(usize::MAX),
                ))
            }

            fn visit_i64<E: de::Error>(self, threads: i64) -> Result<Count, E> {
                let unsigned = u64::try_from(threads);
                let unsigned = unsigned
                    .map_err(|_| E::invalid_value(de::Unexpected::Signed(threads), &self))?;
                self.visit_u64(unsigned)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Count, E> {
                let times = text.strip_suffix('x').and_then(|times| times.parse().ok());
                times
                    .map(Count::PerCore)
                    .ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}

/// Written by hand because serde's untagged enums cannot say what was wrong.
impl<'de> Deserialize<'de> for Threads {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Threads;

            fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
                formatter
                    .write_str("\"auto\" or a list such as [1, 2, 4] or [1, \"1x\", \"2x\"] in field `threads`")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Threads, E> {
                match text {
                    "auto" => Ok(Threads::Auto),
                    _ => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
                }
            }

            fn visit_seq<A: de::SeqAccess<'de>>(self, mut list: A) -> Result<Threads, A::Error> {
                let mut threads = Vec::new();
                while let Some(next) = list.next_element()? {
                    threads.push(next);
                }
                Ok(Threads::List(threads))
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn numbers_of_threads_may_go_by_cores() {
        let field: BTreeMap<String, Threads> =
            toml::from_str(r#"threads = ["4x", 1, "1x", 8]"#).unwrap();
        let threads = &field["threads"];
        assert_eq!(threads.counts(1), [1, 4, 8]);
        assert_eq!(threads.counts(2), [1, 2, 8]);
        assert_eq!(threads.counts(1_000), [1, 8, 1_000, MAX_THREADS]);
    }

    #[test]
    fn auto_covers_the_cores_and_oversubscription() {
        assert_eq!(Threads::Auto.counts(1), [1, 2, 4]);
        assert_eq!(Threads::Auto.counts(2), [1, 2, 4, 8]);
        assert_eq!(Threads::Auto.counts(6), [1, 2, 4, 6, 12, 24]);
        assert_eq!(Threads::Auto.counts(8), [1, 2, 4, 8, 16, 32]);
        assert_eq!(Threads::Auto.counts(512).last(), Some(&1024));
    }
}
