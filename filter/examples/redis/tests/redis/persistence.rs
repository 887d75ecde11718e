//! RDB files, append-only files, and what else the server promises of a key.

use std::collections::HashMap;
use std::path::Path;
use std::thread;
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use redis::{Connection, Value};

use crate::server::{Server, add_numbers, ask, digest, in_batches, line, module, until};

/// Some filters: of several sizes, one that is growing, with copies and deletions.
fn fill(c: &mut Connection) -> Vec<String> {
    line(c, "CF.RESERVE empty 1000");
    add_numbers(c, "small", 0..500);
    add_numbers(c, "growing", 0..60_000);
    in_batches(c, "CF.DEL", "growing", 1_000..2_000);
    line(c, "CF.RESERVE large 1000000");
    add_numbers(c, "large", 0..10_000);
    add_numbers(c, "copies", 0..1_000);
    add_numbers(c, "copies", 0..1_000);
    ["empty", "small", "growing", "large", "copies"]
        .map(String::from)
        .to_vec()
}

#[test]
fn copies_dumps_and_reloads_are_the_same() {
    let server = Server::start(&[]);
    let c = &mut server.connect();
    for key in fill(c) {
        let before = digest(c, &key);
        line(c, &format!("COPY {key} {key}:copy"));
        assert_eq!(digest(c, &format!("{key}:copy")), before);
        let payload: Vec<u8> = ask(c, "DUMP", &[&key]);
        let restored = format!("{key}:restored");
        let command = redis::cmd("RESTORE")
            .arg(&restored)
            .arg(0)
            .arg(payload)
            .query::<Value>(c);
        assert_eq!(command, Ok(Value::Okay));
        assert_eq!(digest(c, &restored), before);
        line(c, "DEBUG RELOAD");
        assert_eq!(digest(c, &key), before);
        // What it does next is the same, too: the next items go to the same places.
        for copy in [&key, &restored, &format!("{key}:copy")] {
            add_numbers(c, copy, 100_000..103_000);
        }
        assert_ne!(digest(c, &key), before);
        assert_eq!(digest(c, &restored), digest(c, &key));
        assert_eq!(digest(c, &format!("{key}:copy")), digest(c, &key));
    }
    assert_eq!(line(c, "CF.DEL copies 5"), Value::Int(1));
}

#[test]
fn an_append_only_file_is_rewritten() {
    for preamble in ["yes", "no"] {
        let mut server = Server::start(&[
            "--appendonly",
            "yes",
            "--appendfsync",
            "always",
            "--aof-use-rdb-preamble",
            preamble,
        ]);
        let c = &mut server.connect();
        let keys = fill(c);
        let rewrites = server.info("aof_rewrites");
        line(c, "BGREWRITEAOF");
        until("the file is rewritten", || {
            server.info("aof_rewrites") > rewrites && server.info("aof_rewrite_in_progress") == 0
        });
        add_numbers(c, "growing", 60_000..61_000);
        let before: Vec<_> = keys.iter().map(|key| digest(c, key)).collect();
        server.kill_and_restart();
        let c = &mut server.connect();
        let after: Vec<_> = keys.iter().map(|key| digest(c, key)).collect();
        assert_eq!(after, before);
        assert!(
            in_batches(c, "CF.EXISTS", "growing", 2_000..61_000)
                .into_iter()
                .all(|here| here)
        );
    }
}

#[test]
fn memory_is_told_and_large_keys_are_freed_aside() {
    let server = Server::start(&[]);
    let c = &mut server.connect();
    let before = server.info("used_memory");
    line(c, "CF.RESERVE f 1000000");
    let used = server.info("used_memory") - before;
    let told: u64 = ask(c, "MEMORY", &["USAGE", "f", "SAMPLES", "0"]);
    let size: HashMap<String, u64> = ask(c, "CF.INFO", &["f"]);
    assert!(
        told.abs_diff(used) < used / 10,
        "{told} bytes told, {used} used"
    );
    assert!(told.abs_diff(size["Size"]) < 200);
    let freed = server.info("lazyfreed_objects");
    line(c, "UNLINK f");
    until("it is freed aside", || {
        server.info("lazyfreed_objects") > freed
    });
    assert!(server.info("used_memory") < before + used / 10);
    // Tables that were replaced are freed, too, some hundred commands later.
    let before = server.info("used_memory");
    add_numbers(c, "g", 0..200_000);
    in_batches(c, "CF.EXISTS", "g", 0..1_000);
    let (used, told) = (
        server.info("used_memory") - before,
        ask::<u64>(c, "MEMORY", &["USAGE", "g"]),
    );
    println!("after growing: {told} bytes told, {used} used");
    assert!(told.abs_diff(used) < used / 5);
}

