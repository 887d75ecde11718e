//! Pinned-thread throughput sweeps of shared filters: every structure behind one trait, every
//! experiment one TOML file, every result one CSV file, one figure and a description of the machine.
//!
//! The way of a measurement through the modules: an [`experiment`] names [`subjects`] and [`workload`]s; [`run`] plans it, and
//! lets threads, bound as the [`machine`] allows, work on it; what they did becomes [`results`], which are numbers; [`show`]
//! has files, tables, figures and the page; [`studies`] says what each kind of measurement is and shows of them, that of an
//! experiment among others. [`cli`] is the command line over all of it, and takes a
//! [`Registry`](registry::Registry), so that a program of ten lines sweeps a structure of yours beside those
//! that are here.
//!
//! Crates of their own, below this one: [`subject`], the trait of what is measured; [`relatives`], which are rivals from the
//! literature; [`check`], which looks for wrong answers; and [`profile`], which tells what a file of keys is like.

// All printing goes through `show::print`, which knows what to do when nobody reads.
#![warn(clippy::print_stdout, clippy::print_stderr)]

pub use {check, profile, relatives, subject};

pub mod cli;
pub mod experiment;
pub mod machine;
pub mod results;
pub mod run;
pub mod show;
pub mod studies;
pub mod subjects;
pub mod workload;

pub use subject::wording;
pub use subjects::registry;
