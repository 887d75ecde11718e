//! The `processes` study: one filter in a file that processes share (the figure of that name).
//!
//! Each round starts processes of its own for each subject, pinned like threads. First, all processes of one subject
//! work for some milliseconds, then those of the next. Later, a process is killed, at least 10 ms after the last, and
//! another takes its place; and at last one after another is stopped for 10 ms. They report through a second shared
//! file, the *board*, which outlives them, so it shows which keys a killed process had for certain.
//!
//! Clients of Redis run this program, as do the processes of the lock-free filter and of robust mutexes.
//! `pybloomfiltermmap3` is compared with the lock-free filter in one loop of Python, in cases of their own: both ratios
//! contain the time of the interpreter.

mod rivals;

use std::hint::black_box;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};
use std::{array, env};

use anyhow::{Context, Result, bail};
use clap::Args;
use figures::plot::Scale;
use figures::stats::Summary;
use filter::CuckooFilter;
use filter::shared::SharedCuckooFilter;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use robust_locks::RobustCuckooFilter;
use serde::{Deserialize, Serialize};
use shared_memory::Mapping;

use self::rivals::{PIPELINED, PYBLOOM, REDIS, Redis, Rival};
use super::{described, seconds, within};
use crate::machine::{Cores, Waits};
use crate::row::Sample;
use crate::sheet::ascending;
use crate::study::{Better, Extras, Quantity, Study, Task, all_places, unchecked};
use crate::subjects::original;
use crate::wording::{counted, grouped};
use crate::worker::{self, Worker};

/// Measure one filter that several processes share: throughput, and what happens when they are killed or stopped.
///
/// The shared lock-free filter is compared with a cuckoo filter of the same layout under robust mutexes, also in a
/// file. Each process looks up, inserts and removes keys of its own at a load of 0.9. A lost key is an error, except
/// with pybloomfiltermmap3.
///
/// `--with redis` adds a cuckoo filter in a Redis server, on a Unix socket and without persistence. `Redis` sends one
/// call per round trip, as a worker does that needs each answer before it continues. `Redis, pipelined` sends ten
/// calls, as a worker with independent calls can. Clients are killed and stopped, never the server: if it is killed,
/// all keys are lost.
///
/// `--with pybloomfiltermmap3` adds a Bloom filter for Python, and the lock-free filter in the same loop of Python. A
/// Bloom filter cannot remove keys: this one inserts two keys instead, until it has twice as many as at first, and then
/// the same keys again.
///
/// Prints a table, and writes processes.csv, processes.machine.toml and processes.svg. Takes five minutes, or 20 with
/// all rivals, and needs the cores to itself. Ctrl-C ends it after the current part, and keeps what is finished.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
pub struct Processes {
    /// Numbers of processes, separated by commas.
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values = ["1", "2", "4", "8"], value_parser = within(1..=64))]
    pub processes: Vec<usize>,
    /// Buckets of each filter, of four slots.
    #[arg(long, value_name = "N", default_value_t = 1 << 16, value_parser = within(64..=1 << 24))]
    pub buckets: usize,
    /// Seconds per phase (turns, kills, stops), for each subject and number of processes.
    #[arg(long, value_name = "S", default_value = "1", value_parser = as_number, allow_negative_numbers = true)]
    pub seconds: f64,
    /// Rivals that need other programs, separated by commas.
    #[arg(long, value_name = "RIVAL,…", value_delimiter = ',')]
    #[serde(default)]
    pub with: Vec<Rival>,
}

fn as_number(text: &str) -> Result<f64> {
    Ok(seconds(text)?.as_secs_f64())
}

const LESS: Option<Better> = Some(Better::Less);
const LOG: Option<Scale> = Some(Scale::Log);

const MORE: Option<Better> = Some(Better::More);
const THROUGHPUT: Quantity = Quantity::new("throughput, million/s", MORE, LOG);
/// How long a process completed none of its operations, without the time for which its own core was taken.
const WAIT: Quantity = Quantity::new("longest wait for another, ms", LESS, LOG);
const GAP: Quantity = Quantity::new("longest gap of all, ms", None, None);
const OPENING: Quantity = Quantity::new("until the first answer, µs", LESS, LOG);
const LOST: Quantity = Quantity::new("keys lost", None, None);
const ENDED: Quantity = Quantity::new("processes killed or stopped", None, None);

