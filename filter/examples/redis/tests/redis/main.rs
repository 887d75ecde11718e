//! Tests of the module in a server, through a client library.

mod bulk;
#[path = "../../src/caught.rs"]
mod caught;
mod chunks;
mod cluster;
mod commands;
mod damage;
mod duplicates;
mod persistence;
mod replication;
mod server;

/// The server calls the module through this.
#[test]
fn a_panic_is_caught() {
    assert_eq!(caught::caught(|| panic!("on purpose"), || 7), 7);
    assert_eq!(caught::caught(|| 1, || 7), 1);
}
