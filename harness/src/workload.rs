//! What the threads of a measurement do: the workloads an experiment may ask for.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::subject::Operations;

/// The highest load factor a workload may state: past it, buckets of four slots cannot be filled
/// reliably.
pub const MAX_LOAD: f64 = 0.98;

/// One workload, as a `[[workload]]` table of an experiment names it by `kind`.
///
/// `load` is a load factor: occupied slots over all slots, above 0 and at most [`MAX_LOAD`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Workload {
    /// Look up keys that are in the filter, all of which must be found.
    LookupHit {
        /// Load factor of the filter looked into.
        load: f64,
    },
    /// Look up keys that were never inserted.
    LookupMiss {
        /// Load factor of the filter looked into.
        load: f64,
    },
    /// Fill an empty filter.
    Insert {
        /// Load factor at which the fill ends.
        load: f64,
    },
    /// Empty a filled filter.
    Remove {
        /// Load factor from which the removal starts.
        load: f64,
    },
    /// Lookups, inserts and removes together. Their percentages sum to 100, and there are as many
    /// inserts as removes, so that the load factor holds.
    Mix {
        /// Percentage of operations that are lookups.
        lookup: u8,
        /// Percentage of operations that are inserts.
        insert: u8,
        /// Percentage of operations that are removes; equal to `insert`.
        remove: u8,
        /// Percentage of the lookups that ask for a key that is in the filter.
        #[serde(default = "default_hit")]
        hit: u8,
        /// Load factor held throughout.
        load: f64,
    },
}

/// A value that a workload cannot have, with the field that holds it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("field `{field}`: {problem}")]
pub struct InvalidWorkload {
    /// The field's name, as written in the experiment.
    pub field: &'static str,
    /// What is wrong and what is allowed.
    pub problem: String,
}

fn default_hit() -> u8 {
    50
}

impl Workload {
    /// The load factor that the workload states: held, started from or reached.
    pub fn load(&self) -> f64 {
        match *self {
            Self::LookupHit { load }
            | Self::LookupMiss { load }
            | Self::Insert { load }
            | Self::Remove { load }
            | Self::Mix { load, .. } => load,
        }
    }

    /// Short name for CSV and figure, such as `lookup-hit` or `mix-90-5-5`. It leaves out the load
    /// factor (a column of its own), and tells a mix's share of hits only where it is not the usual
    /// 50 %.
    pub fn label(&self) -> String {
        match *self {
            Self::LookupHit { .. } => "lookup-hit".into(),
            Self::LookupMiss { .. } => "lookup-miss".into(),
            Self::Insert { .. } => "insert".into(),
            Self::Remove { .. } => "remove".into(),
            Self::Mix {
                lookup,
                insert,
                remove,
                hit,
                ..
            } if hit == default_hit() => format!("mix-{lookup}-{insert}-{remove}"),
            Self::Mix {
                lookup,
                insert,
                remove,
                hit,
                ..
            } => format!("mix-{lookup}-{insert}-{remove}-hit-{hit}"),
        }
    }

    /// Title for a reader, such as `Lookup, key present (load factor 0.92)`.
    pub fn describe(&self) -> String {
        match *self {
            Self::LookupHit { load } => format!("Lookup, key present (load factor {load})"),
            Self::LookupMiss { load } => format!("Lookup, key absent (load factor {load})"),
            Self::Insert { load } => format!("Insert, empty to load factor {load}"),
            Self::Remove { load } => format!("Remove, load factor {load} to empty"),
            Self::Mix {
                lookup,
                insert,
                remove,
                hit,
                load,
            } => {
                let hits = if hit == default_hit() {
                    String::new()
                } else {
                    format!(", {hit} % hits")
                };
                format!(
                    "{lookup} % lookup{hits}, {insert} % insert, {remove} % remove (load factor {load})"
                )
            }
        }
    }

    /// Whether the measurement lasts for the experiment's `seconds`, rather than until every key is
    /// done.
    pub fn is_time_bounded(&self) -> bool {
        !matches!(self, Self::Insert { .. } | Self::Remove { .. })
    }

    /// Whether keys go in or out, so that every measurement needs a table of its own.
    pub fn changes_the_table(&self) -> bool {
        !matches!(self, Self::LookupHit { .. } | Self::LookupMiss { .. })
    }

    /// What a subject must be able to do to run this workload. A subject that cannot insert may
    /// still be looked up: it is measured over whatever its table holds.
    pub fn needs(&self) -> Operations {
        match self {
            Self::LookupHit { .. } | Self::LookupMiss { .. } => Operations::LOOKUP,
            Self::Insert { .. } => Operations::INSERT,
            Self::Remove { .. } | Self::Mix { .. } => Operations::ALL,
        }
    }

