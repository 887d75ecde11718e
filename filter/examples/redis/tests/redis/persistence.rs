//! RDB files, append-only files, and what else the server promises of a key.

use std::collections::HashMap;
use std::path::PathBuf;

use redis::{Connection, Value};

use crate::server::{
    Server, add_numbers, ask, digest, error, has_all, in_batches, line, module, until,
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
    // Also of a filter that has grown.
    let before = server.info("used_memory");
    add_numbers(c, "g", 0..200_000);
    let used = server.info("used_memory") - before;
    let reported: u64 = ask(c, "MEMORY", &["USAGE", "g"]);
    assert!(reported.abs_diff(used) < used / 5, "{reported}, not {used}");
}

/// The module for this machine's processor with a command that panics, `CUCKOO_NATIVE_MODULE`, which
/// `test.sh` builds.
fn native_module() -> Option<PathBuf> {
    let native = std::env::var_os("CUCKOO_NATIVE_MODULE").map(PathBuf::from);
    if native.is_none() {
        println!("not run: CUCKOO_NATIVE_MODULE is not set");
    }
    native
}

/// The file of a default build is loaded by one for this machine's processor, and the other way
/// round.
#[test]
fn builds_for_other_processors_load_each_others_files() {
    let Some(native) = native_module() else {
        return;
    };
    let mut server = Server::start(&[]);
    let keys = fill(&mut server.connect());
    for module in [&native, &module()] {
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

/// A panic is an error of the command, and in the log; the server lives.
#[test]
fn a_panic_is_an_error_of_the_command() {
    let Some(native) = native_module() else {
        return;
    };
    let mut server = Server::start(&[]);
    server.kill_and_restart(&native);
    let c = &mut server.connect();
    assert!(error(c, "CF.PANIC f").contains("a bug in the module"));
    assert!(server.log().contains("panicked") && server.log().contains("on purpose"));
    assert_eq!(line(c, "CF.ADD f a"), Value::Int(1));
}
