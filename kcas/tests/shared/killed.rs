//! Processes that are killed. Each worker is this program again, as this one test.

use std::os::unix::process::{ExitStatusExt, parent_id};
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

/// A process that is killed when it is dropped.
struct Worker(Child);

impl Worker {
    fn kill(&mut self) {
        self.0.kill().unwrap();
        let status = self.0.wait().unwrap();
        assert_eq!(status.signal(), Some(9), "a worker has ended: {status}");
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill().and_then(|()| self.0.wait());
    }
}

/// Moves amounts between words, so that their sum stays the same, until it is killed or the test has ended.
fn work(path: &str) {
    let parent = parent_id();
    let array = WordArray::open(path.as_ref()).unwrap();
    let run = || {
        let mut rng = StdRng::seed_from_u64(rand::random());
        while parent_id() == parent {
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

fn spawn(file: &File) -> Worker {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "killed::sum_is_kept_by_killed_processes"]);
    command.env(VARIABLE, &file.0).stdout(Stdio::null());
    Worker(command.spawn().unwrap())
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
        workers[killed.clone()].iter_mut().for_each(Worker::kill);
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
    workers.iter_mut().for_each(Worker::kill);
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
