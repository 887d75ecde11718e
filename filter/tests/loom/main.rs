//! The filters under the model checker: run with `scripts/loom.sh`.
#![cfg(kcas_loom)]

#[path = "../common/identity.rs"]
mod identity;
#[path = "../common/small.rs"]
mod small;
#[path = "../common/small_growing.rs"]
mod small_growing;

mod fixed;
mod growing;
