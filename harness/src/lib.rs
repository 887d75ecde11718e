//! Pinned-thread throughput sweeps of shared filters: every structure behind one trait, every
//! experiment one TOML file, every result one CSV file, one figure and a description of the
//! machine.
//!
//! A measurement passes through the modules in this order. An [`experiment`] names [`subjects`] and [`workload`]s.
//! [`sweep`] makes a [`plan`] of it and starts a process for each [`round`] ([`worker`]). There, threads that are bound
//! to the cores of the [`machine`] perform [`operations`] on the tables of a [`mod@bench`], in turns or until a
//! deadline, possibly while others are frozen (`stall`). `answers` checks what they return. Each result is a [`row`],
//! and [`sweep_sheet`] makes a table and a figure of the rows. [`studies`] has the measurements that no experiment can
//! make, each a [`study`]. [`cli`] is the command line. It takes a [`Registry`](registry::Registry), so that a program
//! of ten lines can add a structure of its own.
//!
//! This crate uses others: [`subject`] has the trait of measured structures, [`relatives`] the rivals from the
//! literature. [`check`] looks for wrong answers, [`figures`] has intervals, verdicts, tables and SVG, `simulator`
//! machines that run the real code, and `kcas-epoch` K-CAS with descriptors on the heap.

#![allow(
    missing_docs,
    reason = "it is not published: where a name says it all, nothing is added"
)]
// All printing goes through `show::print`, which knows what to do when nobody reads.
#![warn(clippy::print_stdout, clippy::print_stderr)]

pub use {check, relatives, subject};

pub(crate) mod answers;
pub mod bench;
pub mod cli;
pub(crate) mod contest;
pub(crate) mod crew;
pub(crate) mod deadline;
pub mod ending;
pub mod experiment;
pub mod keys;
pub mod latency;
pub mod machine;
pub mod operations;
pub mod page;
pub(crate) mod parsers;
pub(crate) mod phases;
pub mod plan;
pub(crate) mod recording;
pub mod round;
pub mod row;
pub mod sheet;
pub mod show;
pub mod simulate;
#[cfg(feature = "simulation")]
pub mod simulated;
pub(crate) mod stall;
pub mod studies;
pub mod study;
pub mod subjects;
pub mod sweep;
pub mod sweep_sheet;
pub(crate) mod turns;
pub mod worker;
pub mod workload;

pub use subject::wording;
pub use subjects::registry;

/// The example in the README of the whole is a test.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
