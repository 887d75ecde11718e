//! Which values a workload can have.

use anyhow::{Result, ensure};

use super::{MAX_LOAD, MAX_SKEW, MIN_LOAD, Workload, Ycsb};

impl Workload {
    /// Checks every value: what runs is what is stated. An error begins with the field at fault.
    pub fn validate(&self) -> Result<()> {
        let (load, skew) = (self.load(), self.skew());
        ensure!(
            (MIN_LOAD..=MAX_LOAD).contains(&load),
            "field `load`: {load:?} is not a usable load factor: it must be from {MIN_LOAD:?} to {MAX_LOAD}"
        );
        ensure!(
            (0.0..=MAX_SKEW).contains(&skew),
            "field `skew`: {skew} is not a usable Zipf exponent: it must be from 0, for no skew, to {MAX_SKEW}"
        );
        match *self {
            Self::Mix {
                lookup,
                insert,
                remove,
                hit,
                ..
            } => {
                percentages(&[("lookup", lookup), ("insert", insert), ("hit", hit)])?;
                ensure!(
                    insert == remove,
                    "field `insert`: {insert} must equal remove ({remove}), so that the load factor holds"
                );
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
                ensure!(
                    insert > 0,
                    "field `insert`: 0 never fills the filter; it must be from 1 to 100"
                );
                ensure!(
                    (0.0..load).contains(&from),
                    "field `from`: {from} must be from 0 to below load, which is {load}"
                );
                sum_to_100("lookup and insert", &[lookup, insert])
            }
            _ => Ok(()),
        }
    }

    /// Checks that each thread has a key of its own, where threads insert and remove keys. A thread without
    /// one would do nothing, yet count as a thread, and a simulation would never end.
    pub fn check_keys(&self, keys: usize, threads: usize) -> Result<()> {
        // Half of the keys of a mix stay in the table.
        let each = match self {
            Self::Mix { insert: 1.., .. } => 2,
            Self::Ycsb { mix: Ycsb::D, .. } | Self::Window { .. } => 1,
            _ => return Ok(()),
        };
        let (enough, most, label) = (threads * each, keys / each, self.label());
        ensure!(
            keys >= enough,
            "field `keys`: {keys} are too few for {threads} threads, each of which inserts and removes keys of its \
             own under {label}: take {enough} keys or more, or at most {most} threads"
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

/// Checks that these percentages, one of which is `lookup`, sum to 100.
fn sum_to_100(names: &str, percentages: &[u8]) -> Result<()> {
    let sum: u16 = percentages.iter().copied().map(u16::from).sum();
    ensure!(
        sum == 100,
        "field `lookup`: {names} are percentages and must sum to 100, not {sum}"
    );
    Ok(())
}
