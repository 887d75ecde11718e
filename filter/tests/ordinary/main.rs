//! What filters do, with one thread and several.
#![cfg(not(kcas_loom))]

#[path = "../common/at_once.rs"]
mod at_once;
mod calls;
mod capacity;
mod dyn_filter;
mod expiring;
#[path = "../common/forged.rs"]
mod forged;
mod formats;
mod growing;
mod growing_saved;
mod hashers;
#[path = "../common/identity.rs"]
mod identity;
mod model;
mod saved;
#[cfg(feature = "serde")]
mod serialized;
mod snapshot;
mod stress;
