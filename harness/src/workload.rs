//! Workloads: the operations of a measurement's threads, as an experiment names them.

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};
use subject::Operations;

/// Beyond this load factor, buckets of four slots cannot be filled reliably.
pub const MAX_LOAD: f64 = 0.98;

/// Below this load factor, a table is nearly all empty.
pub const MIN_LOAD: f64 = 1e-6;

/// A workload: a `[[workload]]` table of an experiment, which selects it by `kind`.
///
/// `load` is a load factor, occupied slots over all slots, from [`MIN_LOAD`] to [`MAX_LOAD`]: the one that
/// the filter has throughout, or that a fill ends at and a removal starts from. `hit` is the percentage
/// of lookups for present keys. The other numbers are percentages of operations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Workload {
    /// Looks up present keys, all of which must be found.
    LookupHit { load: f64 },
    /// Looks up keys that were never inserted.
    LookupMiss { load: f64 },
    /// Fills an empty filter.
    Insert { load: f64 },
    /// Empties a filled filter.
    Remove { load: f64 },
    /// Lookups, inserts and removes together, which sum to 100. There are as many inserts as removes,
    /// which keeps the load factor constant.
    Mix {
        lookup: u8,
        insert: u8,
        remove: u8,
        load: f64,
    },
    /// Looks up keys, some in the filter and others never inserted, in random order.
    Lookup {
        load: f64,
        #[serde(default = "default_hit")]
        hit: u8,
    },
}

/// The columns of a row that describe a workload, and its title.
struct Facts {
    load: f64,
    hit: Option<u8>,
    label: String,
    title: String,
}

fn default_hit() -> u8 {
    50
}

impl Workload {
    /// Returns the load factor that the workload holds, starts from or reaches.
    pub fn load(&self) -> f64 {
        self.facts().load
    }

    /// Returns the percentage of lookups that ask for a present key, if there are lookups.
    pub fn hit(&self) -> Option<u8> {
        self.facts().hit
    }

    /// Returns a short name for CSV and figure, such as `lookup-hit` or `mix-90-5-5`. It omits load
    /// factor and hit percentage, which have their own columns.
    pub fn label(&self) -> String {
        self.facts().label
    }

    /// Describes the operations, for figures that show load factor and hits otherwise.
    pub fn title(&self) -> String {
        self.facts().title
    }

    fn facts(&self) -> Facts {
        let facts = |load, hit, label: &str, title: &str| Facts {
            load,
            hit,
            label: label.into(),
            title: title.into(),
        };
        match *self {
            Self::LookupHit { load } => facts(load, Some(100), "lookup-hit", "Lookup, key present"),
            Self::LookupMiss { load } => facts(load, Some(0), "lookup-miss", "Lookup, key absent"),
            Self::Insert { load } => facts(load, None, "insert", "Insert, from empty"),
            Self::Remove { load } => facts(load, None, "remove", "Remove, to empty"),
            Self::Lookup { load, hit } => facts(load, Some(hit), "lookup", "Lookup"),
            Self::Mix {
                lookup,
                insert,
                remove,
                load,
            } => {
                let label = format!("mix-{lookup}-{insert}-{remove}");
                let title = format!("{lookup} % lookup, {insert} % insert, {remove} % remove");
                let hit = (lookup > 0).then_some(default_hit());
                facts(load, hit, &label, &title)
            }
        }
    }

    /// Returns whether it lasts for the experiment's `seconds`, or until every key is done.
    pub fn is_time_bounded(&self) -> bool {
        !matches!(self, Self::Insert { .. } | Self::Remove { .. })
    }

    /// Returns whether threads do nothing but look keys up, so that measurements can share a table.
    pub fn only_looks_up(&self) -> bool {
        self.needs() == Operations::LOOKUP
    }

    /// Returns what a subject must support to run this workload. A subject that cannot insert can
    /// still be searched: lookups are measured over whatever its table holds.
    pub fn needs(&self) -> Operations {
        match self {
            Self::LookupHit { .. } | Self::LookupMiss { .. } | Self::Lookup { .. } => {
                Operations::LOOKUP
            }
            Self::Insert { .. } => Operations::INSERT_ONLY,
            Self::Remove { .. } | Self::Mix { lookup: 0, .. } => Operations::UPDATES,
            Self::Mix { .. } => Operations::ALL,
        }
    }

