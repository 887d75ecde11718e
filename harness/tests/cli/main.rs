//! Tests of the command line, run as a program, on valid and invalid input: one file per command.

mod check;
mod cuckoo_hashing;
mod experiments;
mod growth;
mod kcas;
mod keys;
mod list;
mod messages;
mod numbers;
mod outputs;
mod place;
mod plot;
mod reproduce;
mod resume;
mod simulate;
mod space;
mod sweep;
