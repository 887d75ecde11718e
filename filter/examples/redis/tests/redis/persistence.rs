//! RDB files, append-only files, and what else the server promises of a key.

use std::collections::HashMap;
use std::path::Path;
use std::thread;
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use redis::{Connection, Value};

use crate::server::{
    Server, add_numbers, ask, digest, has_all, in_batches, line, module, try_ask, until,
};

/// Some filters: of several sizes, one that is growing, with copies and deletions.
fn fill(c: &mut Connection) -> [&'static str; 5] {
    line(c, "CF.RESERVE empty 1000");
    add_numbers(c, "small", 0..500);
    add_numbers(c, "growing", 0..60_000);
    in_batches(c, "CF.DEL", "growing", 1_000..2_000);
    line(c, "CF.RESERVE large 1000000");
    add_numbers(c, "large", 0..10_000);
    add_numbers(c, "copies", 0..1_000);
    add_numbers(c, "copies", 0..1_000);
    ["empty", "small", "growing", "large", "copies"]
}

#[test]
fn copies_dumps_and_reloads_are_the_same() {
    let server = Server::start(&[]);
    let c = &mut server.connect();
    for key in fill(c) {
        let before = digest(c, key);
        let copies = [format!("{key}:copy"), format!("{key}:restored")];
        line(c, &format!("COPY {key} {}", copies[0]));
        let payload: Vec<u8> = ask(c, "DUMP", &[key]);
        let mut restore = redis::cmd("RESTORE");
        restore.arg(&copies[1]).arg(0).arg(payload);
        assert_eq!(restore.query(c), Ok(Value::Okay));
        line(c, "DEBUG RELOAD");
        assert_eq!(digest(c, key), before);
        add_numbers(c, key, 100_000..103_000);
        assert_ne!(digest(c, key), before);
        // What they do next is the same, too: the next items go to the same places.
        for copy in copies {
            assert_eq!(digest(c, &copy), before);
            add_numbers(c, &copy, 100_000..103_000);
            assert_eq!(digest(c, &copy), digest(c, key));
        }
    }
}

#[test]
fn an_append_only_file_is_rewritten() {
    for preamble in ["yes", "no"] {
        let settings = ["--appendonly", "yes", "--appendfsync", "always"];
        let preamble = ["--aof-use-rdb-preamble", preamble];
        let mut server = Server::start(&[&settings[..], &preamble].concat());
        let c = &mut server.connect();
        let keys = fill(c);
        server.rewrite();
        add_numbers(c, "growing", 60_000..61_000);
        let before = keys.map(|key| digest(c, key));
        server.kill_and_restart(&module());
        let c = &mut server.connect();
        assert_eq!(keys.map(|key| digest(c, key)), before);
        assert!(has_all(c, "growing", 2_000..61_000));
    }
}

#[test]
fn memory_is_reported_and_large_keys_are_freed_aside() {
    let server = Server::start(&[]);
    let c = &mut server.connect();
    let before = server.info("used_memory");
    line(c, "CF.RESERVE f 1000000");
    let used = server.info("used_memory") - before;
    let reported: u64 = ask(c, "MEMORY", &["USAGE", "f", "SAMPLES", "0"]);
    let size: HashMap<String, u64> = ask(c, "CF.INFO", &["f"]);
    assert!(
        reported.abs_diff(used) < used / 10,
        "{reported}, not {used}"
    );
    assert!(reported.abs_diff(size["Size"]) < 200);
    let freed = server.info("lazyfreed_objects");
    line(c, "UNLINK f");
    until("it is freed aside", || {
        server.info("lazyfreed_objects") > freed
    });
    assert!(server.info("used_memory") < before + used / 10);
    // Tables that were replaced are freed, too, some hundred commands later.
    let before = server.info("used_memory");
    add_numbers(c, "g", 0..200_000);
    has_all(c, "g", 0..1_000);
    let used = server.info("used_memory") - before;
    let reported: u64 = ask(c, "MEMORY", &["USAGE", "g"]);
    assert!(reported.abs_diff(used) < used / 5, "{reported}, not {used}");
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
    for module in [Path::new(&native), &module()] {
        let c = &mut server.connect();
        let before = keys.map(|key| digest(c, key));
        line(c, "SAVE");
        server.kill_and_restart(module);
        let c = &mut server.connect();
        assert_eq!(keys.map(|key| digest(c, key)), before);
        assert!(has_all(c, "growing", 2_000..60_000));
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
    for kill in 0..KILLS {
        let mut c = server.connect();
        if kill % 5 == 1 {
            line(&mut c, "CONFIG SET aof-use-rdb-preamble no");
        }
        if kill % 5 < 2 {
            let _ = try_ask::<Value>(&mut c, "BGREWRITEAOF", &[] as &[&str]);
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
        server.kill_and_restart(&module());
        let c = &mut server.connect();
        let found = in_batches(c, "CF.EXISTS", "f", acknowledged.iter().copied());
        let denied = found.iter().filter(|found| !**found).count();
        assert_eq!(denied, 0, "of {} keys acknowledged", acknowledged.len());
    }
    assert!(acknowledged.len() > 5_000, "{} keys", acknowledged.len());
}
