//! `CF.MEXISTS` of many items, which the worker thread answers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use redis::Value;

use crate::server::{Server, add_numbers, ask, in_batches, line, until};

/// The arguments of a lookup of these numbers.
fn items(key: &str, numbers: std::ops::Range<u64>) -> Vec<String> {
    let numbers = numbers.map(|number| number.to_string());
    [key.to_string()].into_iter().chain(numbers).collect()
}

#[test]
fn long_lookups_answer_as_short_ones() {
    let server = Server::start(&[]);
    let c = &mut server.connect();
    add_numbers(c, "f", 0..5_000);
    let long: Vec<bool> = ask(c, "CF.MEXISTS", &items("f", 0..10_000));
    assert_eq!(long, in_batches(c, "CF.EXISTS", "f", 0..10_000));
    assert!(long[..5_000].iter().all(|&here| here));
    let resp3 = &mut server.connect_resp3();
    let reply: Value = ask(resp3, "CF.MEXISTS", &items("f", 0..1_000));
    assert_eq!(reply, Value::Array(vec![Value::Boolean(true); 1_000]));
    // A transaction and a script do not wait.
    let mut pipe = redis::pipe();
    pipe.atomic().cmd("CF.MEXISTS").arg(items("f", 0..10_000));
    let (within,): (Vec<bool>,) = pipe.query(c).expect("a transaction");
    assert_eq!(within, long);
    let script = "return redis.call('CF.MEXISTS', KEYS[1], unpack(ARGV))";
    let mut command = redis::cmd("EVAL");
    let command = command.arg(script).arg(1).arg(items("f", 0..5_000));
    assert_eq!(
        command.query::<Vec<bool>>(c).expect("a script"),
        long[..5_000]
    );
}

/// The key is deleted and made again, compacted and saved, while the worker looks up in it.
#[test]
fn the_key_may_go_meanwhile() {
    let server = Server::start(&[]);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let looking = scope.spawn(|| {
            let c = &mut server.connect();
            let wanted = items("f", 0..100_000);
            let mut lookups = 0;
            while !done.load(Ordering::Relaxed) {
                let found: Vec<bool> = ask(c, "CF.MEXISTS", &wanted);
                assert_eq!(found.len(), 100_000);
                lookups += 1;
            }
            lookups
        });
        let c = &mut server.connect();
        for round in 0..30 {
            add_numbers(c, "f", 0..30_000);
            line(c, "CF.SCANDUMP f 0");
            line(c, "CF.COMPACT f");
            line(c, if round % 2 == 0 { "UNLINK f" } else { "DEL f" });
        }
        done.store(true, Ordering::Relaxed);
        assert!(looking.join().expect("the lookups answer") > 0);
    });
    line(&mut server.connect(), "PING");
}

/// A child that is forked while the worker looks up saves the filter: the worker, which holds it, does
/// not exist there.
#[test]
fn a_save_beside_lookups() {
    let server = Server::start(&[]);
    let c = &mut server.connect();
    add_numbers(c, "f", 0..30_000);
    let mut lookup = redis::cmd("CF.MEXISTS");
    let lookup = lookup.arg(items("f", 0..500_000)).get_packed_command();
    let looking = &mut server.connect();
    let mut beside = 0;
    for _ in 0..20 {
        looking.send_packed_command(&lookup).expect("it is sent");
        let blocked = (0..1_000).any(|_| server.info("blocked_clients") == 1);
        assert!(blocked, "the lookups are over too soon");
        line(c, "BGSAVE");
        beside += server.info("blocked_clients");
        until("the child has ended", || {
            server.info("rdb_bgsave_in_progress") == 0
        });
        let info: String = ask(c, "INFO", &["persistence"]);
        assert!(info.contains("rdb_last_bgsave_status:ok"));
        let reply = looking.recv_response().expect("the server answers");
        assert!(matches!(reply, Value::Array(found) if found.len() == 500_000));
    }
    assert!(beside > 0, "no child was forked beside lookups");
}
