//! Pinned-thread throughput sweeps of shared filters: every structure behind one trait, every
//! experiment one TOML file, every result one CSV file, one figure and a description of the machine.
//!
//! The way of a sweep through the modules: an [`experiment`] names [`subjects`] and [`workload`]s; a [`plan`] says
//! what is measured, and [`estimate`] how long that takes; the [`runner`] measures, [`pinning`] its threads as
//! the [`topology`] of the machine and a policy say, until the [`stopping`] rule is content, and hands out [`record`]
//! rows. Each thread works on a [`phase`], with [`keys`] and [`arrivals`] [drawn](draw) beforehand; [`latency`] is
//! that of single operations. [`machine`] describes what they were measured with, and [`resume`] goes on after an
//! interruption; [`statistics`] pairs rows within rounds, with intervals by [`bootstrap`]; [`plot`] and [`table`] show
//! them with a [`verdict`] and a [`headline`], and [`targets`] holds them against what they are to be. [`cli`] is the
//! command line over all of it, and takes a [`Registry`](registry::Registry), so that a program of ten lines sweeps a
//! structure of yours beside those that are here.

pub mod arrivals;
pub mod bootstrap;
pub mod check;
pub mod cli;
pub mod contest;
pub mod draw;
pub mod engines;
pub mod estimate;
pub mod experiment;
pub mod headline;
pub mod judge;
pub mod kcas_cost;
pub mod keys;
pub mod latency;
pub mod layouts;
pub mod machine;
pub mod memory;
pub mod outputs;
pub mod perturbation;
pub mod phase;
pub mod pinning;
pub mod plan;
pub mod plot;
pub mod record;
pub mod recorder;
pub mod registry;
pub mod report;
pub mod resume;
pub mod rows;
pub mod runner;
pub mod scenario;
mod stall;
pub mod statistics;
pub mod stopping;
pub mod subject;
pub mod subjects;
pub mod table;
pub mod targets;
pub mod topology;
pub mod verdict;
pub mod workload;
