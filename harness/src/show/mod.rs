//! Results, as a reader sees them: files, tables, charts and the page.

pub mod any_rows;
pub mod chart;
mod findings;
pub mod outputs;
mod page;
pub(crate) mod print;
pub mod report;
pub mod sheet;
pub mod targets;
