//! Tests of the module in a server, through a client library.

mod bulk;
mod chunks;
mod cluster;
mod commands;
mod damage;
mod persistence;
mod replication;
mod server;
