//! Files into which another process has written anything: every call ends, and none panics.

use std::env;
use std::os::unix::fs::FileExt;

use kcas::shared::{Shared, USER};
use kcas::{Entry, WordArray};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::File;

const WORDS: usize = 6;
/// Where records and words begin in a file, and the number of words of a record.
const RECORDS: u64 = 512;
const TABLE: u64 = 1 << 18;
const RECORD: u64 = 32;
/// Ids that damaged records belong to: those of the calls, and others.
const IDS: u64 = 12;

/// Returns a number such as words and records have, with a small sequence number, or any.
fn number(rng: &mut StdRng) -> u64 {
    let id = rng.random_range(0..IDS) << 49;
    let sequence = rng.random_range(0..4);
    match rng.random_range(0..10) {
        0 => [u64::MAX, rng.random()][rng.random_range(0..2)],
        1 => rng.random::<u64>() >> rng.random_range(0..64),
        2..4 => rng.random_range(0..WORDS as u64 + 1),
        // A status, or a number of installations.
        4 => sequence << 2 | rng.random_range(0..4),
        5 => sequence,
        // A confirmed tag, an owner's, an installation.
        6 => 1 << 63 | id | sequence,
        7 => 1 << 63 | 1 << 61 | id | sequence,
        8 => 1 << 63 | 1 << 62 | id | sequence,
        _ => rng.random_range(0..3),
    }
}

fn damage(file: &std::fs::File, rng: &mut StdRng) {
    let write = |word: u64, value: u64| {
        file.write_all_at(&value.to_ne_bytes(), 8 * word).unwrap();
    };
    for _ in 0..1 << rng.random_range(0..8) {
        let word = match rng.random_range(0..4) {
            0 => TABLE + rng.random_range(0..WORDS as u64),
            _ => RECORDS + rng.random_range(0..IDS) * RECORD + rng.random_range(0..RECORD),
        };
        write(word, number(rng));
    }
    if rng.random_range(0..4) == 0 {
        // The number of ids.
        write(64, number(rng));
    }
}

fn call(array: &WordArray<Shared>, rng: &mut StdRng) {
    let index = rng.random_range(0..WORDS - 3);
    match rng.random_range(0..6) {
        0 => drop(
            array
                .compare_exchange(index, array.load(index), rng.random_range(0..3))
                .ok(),
        ),
        1 => drop(array.take_over_all()),
        2 => drop(array.load_helping(index)),
        _ => {
            let entries = [0, 1, 2].map(|at| {
                let expected = array.load(index + at);
                Entry::new(index + at, expected, rng.random_range(0..3))
            });
            let _ = if rng.random() {
                array.kcas(&entries)
            } else {
                array.kcas_by_dcss(&entries)
            };
        }
    }
}

#[test]
fn calls_on_damaged_file_end() {
    let regions = env::var("DAMAGED_REGIONS").map_or(50, |regions| regions.parse().unwrap());
    let first: u64 =
        env::var("DAMAGED_SEED").map_or_else(|_| rand::random(), |seed| seed.parse().unwrap());
    let mut noticed = 0;
    for seed in (0..regions).map(|nth| first.wrapping_add(nth)) {
        println!("DAMAGED_REGIONS=1 DAMAGED_SEED={seed}");
        let mut rng = StdRng::seed_from_u64(seed);
        let file = File::new("damaged");
        drop(WordArray::create(&file.0, WORDS, [0; USER]).unwrap());
        let opened = std::fs::File::options().write(true).open(&file.0).unwrap();
        damage(&opened, &mut rng);
        let array = file.open();
        for _ in 0..20 {
            call(&array, &mut rng);
        }
        damage(&opened, &mut rng);
        for _ in 0..20 {
            call(&array, &mut rng);
        }
        noticed += u64::from(array.is_damaged());
    }
    println!("{noticed} of {regions} were found to be damaged");
    assert!(regions < 100 || noticed > regions / 4);
}
