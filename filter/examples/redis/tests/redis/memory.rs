//! What a filter may take: what `maxmemory` leaves, and at most `max-filter-bytes`.

use redis::{Connection, RedisResult, Value};

use crate::chunks::{dump, load};
use crate::persistence;
use crate::replication::replicated;
use crate::server::{Server, ask, digest, error, in_batches, line, try_ask, try_line};

fn size(c: &mut Connection, key: &str) -> u64 {
    ask(c, "MEMORY", &["USAGE", key, "SAMPLES", "0"])
}

/// Adds items until one is refused, and returns the error.
fn fill(c: &mut Connection, key: &str) -> String {
    for batch in 0.. {
        let mut args = vec![key.to_string(), "ITEMS".into()];
        args.extend((0..500).map(|item| format!("{batch}-{item}")));
        let replies: Vec<i64> = ask(c, "CF.INSERT", &args);
        if let Some(refused) = replies.iter().position(|&reply| reply == -1) {
            let added = args[2..][..refused].iter();
            assert!(added.zip(replies).all(|(_, reply)| reply == 1));
            let refused = try_ask::<Value>(c, "CF.ADD", &[key, &args[2 + refused]]);
            return refused.expect_err("it was refused before").to_string();
        }
    }
    unreachable!()
}

/// What a client writes that uses no filter.
fn write(c: &mut Connection) {
    line(c, "SET other x");
}

/// Reserves too much, and returns the greatest capacity that the error names.
fn possible(c: &mut Connection, key: &str, capacity: u64) -> u64 {
    let refused = try_line(c, &format!("CF.RESERVE {key} {capacity}"));
    let refused = refused.expect_err("it is too large").to_string();
    let number = refused.split_once("a capacity of at most ");
    let number = number.and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
    number.unwrap_or_else(|| panic!("{refused}"))
}

fn restore(c: &mut Connection, key: &str, payload: &[u8]) -> RedisResult<Value> {
    let mut restore = redis::cmd("RESTORE");
    restore.arg(key).arg(0).arg(payload).query(c)
}

#[test]
fn reservation_beyond_maxmemory_names_what_fits() {
    for policy in ["noeviction", "volatile-lru", "allkeys-lru"] {
        let server = Server::start(&["--maxmemory", "20mb", "--maxmemory-policy", policy]);
        let c = &mut server.connect();
        error(
            c,
            "CF.INSERT f CAPACITY 1073741824 ITEMS a",
            "maxmemory leaves",
        );
        assert_eq!(line(c, "EXISTS f"), Value::Int(0));
        let most = possible(c, "f", 1 << 30);
        assert_eq!(possible(c, "f", most + 1), most);
        line(c, &format!("CF.RESERVE f {most}"));
        assert!(size(c, "f") > 8 << 20);
        write(c);
        // Filters share what there is, unless the server may evict any of them.
        if policy != "allkeys-lru" {
            let less = possible(c, "g", most);
            line(c, &format!("CF.RESERVE g {less}"));
            write(c);
        }
    }
    let server = Server::start(&[]);
    line(&mut server.connect(), "CF.RESERVE f 1073741824");
}

/// Others can write, and memory can be freed; with more, the filter grows again.
#[test]
fn growth_beyond_maxmemory_refuses_only_items() {
    let server = Server::start(&["--maxmemory", "6mb"]);
    let c = &mut server.connect();
    in_batches(c, "CF.ADD", "f", 0..50_000);
    let refused = fill(c, "f");
    assert!(refused.contains("maxmemory leaves"), "{refused}");
    let full = size(c, "f");
    assert!(full > 3 << 20, "the filter takes {full} bytes of 6 MiB");
    assert!(!in_batches(c, "CF.EXISTS", "f", 0..50_000).contains(&false));
    write(c);
    line(c, "CONFIG SET maxmemory 2mb");
    error(c, "SET other x", "OOM");
    assert_eq!(line(c, "CF.DEL f 0"), Value::Int(1));
    assert_eq!(line(c, "CF.COMPACT f"), Value::Okay);
    line(c, "CONFIG SET maxmemory 12mb");
    in_batches(c, "CF.ADD", "f", 10_000_000..10_300_000);
    assert!(size(c, "f") > full);
    write(c);
}

/// Under such a policy, the filter may take what other keys have.
#[test]
fn growth_and_reservation_evict_other_keys() {
    let server = Server::start(&["--maxmemory", "12mb", "--maxmemory-policy", "allkeys-lru"]);
    let c = &mut server.connect();
    for key in 0..200 {
        line(c, &format!("SET {key} {}", "x".repeat(100_000)));
    }
    let before = server.info("evicted_keys");
    in_batches(c, "CF.ADD", "f", 0..600_000);
    assert!(server.info("evicted_keys") > before + 10 && size(c, "f") > 1 << 20);
    assert!(!in_batches(c, "CF.EXISTS", "f", 0..600_000).contains(&false));
    // A reservation counts at once.
    let before = server.info("evicted_keys");
    line(c, "CF.RESERVE reserved 2000000");
    write(c);
    assert!(server.info("evicted_keys") > before + 10);
}