/// The file of a default build is loaded by one for this machine's processor, and the other way
/// round. Needs `CUCKOO_NATIVE_MODULE`, which `test.sh` builds.
#[test]
fn builds_for_other_processors_load_each_others_files() {
    let Some(native) = std::env::var_os("CUCKOO_NATIVE_MODULE") else {
        println!("not run: CUCKOO_NATIVE_MODULE is not set");
        return;
    };
    let mut server = Server::start(&[]);
    let keys = fill(&mut server.connect());
    let digests = |server: &Server| -> Vec<_> {
        keys.iter()
            .map(|key| digest(&mut server.connect(), key))
            .collect()
    };
    for module in [Path::new(&native), &module()] {
        let before = digests(&server);
        line(&mut server.connect(), "SAVE");
        server.restart_with(module);
        assert_eq!(digests(&server), before);
        let c = &mut server.connect();
        assert!(
            in_batches(c, "CF.EXISTS", "growing", 2_000..60_000)
                .into_iter()
                .all(|here| here)
        );
        add_numbers(c, "growing", 60_000..90_000);
    }
}

/// What was acknowledged, if each command is written to the disk before its reply.
#[test]
fn killed_fifty_times() {
    const KILLS: u64 = 50;
    let mut random = SmallRng::seed_from_u64(7);
    let mut server = Server::start(&["--appendonly", "yes", "--appendfsync", "always"]);
    let mut next = 0;
    let mut acknowledged = Vec::new();
    let mut denied = 0;
    for kill in 0..KILLS {
        let mut c = server.connect();
        if kill % 5 == 1 {
            line(&mut c, "CONFIG SET aof-use-rdb-preamble no");
        }
        if kill % 5 < 2 {
            let _ = crate::server::try_ask::<Value>(&mut c, "BGREWRITEAOF", &[] as &[&str]);
        }
        let writer = thread::spawn(move || {
            let (mut added, first) = (Vec::new(), next);
            loop {
                // Each key comes, and every third goes again; a removal that was sent may have happened.
                let mut pipe = redis::pipe();
                for key in next..next + 50 {
                    pipe.cmd("CF.ADD").arg("f").arg(key);
                }
                for key in (next..next + 50).filter(|key| key % 3 == 0) {
                    pipe.cmd("CF.DEL").arg("f").arg(key);
                }
                let range = next..next + 50;
                next = range.end;
                let Ok(replies) = pipe.query::<Vec<bool>>(&mut c) else {
                    return (added, next);
                };
                assert!(replies.into_iter().all(|reply| reply), "from {first} on");
                added.extend(range.filter(|key| key % 3 != 0));
            }
        });
        thread::sleep(Duration::from_millis(random.random_range(10..150)));
        server.kill();
        let (added, end) = writer.join().expect("the writer ends when the server does");
        acknowledged.extend(added);
        next = end;
        server.kill_and_restart();
        let c = &mut server.connect();
        for batch in acknowledged.chunks(10_000) {
            let items = batch.iter().map(u64::to_string);
            let words: Vec<String> = ["f".to_string()].into_iter().chain(items).collect();
            let found: Vec<bool> = ask(c, "CF.MEXISTS", &words);
            denied += found.into_iter().filter(|found| !found).count();
        }
    }
    println!(
        "killed {KILLS} times: {} keys acknowledged, {denied} denied",
        acknowledged.len()
    );
    assert_eq!(denied, 0);
    assert!(acknowledged.len() > 5_000, "{} keys", acknowledged.len());
}