const WORKING: &str = "eight lookups, an insert and a remove in turn";
const KILLED: &str = "one process after another killed, at least 10 ms apart";
const STOPPED: &str = "one process after another stopped for 10 ms";
const OPENED: &str = "opening the file";

pub static STUDY: Study<Processes> = Study {
    name: "processes",
    title: "One filter that processes share, while some are killed or stopped",
    question: "What do processes that share a filter gain from lock freedom, and what does it cost?",
    check: unchecked,
    subjects: |study, _| {
        let mut subjects = described(&SUBJECTS)?;
        for rival in &study.with {
            subjects.extend(rival.subjects()?);
        }
        Ok(subjects)
    },
    alone: false,
    parts: |study| {
        let numbers = study.processes.iter();
        numbers.map(|number| counted(*number, "process")).collect()
    },
    measure: |study, task, _| study.measure(task),
    quantities: &[THROUGHPUT, WAIT, OPENING, GAP, LOST, ENDED],
    axis: |_| ("processes", Scale::Log),
    tabled: all_places,
    how: |study| {
        format!(
            "Filters of {} slots at load 0.9; more than {} are oversubscribed. A wait is the longest time in which a surviving \
             process completes no operation, minus the time when others had its core.",
            grouped(4 * study.buckets as u64),
            counted(Cores::detect().count(), "process"),
        )
    },
    extras: Extras {
        complete: |_, sheet| {
            let figure = sheet.figure.iter_mut();
            for panel in figure.flat_map(|figure| &mut figure.panels) {
                let points = panel.series.iter().flat_map(|series| &series.points);
                panel.places = ascending(points.map(|(place, _)| *place));
            }
        },
        judge: |samples| {
            // Two processes that insert into a Bloom filter of `pybloomfiltermmap3` at once can lose a key: setting a
            // bit is not atomic.
            let is_lost = |sample: &&Sample| {
                sample.quantity == LOST.name && sample.value > 0.0 && sample.subject != PYBLOOM
            };
            match samples.iter().find(is_lost) {
                Some(Sample { subject, value, .. }) => bail!("{subject} has lost {value} keys"),
                None => Ok(()),
            }
        },
    },
};

/// The kind of the processes that share a filter.
pub const MEMBER: &str = "processes-member";

const LOCK_FREE: &str = "shared lock-free";
const ROBUST: &str = "robust mutexes";

/// What is always compared, ours first.
const SUBJECTS: [(&str, &str); 2] = [
    (
        LOCK_FREE,
        "the lock-free filter in a file that processes share",
    ),
    (
        ROBUST,
        "a cuckoo filter of the same layout in a file, under 1,024 robust mutexes, with a journal for moves; lookups take no lock",
    ),
];

/// A filter in a file.
trait InFile {
    fn call(&self, call: Call, key: u64) -> bool;

    /// Makes a call for each key. Returns how many answers were false.
    fn count_false(&self, call: Call, keys: impl Iterator<Item = u64>) -> u64 {
        keys.map(|key| u64::from(!self.call(call, key))).sum()
    }

    /// Makes the calls of a turn. Returns how many answers were wrong.
    #[inline(always)]
    fn work(&self, turn: &Turn) -> u64 {
        let is_false = |call, key| u64::from(!self.call(call, key));
        let pairs = turn.present.iter().zip(turn.absent);
        let missing = pairs.map(|(present, absent)| {
            black_box(self.call(Call::Contains, absent));
            is_false(Call::Contains, *present)
        });
        let missing: u64 = missing.sum();
        missing + is_false(Call::Insert, turn.insert) + is_false(Call::Remove, turn.remove)
    }
}

/// Keys of ten calls that do not depend on each other.
struct Turn {
    present: [u64; 4],
    absent: [u64; 4],
    insert: u64,
    remove: u64,
}

#[derive(Clone, Copy)]
enum Call {
    Contains,
    Insert,
    Remove,
}

impl InFile for SharedCuckooFilter {
    #[inline(always)]
    fn call(&self, call: Call, key: u64) -> bool {
        match call {
            Call::Contains => self.contains(&key),
            Call::Insert => self.insert(&key).is_ok(),
            Call::Remove => self.remove(&key) == Ok(true),
        }
    }
}

