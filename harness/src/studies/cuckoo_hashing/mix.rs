//! The mixes of SmartCuckoo's evaluation, the same as in `experiments/mixes.toml` for the filters.

use std::fmt;

/// Percentages of operations; they add up to 100.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mix {
    name: &'static str,
    /// Inserts of new keys.
    pub insert: u8,
    /// Lookups, half of them of inserted keys, half of absent ones.
    pub lookup: u8,
    /// Updates. As in the other workloads here, an update removes a key and inserts it again: a set
    /// has no value that could be changed in place.
    pub update: u8,
}

impl Mix {
    /// All mixes, in the order of the paper.
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

    /// Returns the percentages of inserts, lookups and updates as text: `75/25/0`.
    pub fn name(self) -> &'static str {
        self.name
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str(self.name)
    }
}
