//! The mixes of SmartCuckoo's evaluation, as `experiments/mixes.toml` has them for the filters.

use std::fmt;

/// Percentages of operations; together 100.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mix {
    name: &'static str,
    /// Of inserts of new keys.
    pub insert: u8,
    /// Of lookups, half of them of keys that were inserted, half of absent ones.
    pub lookup: u8,
    /// Of updates. As in the other workloads here, one takes a key out and puts it in again: a set has no value that
    /// could be changed where it is.
    pub update: u8,
}

impl Mix {
    /// All of them, in the order of the paper.
    pub const ALL: [Self; 5] = [
        Self::of("100/0/0", [100, 0, 0]),
        Self::of("75/25/0", [75, 25, 0]),
        Self::of("50/50/0", [50, 50, 0]),
        Self::of("25/75/0", [25, 75, 0]),
        Self::of("0/95/5", [0, 95, 5]),
    ];

    const fn of(name: &'static str, [insert, lookup, update]: [u8; 3]) -> Self {
        Self {
            name,
            insert,
            lookup,
            update,
        }
    }

    /// Its percentages of inserts, lookups and updates: `75/25/0`.
    pub fn name(self) -> &'static str {
        self.name
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str(self.name)
    }
}