impl InFile for RobustCuckooFilter {
    #[inline(always)]
    fn call(&self, call: Call, key: u64) -> bool {
        match call {
            Call::Contains => self.contains(&key),
            Call::Insert => self.insert(&key),
            Call::Remove => self.remove(&key),
        }
    }
}

/// A shared file of words, 16 for each process.
struct Board(Mapping);

const LINE: usize = 16;

/// What it is to do, and 1 once it has looked and done it.
const ACTION: usize = 0;
const DONE: usize = 1;
/// The keys from `LOW` up to `HIGH` are in the filter for certain.
const LOW: usize = 2;
const HIGH: usize = 3;
const OPERATIONS: usize = 4;
const WRONG_ANSWERS: usize = 5;
/// How often it has been stopped.
const STOPS: usize = 6;
/// Times in ns: the longest without an operation, with and without the time in which it had no core; from opening the
/// file to the first answer.
const GAP_NS: usize = 7;
const WAIT_NS: usize = 8;
const FIRST_ANSWER_NS: usize = 9;

/// What processes do: nothing, fill the filter, look up their keys, work, or work and measure gaps.
const REST: u64 = 1;
const FILL: u64 = 2;
const CHECK: u64 = 3;
const WORK: u64 = 4;
const WORK_TIMED: u64 = 5;

impl Board {
    fn open(path: &Path, processes: usize) -> Result<Self> {
        let file = shared_memory::open(path, true)?;
        Ok(Self(Mapping::new(&file, LINE * processes)?))
    }

    fn words(&self, process: usize) -> &[AtomicU64] {
        &self.0[LINE * process..][..LINE]
    }

    fn set(&self, word: usize, value: u64) {
        // Relaxed, as are all accesses to a board: the words are independent numbers.
        let lines = self.0.chunks_exact(LINE);
        lines.for_each(|line| line[word].store(value, Ordering::Relaxed));
    }

    fn values(&self, word: usize) -> impl Iterator<Item = u64> {
        let lines = self.0.chunks_exact(LINE);
        lines.map(move |line| line[word].load(Ordering::Relaxed))
    }
}

/// The task of a process that shares a filter.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Member {
    subject: String,
    folder: PathBuf,
    buckets: usize,
    process: usize,
    processes: usize,
    seed: u64,
    is_in_python: bool,
}

/// Serves in a process that shares a filter, or as their server.
pub fn serve_member(worker: &Worker) -> Result<()> {
    // Whatever happens to the process that leads.
    set_pdeathsig(Signal::SIGKILL)?;
    let member: Member = worker.task()?;
    let (file, buckets) = (member.path("file"), member.buckets);
    if member.process == member.processes {
        return Err(rivals::server(&file).exec().into());
    }
    Cores::detect().pin(member.process);
    match original(&member.subject) {
        _ if member.is_in_python => {
            let [process, processes] = [member.process, member.processes].map(|count| count as u64);
            let numbers = [process, processes, member.seed, member.keys() as u64];
            let mut command = rivals::python_member();
            command.arg(&member.subject);
            command.args([file, member.path("board")]);
            command.args(numbers.map(|number| number.to_string()));
            Err(command.exec().into())
        }
        LOCK_FREE => member.serve(|| {
            let builder = CuckooFilter::builder().buckets(buckets);
            Ok(builder.open_or_create_shared(&file)?)
        }),
        REDIS => member.serve(|| Ok(Redis::connect(&file, 1)?)),
        PIPELINED => member.serve(|| Ok(Redis::connect(&file, 10)?)),
        _ => member.serve(|| Ok(RobustCuckooFilter::open_or_create(&file, buckets)?)),
    }
}

impl Member {
    /// Returns the path of one of the files of this subject and language.
    fn path(&self, what: &str) -> PathBuf {
        let subject = self.case(&self.subject);
        self.folder.join(format!("{subject} {what}"))
    }

    fn case(&self, text: &str) -> String {
        let language = if self.is_in_python { ", in Python" } else { "" };
        text.to_owned() + language
    }

    /// Returns how many keys all processes have at first.
    fn keys(&self) -> usize {
        self.buckets * 4 * 9 / 10
    }

    fn key(&self, number: u64) -> u64 {
        self.seed + number * self.processes as u64 + self.process as u64
    }

