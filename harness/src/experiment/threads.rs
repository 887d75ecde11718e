//! The thread counts that an experiment asks for.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, de};

#[derive(Clone, Debug, PartialEq)]
pub enum Threads {
    /// 1, 2, 4 … below the number of cores, the number of cores, and two and four times as many.
    Auto,
    /// A list of counts, some of which may coincide on a given machine.
    List(Vec<Count>),
}

#[derive(Clone, Copy, PartialEq)]
pub enum Count {
    Exactly(usize),
    PerCore(usize),
}

pub const MAX_THREADS: usize = 1_024;

impl Threads {
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

impl fmt::Debug for Count {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Exactly(threads) => write!(formatter, "{threads}"),
            Self::PerCore(times) => write!(formatter, "\"{times}x\""),
        }
    }
}

impl fmt::Display for Threads {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Auto => formatter.write_str("auto"),
            Self::List(list) => {
                let list: Vec<_> = list.iter().map(|count| format!("{count:?}")).collect();
                formatter.write_str(&list.join(",").replace('"', ""))
            }
        }
    }
}

/// Parses a number of threads such as `4`, or of threads per core such as `2x`.
impl FromStr for Count {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let count = match text.strip_suffix('x') {
            Some(times) => times.parse().map(Self::PerCore),
            None => text.parse().map(Self::Exactly),
        };
        count.map_err(|_| format!("{text:?} is not a number such as 4, or 2x for two per core"))
    }
}

/// Parses `auto`, or counts with commas between them.
impl FromStr for Threads {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        let counts = text.split(',').map(str::parse);
        counts.collect::<Result<_, _>>().map(Self::List)
    }
}

impl<'de> Deserialize<'de> for Threads {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = toml::Value::deserialize(deserializer)?;
        // As on the command line.
        let text = value.to_string().replace(['[', ']', '"', ' '], "");
        let expected = r#""auto", or a list such as [1, 2, 4] or [1, "1x", "2x"]"#;
        let problem = format!("field `threads`: {value} is not {expected}");
        text.parse().map_err(|_: String| de::Error::custom(problem))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_may_go_by_cores() {
        let threads: Threads = "4x,1,1x,8".parse().unwrap();
        assert_eq!(threads.counts(1), [1, 4, 8]);
        assert_eq!(threads.counts(2), [1, 2, 8]);
        assert_eq!(threads.counts(1_000), [1, 8, 1_000, MAX_THREADS]);
    }

    #[test]
    fn auto_covers_the_cores_and_oversubscription() {
        let auto: Threads = "auto".parse().unwrap();
        assert_eq!(auto.counts(1), [1, 2, 4]);
        assert_eq!(auto.counts(6), [1, 2, 4, 6, 12, 24]);
        assert_eq!(auto.counts(8), [1, 2, 4, 8, 16, 32]);
        assert_eq!(auto.counts(512).last(), Some(&1024));
    }
}
