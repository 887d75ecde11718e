//! RDB files, append-only files, and what else the server promises of a key.

use std::collections::HashMap;

use redis::{Connection, Value};

use crate::server::{Server, ask, digest, in_batches, line, until};

/// Some filters: of several sizes, one that is growing, with copies and deletions.
pub(crate) fn fill(c: &mut Connection) -> [&'static str; 5] {
    line(c, "CF.RESERVE empty 1000");
    in_batches(c, "CF.ADD", "small", 0..500);
    in_batches(c, "CF.ADD", "growing", 0..60_000);
    in_batches(c, "CF.DEL", "growing", 1_000..2_000);
    line(c, "CF.RESERVE large 1000000");
    in_batches(c, "CF.ADD", "large", 0..10_000);
    in_batches(c, "CF.ADD", "copies", 0..1_000);
    in_batches(c, "CF.ADD", "copies", 0..1_000);
    ["empty", "small", "growing", "large", "copies"]
}

#[test]
fn copies_dumps_and_reloads_are_equal() {
    let server = Server::start(&[]);
    let c = &mut server.connect();
    // The number of items deleted is no part of a digest.
    let content = |c: &mut Connection, key: &str| {
        let info: HashMap<String, u64> = ask(c, "CF.INFO", &[key]);
        (digest(c, key), info["Number of items deleted"])
    };
    for key in fill(c) {
        let before = content(c, key);
        assert_eq!(before.1, if key == "growing" { 1_000 } else { 0 });
        let copies = [format!("{key}:copy"), format!("{key}:restored")];
        line(c, &format!("COPY {key} {}", copies[0]));
        let payload: Vec<u8> = ask(c, "DUMP", &[key]);
        let mut restore = redis::cmd("RESTORE");
        restore.arg(&copies[1]).arg(0).arg(payload);
        assert_eq!(restore.query(c), Ok(Value::Okay));
        line(c, "DEBUG RELOAD");
        assert_eq!(content(c, key), before);
        in_batches(c, "CF.ADD", key, 100_000..103_000);
        assert_ne!(content(c, key), before);
        // What they do next is the same, too: the next items go to the same places.
        for copy in copies {
            assert_eq!(content(c, &copy), before);
            in_batches(c, "CF.ADD", &copy, 100_000..103_000);
            assert_eq!(content(c, &copy), content(c, key));
        }
    }
}

/// The system's zeros are as good as the module's: reserving a large filter takes no memory yet. And what is
/// only read is not written: a child that saves shares the table with the server, and nobody else needs memory
/// for it either.
#[test]
fn reserving_and_saving_copy_no_table() {
    let server = Server::start(&["--rdbcompression", "no"]);
    let c = &mut server.connect();
    let before = server.info("used_memory_rss");
    line(c, "CF.RESERVE f 30000000");
    let taken = server.info("used_memory_rss").saturating_sub(before);
    // Each page of the table is written once, and the child has it.
    in_batches(c, "CF.ADD", "f", 0..300_000);
    let size: u64 = ask(c, "MEMORY", &["USAGE", "f"]);
    assert!(size > 60 << 20);
    assert!(taken < size / 8, "{taken} of {size} bytes");
    line(c, "BGSAVE");
    until("the child has ended", || {
        server.info("rdb_bgsave_in_progress") == 0
    });
    let info: String = ask(c, "INFO", &["persistence"]);
    assert!(info.contains("rdb_last_bgsave_status:ok"));
    let copied = server.info("rdb_last_cow_size");
    assert!(copied < size / 8, "{copied} of {size} bytes");
    line(c, "CONFIG RESETSTAT");
    let used = server.info("used_memory");
    digest(c, "f");
    line(c, "SAVE");
    let peak = server.info("used_memory_peak");
    assert!(peak < used + size / 8, "{peak} after {used} bytes");
}

#[test]
fn saving_child_writes_no_page_of_small_filter() {
    for preamble in ["yes", "no"] {
        let server = Server::start(&["--aof-use-rdb-preamble", preamble]);
        let c = &mut server.connect();
        let mut pipe = redis::pipe();
        for number in 0..20_000 {
            pipe.cmd("CF.RESERVE").arg(number).arg(8).ignore();
        }
        pipe.exec(c).unwrap();
        let size = 20_000 * ask::<u64>(c, "MEMORY", &["USAGE", "0"]);
        server.rewrite();
        let copied = server.info("aof_last_cow_size");
        assert!(copied < size / 8, "{copied} of {size} bytes");
    }
}

#[test]
fn large_keys_are_reported_and_freed_lazily() {
    let server = Server::start(&[]);
    let c = &mut server.connect();
    let before = server.info("used_memory");
    line(c, "CF.RESERVE f 1000000");
    let used = server.info("used_memory") - before;
    let reported: u64 = ask(c, "MEMORY", &["USAGE", "f", "SAMPLES", "0"]);
    let size: HashMap<String, u64> = ask(c, "CF.INFO", &["f"]);
    let differs = reported.abs_diff(used);
    assert!(differs < used / 10, "{reported}, not {used}");
    assert!(reported.abs_diff(size["Size"]) < 200);
    line(c, "CF.RESERVE small 8");
    let freed = server.info("lazyfreed_objects");
    line(c, "UNLINK small f");
    until("it is freed in the background", || {
        server.info("lazyfreed_objects") > freed && server.info("lazyfree_pending_objects") == 0
    });
    // Only the large one: each costs a job.
    assert_eq!(server.info("lazyfreed_objects"), freed + 1);
    assert!(server.info("used_memory") < before + used / 10);
    // Also of a filter that has grown.
    let before = server.info("used_memory");
    in_batches(c, "CF.ADD", "g", 0..200_000);
    let used = server.info("used_memory") - before;
    let reported: u64 = ask(c, "MEMORY", &["USAGE", "g"]);
    assert!(reported.abs_diff(used) < used / 5, "{reported}, not {used}");
}