    /// Opens the filter, looks a key up, and acts whenever a byte comes.
    fn serve<F: InFile>(&self, open: impl FnOnce() -> Result<F>) -> Result<()> {
        let board = Board::open(&self.path("board"), self.processes)?;
        let own = board.words(self.process);
        let known = self.key(own[LOW].load(Ordering::Relaxed));
        let start = Instant::now();
        let filter = open()?;
        black_box(filter.call(Call::Contains, known));
        own[FIRST_ANSWER_NS].store(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
        let mut random = SmallRng::seed_from_u64(self.seed ^ self.process as u64);
        loop {
            let action = own[ACTION].load(Ordering::Relaxed);
            self.act(&filter, own, action, &mut random);
            own[DONE].store(1, Ordering::Relaxed);
            if io::stdin().read(&mut [0])? == 0 {
                return Ok(());
            }
        }
    }

    /// Works as long as that is the action. (If it was killed in an insert, its successor inserts that key again.)
    fn act(&self, filter: &impl InFile, own: &[AtomicU64], action: u64, random: &mut SmallRng) {
        /// The numbers of keys that are never inserted.
        const ABSENT: u64 = 1 << 40;
        let get = |word: usize| own[word].load(Ordering::Relaxed);
        let set = |word: usize, value| own[word].store(value, Ordering::Relaxed);
        let raise = |word, value: u64| set(word, value.max(get(word)));
        let [mut low, mut high] = [LOW, HIGH].map(get);
        let own_keys = (low..high).map(|number| self.key(number));
        let wrong = match action {
            FILL => filter.count_false(Call::Insert, own_keys),
            CHECK => filter.count_false(Call::Contains, own_keys),
            _ => 0,
        };
        set(WRONG_ANSWERS, get(WRONG_ANSWERS) + wrong);
        let (mut waits, mut stops, mut last) = (Waits::now(), get(STOPS), Instant::now());
        while action >= WORK && get(ACTION) == action {
            low += 1;
            set(LOW, low);
            let drawn: [u64; 4] = array::from_fn(|_| random.random());
            let wrong = filter.work(&Turn {
                present: drawn.map(|drawn| {
                    let which = drawn & u64::from(u32::MAX);
                    self.key(low + ((which * (high - low)) >> 32))
                }),
                absent: drawn.map(|drawn| self.key(ABSENT + (drawn >> 32))),
                insert: self.key(high),
                remove: self.key(low - 1),
            });
            high += 1;
            set(HIGH, high);
            set(OPERATIONS, get(OPERATIONS) + 10);
            if wrong > 0 {
                set(WRONG_ANSWERS, get(WRONG_ANSWERS) + wrong);
            }
            if action == WORK {
                continue;
            }
            let gap = last.elapsed();
            if gap.as_nanos() as u64 > get(WAIT_NS) {
                // A process that was stopped itself does not count: its number changes before and during each stop.
                if stops == get(STOPS) {
                    raise(GAP_NS, gap.as_nanos() as u64);
                    raise(WAIT_NS, gap.saturating_sub(waits.since()).as_nanos() as u64);
                }
                (waits, stops) = (Waits::now(), get(STOPS));
            }
            last = Instant::now();
        }
    }
}

/// The processes that share a filter; killed when dropped.
struct Team {
    member: Member,
    board: Board,
    processes: Vec<Child>,
    server: Option<Child>,
}

/// Time between two kills, and of a stop.
const PERIOD: Duration = Duration::from_millis(10);

impl Drop for Team {
    fn drop(&mut self) {
        let processes = self.processes.iter_mut();
        processes.chain(&mut self.server).for_each(end);
    }
}

fn end(process: &mut Child) {
    // It may have ended by itself.
    let _ = process.kill().and_then(|()| process.wait());
}

impl Team {
    /// Makes a filter and fills it to a load of 0.9. Then starts the processes again, one after another.
    fn start(member: Member) -> Result<Self> {
        let (path, processes) = (member.path("board"), member.processes);
        let words = LINE * processes;
        let board = shared_memory::create_unnamed(&member.folder, words, words, 0o600)?;
        shared_memory::give_name(&board, &path)?;
        let board = Board::open(&path, processes)?;
        board.set(HIGH, (member.keys() / processes) as u64);
        let mut team = Self {
            member,
            board,
            processes: Vec::new(),
            server: None,
        };
        if [REDIS, PIPELINED].contains(&&*team.member.subject) {
            team.server = Some(team.start_process(processes)?);
            Redis::reserve(&team.member.path("file"), 4 * team.member.buckets)?;
        }
        for action in [FILL, REST] {
            team.processes.iter_mut().for_each(end);
            team.processes.clear();
            team.board.set(DONE, 0);
            team.board.set(ACTION, action);
            for process in 0..processes {
                team.processes.push(team.start_process(process)?);
                team.wait(process, DONE)?;
            }
        }
        Ok(team)
    }

