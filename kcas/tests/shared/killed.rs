//! Processes that are killed. Each worker is this program again, as this one test.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, thread};

use kcas::shared::{Shared, USER};
use kcas::{Entry, WordArray};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::File;

const WORDS: usize = 8;
const SUM: u64 = 1_000 * WORDS as u64;
const VARIABLE: &str = "KCAS_SHARED_WORKER";

/// Moves amounts between words, so that their sum stays the same, until it is killed.
fn work(path: &str) {
    let array = WordArray::open(path.as_ref()).unwrap();
    let run = || {
        let mut rng = StdRng::seed_from_u64(rand::random());
        loop {
            let first = rng.random_range(0..WORDS);
            let entries = [0, 1, 2].map(|at| {
                let index = (first + at) % WORDS;
                Entry::new(index, array.load(index), 0)
            });
            let amount = rng.random_range(0..=entries[0].expected);
            let new = [
                entries[0].expected - amount,
                entries[1].expected,
                entries[2].expected + amount,
            ];
            let entries: Vec<_> = entries
                .iter()
                .zip(new)
                .map(|(entry, new)| Entry { new, ..*entry })
                .collect();
            let _ = array.kcas(&entries);
        }
    };
    thread::scope(|threads| {
        threads.spawn(run);
        threads.spawn(run);
    });
}

fn spawn(file: &File) -> Child {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "killed::sum_is_kept_by_killed_processes"]);
    command
        .env(VARIABLE, &file.0)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

fn sum(array: &WordArray<Shared>) -> u64 {
    (0..WORDS).map(|index| array.load(index)).sum()
}

/// Four processes move amounts, and one after another is killed. What they leave is taken over, and no amount is lost.
#[test]
fn sum_is_kept_by_killed_processes() {
    if let Ok(path) = env::var(VARIABLE) {
        return work(&path);
    }
    let seconds = env::var("STORM_SECONDS").map_or(3, |seconds| seconds.parse().unwrap());
    let file = File::new("killed");
    let array = WordArray::create(&file.0, WORDS, [0; USER]).unwrap();
    (0..WORDS).for_each(|index| assert!(array.exchange_raw(index, 0, 1_000)));
    let mut workers: Vec<_> = (0..4).map(|_| spawn(&file)).collect();
    let (start, mut kills, mut with_tags) = (Instant::now(), 0, 0);
    while start.elapsed() < Duration::from_secs(seconds) {
        thread::sleep(Duration::from_millis(rand::random_range(0..30)));
        // Mostly one, sometimes all.
        let killed = if kills % 8 == 7 {
            0..4
        } else {
            kills % 4..kills % 4 + 1
        };
        for worker in &mut workers[killed.clone()] {
            worker.kill().unwrap();
            worker.wait().unwrap();
        }
        kills += killed.len();
        if killed.len() == 4 {
            let is_tag = |index| array.load_raw(index) >> 63 == 1;
            with_tags += usize::from((0..WORDS).any(is_tag));
            array.take_over_all().unwrap();
            assert!(!(0..WORDS).any(is_tag), "a tag is left");
            assert_eq!(sum(&array), SUM);
        }
        killed.for_each(|nth| workers[nth] = spawn(&file));
    }
    for mut worker in workers {
        worker.kill().unwrap();
        worker.wait().unwrap();
    }
    array.take_over_all().unwrap();
    assert_eq!(sum(&array), SUM);
    assert!(!array.is_damaged());
    println!(
        "{kills} kills; tags were left after {with_tags} of them; {} ids",
        array.ids_used()
    );
    // Four workers of two threads, and this process.
    assert!(array.ids_used() <= 64, "{} ids", array.ids_used());
}
