//! What is propagated gives the same filter on a replica.

use std::thread;
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use redis::{Connection, Value};

use crate::server::{Server, add_numbers, ask, digest, line};

/// Waits until the replica has everything.
fn synchronize(c: &mut Connection) {
    loop {
        let replicas: i64 = ask(c, "WAIT", &["1", "1000"]);
        if replicas == 1 {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// Commands of all kinds, whose outcome depends on what is there.
fn random_commands(c: &mut Connection, random: &mut SmallRng, number: usize) {
    let mut pipe = redis::pipe();
    for _ in 0..number {
        let item = random.random_range(0..30_000_u32);
        match random.random_range(0..12) {
            0..5 => pipe.cmd("CF.ADD").arg("f").arg(item),
            5 => pipe.cmd("CF.ADDNX").arg("f").arg(item),
            6 => pipe.cmd("CF.INSERT").arg("f").arg("ITEMS").arg(&[item; 5]),
            7 => pipe
                .cmd("CF.INSERTNX")
                .arg("f")
                .arg("ITEMS")
                .arg(&[item, item, item + 1]),
            8..11 => pipe.cmd("CF.DEL").arg("f").arg(item),
            _ => pipe
                .cmd("CF.INSERT")
                .arg(format!("k{}", item % 50))
                .arg("ITEMS")
                .arg(&[item; 4]),
        };
    }
    // CF.DEL of a filter that is not there is an error.
    let _: Value = pipe.query(c).expect("no error");
}

#[test]
fn a_replica_has_the_same_filter() {
    let master = Server::start(&["--repl-diskless-sync-delay", "0"]);
    let replica = Server::start(&[]);
    let c = &mut master.connect();
    let random = &mut SmallRng::seed_from_u64(11);
    line(c, "CF.RESERVE f 1000");
    for round in 0..8 {
        random_commands(c, random, 5_000);
        if round % 2 == 0 {
            // A new synchronization, while the filter is growing or soon after.
            line(&mut replica.connect(), "REPLICAOF NO ONE");
            line(
                &mut replica.connect(),
                &format!("REPLICAOF 127.0.0.1 {}", master.port),
            );
            if round % 4 == 0 {
                line(&mut replica.connect(), "DEBUG SLEEP 0");
            }
        }
        random_commands(c, random, 5_000);
        if round == 5 {
            line(c, "CF.COMPACT f");
        }
        synchronize(c);
        let of = &mut replica.connect();
        assert_eq!(digest(c, "f"), digest(of, "f"), "round {round}");
        let whole = |c: &mut Connection| ask::<Value>(c, "DEBUG", &["DIGEST"]);
        assert_eq!(whole(c), whole(of), "round {round}");
    }
}

/// A synchronization finds filters at each stage of their growth; what comes next goes to the same
/// places on both.
#[test]
fn replicas_of_growing_filters() {
    let master = Server::start(&["--repl-diskless-sync-delay", "0"]);
    let c = &mut master.connect();
    let sizes: Vec<u64> = (0..40).map(|step| 1_500 + 517 * step).collect();
    for size in &sizes {
        add_numbers(c, &format!("f{size}"), 0..*size);
    }
    let replica = Server::start(&["--replicaof", "127.0.0.1", &master.port.to_string()]);
    synchronize(c);
    for size in &sizes {
        let key = format!("f{size}");
        for _ in 0..3 {
            add_numbers(c, &key, size / 2..2 * size);
        }
        synchronize(c);
        assert_eq!(
            digest(c, &key),
            digest(&mut replica.connect(), &key),
            "{key}"
        );
    }
}
