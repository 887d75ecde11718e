//! `CF.SCANDUMP` and `CF.LOADCHUNK`.

use redis::{Connection, Value};

use crate::server::{Server, add_numbers, ask, digest, in_batches, line, try_ask, until};

/// A piece of a dump: the iterator, and the bytes.
type Chunk = (u64, Vec<u8>);

pub(crate) fn dump(c: &mut Connection, key: &str) -> Vec<Chunk> {
    let mut chunks: Vec<Chunk> = Vec::new();
    loop {
        let from = chunks.last().map_or(0, |&(next, _)| next);
        let chunk: (u64, Option<Vec<u8>>) = ask(c, "CF.SCANDUMP", &[key, &from.to_string()]);
        match chunk {
            (0, None) => return chunks,
            (next, data) => chunks.push((next, data.expect("a chunk has bytes"))),
        }
    }
}

fn load(c: &mut Connection, key: &str, chunk: &Chunk) -> Result<(), String> {
    let command = redis::cmd("CF.LOADCHUNK")
        .arg(key)
        .arg(chunk.0)
        .arg(&chunk.1)
        .query::<Value>(c);
    command.map(|_| ()).map_err(|error| error.to_string())
}

/// A filter of several chunks, each of which is 4 MiB.
fn large(server: &Server) -> Vec<Chunk> {
    let c = &mut server.connect();
    line(c, "CF.RESERVE f 3000000");
    add_numbers(c, "f", 0..20_000);
    let chunks = dump(c, "f");
    assert!(chunks.len() >= 3, "{} chunks", chunks.len());
    chunks
}

#[test]
fn a_dump_loads() {
    let server = Server::start(&[]);
    let c = &mut server.connect();
    let chunks = large(&server);
    for chunk in &chunks {
        load(c, "g", chunk).expect("it is loaded");
    }
    assert_eq!(digest(c, "f"), digest(c, "g"));
    assert!(
        in_batches(c, "CF.EXISTS", "g", 0..20_000)
            .into_iter()
            .all(|here| here)
    );
    line(c, "CF.RESERVE empty 1000");
    for chunk in dump(c, "empty") {
        load(c, "loaded", &chunk).expect("an empty filter is loaded");
    }
    assert_eq!(line(c, "CF.EXISTS loaded a"), Value::Int(0));
}

/// What has arrived survives a restart and goes to replicas; the rest is loaded afterwards.
#[test]
fn loading_goes_on_after_a_restart() {
    let mut server = Server::start(&["--appendonly", "yes", "--aof-use-rdb-preamble", "no"]);
    let chunks = large(&server);
    let c = &mut server.connect();
    load(c, "g", &chunks[0]).expect("it is loaded");
    let early = try_ask::<Value>(c, "CF.EXISTS", &["g", "1"]).expect_err("it is not whole");
    assert!(
        early.to_string().contains("first 4194304 bytes are here"),
        "{early}"
    );
    let again = load(c, "g", &chunks[0]).expect_err("it is there");
    assert!(
        again.contains("go on with the chunk of CF.SCANDUMP 4194304"),
        "{again}"
    );
    let later = load(c, "g", &chunks[2]).expect_err("there is one before it");
    assert!(later.contains("first 4194304 bytes"), "{later}");
    line(c, "COPY g copy");
    line(c, "DEBUG RELOAD");
    let rewritten = server.info("aof_rewrites");
    line(c, "BGREWRITEAOF");
    until("the file is rewritten", || {
        server.info("aof_rewrites") > rewritten && server.info("aof_rewrite_in_progress") == 0
    });
    server.kill_and_restart();
    let c = &mut server.connect();
    for key in ["g", "copy"] {
        for chunk in &chunks[1..] {
            load(c, key, chunk).expect("it goes on");
        }
        assert_eq!(digest(c, "f"), digest(c, key));
    }
}

#[test]
fn foreign_and_mixed_chunks_are_refused() {
    let server = Server::start(&[]);
    let c = &mut server.connect();
    let chunks = large(&server);
    // What RedisBloom's documentation shows as the header of a filter.
    let foreign =
        b"\x01\0\0\0\0\0\0\0\x04\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x02\0\x14\0\x01\0"
            .to_vec();
    let refused = load(c, "g", &(1, foreign.clone())).expect_err("its length is not the iterator");
    assert!(refused.contains("Invalid position"), "{refused}");
    let refused = load(c, "g", &(foreign.len() as u64, foreign)).expect_err("it is foreign");
    assert!(refused.contains("not a saved filter"), "{refused}");
    assert_eq!(line(c, "EXISTS g"), Value::Int(0));

    // A filter that changes while it is dumped does not load: the last chunk says so, and is not added.
    load(c, "g", &chunks[0]).expect("it is loaded");
    for key in 20_000..20_100 {
        line(c, &format!("CF.ADD f {key}"));
    }
    let changed = dump(c, "f");
    let last = changed.len() - 1;
    for chunk in &changed[1..last] {
        load(c, "g", chunk).expect("it may fit");
    }
    let refused = load(c, "g", &changed[last]).expect_err("it is of another filter");
    assert!(refused.contains("checksum"), "{refused}");
    let refused = load(c, "g", &changed[last]).expect_err("it is of another filter");
    assert!(refused.contains("checksum"), "it was not added: {refused}");
    // The right one still fits, if those between are the same.
    line(c, "DEL g");
    let mut longer = chunks[last].clone();
    longer.0 += 1;
    longer.1.push(0);
    for chunk in &chunks[..last] {
        load(c, "g", chunk).expect("it is loaded");
    }
    let refused = load(c, "g", &longer).expect_err("it is too long");
    assert!(refused.contains("follow the saved filter"), "{refused}");
    load(c, "g", &chunks[last]).expect("it is loaded");
    assert_eq!(line(c, "CF.EXISTS g 77"), Value::Int(1));
}