    /// Returns how many lookups, inserts and removes an operation makes, on average.
    #[cfg(feature = "simulation")]
    pub fn shares(&self) -> [f64; 3] {
        let percent = |lookups: u8, updates: u8| [lookups, updates, updates].map(f64::from);
        let shares = match *self {
            Self::LookupHit { .. } | Self::LookupMiss { .. } | Self::Lookup { .. } => {
                [100.0, 0.0, 0.0]
            }
            Self::Insert { .. } => [0.0, 100.0, 0.0],
            Self::Remove { .. } => [0.0, 0.0, 100.0],
            Self::Mix { lookup, insert, .. } => percent(lookup, insert),
        };
        shares.map(|share: f64| share / 100.0)
    }
}

impl Workload {
    /// Checks every value. An error begins with the field at fault.
    pub fn validate(&self) -> Result<()> {
        let load = self.load();
        ensure!(
            (MIN_LOAD..=MAX_LOAD).contains(&load),
            "field `load`: {load:?} is not a usable load factor: it must be from {MIN_LOAD:?} to {MAX_LOAD}"
        );
        match *self {
            Self::Mix {
                lookup,
                insert,
                remove,
                ..
            } => {
                percentages(&[("lookup", lookup), ("insert", insert)])?;
                ensure!(
                    insert == remove,
                    "field `insert`: {insert} must equal remove ({remove}), so that the load factor holds"
                );
                let sum = u16::from(lookup) + u16::from(insert) + u16::from(remove);
                ensure!(
                    sum == 100,
                    "field `lookup`: lookup, insert and remove are percentages and must sum to 100, not {sum}"
                );
                Ok(())
            }
            Self::Lookup { hit, .. } => percentages(&[("hit", hit)]),
            _ => Ok(()),
        }
    }

    /// Checks that each thread has a key of its own, where threads insert and remove keys. A thread without
    /// one would do nothing, yet count as a thread, and a simulation would never end.
    pub fn check_keys(&self, keys: usize, threads: usize) -> Result<()> {
        let Self::Mix { insert: 1.., .. } = self else {
            return Ok(());
        };
        // Half of the keys stay in the table.
        let (enough, most, label) = (2 * threads, keys / 2, self.label());
        ensure!(
            keys >= enough,
            "field `keys`: {keys} are too few for {threads} threads, each of which inserts and removes keys of its \
             own under {label}: use {enough} keys or more, or at most {most} threads"
        );
        Ok(())
    }
}

fn percentages(fields: &[(&str, u8)]) -> Result<()> {
    for (field, percent) in fields {
        ensure!(
            *percent <= 100,
            "field `{field}`: {percent} is not a percentage: it must be from 0 to 100"
        );
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Parses a kind with its fields; the load factor is 0.9 unless they state it.
    pub(crate) fn parse(text: &str) -> std::result::Result<Workload, toml::de::Error> {
        let (kind, fields) = text.split_once(' ').unwrap_or((text, ""));
        let has_load = text.contains("load");
        let load = if has_load { "" } else { "load=0.9" };
        let fields = fields.replace(' ', "\n");
        toml::from_str(&format!("kind='{kind}'\n{load}\n{fields}"))
    }

    #[test]
    fn kinds_have_labels_and_hits() {
        for line in [
            "mix lookup=90 insert=5 remove=5 | mix-90-5-5 Some(50)",
            "lookup | lookup Some(50)",
            "insert | insert None",
            "lookup hit=25 | lookup Some(25)",
            "lookup-hit | lookup-hit Some(100)",
        ] {
            let (text, expected) = line.split_once(" | ").unwrap();
            let workload = parse(text).unwrap();
            workload.validate().unwrap();
            let (label, hit) = (workload.label(), workload.hit());
            assert_eq!(format!("{label} {hit:?}"), expected, "{text}");
            let written = toml::to_string(&workload).unwrap();
            assert_eq!(toml::from_str(&written), Ok(workload), "{written}");
        }
    }

    #[test]
    fn impossible_values_name_their_field() {
        for (text, field) in [
            ("insert load=0.99", "load"),
            ("insert load=nan", "load"),
            ("insert load=1e-300", "load"),
            ("mix lookup=90 insert=6 remove=4", "insert"),
            ("mix lookup=90 insert=6 remove=6", "lookup"),
            ("mix lookup=101 insert=0 remove=0", "lookup"),
            ("lookup hit=101", "hit"),
        ] {
            let error = parse(text).unwrap().validate().unwrap_err().to_string();
            assert!(error.starts_with(&format!("field `{field}`")), "{error}");
        }
    }
}
