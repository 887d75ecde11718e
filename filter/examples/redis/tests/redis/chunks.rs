//! `CF.SCANDUMP` and `CF.LOADCHUNK`.

use filter::CuckooFilter;
use redis::{Connection, Value};

use crate::server::{Server, ask, digest, error, in_batches, line};

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

pub(crate) fn load(c: &mut Connection, key: &str, chunk: &Chunk) -> Result<(), String> {
    let mut command = redis::cmd("CF.LOADCHUNK");
    command.arg(key).arg(chunk.0).arg(&chunk.1);
    command.query(c).map_err(|error| error.to_string())
}

fn load_all(c: &mut Connection, key: &str, chunks: &[Chunk]) {
    for chunk in chunks {
        load(c, key, chunk).expect("it is loaded");
    }
}

/// A filter of several chunks, each of which is 4 MiB.
fn large(server: &Server) -> Vec<Chunk> {
    let c = &mut server.connect();
    line(c, "CF.RESERVE f 4000000");
    in_batches(c, "CF.ADD", "f", 0..20_000);
    let chunks = dump(c, "f");
    assert!(chunks.len() >= 3, "{} chunks", chunks.len());
    chunks
}

/// The key stays the same while it is loaded, and with it the time that it has to live.
#[test]
fn dump_can_be_loaded() {
    let server = Server::start(&[]);
    let c = &mut server.connect();
    let chunks = large(&server);
    load_all(c, "g", &chunks[..1]);
    line(c, "EXPIRE g 1000");
    load_all(c, "g", &chunks[1..]);
    assert!(ask::<i64>(c, "TTL", &["g"]) > 0);
    line(c, "PERSIST g");
    assert_eq!(digest(c, "f"), digest(c, "g"));
    assert!(!in_batches(c, "CF.EXISTS", "g", 0..20_000).contains(&false));
    line(c, "CF.RESERVE empty 1000");
    let empty = dump(c, "empty");
    load_all(c, "loaded", &empty);
    assert_eq!(line(c, "CF.EXISTS loaded a"), Value::Int(0));
}

/// What has arrived survives a restart and goes to replicas; the rest is loaded afterwards.
#[test]
fn loading_continues_after_restart() {
    let mut server = Server::start(&["--appendonly", "yes", "--aof-use-rdb-preamble", "no"]);
    let chunks = large(&server);
    let c = &mut server.connect();
    load_all(c, "g", &chunks[..1]);
    error(c, "CF.EXISTS g 1", "is being loaded");
    for wrong in [&chunks[0], &chunks[2]] {
        let refused = load(c, "g", wrong).expect_err("another is next");
        assert!(refused.contains("go on with the chunk of CF.SCANDUMP 4194304"));
    }
    line(c, "COPY g copy");
    line(c, "DEBUG RELOAD");
    server.rewrite();
    server.kill_and_restart();
    let c = &mut server.connect();
    for key in ["g", "copy"] {
        load_all(c, key, &chunks[1..]);
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
    for iterator in [1, foreign.len() as u64] {
        let refused = load(c, "g", &(iterator, foreign.clone())).expect_err("it is foreign");
        assert!(refused.contains("Chunks of RedisBloom"), "{refused}");
    }
    let saved = CuckooFilter::with_capacity(10).to_bytes().unwrap();
    let refused = load(c, "g", &(saved.len() as u64, saved)).expect_err("it does not grow");
    assert!(
        refused.contains("not what CF.SCANDUMP returned"),
        "{refused}"
    );
    assert_eq!(line(c, "EXISTS g"), Value::Int(0));

    // The last chunk of another filter, and one that is too long, are not added; the right one still fits.
    let last = chunks.len() - 1;
    load_all(c, "g", &chunks[..last]);
    in_batches(c, "CF.ADD", "f", 20_000..20_100);
    let changed = dump(c, "f");
    for _ in 0..2 {
        let refused = load(c, "g", &changed[last]).expect_err("it is of another filter");
        assert!(refused.contains("checksum"), "{refused}");
    }
    let (end, mut longer) = chunks[last].clone();
    longer.push(0);
    let refused = load(c, "g", &(end + 1, longer)).expect_err("it is too long");
    assert!(refused.contains("follow the saved filter"), "{refused}");
    load_all(c, "g", &chunks[last..]);
    assert_eq!(line(c, "CF.EXISTS g 77"), Value::Int(1));
}

/// What has arrived is in one piece, which is full before the last chunk: it would take 16 MiB more, or 32 elsewhere.
#[test]
fn chunk_without_memory_is_refused() {
    let [server, other] = [(); 2].map(|()| Server::start(&[]));
    let (c, of) = (&mut server.connect(), &mut other.connect());
    line(c, "CF.RESERVE f 12000000");
    let chunks = dump(c, "f");
    assert_eq!(chunks.len(), 5);
    load_all(of, "f", &chunks[..4]);
    other.limit_memory(Some(12 << 20));
    let refused = load(of, "f", &chunks[4]).expect_err("there is no memory");
    assert!(refused.contains("out of memory"), "{refused}");
    other.limit_memory(None);
    load_all(of, "f", &chunks[4..]);
    assert_eq!(digest(of, "f"), digest(c, "f"));
}

/// A dump continues unless the filter has changed. Its copy may be dumped instead.
#[test]
fn dump_of_changed_filter_is_refused() {
    let server = Server::start(&[]);
    let c = &mut server.connect();
    let chunks = large(&server);
    let next = format!("CF.SCANDUMP f {}", chunks[0].0);
    error(c, &next, "begin with iterator 0");
    line(c, "COPY f copy");
    for change in ["CF.ADD f new", "CF.DEL f 1", "CF.COMPACT f"] {
        line(c, "CF.SCANDUMP f 0");
        line(c, "CF.DEL f none");
        line(c, "CF.ADDNX f 2");
        line(c, &next);
        line(c, change);
        error(c, &next, "dump a COPY");
    }
    assert!(dump(c, "copy") == chunks);
}
