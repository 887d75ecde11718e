//! Damaged payloads and chunks: refused or harmless, and the server lives.

use crc::{CRC_64_REDIS, Crc};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use redis::{Connection, Value};

use crate::chunks::{dump, load};
use crate::forged::with_right_checksums;
use crate::server::{Server, ask, in_batches, line};

const ROUNDS: usize = 5_000;

/// Changes some bytes, cuts, doubles or moves a part; the beginning has most of what matters.
fn mutate(bytes: &mut Vec<u8>, random: &mut SmallRng) {
    for _ in 0..random.random_range(1..4) {
        let length = bytes.len();
        let reach = [80, 80, length][random.random_range(0..3)].min(length);
        let place = random.random_range(0..reach);
        let part = place..(place + random.random_range(1..40)).min(length);
        match random.random_range(0..7) {
            0..3 => bytes[place] ^= 1 << random.random_range(0..8),
            3 => bytes[place] = [0, 0xff, 0x80, 0x81, 0x7f][random.random_range(0..5)],
            4 => bytes.truncate(place.max(1)),
            5 => bytes[part].fill(random.random()),
            _ => {
                let (copied, at) = (bytes[part].to_vec(), random.random_range(0..=length));
                bytes.splice(at..at, copied);
            }
        }
    }
}

/// Uses the key like any other; a filter may have been made of the damage.
fn exercise(c: &mut Connection, key: &str) {
    let mut pipe = redis::pipe();
    for item in 0..20 {
        for command in ["CF.ADD", "CF.EXISTS", "CF.DEL"] {
            pipe.cmd(command).arg(key).arg(item).ignore();
        }
    }
    pipe.cmd("CF.INFO").arg(key).ignore();
    pipe.cmd("MEMORY").arg("USAGE").arg(key).ignore();
    pipe.cmd("CF.COMPACT").arg(key).ignore();
    // An incomplete filter refuses all this.
    let _ = pipe.query::<Value>(c);
}

#[test]
fn server_survives_damaged_dumps() {
    let server = Server::start(&[]);
    let c = &mut server.connect();
    let random = &mut SmallRng::seed_from_u64(3);
    line(c, "CF.ADD small a");
    in_batches(c, "CF.ADD", "f", 0..3_000);
    let images = ["small", "f"].map(|key| dump(c, key).remove(0).1);
    load(c, "part", &(100, images[1][..100].to_vec())).expect("it begins well");
    let payloads = ["small", "f", "part"].map(|key| ask::<Vec<u8>>(c, "DUMP", &[key]));
    let checksum = Crc::<u64>::new(&CRC_64_REDIS);
    let mut accepted = 0;
    for round in 0..ROUNDS {
        let mut payload = payloads[round % payloads.len()].clone();
        payload.truncate(payload.len() - 8);
        mutate(&mut payload, random);
        // The server's own checksum is right, so that the module sees the damage.
        payload.extend(checksum.checksum(&payload).to_le_bytes());
        let mut restore = redis::cmd("RESTORE");
        restore.arg("r").arg(0).arg(payload).arg("REPLACE");
        accepted += usize::from(restore.query::<Value>(c).is_ok());
        exercise(c, "r");
    }
    println!("{ROUNDS} damaged payloads: {accepted} were restored");

    accepted = 0;
    for round in 0..ROUNDS {
        let mut image = images[round % images.len()].clone();
        mutate(&mut image, random);
        if image.len() > 56 && round % 4 < 3 {
            // The filter's checksums are right, too: that of the header, and that of the whole.
            image = with_right_checksums(image, 40);
        }
        line(c, "DEL r");
        let half = random.random_range(1..=image.len());
        for (end, part) in [(half, &image[..half]), (image.len(), &image[half..])] {
            let loaded = load(c, "r", &(end as u64, part.to_vec()));
            accepted += usize::from(end == image.len() && loaded.is_ok());
        }
        exercise(c, "r");
    }
    println!("{ROUNDS} damaged chunks: of {accepted} the last part was accepted");

    // The server answers as before, and has taken no more memory than it needs.
    line(c, "DEL r");
    assert_eq!(line(c, "CF.EXISTS small a"), Value::Int(1));
    assert!(!server.log().contains("panicked"), "{}", server.log());
    let peak = server.info("used_memory_peak");
    assert!(peak < 100 << 20, "{peak} bytes");
}
