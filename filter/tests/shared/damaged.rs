//! Files into which another process has written anything: every call ends, and none panics.

use std::env;

use nix::unistd::alarm;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::region::calls_on_damaged_file;
use crate::worker::{self, Worker};

const TEST: &str = "damaged::calls_on_damaged_file_end";

/// Makes all calls on files with these seeds, in a process that ends if they last too long.
fn work(task: &str) {
    let (first, regions) = task.split_once(' ').unwrap();
    let (first, regions): (u64, u64) = (first.parse().unwrap(), regions.parse().unwrap());
    let mut noticed = 0;
    for nth in 0..regions {
        let seed = first.wrapping_add(nth);
        println!("DAMAGED_SEED={seed}");
        let mut bytes = [0; 4_096];
        StdRng::seed_from_u64(seed).fill_bytes(&mut bytes);
        alarm::set(20);
        noticed += u64::from(calls_on_damaged_file(&bytes));
    }
    alarm::cancel();
    println!("{noticed} of {regions} were found to be damaged");
    assert!(regions < 100 || noticed > regions / 4);
}

/// `DAMAGED_REGIONS` says how many files, `DAMAGED_SEED` which is the first.
#[test]
fn calls_on_damaged_file_end() {
    if let Some(task) = worker::task() {
        return work(&task);
    }
    let number = |name| env::var(name).map(|value| value.parse::<u64>().unwrap());
    let regions = number("DAMAGED_REGIONS").unwrap_or(500);
    let first = number("DAMAGED_SEED").unwrap_or_else(|_| rand::random());
    let mut worker = Worker::start(TEST, &format!("{first} {regions}"));
    let last = worker
        .lines()
        .filter(|line| line.contains("DAMAGED_SEED=") || line.contains(" were found"))
        .last();
    println!("{last:?}");
    let status = worker.process.wait().unwrap();
    assert!(status.success(), "{last:?}: {status}");
}
