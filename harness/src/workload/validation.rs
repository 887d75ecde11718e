//! Which values a workload can have.

use thiserror::Error;

use super::{MAX_LOAD, MAX_SKEW, Workload, Ycsb};

/// A value that a workload cannot have, with the field that holds it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("field `{field}`: {problem}")]
pub struct InvalidWorkload {
    /// The field's name, as written in the experiment.
    pub field: &'static str,
    pub problem: String,
}

impl Workload {
    /// Checks every value, so that what runs is what the experiment states.
    pub fn validate(&self) -> Result<(), InvalidWorkload> {
        let load = self.load();
        check(load > 0.0 && load <= MAX_LOAD, "load", || {
            format!("{load} is not a usable load factor: it must be above 0 and at most {MAX_LOAD}")
        })?;
        let skew = self.skew();
        check((0.0..=MAX_SKEW).contains(&skew), "skew", || {
            format!(
                "{skew} is not a usable Zipf exponent: it must be from 0, for no skew, to {MAX_SKEW}"
            )
        })?;
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
                check(insert == remove, "insert", || {
                    format!("{insert} must equal remove ({remove}), so that the load factor holds")
                })?;
                sum_to_100("lookup, insert and remove", &[lookup, insert, remove])
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
                check(insert > 0, "insert", || {
                    "0 never fills the filter; it must be from 1 to 100".into()
                })?;
                check((0.0..load).contains(&from), "from", || {
                    format!("{from} must be from 0 to below load, which is {load}")
                })?;
                sum_to_100("lookup and insert", &[lookup, insert])
            }
            _ => Ok(()),
        }
    }

    /// Checks that each thread has a key of its own to insert and remove, where threads do. One that
    /// had none would count as a thread and do nothing, and a simulation would never end.
    pub fn check_keys(&self, keys: usize, threads: usize) -> Result<(), InvalidWorkload> {
        // Half of the keys of a mix stay in the table.
        let each = match self {
            Self::Mix { insert: 1.., .. } => 2,
            Self::Ycsb { mix: Ycsb::D, .. } | Self::Window { .. } => 1,
            _ => return Ok(()),
        };
        let enough = threads * each;
        check(keys >= enough, "keys", || {
            format!(
                "{keys} are too few for {threads} threads, each of which inserts and removes keys \
                 of its own under {}: take {enough} keys or more, or at most {} threads",
                self.label(),
                keys / each
            )
        })
    }
}

/// Checks that these are percentages.
fn percentages(fields: &[(&'static str, u8)]) -> Result<(), InvalidWorkload> {
    fields.iter().try_for_each(|&(field, percent)| {
        check(percent <= 100, field, || {
            format!("{percent} is not a percentage: it must be from 0 to 100")
        })
    })
}

/// Checks that these percentages, one of which is `lookup`, sum to 100.
fn sum_to_100(names: &str, percentages: &[u8]) -> Result<(), InvalidWorkload> {
    let sum: u16 = percentages.iter().copied().map(u16::from).sum();
    check(sum == 100, "lookup", || {
        format!("{names} are percentages and must sum to 100, not {sum}")
    })
}

fn check(
    holds: bool,
    field: &'static str,
    problem: impl FnOnce() -> String,
) -> Result<(), InvalidWorkload> {
    if holds {
        return Ok(());
    }
    let problem = problem();
    Err(InvalidWorkload { field, problem })
}
