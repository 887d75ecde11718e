//! What an experiment measures: its table and its figure.

pub mod figure;
pub mod table;
