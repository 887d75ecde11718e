//! Turns measurements into [statistics](stats), [tables](table) and [figures](plot).
pub mod plot;
pub mod stats;
pub mod table;
