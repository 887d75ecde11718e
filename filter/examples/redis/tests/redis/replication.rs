//! What is propagated gives the same filter on a replica.

use std::collections::HashMap;
use std::thread;
use std::time::Duration;

use filter::{Filter, GrowingCuckooFilter};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use redis::{Connection, Value};

use crate::chunks::{dump, load};
use crate::server::{Server, ask, digest, error, in_batches, line};

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

/// Waits until the replica has everything, which must be what the master has.
pub(crate) fn replicated(c: &mut Connection, of: &mut Connection, when: &str) {
    while ask::<i64>(c, "WAIT", &["1", "1000"]) < 1 {
        thread::sleep(Duration::from_millis(10));
    }
    let whole = |c: &mut Connection| ask::<Value>(c, "DEBUG", &["DIGEST"]);
    assert_eq!(whole(c), whole(of), "{when}");
}

/// Synchronizations find the filter at several stages of its growth; what comes next goes to the same
/// places on both.
#[test]
fn replica_has_same_filter() {
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
        replicated(c, of, &format!("round {round}"));
    }
}

/// Copies of an item fill both of its buckets, which are also those of another one: the hashes agree in the 23 bits
/// that choose both in 2^17 buckets. The replica replies no error, which it would report.
#[test]
fn refused_item_is_error_only_at_sender() {
    let (filter, mut seen) = (GrowingCuckooFilter::new(), HashMap::new());
    let pair = (0..).find_map(|new: u64| {
        let hash = filter.hash_one(new.to_string().as_bytes());
        Some((seen.insert(hash % (1 << 23), new)?, new))
    });
    let (item, new) = pair.expect("some agree");

    let master = Server::start(&["--repl-diskless-sync-delay", "0"]);
    let replica = Server::start(&[]);
    let (c, of) = (&mut master.connect(), &mut replica.connect());
    line(of, &format!("REPLICAOF 127.0.0.1 {}", master.port));
    replicated(c, of, "at first");
    line(c, "CF.RESERVE f 393216");
    assert!(!in_batches(c, "CF.ADD", "f", [item; 6]).contains(&false));
    assert_eq!(in_batches(c, "CF.ADD", "f", [item, new]), [false; 2]);
    error(c, &format!("CF.ADDNX f {new}"), "delete copies");
    let both = line(c, &format!("CF.INSERTNX f ITEMS {item} {new}"));
    assert_eq!(both, Value::Array(vec![Value::Int(0), Value::Int(-1)]));
    assert_eq!(line(c, &format!("CF.EXISTS f {new}")), Value::Int(0));
    replicated(c, of, "at the end");
    assert_eq!(replica.info("unexpected_error_replies"), 0);
}

/// Each command that changes a filter is an event on the master and on its replica, in the order of the commands.
#[test]
fn each_change_is_keyspace_event() {
    let servers = [(); 2].map(|()| {
        let settings = [
            "max-filter-bytes",
            "65536",
            "--notify-keyspace-events",
            "Kd",
            "--repl-diskless-sync-delay",
            "0",
        ];
        Server::start(&settings)
    });
    let [c, of] = &mut servers.each_ref().map(Server::connect);
    line(of, &format!("REPLICAOF 127.0.0.1 {}", servers[0].port));
    replicated(c, of, "at first");
    let mut listening = servers.each_ref().map(Server::connect);
    let mut subscribed = listening.each_mut().map(|connection| {
        let timeout = Some(Duration::from_secs(60));
        connection.set_read_timeout(timeout).unwrap();
        let mut events = connection.as_pubsub();
        events.psubscribe("__keyspace@0__:*").unwrap();
        events
    });
    let mut expected = Vec::new();
    for (command, is_event) in [
        ("CF.RESERVE f 1000", true),
        ("CF.ADD f a", true),
        ("CF.EXISTS f a", false),
        ("CF.ADDNX f a", false),
        ("CF.ADDNX f b", true),
        ("CF.INSERT f ITEMS a c", true),
        ("CF.INSERTNX f ITEMS a c", false),
        ("CF.DEL f none", false),
        ("CF.DEL f a", true),
        ("CF.COMPACT f", true),
        ("CF.INSERT g ITEMS a a a a a a", true),
        ("CF.ADD g a", false),
        ("CF.INSERT g NOCREATE ITEMS a b", true),
    ] {
        line(c, command);
        let (name, rest) = command.split_once(' ').unwrap();
        let key = rest.split(' ').next().unwrap();
        expected.extend(is_event.then(|| (key.to_owned(), name.to_lowercase())));
    }
    let (end, whole) = dump(c, "g").remove(0);
    let (first, second) = whole.split_at(1_000);
    for (end, part) in [(1_000, first), (end, second)] {
        load(c, "h", &(end, part.to_vec())).expect("it is loaded");
        replicated(c, of, &format!("{end} bytes are loaded"));
        expected.push(("h".to_owned(), "cf.loadchunk".to_owned()));
    }
    assert_eq!(digest(c, "g"), digest(of, "h"));
    // The master has no memory for the last ones.
    let items: Vec<_> = (0..50_000).map(|item: u32| item.to_string()).collect();
    line(c, &format!("CF.INSERT i ITEMS {}", items.join(" ")));
    expected.extend(["cf.reserve", "cf.insert"].map(|event| ("i".to_owned(), event.to_owned())));
    for events in &mut subscribed {
        for expected in &expected {
            let event = events.get_message().expect("an event");
            let (_, key) = event.get_channel_name().split_once(':').unwrap();
            assert_eq!(&(key.to_owned(), event.get_payload().unwrap()), expected);
        }
    }
}