    fn start_process(&self, process: usize) -> Result<Child> {
        let member = Member {
            process,
            ..self.member.clone()
        };
        worker::start(None, MEMBER, &toml::to_string(&member)?)
    }

    /// Waits until a word of a process is not 0.
    fn wait(&mut self, process: usize, word: usize) -> Result<()> {
        while self.board.words(process)[word].load(Ordering::Relaxed) == 0 {
            if self.processes[process].try_wait()?.is_some() {
                let mut error = String::new();
                let errors = self.processes[process].stderr.as_mut();
                errors.map(|errors| errors.read_to_string(&mut error));
                bail!("a process that shared a filter ended: {error}");
            }
            sleep(PERIOD / 100);
        }
        Ok(())
    }

    /// Asks a process to look at the board.
    fn wake(&self, process: usize) -> Result<()> {
        let mut input = self.processes[process].stdin.as_ref().context("an input")?;
        Ok(input.write_all(&[0])?)
    }

    fn begin(&self, action: u64) -> Result<()> {
        self.board.set(DONE, 0);
        self.board.set(ACTION, action);
        (0..self.processes.len()).try_for_each(|process| self.wake(process))
    }

    /// Waits until all are done. One that comes late to work finds that it is over.
    fn end(&mut self) -> Result<()> {
        (0..self.processes.len()).try_for_each(|process| self.wait(process, DONE))
    }

    /// Returns million operations per second of a turn.
    fn take_turn(&mut self, length: Duration) -> Result<f64> {
        let count = |team: &Self| (Instant::now(), team.board.values(OPERATIONS).sum::<u64>());
        self.begin(WORK)?;
        // The processes wake up, and warm their caches.
        sleep(length / 4);
        let (start, before) = count(self);
        sleep(length);
        let (end, after) = count(self);
        self.board.set(ACTION, REST);
        self.end()?;
        Ok((after - before) as f64 / (end - start).as_secs_f64() / 1e6)
    }