#[test]
fn payload_or_copy_beyond_maxmemory_is_refused() {
    let server = Server::start(&[]);
    let c = &mut server.connect();
    line(c, "CF.RESERVE f 6000000");
    let payload: Vec<u8> = ask(c, "DUMP", &["f"]);
    let (chunks, before) = (dump(c, "f"), digest(c, "f"));
    line(c, "CONFIG SET maxmemory 16mb");
    error(c, "COPY f g", "copy");
    line(c, "DEL f");
    // There is room for one; the payload is small, since it is compressed.
    assert!(payload.len() < 1 << 20);
    assert_eq!(restore(c, "f", &payload), Ok(Value::Okay));
    assert_eq!(digest(c, "f"), before);
    assert!(restore(c, "g", &payload).is_err() && server.log().contains("maxmemory leaves"));
    let refused = load(c, "g", &chunks[0]).expect_err("it does not fit");
    assert!(refused.contains("maxmemory"), "{refused}");
    write(c);
}

#[test]
fn filter_bytes_bound_each_filter() {
    const MAX_BYTES: u64 = 1 << 20;
    let server = Server::start(&["max-filter-bytes", "1048576"]);
    let c = &mut server.connect();
    let most = possible(c, "f", 1_000_000);
    line(c, &format!("CF.RESERVE f {most}"));
    for key in ["f", "g"] {
        let refused = fill(c, key);
        assert!(refused.contains("max-filter-bytes leaves"), "{refused}");
        let size = size(c, key);
        assert!((MAX_BYTES * 3 / 4..=MAX_BYTES).contains(&size), "{size}");
        // One of such a size may be loaded.
        let chunk = dump(c, key).remove(0);
        load(c, &format!("{key}2"), &chunk).expect("it fits");
    }
    let free = Server::start(&[]);
    let unlimited = &mut free.connect();
    line(unlimited, "CF.RESERVE large 1000000");
    let part = dump(unlimited, "large").remove(0).1;
    load(c, "large", &(10, part[..10].to_vec())).expect("its size is not known yet");
    for _ in 0..2 {
        let refused = load(c, "large", &(1_000, part[10..1_000].to_vec()));
        let refused = refused.expect_err("it is too large");
        assert!(refused.contains("max-filter-bytes leaves"), "{refused}");
    }
    // All but its last byte: nothing is missing that would be too much.
    let most = part.len() - 1;
    load(unlimited, "part", &(most as u64, part[..most].to_vec())).expect("it has room");
    let payload: Vec<u8> = ask(unlimited, "DUMP", &["part"]);
    restore(c, "part", &payload).expect_err("it is too large");
}

/// Limits that came later, or apply to a replica alone, lose no item that was acknowledged: a rewritten append-only file
/// has them all, and so has a replica.
#[test]
fn loading_and_replicas_ignore_limits() {
    let limits = ["max-filter-bytes", "65536", "--maxmemory", "3mb"];
    for preamble in ["yes", "no"] {
        let settings = ["--appendonly", "yes", "--aof-use-rdb-preamble", preamble];
        let mut server = Server::start(&settings);
        let replica = Server::start(&limits);
        let (c, of) = (&mut server.connect(), &mut replica.connect());
        let keys = persistence::fill(c);
        line(of, &format!("REPLICAOF 127.0.0.1 {}", server.port));
        in_batches(c, "CF.ADD", "growing", 100_000..200_000);
        replicated(c, of, "beyond the replica's limits");
        server.rewrite();
        in_batches(c, "CF.ADD", "growing", 200_000..300_000);
        let before = keys.map(|key| digest(c, key));
        server.restart_with(&[&limits[..], &settings].concat());
        let c = &mut server.connect();
        assert_eq!(keys.map(|key| digest(c, key)), before);
        assert!(!in_batches(c, "CF.EXISTS", "growing", 100_000..300_000).contains(&false));
        line(c, "CONFIG SET maxmemory 0");
        error(c, "CF.RESERVE h 100000", "max-filter-bytes leaves 65536");
    }
}

#[test]
fn arguments_of_module_are_checked() {
    for (wrong, says) in [
        (&["max-filter-bytes"][..], "max-filter-bytes NUMBER"),
        (&["max-filter-bytes", "65535"], "from 65536 to"),
        (&["max-filter-bytes", "1mb"], "from 65536 to"),
        (&["most", "100000"], "max-filter-bytes NUMBER"),
    ] {
        let log = Server::log_of_refused(wrong);
        assert!(log.contains(says), "{log}");
    }
}
