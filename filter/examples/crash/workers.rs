//! Workers, and what kills them.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, process, thread};

use anyhow::{Context, Result, bail, ensure};
use filter::CuckooFilter;

const WORKERS: u64 = 8;
const KEYS: usize = 4_000_000;
const SECONDS: u64 = 10;
/// Keys of a worker between two numbers that it prints.
const STEP: u64 = 100;

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    match arguments {
        [] => crash(SECONDS),
        [seconds] => crash(seconds.parse()?),
        [path, worker, from] => work(Path::new(path), worker.parse()?, from.parse()?),
        _ => bail!("usage: crash [SECONDS]"),
    }
}

fn key(worker: u64, number: u64) -> (u64, u64) {
    (worker, number)
}

/// Inserts the keys of a worker, from this number on, until it is killed or the filter is nearly full.
fn work(path: &Path, worker: u64, from: u64) -> Result<()> {
    let filter = CuckooFilter::builder().open_shared(path)?;
    for number in from..KEYS as u64 / WORKERS {
        // The killed worker may have inserted some of these, after the last number that it printed.
        filter.insert_if_absent(&key(worker, number))?;
        if (number + 1) % STEP == 0 {
            println!("{}", number + 1);
        }
    }
    loop {
        thread::park();
    }
}

/// A worker, and how many keys those before it have inserted for certain.
struct Worker(Child, u64);

impl Worker {
    fn start(path: &Path, worker: u64, from: u64) -> Result<Worker> {
        let mut command = Command::new(env::current_exe()?);
        let numbers = [worker, from].map(|number| number.to_string());
        let process = command.arg(path).args(numbers).stdout(Stdio::piped());
        Ok(Worker(process.spawn()?, from))
    }

    /// Returns the last number that it has printed. (The pipe has room for all of them.)
    fn kill(mut self) -> Result<u64> {
        self.0.kill()?;
        let printed = String::from_utf8(self.0.wait_with_output()?.stdout)?;
        Ok(printed.lines().last().map_or(Ok(self.1), str::parse)?)
    }
}

fn crash(seconds: u64) -> Result<()> {
    let folder = Path::new("/dev/shm").canonicalize();
    let folder = folder.unwrap_or_else(|_| env::temp_dir());
    let path = folder.join(format!("crash-{}", process::id()));
    let result = kill_workers(&path, seconds);
    let lock = PathBuf::from(format!("{}.lock", path.display()));
    fs::remove_file(&path).and(fs::remove_file(lock))?;
    result
}

fn kill_workers(path: &Path, seconds: u64) -> Result<()> {
    let filter = CuckooFilter::builder()
        .capacity(KEYS)
        .open_or_create_shared(path)?;
    let begin = |worker| Worker::start(path, worker, 0);
    let mut workers = (0..WORKERS).map(begin).collect::<Result<VecDeque<_>>>()?;
    let (begun, mut kills) = (Instant::now(), 0);
    while begun.elapsed() < Duration::from_secs(seconds) {
        thread::sleep(Duration::from_millis(20));
        let inserted = workers.pop_front().context("a worker")?.kill()?;
        workers.push_back(Worker::start(path, kills % WORKERS, inserted)?);
        kills += 1;
        if kills % 50 == 0 {
            println!("{kills} processes killed, {} keys", filter.len());
        }
    }
    let (mut inserted, mut lost) = (0, 0);
    for (worker, name) in workers.into_iter().zip(kills..) {
        let count = worker.kill()?;
        let is_lost = |number: &u64| !filter.contains(&key(name % WORKERS, *number));
        lost += (0..count).filter(is_lost).count();
        inserted += count;
    }
    println!("{kills} processes killed, {inserted} keys inserted, {lost} keys lost");
    ensure!(lost == 0, "keys were lost");
    Ok(())
}