    /// Lets the processes work while one after another is killed or stopped. Returns the longest gap in ms with and
    /// without the time without a core, how many were killed or stopped, and how many keys were lost.
    fn disturb(&mut self, seconds: f64, how: Signal) -> Result<[f64; 4]> {
        self.board.set(GAP_NS, 0);
        self.board.set(WAIT_NS, 0);
        self.begin(WORK_TIMED)?;
        let (start, mut disturbed) = (Instant::now(), 0);
        while start.elapsed().as_secs_f64() < seconds {
            sleep(PERIOD);
            let process = disturbed % self.processes.len();
            let words = self.board.words(process);
            if how == Signal::SIGKILL {
                end(&mut self.processes[process]);
                words[FIRST_ANSWER_NS].store(0, Ordering::Relaxed);
                // It finds work on the board. No other process is killed until it works, as Python starts slowly.
                self.processes[process] = self.start_process(process)?;
                self.wait(process, FIRST_ANSWER_NS)?;
            } else {
                let id = Pid::from_raw(self.processes[process].id() as i32);
                let send = |signal| {
                    words[STOPS].fetch_add(1, Ordering::Relaxed);
                    kill(id, signal)
                };
                send(how)?;
                sleep(PERIOD);
                send(Signal::SIGCONT)?;
            }
            disturbed += 1;
        }
        self.board.set(ACTION, REST);
        self.end()?;
        let longest = |word| self.board.values(word).max().unwrap_or_default() as f64 / 1e6;
        let [gap, wait] = [GAP_NS, WAIT_NS].map(longest);
        self.begin(CHECK)?;
        self.end()?;
        let lost = self.board.values(WRONG_ANSWERS).sum::<u64>();
        Ok([wait, gap, disturbed as f64, lost as f64])
    }
}

impl Processes {
    fn measure(&self, task: &Task) -> Result<Vec<Sample>> {
        let processes: usize = task.part.split(' ').next().unwrap_or_default().parse()?;
        let memory = Path::new("/dev/shm").canonicalize();
        let folder = tempfile::tempdir_in(memory.unwrap_or_else(|_| env::temp_dir()))?;
        let random = &mut SmallRng::seed_from_u64(task.seed);
        let seed = u64::from(random.random::<u32>()) << 8;
        let in_python = self.with.contains(&Rival::Pybloomfiltermmap3);
        let is_measured = |(subject, is_in_python): &(&String, bool)| match original(subject) {
            PYBLOOM => *is_in_python,
            LOCK_FREE => in_python || !is_in_python,
            _ => !is_in_python,
        };
        let start = |(subject, is_in_python): (&String, bool)| {
            Team::start(Member {
                subject: subject.clone(),
                folder: folder.path().into(),
                buckets: self.buckets,
                process: 0,
                processes,
                seed,
                is_in_python,
            })
        };
        let subjects = task.subjects.iter();
        let subjects = subjects.flat_map(|subject| [(subject, false), (subject, true)]);
        let teams = subjects.filter(is_measured).map(start);
        let mut teams = teams.collect::<Result<Vec<_>>>()?;
        let mut samples = Vec::new();
        let mut add = |team: &Team, case: &str, quantity: &Quantity, value| {
            let place = (team.member.case(case), processes as f64);
            samples.push(task.sample(&team.member.subject, place, quantity, value));
        };

        let is_oversubscribed = processes > Cores::detect().count();
        let length = PERIOD / 2 * if is_oversubscribed { 8 } else { 1 };
        let mut order: Vec<_> = (0..teams.len()).collect();
        let mut rates = vec![Vec::new(); teams.len()];
        let start = Instant::now();
        while start.elapsed().as_secs_f64() < self.seconds * teams.len() as f64 {
            order.shuffle(random);
            for &at in &order {
                rates[at].push(teams[at].take_turn(length)?);
            }
        }
        for (team, rates) in teams.iter().zip(rates) {
            let opening = team.board.values(FIRST_ANSWER_NS).map(|ns| ns as f64 / 1e3);
            for (case, quantity, values) in [
                (WORKING, &THROUGHPUT, rates),
                (OPENED, &OPENING, opening.collect()),
            ] {
                let values = Summary::new(values).context("there is a process")?;
                add(team, case, quantity, values.median);
            }
        }
        for team in teams.iter_mut().filter(|_| processes > 1) {
            for (case, how) in [(KILLED, Signal::SIGKILL), (STOPPED, Signal::SIGSTOP)] {
                let values = team.disturb(self.seconds, how)?;
                for (quantity, value) in [&WAIT, &GAP, &ENDED, &LOST].into_iter().zip(values) {
                    add(team, case, quantity, value);
                }
            }
        }
        Ok(samples)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::Mutex;

    use super::*;

    /// A set that forgets one of so many keys.
    struct Forgetful(u64, Mutex<HashSet<u64>>);

    impl InFile for Forgetful {
        fn call(&self, call: Call, key: u64) -> bool {
            let mut keys = self.1.lock().unwrap();
            match call {
                Call::Contains => keys.contains(&key),
                Call::Insert => key.is_multiple_of(self.0) || keys.insert(key),
                Call::Remove => keys.remove(&key),
            }
        }
    }

    #[test]
    fn forgotten_keys_are_counted_and_refused() {
        for (one_of, is_right) in [(u64::MAX, true), (50, false)] {
            let member = Member {
                processes: 1,
                seed: 1,
                ..Member::default()
            };
            let own: [AtomicU64; LINE] = Default::default();
            own[HIGH].store(100, Ordering::Relaxed);
            let filter = Forgetful(one_of, Mutex::default());
            let random = &mut SmallRng::seed_from_u64(1);
            for action in [FILL, CHECK] {
                member.act(&filter, &own, action, random);
            }
            let lost = own[WRONG_ANSWERS].load(Ordering::Relaxed) as f64;
            assert_eq!(lost, if is_right { 0.0 } else { 2.0 });
            let sample = Sample {
                quantity: LOST.name.into(),
                value: lost,
                ..Sample::default()
            };
            assert_eq!((STUDY.extras.judge)(&[sample]).is_ok(), is_right);
        }
    }
}
