//! What the threads of a process do while subjects take turns.

use std::fmt;
use std::str::FromStr;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use subject::Operations;

use crate::workload::{MAX_LOAD, MIN_LOAD};

/// How rows name what is timed; @ and a load factor may follow.
pub(super) const LOOKUP: &str = "lookup";
pub(super) const HIT: &str = "lookup-hit";
pub(super) const MISS: &str = "lookup-miss";
pub(super) const FILL: &str = "fill";
pub(super) const REMOVE: &str = "remove";
const UPDATE: &str = "update";

/// In the order of the table.
const MEASURES: [&str; 6] = [LOOKUP, HIT, MISS, FILL, REMOVE, UPDATE];

/// What a work is called, what it is, and its load factor unless it says another.
const WORKS: [(&str, Kind, f64); 5] = [
    (LOOKUP, Kind::Lookup { hits: 50 }, 0.92),
    (HIT, Kind::Lookup { hits: 100 }, 0.92),
    (MISS, Kind::Lookup { hits: 0 }, 0.92),
    (FILL, Kind::Fill, 0.95),
    (UPDATE, Kind::Update, 0.9),
];

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    /// Look keys up in random order, of which this many in a hundred are present.
    Lookup { hits: u8 },
    /// Fill an empty table, then remove all again, where that is possible.
    Fill,
    /// Insert slices of new keys, and remove each again.
    Update,
}

/// What threads do, and at which load factor.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Work {
    pub(super) kind: Kind,
    pub(in crate::studies) load: f64,
}

impl Work {
    /// Returns all, at their load factors.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        (WORKS.into_iter()).map(|(_, kind, load)| Self { kind, load })
    }

    pub(super) fn needs(self) -> Operations {
        match self.kind {
            Kind::Lookup { .. } => Operations::LOOKUP,
            Kind::Fill => Operations::INSERT_ONLY,
            Kind::Update => Operations::UPDATES,
        }
    }

    /// Returns how rows name what is timed.
    pub(in crate::studies) fn measures(self) -> Vec<String> {
        let name = self.to_string();
        match self.kind {
            Kind::Fill => vec![name.clone(), name.replace(FILL, REMOVE)],
            Kind::Lookup { .. } | Kind::Update => vec![name],
        }
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = WORKS.iter().find(|(_, kind, _)| *kind == self.kind);
        let &(name, _, load) = known.expect("all kinds are listed");
        if load == self.load {
            f.write_str(name)
        } else {
            write!(f, "{name}@{}", self.load)
        }
    }
}

impl FromStr for Work {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let (name, load) = text.split_once('@').unzip();
        let name = name.unwrap_or(text);
        let known = WORKS.map(|(name, ..)| name).join(", ");
        let found = WORKS.into_iter().find(|(of, ..)| *of == name);
        let (_, kind, usual) = found.with_context(|| format!("{name:?} is none of {known}"))?;
        let load = load.map_or(Ok(usual), str::parse);
        let load = load.context("after @ stands a load factor, such as 0.5")?;
        ensure!(
            (MIN_LOAD..=MAX_LOAD).contains(&load),
            "the load factor {load:?} is not from {MIN_LOAD:?} to {MAX_LOAD}"
        );
        Ok(Self { kind, load })
    }
}

impl TryFrom<String> for Work {
    type Error = anyhow::Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<Work> for String {
    fn from(work: Work) -> Self {
        work.to_string()
    }
}

/// Returns what a row names, without its load factor.
pub(super) fn base(measure: &str) -> &str {
    measure.split('@').next().unwrap_or(measure)
}

/// Returns where the table has what a row names.
pub(super) fn place(measure: &str) -> Option<usize> {
    MEASURES.iter().position(|of| *of == base(measure))
}

/// Describes what rows of this name and load factor time.
pub(super) fn described(measure: &str, load: f64) -> String {
    match base(measure) {
        LOOKUP => format!("Lookups, half of them hits, load factor {load}"),
        HIT => format!("Lookups of present keys, load factor {load}"),
        MISS => format!("Lookups of absent keys, load factor {load}"),
        FILL => format!("Inserts, up to load factor {load}"),
        REMOVE => format!("Removes, from load factor {load}"),
        _ => format!("Inserts and removes, load factor {load}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn works_are_read_as_they_are_written() {
        for text in [
            "lookup",
            "lookup-hit@0.5",
            "lookup-miss",
            "fill@0.25",
            "update",
        ] {
            let work: Work = text.parse().unwrap();
            assert_eq!(work.to_string(), text);
        }
        let half: Work = "fill@0.5".parse().unwrap();
        assert_eq!(half.measures(), ["fill@0.5", "remove@0.5"]);
        assert_eq!(
            described("remove@0.5", 0.5),
            "Removes, from load factor 0.5"
        );
        // Written out, its usual load factor is no other one.
        let usual: Work = "fill@0.95".parse().unwrap();
        assert_eq!(usual.to_string(), "fill");
        assert!(Work::all().all(|work| work.measures().iter().all(|of| place(of).is_some())));
        for (text, problem) in [
            ("fill@", "after @"),
            ("fill@0", "not from 1e-6"),
            ("fill@nan", "not from 1e-6"),
            ("fill@1e-300", "not from 1e-6"),
            ("update@0.99", "at most 0.98"),
        ] {
            let error = text.parse::<Work>().unwrap_err().to_string();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }
}
