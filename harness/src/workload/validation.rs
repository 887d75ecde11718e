//! Which values a workload can have.

use thiserror::Error;

use super::{MAX_LOAD, MAX_SKEW, Workload, Ycsb};

/// A value that a workload cannot have, with the field that holds it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("field `{field}`: {problem}")]
pub struct InvalidWorkload {
    /// The field's name, as written in the experiment.
    pub field: &'static str,
    /// What is wrong and what is allowed.
    pub problem: String,
}

impl Workload {
    /// Checks every value, so that what runs is what the experiment states.
    ///
    /// # Errors
    ///
    /// The first field with an impossible value, with what is allowed.
    pub fn validate(&self) -> Result<(), InvalidWorkload> {
        let load = self.load();
        if !(load > 0.0 && load <= MAX_LOAD) {
            return Err(invalid(
                "load",
                format!(
                    "{load} is not a usable load factor: it must be above 0 and at most {MAX_LOAD}"
                ),
            ));
        }
        let skew = self.skew();
        if !(0.0..=MAX_SKEW).contains(&skew) {
            return Err(invalid(
                "skew",
                format!(
                    "{skew} is not a usable Zipf exponent: it must be from 0, for no skew, to {MAX_SKEW}"
                ),
            ));
        }
        match *self {
            Self::Mix {
                lookup,
                insert,
                remove,
                hit,
                ..
            } => {
                percentages(&[
                    ("lookup", lookup),
                    ("insert", insert),
                    ("remove", remove),
                    ("hit", hit),
                ])?;
                as_many_inserts_as_removes(insert, remove)?;
                all_of_them("lookup, insert and remove", &[lookup, insert, remove])
            }
            Self::Lookup { hit, .. } => percentages(&[("hit", hit)]),
            Self::Window { lookup, .. } => percentages(&[("lookup", lookup)]),
            Self::Grow {
                insert,
                lookup,
                hit,
                from,
                load,
            } => {
                percentages(&[("insert", insert), ("lookup", lookup), ("hit", hit)])?;
                fills((insert, from), load)?;
                all_of_them("lookup and insert", &[lookup, insert])
            }
            _ => Ok(()),
        }
    }

    /// Checks that each thread has a key of its own to insert and remove, where threads do. One that
    /// had none would count as a thread and do nothing, and a simulation would never end.
    ///
    /// # Errors
    ///
    /// If there are fewer keys than that, with what is enough.
    pub fn check_keys(&self, keys: usize, threads: usize) -> Result<(), InvalidWorkload> {
        // Half of the keys of a mix stay in the table.
        let each = match self {
            Self::Mix { insert: 1.., .. } => 2,
            Self::Ycsb { mix: Ycsb::D, .. } | Self::Window { .. } => 1,
            _ => return Ok(()),
        };
        let enough = threads * each;
        if keys < enough {
            return Err(invalid(
                "keys",
                format!(
                    "{keys} are too few for {threads} threads, each of which inserts and removes keys \
                     of its own under {}: take {enough} keys or more, or at most {} threads",
                    self.label(),
                    keys / each
                ),
            ));
        }
        Ok(())
    }
}

/// Checks that a mix holds its load factor.
fn as_many_inserts_as_removes(insert: u8, remove: u8) -> Result<(), InvalidWorkload> {
    if insert != remove {
        return Err(invalid(
            "insert",
            format!("{insert} must equal remove ({remove}), so that the load factor holds"),
        ));
    }
    Ok(())
}

/// Checks that growth comes from below its load factor and reaches it.
fn fills((insert, from): (u8, f64), load: f64) -> Result<(), InvalidWorkload> {
    if insert == 0 {
        let problem = "0 never fills the filter; it must be from 1 to 100";
        return Err(invalid("insert", problem.into()));
    }
    if !(0.0..load).contains(&from) {
        return Err(invalid(
            "from",
            format!("{from} must be from 0 to below load, which is {load}"),
        ));
    }
    Ok(())
}

/// Checks that these are percentages.
fn percentages(fields: &[(&'static str, u8)]) -> Result<(), InvalidWorkload> {
    for &(field, percent) in fields {
        if percent > 100 {
            return Err(invalid(
                field,
                format!("{percent} is not a percentage: it must be from 0 to 100"),
            ));
        }
    }
    Ok(())
}

/// Checks that these percentages, one of which is `lookup`, sum to 100.
fn all_of_them(names: &str, percentages: &[u8]) -> Result<(), InvalidWorkload> {
    let sum: u16 = percentages.iter().copied().map(u16::from).sum();
    if sum != 100 {
        return Err(invalid(
            "lookup",
            format!("{names} are percentages and must sum to 100, not {sum}"),
        ));
    }
    Ok(())
}

fn invalid(field: &'static str, problem: String) -> InvalidWorkload {
    InvalidWorkload { field, problem }
}
