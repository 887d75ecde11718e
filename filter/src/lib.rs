//! Filter.
//!
//! # How often it is wrong
#![forbid(unsafe_code)]

mod buckets;
mod cuckoo;
pub mod hashing;
pub mod layout;
mod length;
mod lookup;
pub mod path;
mod update;

pub use cuckoo::{BuildError, Builder, Class, CuckooFilter, Full};
pub use hashing::FixedState;
