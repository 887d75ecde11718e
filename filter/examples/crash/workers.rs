//! Workers, and what kills them.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{env, fs, io, process, thread};

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

/// A worker, and how many keys it has inserted for certain.
struct Worker {
    process: Child,
    inserted: Arc<AtomicU64>,
}

fn start(path: &Path, worker: u64, inserted: Arc<AtomicU64>) -> Result<Worker> {
    let from = inserted.load(Ordering::Relaxed);
    let mut command = Command::new(env::current_exe()?);
    command
        .arg(path)
        .args([worker, from].map(|number| number.to_string()));
    let mut process = command.stdout(Stdio::piped()).spawn()?;
    let lines = BufReader::new(process.stdout.take().context("a pipe")?).lines();
    let count = Arc::clone(&inserted);
    thread::spawn(move || {
        for number in lines
            .map_while(io::Result::ok)
            .filter_map(|line| line.parse().ok())
        {
            count.fetch_max(number, Ordering::Relaxed);
        }
    });
    Ok(Worker { process, inserted })
}

fn crash(seconds: u64) -> Result<()> {
    let folder = Path::new("/dev/shm");
    let folder = if folder.is_dir() {
        folder.to_owned()
    } else {
        env::temp_dir()
    };
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
    let begin = |worker| start(path, worker, Arc::default());
    let mut workers = (0..WORKERS).map(begin).collect::<Result<Vec<_>>>()?;
    let (begun, mut kills) = (Instant::now(), 0);
    while begun.elapsed() < Duration::from_secs(seconds) {
        thread::sleep(Duration::from_millis(20));
        let worker = kills % WORKERS;
        let killed = &mut workers[worker as usize];
        killed.process.kill()?;
        killed.process.wait()?;
        *killed = start(path, worker, Arc::clone(&killed.inserted))?;
        kills += 1;
        if kills % 50 == 0 {
            println!("{kills} processes killed, {} keys", filter.len());
        }
    }
    for worker in &mut workers {
        worker.process.kill()?;
        worker.process.wait()?;
    }
    let keys = workers.iter().zip(0..).flat_map(|(worker, name)| {
        (0..worker.inserted.load(Ordering::Relaxed)).map(move |number| key(name, number))
    });
    let (inserted, lost) = keys.fold((0, 0), |(inserted, lost), key| {
        (inserted + 1, lost + u64::from(!filter.contains(&key)))
    });
    println!("{kills} processes killed, {inserted} keys inserted, {lost} keys lost");
    ensure!(lost == 0, "keys were lost");
    Ok(())
}
