//! The quantities that `growth` measures.

use super::Row;

/// A quantity that a table, a figure or a sentence shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Lookups and inserts, in million per second.
    Throughput,
    /// Inserts, in million per second, while threads insert.
    InsertThroughput,
    /// Latency in ns that half of the lookups stayed within.
    LookupMedian,
    /// Latency in ns that 99 of 100 lookups stayed within.
    LookupP99,
    /// Latency in ns that 99 of 100 inserts stayed within.
    InsertP99,
    /// Longest latency of an insert in ns.
    LongestInsert,
    /// Bits of memory for each key in the set.
    BitsAKey,
    /// Seconds from the start to this size.
    Elapsed,
}

impl Quantity {
    /// Returns the name used in titles and sentences.
    pub fn name(self) -> &'static str {
        match self {
            Self::Throughput => "lookups and inserts",
            Self::InsertThroughput => "inserts alone",
            Self::LookupMedian => "lookup, median",
            Self::LookupP99 => "lookup, 99th percentile",
            Self::InsertP99 => "insert, 99th percentile",
            Self::LongestInsert => "insert, longest",
            Self::BitsAKey => "memory",
            Self::Elapsed => "the whole way",
        }
    }

    /// Returns the quantity of a row; `None` if nothing was timed.
    pub fn of(self, row: &Row) -> Option<f64> {
        let latency = |ns: Option<u64>| ns.map(|ns| ns as f64);
        match self {
            Self::Throughput => Some(row.mops),
            Self::InsertThroughput => Some(row.insert_mops),
            Self::LookupMedian => latency(row.lookup_p50_ns),
            Self::LookupP99 => latency(row.lookup_p99_ns),
            Self::InsertP99 => latency(row.insert_p99_ns),
            Self::LongestInsert => latency(row.insert_max_ns),
            Self::BitsAKey => Some(8.0 * row.memory_bytes as f64 / row.keys as f64),
            Self::Elapsed => Some(row.elapsed),
        }
    }

    /// Returns whether it is a latency of single operations.
    pub fn is_latency(self) -> bool {
        matches!(
            self,
            Self::LookupMedian | Self::LookupP99 | Self::InsertP99 | Self::LongestInsert
        )
    }

    /// Returns whether higher is better.
    pub fn is_good(self) -> bool {
        matches!(self, Self::Throughput | Self::InsertThroughput)
    }
}
