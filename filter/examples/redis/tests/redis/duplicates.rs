//! What RedisBloom's users lost their memory to.

use crate::server::{Server, ask, in_batches, line};

/// The same key a million times: some copies are added, and no memory is taken for the others.
#[test]
fn one_key_a_million_times() {
    let server = Server::start(&[]);
    let c = &mut server.connect();
    line(c, "CF.RESERVE f 1024");
    // The first key that is added takes a counter for the thread.
    line(c, "CF.ADD f another");
    let before: u64 = ask(c, "MEMORY", &["USAGE", "f"]);
    let mut added = 0;
    for _ in 0..1000 {
        let mut pipe = redis::pipe();
        for _ in 0..1000 {
            pipe.cmd("CF.ADD").arg("f").arg("key");
        }
        let replies: Vec<i64> = pipe.query(c).expect("no error");
        added += replies.iter().sum::<i64>();
    }
    let after: u64 = ask(c, "MEMORY", &["USAGE", "f"]);
    let count: i64 = ask(c, "CF.COUNT", &["f", "key"]);
    println!("a key 1,000,000 times: {added} copies, {before} bytes before and {after} after");
    assert!((2..=4).contains(&added), "{added} copies were added");
    assert_eq!(count, added);
    assert_eq!(after, before);
    for _ in 0..added {
        assert!(ask::<bool>(c, "CF.DEL", &["f", "key"]));
    }
    assert!(!ask::<bool>(c, "CF.EXISTS", &["f", "key"]));
}

/// 92,000 keys ten times each: the memory of some copies of each, and no key denied while it has
/// one.
#[test]
fn many_keys_ten_times() {
    const KEYS: u64 = 92_000;
    let server = Server::start(&[]);
    let c = &mut server.connect();
    let mut copies = vec![0_u32; KEYS as usize];
    for _ in 0..10 {
        let added = in_batches(c, "CF.ADD", "f", 0..KEYS);
        for (copies, added) in copies.iter_mut().zip(added) {
            *copies += u32::from(added);
        }
    }
    let memory: u64 = ask(c, "MEMORY", &["USAGE", "f"]);
    let total: u64 = copies.iter().map(|&copies| u64::from(copies)).sum();
    println!(
        "{KEYS} keys ten times each: {total} copies, {memory} bytes, {} bits a key",
        memory * 8 / KEYS
    );
    assert!(copies.iter().all(|&copies| copies >= 2));
    assert!(memory < 16 << 20, "{memory} bytes");
    // As many deletions as additions that were acknowledged, and then no more.
    for round in 1.. {
        let existing = in_batches(c, "CF.EXISTS", "f", 0..KEYS);
        let denied =
            (existing.iter().zip(&copies)).filter(|&(&here, &copies)| copies >= round && !here);
        assert_eq!(denied.count(), 0, "before round {round} of deletions");
        let left: Vec<u64> = (0..KEYS)
            .filter(|&key| copies[key as usize] >= round)
            .collect();
        if left.is_empty() {
            break;
        }
        for batch in left.chunks(1000) {
            let mut pipe = redis::pipe();
            for key in batch {
                pipe.cmd("CF.DEL").arg("f").arg(key);
            }
            let removed: Vec<bool> = pipe.query(c).expect("no error");
            assert!(removed.into_iter().all(|removed| removed));
        }
    }
    let info: Vec<(String, i64)> = ask(c, "CF.INFO", &["f"]);
    assert!(info.contains(&("Number of items inserted".into(), 0)));
    assert!(info.contains(&("Number of items deleted".into(), total as i64)));
}
