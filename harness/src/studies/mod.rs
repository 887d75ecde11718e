//! What is measured, each kind with its rows, its table, its figure and what the data say.

pub mod cuckoo_hashing;
pub mod growth;
pub mod kcas;
pub mod layouts;
pub mod memory;
pub mod sweep;
pub mod theory;
