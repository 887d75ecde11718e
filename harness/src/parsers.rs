//! Parsers for options of the command line.

use std::ops::RangeBounds;

use clap::builder::RangedU64ValueParser;

/// Returns a parser for an option that is a number within these bounds.
pub(crate) fn within(bounds: impl RangeBounds<u64>) -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(bounds)
}

/// Returns a parser for a seed, which TOML must be able to hold.
pub(crate) fn seeds() -> RangedU64ValueParser {
    RangedU64ValueParser::new().range(..=i64::MAX as u64)
}
