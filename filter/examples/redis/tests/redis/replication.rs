//! What is propagated gives the same filter on a replica.

use std::thread;
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use redis::{Connection, Value};

use crate::server::{Server, ask, line};

/// Commands of all kinds, whose outcome depends on what is there.
fn random_commands(c: &mut Connection, random: &mut SmallRng) {
    let mut pipe = redis::pipe();
    for _ in 0..5_000 {
        let item = random.random_range(0..30_000_u32);
        match random.random_range(0..12) {
            0..5 => pipe.cmd("CF.ADD").arg("f").arg(item),
            5 => pipe.cmd("CF.ADDNX").arg("f").arg(item),
            6 => pipe.cmd("CF.INSERT").arg("f").arg("ITEMS").arg(&[item; 5]),
            7 => (pipe.cmd("CF.INSERTNX").arg("f").arg("ITEMS")).arg(&[item, item, item + 1]),
            8..11 => pipe.cmd("CF.DEL").arg("f").arg(item),
            _ => {
                let key = format!("k{}", item % 50);
                pipe.cmd("CF.INSERT").arg(key).arg("ITEMS").arg(&[item; 4])
            }
        };
    }
    // CF.DEL of a filter that is not there is an error.
    let _: Value = pipe.query(c).expect("no error");
}

/// Synchronizations find the filter at several stages of its growth; what comes next goes to the same
/// places on both.
#[test]
fn a_replica_has_the_same_filter() {
    let master = Server::start(&["--repl-diskless-sync-delay", "0"]);
    let replica = Server::start(&[]);
    let (c, of) = (&mut master.connect(), &mut replica.connect());
    let random = &mut SmallRng::seed_from_u64(11);
    line(c, "CF.RESERVE f 1000");
    for round in 0..8 {
        random_commands(c, random);
        if round % 2 == 0 {
            line(of, "REPLICAOF NO ONE");
            line(of, &format!("REPLICAOF 127.0.0.1 {}", master.port));
        }
        random_commands(c, random);
        if round == 5 {
            line(c, "CF.COMPACT f");
        }
        // Until the replica has everything.
        while ask::<i64>(c, "WAIT", &["1", "1000"]) < 1 {
            thread::sleep(Duration::from_millis(10));
        }
        let whole = |c: &mut Connection| ask::<Value>(c, "DEBUG", &["DIGEST"]);
        assert_eq!(whole(c), whole(of), "round {round}");
    }
}