    /// Checks every value, so that what runs is what the experiment states.
    ///
    /// # Errors
    ///
    /// The first field that holds an impossible value, with what is allowed.
    pub fn validate(&self) -> Result<(), InvalidWorkload> {
        let load = self.load();
        if !(load > 0.0 && load <= MAX_LOAD) {
            return Err(invalid(
                "load",
                format!(
                    "{load} is no workable load factor: it must be above 0 and at most {MAX_LOAD}"
                ),
            ));
        }
        let Self::Mix {
            lookup,
            insert,
            remove,
            hit,
            ..
        } = *self
        else {
            return Ok(());
        };
        for (field, percent) in [
            ("lookup", lookup),
            ("insert", insert),
            ("remove", remove),
            ("hit", hit),
        ] {
            if percent > 100 {
                return Err(invalid(
                    field,
                    format!("{percent} is not a percentage: it must be from 0 to 100"),
                ));
            }
        }
        if insert != remove {
            return Err(invalid(
                "insert",
                format!("{insert} must equal remove ({remove}), so that the load factor holds"),
            ));
        }
        let sum = u16::from(lookup) + u16::from(insert) + u16::from(remove);
        if sum != 100 {
            return Err(invalid(
                "lookup",
                format!("lookup, insert and remove are percentages and must sum to 100, not {sum}"),
            ));
        }
        Ok(())
    }
}

fn invalid(field: &'static str, problem: String) -> InvalidWorkload {
    InvalidWorkload { field, problem }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Workload, toml::de::Error> {
        toml::from_str(text)
    }

    fn mix(lookup: u8, insert: u8, remove: u8) -> Workload {
        Workload::Mix {
            lookup,
            insert,
            remove,
            hit: 50,
            load: 0.9,
        }
    }

    fn field_at_fault(workload: &Workload) -> Option<&'static str> {
        workload.validate().err().map(|error| error.field)
    }

    #[test]
    fn parses_each_kind_with_its_fields() {
        assert_eq!(
            parse("kind = 'lookup-hit'\nload = 0.92").unwrap(),
            Workload::LookupHit { load: 0.92 }
        );
        assert_eq!(
            parse("kind = 'remove'\nload = 0.5").unwrap(),
            Workload::Remove { load: 0.5 }
        );
        assert_eq!(
            parse("kind = 'mix'\nlookup = 90\ninsert = 5\nremove = 5\nload = 0.9").unwrap(),
            mix(90, 5, 5)
        );
    }

    #[test]
    fn an_unknown_field_or_kind_is_refused_by_name() {
        let field = parse("kind = 'insert'\nload = 0.9\nspeed = 3")
            .unwrap_err()
            .to_string();
        assert!(field.contains("speed"), "{field}");
        let kind = parse("kind = 'scan'\nload = 0.9").unwrap_err().to_string();
        assert!(
            kind.contains("scan") && kind.contains("lookup-hit"),
            "{kind}"
        );
        let missing = parse("kind = 'insert'").unwrap_err().to_string();
        assert!(missing.contains("load"), "{missing}");
    }

    #[test]
    fn only_workable_load_factors_are_valid() {
        for load in [0.0, -0.5, 0.99, 1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(
                field_at_fault(&Workload::Insert { load }),
                Some("load"),
                "{load}"
            );
        }
        for load in [0.01, 0.5, MAX_LOAD] {
            assert_eq!(field_at_fault(&Workload::Insert { load }), None, "{load}");
        }
    }

    #[test]
    fn a_mix_sums_to_a_hundred_and_holds_its_load() {
        assert_eq!(field_at_fault(&mix(90, 5, 5)), None);
        assert_eq!(field_at_fault(&mix(100, 0, 0)), None);
        assert_eq!(field_at_fault(&mix(90, 6, 4)), Some("insert"));
        assert_eq!(field_at_fault(&mix(90, 6, 6)), Some("lookup"));
        assert_eq!(field_at_fault(&mix(101, 0, 0)), Some("lookup"));
    }

    #[test]
    fn labels_tell_mixes_apart() {
        assert_eq!(Workload::LookupMiss { load: 0.92 }.label(), "lookup-miss");
        assert_eq!(mix(90, 5, 5).label(), "mix-90-5-5");
        let all_hits = Workload::Mix {
            lookup: 90,
            insert: 5,
            remove: 5,
            hit: 100,
            load: 0.9,
        };
        assert_eq!(all_hits.label(), "mix-90-5-5-hit-100");
        assert!(all_hits.describe().contains("100 % hits"));
    }
}
