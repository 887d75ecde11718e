//! `CF.SCANDUMP` and `CF.LOADCHUNK`.

use redis::{Connection, Value};

use crate::server::{Server, add_numbers, ask, digest, error, has_all, line, module};

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
    let mut command = redis::cmd("CF.LOADCHUNK");
    command.arg(key).arg(chunk.0).arg(&chunk.1);
    command.query(c).map_err(|error| error.to_string())
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
    assert!(has_all(c, "g", 0..20_000));
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
    let early = error(c, "CF.EXISTS g 1");
    assert!(early.contains("first 4194304 bytes are here"), "{early}");
    for wrong in [&chunks[0], &chunks[2]] {
        let refused = load(c, "g", wrong).expect_err("another is next");
        assert!(refused.contains("go on with the chunk of CF.SCANDUMP 4194304"));
    }
    line(c, "COPY g copy");
    line(c, "DEBUG RELOAD");
    server.rewrite();
    server.kill_and_restart(&module());
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
    let last = chunks.len() - 1;
    for chunk in &chunks[..last] {
        load(c, "g", chunk).expect("it is loaded");
    }
    add_numbers(c, "f", 20_000..20_100);
    let changed = dump(c, "f");
    for _ in 0..2 {
        let refused = load(c, "g", &changed[last]).expect_err("it is of another filter");
        assert!(refused.contains("checksum"), "{refused}");
    }
    // Nor does one that is too long; the right one still fits.
    let (end, mut longer) = chunks[last].clone();
    longer.push(0);
    let refused = load(c, "g", &(end + 1, longer)).expect_err("it is too long");
    assert!(refused.contains("follow the saved filter"), "{refused}");
    load(c, "g", &chunks[last]).expect("it is loaded");
    assert_eq!(line(c, "CF.EXISTS g 77"), Value::Int(1));
}
