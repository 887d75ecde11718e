//! Tests of the module in a server, through a client library.

mod chunks;
mod commands;
mod damage;
mod persistence;
mod recipe;
mod replication;
mod server;
