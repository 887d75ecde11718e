//! Damaged payloads and chunks: refused or harmless, and the server lives.

use crc::{CRC_64_REDIS, CRC_64_XZ, Crc};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use redis::{Connection, Value};

use crate::chunks::dump;
use crate::server::{Server, add_numbers, ask, line};

const ROUNDS: usize = 10_000;

/// Changes some bytes, cuts, doubles or moves a part.
fn mutate(bytes: &mut Vec<u8>, random: &mut SmallRng) {
    for _ in 0..random.random_range(1..4) {
        let length = bytes.len();
        // The beginning has most of what matters.
        let reach = if random.random_bool(0.6) {
            length.min(80)
        } else {
            length
        };
        let place = random.random_range(0..reach);
        match random.random_range(0..7) {
            0..3 => bytes[place] ^= 1 << random.random_range(0..8),
            3 => bytes[place] = [0, 0xff, 0x80, 0x81, 0x7f][random.random_range(0..5)],
            4 => bytes.truncate(place.max(1)),
            5 => {
                let copied =
                    bytes[place..(place + random.random_range(1..40)).min(length)].to_vec();
                let at = random.random_range(0..=bytes.len());
                bytes.splice(at..at, copied);
            }
            _ => {
                let end = (place + 8).min(length);
                bytes[place..end].fill(random.random());
            }
        }
    }
}

/// Uses the key like any other; a filter may have been made of the damage.
fn exercise(c: &mut Connection, key: &str) {
    let mut pipe = redis::pipe();
    for item in 0..20 {
        pipe.cmd("CF.ADD").arg(key).arg(item).ignore();
        pipe.cmd("CF.EXISTS").arg(key).arg(item).ignore();
        pipe.cmd("CF.DEL").arg(key).arg(item).ignore();
    }
    pipe.cmd("CF.INFO").arg(key).ignore();
    pipe.cmd("MEMORY").arg("USAGE").arg(key).ignore();
    pipe.cmd("CF.COMPACT").arg(key).ignore();
    // An incomplete filter refuses all this.
    let _ = pipe.query::<Value>(c);
}

#[test]
fn damaged_payloads() {
    let mut server = Server::start(&[]);
    let c = &mut server.connect();
    let random = &mut SmallRng::seed_from_u64(3);
    line(c, "CF.ADD small a");
    add_numbers(c, "f", 0..3_000);
    let image = dump(c, "f").remove(0).1;
    redis::cmd("CF.LOADCHUNK")
        .arg("part")
        .arg(100)
        .arg(&image[..100])
        .query::<Value>(c)
        .expect("it begins well");
    let payloads: Vec<Vec<u8>> = ["small", "f", "part"]
        .iter()
        .map(|key| ask(c, "DUMP", &[key]))
        .collect();
    let checksum = Crc::<u64>::new(&CRC_64_REDIS);
    let mut restored = 0;
    for round in 0..ROUNDS {
        let mut payload = payloads[round % payloads.len()].clone();
        payload.truncate(payload.len() - 8);
        mutate(&mut payload, random);
        // The server's own checksum is right, so that the module sees the damage.
        payload.extend(checksum.checksum(&payload).to_le_bytes());
        let command = redis::cmd("RESTORE")
            .arg("r")
            .arg(0)
            .arg(payload)
            .arg("REPLACE")
            .query::<Value>(c);
        if command.is_ok() {
            restored += 1;
            exercise(c, "r");
        }
    }
    println!("{ROUNDS} damaged payloads: {restored} were restored, the others refused");
    check(&mut server);
}

#[test]
fn damaged_chunks() {
    let mut server = Server::start(&[]);
    let c = &mut server.connect();
    let random = &mut SmallRng::seed_from_u64(4);
    line(c, "CF.ADD small a");
    add_numbers(c, "f", 0..3_000);
    let images = ["small", "f"].map(|key| dump(c, key).remove(0).1);
    let checksum = Crc::<u64>::new(&CRC_64_XZ);
    let mut loaded = 0;
    for round in 0..ROUNDS {
        let mut image = images[round % images.len()].clone();
        mutate(&mut image, random);
        if image.len() > 56 && round % 4 < 3 {
            // The filter's checksums are right, too: that of the header, if it has one generation, and that
            // of the whole.
            let header = checksum.checksum(&image[..40]).to_le_bytes();
            image[40..48].copy_from_slice(&header);
            let end = image.len() - 8;
            let without = [&image[..40], &image[48..end]].concat();
            let whole = checksum.checksum(&without).to_le_bytes();
            image[end..].copy_from_slice(&whole);
        }
        line(c, "DEL r");
        let mut end = 0;
        let half = random.random_range(1..=image.len());
        let mut last = Ok(Value::Nil);
        for part in [&image[..half], &image[half..]] {
            end += part.len();
            last = redis::cmd("CF.LOADCHUNK")
                .arg("r")
                .arg(end)
                .arg(part)
                .query::<Value>(c);
        }
        loaded += usize::from(last.is_ok());
        exercise(c, "r");
    }
    println!("{ROUNDS} damaged chunks: of {loaded} the last part was accepted");
    check(&mut server);
}

/// The server answers as before, and has taken no more memory than it needs.
fn check(server: &mut Server) {
    assert!(server.is_alive());
    let c = &mut server.connect();
    line(c, "DEL r");
    assert_eq!(line(c, "CF.EXISTS small a"), Value::Int(1));
    assert!(!server.log().contains("panicked"), "{}", server.log());
    let peak = server.info("used_memory_peak");
    println!("{} MiB at most", peak >> 20);
    assert!(peak < 100 << 20, "{peak} bytes");
}
