//! The command line, run as a program, on good and bad input: one file a command.

mod check;
mod cuckoo_hashing;
mod experiments;
mod growth;
mod kcas;
mod keys;
mod layouts;
mod list;
mod numbers;
mod place;
mod plot;
mod reproduce;
mod sweep;
mod theory;
