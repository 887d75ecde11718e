//! Pinned-thread throughput sweeps of shared filters: every structure behind one trait, every
//! experiment one TOML file, every result one CSV file, one figure and a description of the machine.
//!
//! The way of a [`sweep`] through the modules: an experiment names [`subjects`], each a [`subject`], and
//! [`workload`]s; threads are bound as the [`machine`] allows; each works on a phase of the workload, and what it did
//! becomes one of the [`results`]; [`plot`], [`table`] and [`report`] show them. [`check`] looks for wrong answers,
//! [`cuckoo_hashing`], [`growth`], [`kcas_cost`], [`layouts`] and [`memory`] measure what no sweep does, and [`theory`] holds
//! structures against what the literature says of them; [`describe`] tells of a file of keys what
//! [`sketches`] see in it. [`cli`] is the command line over all of it, and
//! takes a [`Registry`](registry::Registry), so that a program of ten lines sweeps a structure of yours beside those
//! that are here.

// All printing goes through `cli::print`, which knows what to do when nobody reads.
#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod any_rows;
pub mod check;
pub mod cli;
pub mod cuckoo_hashing;
pub mod describe;
pub mod growth;
pub mod kcas_cost;
pub mod layouts;
pub mod machine;
pub mod memory;
pub mod plot;
pub mod registry;
pub mod report;
pub mod results;
pub mod sketches;
pub mod subject;
pub mod subjects;
pub mod sweep;
pub mod table;
pub mod theory;
pub mod wording;
pub mod workload;
