//! Tests of the module in a server, through a client library.

mod chunks;
mod commands;
mod damage;
#[path = "../../../../tests/common/forged.rs"]
mod forged;
mod memory;
mod persistence;
mod recipe;
mod replication;
mod server;
