//! What filters do, with one thread and several.
#![cfg(not(kcas_loom))]

mod batches;
mod capacity;
mod docs;
mod dyn_filter;
mod errors;
mod evenness;
mod growing;
mod growing_saved;
mod hash_filter;
#[path = "../common/identity.rs"]
mod identity;
mod mixed;
mod saved;
mod sequential;
#[cfg(feature = "serde")]
mod serialized;
mod snapshot;
mod stress;
mod whole;
