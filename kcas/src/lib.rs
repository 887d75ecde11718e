//! K-CAS.
#![forbid(unsafe_code)]
mod commit;
mod descriptor;
pub mod sync;
mod tagged;
pub mod thread_id;
mod words;

pub use words::{Error, Op, WordArray};
#[cfg(kcas_loom)]
pub mod model;
