//! What a word array does, with one thread and several.
#![cfg(not(kcas_loom))]

mod misuse;
mod no_allocation;
mod pieces;
mod sequential;
mod stress;
