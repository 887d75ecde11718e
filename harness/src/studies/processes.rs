//! The `processes` study: one filter in a file that processes share (the figure of that name).
//!
//! Each round starts processes of its own for each subject, pinned like threads. First, all processes of a subject work at
//! once for some milliseconds, then those of the next subject. Next, a process is killed every 10 ms and another takes its place;
//! and at last one after another is stopped for 10 ms. Processes report through a second shared file (the *board*), which
//! outlives them, so it also shows which keys a killed process had for certain.

use std::env;
use std::hint::black_box;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
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

use super::{described, seconds, within};
use crate::machine::{Cores, Waits};
use crate::row::Sample;
use crate::sheet::{Sheet, ascending};
use crate::show::Stdout;
use crate::study::{Better, Extras, Quantity, Study, Task, all_places, unchecked};
use crate::subjects::original;
use crate::wording::{counted, grouped};
use crate::worker::{self, Worker};

/// Measure one filter that several processes share: throughput, and what happens when they are killed or stopped.
///
/// The shared lock-free filter is compared with a cuckoo filter of the same layout under robust mutexes, in the same kind of
/// file. Each process looks up, inserts and removes keys of its own at a load of 0.9, and every answer is checked.
///
/// Prints a table, and writes processes.csv, processes.machine.toml and processes.svg. Takes five minutes, and needs the cores to
/// itself. Ctrl-C ends it after the current part, and keeps what is finished.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
pub struct Processes {
    /// Numbers of processes, separated by commas.
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values = ["1", "2", "4", "8"], value_parser = within(1..=64))]
    pub processes: Vec<usize>,
    /// Buckets of each filter, of four slots.
    #[arg(long, value_name = "N", default_value_t = 1 << 16, value_parser = within(64..=1 << 24))]
    pub buckets: usize,
    /// Seconds of turns, of kills and of stops, for each subject and number of processes.
    #[arg(long, value_name = "S", default_value = "1", value_parser = as_number, allow_negative_numbers = true)]
    pub seconds: f64,
}

fn as_number(text: &str) -> Result<f64> {
    Ok(seconds(text)?.as_secs_f64())
}

const LESS: Option<Better> = Some(Better::Less);
const LOG: Option<Scale> = Some(Scale::Log);

const THROUGHPUT: Quantity = Quantity::new(
    "throughput, million/s",
    Some(Better::More),
    Some(Scale::Zero),
);
/// How long a process completed none of its operations, without the time for which its own core was taken.
const LONGEST: Quantity = Quantity::new("longest wait for another, ms", LESS, LOG);
const GAP: Quantity = Quantity::new("longest gap of all, ms", None, None);
const OPENING: Quantity = Quantity::new("until the first answer, µs", LESS, LOG);
const LOST: Quantity = Quantity::new("keys lost", None, None);
const ENDED: Quantity = Quantity::new("processes killed or stopped", None, None);

const WORKING: &str = "eight lookups, an insert and a remove in turn";
const KILLED: &str = "one process killed every 10 ms";
const STOPPED: &str = "one process stopped for 10 ms, every 20 ms";
const OPENED: &str = "opening the file";

pub static STUDY: Study<Processes> = Study {
    name: "processes",
    title: "One filter that processes share, while some are killed",
    question: "What do processes that share a filter gain from lock freedom, and what does it cost?",
    check: unchecked,
    subjects: |_, _| described(&SUBJECTS),
    alone: false,
    parts: |study| {
        let numbers = study.processes.iter();
        numbers.map(|number| counted(*number, "process")).collect()
    },
    measure: |study, task, _| study.measure(task),
    quantities: &[THROUGHPUT, LONGEST, OPENING, GAP, LOST, ENDED],
    axis: |_| ("processes", Scale::Log),
    tabled: all_places,
    how: |study| {
        format!(
            "Filters of {} slots at load 0.9; each process has keys of its own. Waits are the longest of a surviving process, \
             without those for its own core.",
            grouped(4 * study.buckets as u64)
        )
    },
    extras: Extras {
        complete: label_panels,
        judge: |samples| {
            let is_lost = |sample: &&Sample| sample.quantity == LOST.name && sample.value > 0.0;
            match samples.iter().find(is_lost) {
                Some(Sample { subject, value, .. }) => bail!("{subject} has lost {value} keys"),
                None => Ok(()),
            }
        },
        ..Extras::NONE
    },
};

/// Numbers the axes by processes, and shades the panels from more processes than cores on.
fn label_panels(_: &[Sample], sheet: &mut Sheet) {
    let cores = Cores::detect().count() as f64;
    for panel in sheet
        .figure
        .iter_mut()
        .flat_map(|figure| &mut figure.panels)
    {
        let points = panel.series.iter().flat_map(|series| &series.points);
        panel.places = ascending(points.map(|(place, _)| *place));
        let over = panel.places.iter().find(|place| **place > cores);
        panel.shade = over.map(|place| (*place, "more processes than cores".into()));
    }
}

/// The kind of the processes that share a filter.
pub const MEMBER: &str = "processes-member";

const LOCK_FREE: &str = "shared lock-free";
const ROBUST: &str = "robust mutexes";

/// What is compared, ours first.
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
    fn insert(&self, key: u64) -> bool;
    fn contains(&self, key: u64) -> bool;
    fn remove(&self, key: u64) -> bool;
}

impl InFile for SharedCuckooFilter {
    #[inline(always)]
    fn insert(&self, key: u64) -> bool {
        SharedCuckooFilter::insert(self, &key).is_ok()
    }

    #[inline(always)]
    fn contains(&self, key: u64) -> bool {
        SharedCuckooFilter::contains(self, &key)
    }

    #[inline(always)]
    fn remove(&self, key: u64) -> bool {
        SharedCuckooFilter::remove(self, &key) == Ok(true)
    }
}

impl InFile for RobustCuckooFilter {
    #[inline(always)]
    fn insert(&self, key: u64) -> bool {
        RobustCuckooFilter::insert(self, &key)
    }

    #[inline(always)]
    fn contains(&self, key: u64) -> bool {
        RobustCuckooFilter::contains(self, &key)
    }

    #[inline(always)]
    fn remove(&self, key: u64) -> bool {
        RobustCuckooFilter::remove(self, &key)
    }
}

/// Makes an empty filter in a new file.
fn make(subject: &str, path: &Path, buckets: usize) -> Result<Box<dyn InFile>> {
    Ok(match original(subject) {
        LOCK_FREE => {
            let builder = CuckooFilter::builder().buckets(buckets);
            Box::new(builder.open_or_create_shared(path)?)
        }
        ROBUST => {
            RobustCuckooFilter::create(path, buckets)?;
            Box::new(RobustCuckooFilter::open(path)?)
        }
        other => bail!("no shared filter is called {other}"),
    })
}

/// A shared file of words: in the first line what the processes are to do, then a line of each process.
struct Board(Mapping);

/// Words of a line, two cache lines.
const LINE: usize = 16;

/// The words of a process. The keys from `LOW` up to `HIGH` are in the filter for certain.
const LOW: usize = 0;
const HIGH: usize = 1;
const OPERATIONS: usize = 2;
const WRONG_ANSWERS: usize = 3;
/// How often it has been stopped.
const STOPS: usize = 4;
/// Times in ns: without an operation, at the longest; the same without the time in which it had no core; the time without a core
/// in the last turn; from opening the file to the first answer.
const WITHOUT_OPERATION: usize = 5;
const WAITED: usize = 6;
const WITHOUT_CORE: usize = 7;
const FIRST_ANSWER: usize = 8;

/// What processes are to do: wait for another turn, work, or work and measure gaps.
const WAIT: u64 = 0;
const WORK: u64 = 1;
const WORK_TIMED: u64 = 2;

impl Board {
    fn create(path: &Path, processes: usize) -> Result<Self> {
        let folder = path.parent().context("a file is in a folder")?;
        let file = shared_memory::create_unnamed(folder, LINE * (1 + processes), 0o600)?;
        shared_memory::give_name(&file, path)?;
        Self::open(path, processes)
    }

    fn open(path: &Path, processes: usize) -> Result<Self> {
        let file = shared_memory::open(path, true)?;
        Ok(Self(Mapping::new(&file, LINE * (1 + processes))?))
    }

    fn action(&self) -> &AtomicU64 {
        &self.0[0]
    }

    fn of(&self, process: usize) -> &[AtomicU64; LINE] {
        let line = self.0[LINE * (1 + process)..].first_chunk();
        line.expect("each process has a line")
    }

    /// Returns a word of each process.
    fn all(&self, word: usize) -> impl Iterator<Item = &AtomicU64> {
        let lines = self.0.chunks_exact(LINE).skip(1);
        lines.map(move |line| &line[word])
    }

    /// Returns the values of a word of each process.
    fn values(&self, word: usize) -> impl Iterator<Item = u64> {
        // Relaxed, as are all accesses to a board: the words are independent numbers.
        self.all(word).map(|word| word.load(Ordering::Relaxed))
    }
}

/// The task of a process that shares a filter.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Member {
    subject: String,
    filter: PathBuf,
    board: PathBuf,
    process: usize,
    processes: usize,
    seed: u64,
}

/// Serves in a process that shares a filter.
pub fn serve_member(worker: &Worker) -> Result<()> {
    // Whatever happens to the process that leads.
    set_pdeathsig(Signal::SIGKILL)?;
    let member: Member = worker.task()?;
    match original(&member.subject) {
        LOCK_FREE => member.serve(|path| Ok(CuckooFilter::builder().open_shared(path)?)),
        _ => member.serve(|path| Ok(RobustCuckooFilter::open(path)?)),
    }
}

impl Member {
    /// Returns a key of a process.
    fn key(&self, process: usize, number: u64) -> u64 {
        self.seed + number * self.processes as u64 + process as u64
    }

    /// Opens the filter, and works whenever it is asked to by a byte, which it answers at the end.
    fn serve<F: InFile>(&self, open: impl FnOnce(&Path) -> Result<F>) -> Result<()> {
        Cores::detect().pin(self.process);
        let board = Board::open(&self.board, self.processes)?;
        let own = board.of(self.process);
        let known = self.key(self.process, own[LOW].load(Ordering::Relaxed));
        let begun = Instant::now();
        let filter = open(&self.filter)?;
        let found = filter.contains(known);
        own[FIRST_ANSWER].store(begun.elapsed().as_nanos() as u64, Ordering::Relaxed);
        own[WRONG_ANSWERS].fetch_add(u64::from(!found), Ordering::Relaxed);
        let mut random = SmallRng::seed_from_u64(self.seed ^ self.process as u64);
        let mut byte = [0];
        loop {
            Stdout.write_all(&byte)?;
            Stdout.flush()?;
            if io::stdin().read(&mut byte)? == 0 {
                return Ok(());
            }
            self.work(&filter, &board, &mut random);
        }
    }

    /// Works, ten operations at a time. If it was killed in an insert, its successor inserts that key again.
    fn work(&self, filter: &(impl InFile + ?Sized), board: &Board, random: &mut SmallRng) {
        /// The numbers of keys that are never inserted.
        const ABSENT: u64 = 1 << 40;
        let own = board.of(self.process);
        let get = |word: usize| own[word].load(Ordering::Relaxed);
        let set = |word: usize, value| own[word].store(value, Ordering::Relaxed);
        let key = |number| self.key(self.process, number);
        let [mut low, mut high, mut operations] = [LOW, HIGH, OPERATIONS].map(get);
        let action = board.action().load(Ordering::Relaxed);
        let (turn, mut stops) = (Waits::now(), get(STOPS));
        let (mut waits, mut longest) = (Waits::now(), 0);
        let mut last = Instant::now();
        while action != WAIT && board.action().load(Ordering::Relaxed) == action {
            let mut wrong = 0;
            for _ in 0..4 {
                let drawn: u64 = random.random();
                let which = drawn & u64::from(u32::MAX);
                let present = low + (which * (high - low) >> 32);
                wrong += u64::from(!filter.contains(key(present)));
                black_box(filter.contains(key(ABSENT + (drawn >> 32))));
            }
            wrong += u64::from(!filter.insert(key(high)));
            high += 1;
            set(HIGH, high);
            low += 1;
            set(LOW, low);
            wrong += u64::from(!filter.remove(key(low - 1)));
            operations += 10;
            set(OPERATIONS, operations);
            if wrong > 0 {
                set(WRONG_ANSWERS, get(WRONG_ANSWERS) + wrong);
            }
            if action != WORK_TIMED {
                continue;
            }
            let gap = last.elapsed();
            if gap.as_nanos() as u64 > longest {
                let waited = gap.saturating_sub(waits.since());
                // A process that was stopped itself does not count.
                if stops == get(STOPS) {
                    longest = longest.max(waited.as_nanos() as u64);
                    set(WAITED, get(WAITED).max(longest));
                    set(
                        WITHOUT_OPERATION,
                        get(WITHOUT_OPERATION).max(gap.as_nanos() as u64),
                    );
                }
                (waits, stops) = (Waits::now(), get(STOPS));
            }
            last = Instant::now();
        }
        set(WITHOUT_CORE, turn.since().as_nanos() as u64);
    }
}

/// A process that shares a filter; killed when dropped.
struct Process {
    child: Child,
    /// Bytes that it owes: one for its start, and one for each request.
    owed: usize,
}

impl Process {
    fn start(member: &Member) -> Result<Self> {
        let child = worker::start(None, MEMBER, &toml::to_string(member)?)?;
        Ok(Self { child, owed: 1 })
    }

    /// Asks it to work.
    fn ask(&mut self) -> Result<()> {
        self.owed += 1;
        let mut input = self.child.stdin.as_ref().context("it has an input")?;
        Ok(input.write_all(&[0])?)
    }

    /// Waits until it has started, and has ended its work.
    fn wait(&mut self) -> Result<()> {
        let output = self.child.stdout.as_mut().context("it has an output")?;
        let answers = output.read_exact(&mut vec![0; self.owed]);
        self.owed = 0;
        answers.or_else(|_| {
            let mut error = String::new();
            let errors = self.child.stderr.as_mut();
            errors.map(|errors| errors.read_to_string(&mut error));
            bail!("a process that shared a filter ended: {error}")
        })
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        Ok(kill(Pid::from_raw(self.child.id() as i32), signal)?)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The processes that share a filter.
struct Team {
    member: Member,
    board: Board,
    filter: Box<dyn InFile>,
    processes: Vec<Process>,
}

/// Time between two kills, and of a stop.
const PERIOD: Duration = Duration::from_millis(10);

impl Team {
    /// Makes a filter and fills it to a load of 0.9. Starts the processes one after another.
    fn start(folder: &Path, buckets: usize, member: Member) -> Result<Self> {
        let member = Member {
            filter: folder.join(&member.subject),
            board: folder.join(format!("{} board", member.subject)),
            ..member
        };
        let filter = make(&member.subject, &member.filter, buckets)?;
        let board = Board::create(&member.board, member.processes)?;
        let keys = (buckets * 4 * 9 / 10 / member.processes) as u64;
        for process in 0..member.processes {
            board.of(process)[HIGH].store(keys, Ordering::Relaxed);
            let inserted = (0..keys).all(|number| filter.insert(member.key(process, number)));
            ensure!(
                inserted,
                "{} refused a key at a load below 0.9",
                member.subject
            );
        }
        let mut team = Self {
            member,
            board,
            filter,
            processes: Vec::new(),
        };
        for process in 0..team.member.processes {
            team.processes.push(team.start_process(process)?);
            team.processes[process].wait()?;
        }
        Ok(team)
    }

    fn start_process(&self, process: usize) -> Result<Process> {
        Process::start(&Member {
            process,
            ..self.member.clone()
        })
    }

    fn begin(&mut self, action: u64) -> Result<()> {
        self.board.action().store(action, Ordering::Relaxed);
        self.processes.iter_mut().try_for_each(Process::ask)
    }

    fn end(&mut self) -> Result<()> {
        self.board.action().store(WAIT, Ordering::Relaxed);
        self.processes.iter_mut().try_for_each(Process::wait)
    }

    /// Returns million operations per second of a turn, and whether other programs left the processes their cores.
    fn take_turn(&mut self, length: Duration) -> Result<(f64, bool)> {
        let count = |team: &Self| (Instant::now(), team.board.values(OPERATIONS).sum::<u64>());
        self.begin(WORK)?;
        // The processes wake up, and warm their caches.
        sleep(length / 4);
        let (start, before) = count(self);
        sleep(length);
        let (end, after) = count(self);
        self.end()?;
        let took = (end - start).as_nanos() as u64;
        let is_calm = self.board.values(WITHOUT_CORE).all(|ns| 50 * ns < took);
        Ok(((after - before) as f64 * 1e3 / took as f64, is_calm))
    }

    /// Lets the processes work while `disturb` is called for one after another. Returns the longest gaps in ms, without and with the
    /// time without a core, and how many processes were disturbed.
    fn disturb(
        &mut self,
        seconds: f64,
        disturb: impl Fn(&mut Self, usize) -> Result<()>,
    ) -> Result<[f64; 3]> {
        let old = [WAITED, WITHOUT_OPERATION].map(|word| self.board.all(word));
        old.into_iter()
            .flatten()
            .for_each(|word| word.store(0, Ordering::Relaxed));
        self.begin(WORK_TIMED)?;
        let (start, mut disturbed) = (Instant::now(), 0);
        while start.elapsed().as_secs_f64() < seconds {
            sleep(PERIOD);
            disturb(self, disturbed % self.processes.len())?;
            disturbed += 1;
        }
        self.end()?;
        let longest = |word| self.board.values(word).max().unwrap_or_default() as f64 / 1e6;
        Ok([
            longest(WAITED),
            longest(WITHOUT_OPERATION),
            disturbed as f64,
        ])
    }

    /// Kills a process, and starts another one in its place.
    fn kill(&mut self, process: usize) -> Result<()> {
        self.processes[process].signal(Signal::SIGKILL)?;
        self.processes[process] = self.start_process(process)?;
        self.processes[process].ask()
    }

    fn stop(&mut self, process: usize) -> Result<()> {
        self.board.of(process)[STOPS].fetch_add(1, Ordering::Relaxed);
        self.processes[process].signal(Signal::SIGSTOP)?;
        sleep(PERIOD);
        self.processes[process].signal(Signal::SIGCONT)
    }

    /// Returns how many keys are missing, and how many answers were wrong.
    fn lost(&self) -> u64 {
        let ranges = self.board.values(LOW).zip(self.board.values(HIGH));
        let keys = ranges.enumerate().flat_map(|(process, (low, high))| {
            (low..high).map(move |number| self.member.key(process, number))
        });
        let missing = keys.filter(|key| !self.filter.contains(*key)).count();
        missing as u64 + self.board.values(WRONG_ANSWERS).sum::<u64>()
    }
}

impl Processes {
    fn measure(&self, task: &Task) -> Result<Vec<Sample>> {
        let processes: usize = task.part.split(' ').next().unwrap_or_default().parse()?;
        let shared = Path::new("/dev/shm");
        let folder = if shared.is_dir() {
            shared.to_owned()
        } else {
            env::temp_dir()
        };
        let folder = tempfile::Builder::new()
            .prefix("processes-")
            .tempdir_in(folder)?;
        let random = &mut SmallRng::seed_from_u64(task.seed);
        let seed = u64::from(random.random::<u32>()) << 8;
        let start = |subject: &String| {
            let member = Member {
                subject: subject.clone(),
                filter: PathBuf::new(),
                board: PathBuf::new(),
                process: 0,
                processes,
                seed,
            };
            Team::start(folder.path(), self.buckets, member)
        };
        let mut teams = task
            .subjects
            .iter()
            .map(start)
            .collect::<Result<Vec<_>>>()?;
        let mut samples = Vec::new();
        let mut add = |team: &Team, case: &str, quantity: &Quantity, value| {
            let place = (case, processes as f64);
            samples.push(task.sample(&team.member.subject, place, quantity, value));
        };

        let is_oversubscribed = processes > Cores::detect().count();
        let length = PERIOD / 2 * if is_oversubscribed { 8 } else { 1 };
        let mut order: Vec<_> = (0..teams.len()).collect();
        let mut rates = vec![Vec::new(); teams.len()];
        let begun = Instant::now();
        while begun.elapsed().as_secs_f64() < self.seconds * teams.len() as f64 {
            order.shuffle(random);
            for &at in &order {
                rates[at].push(teams[at].take_turn(length)?);
            }
        }
        for (team, rates) in teams.iter().zip(rates) {
            let calm = rates.iter().filter(|(_, is_calm)| *is_calm);
            let few = 3 * calm.count() < rates.len();
            let counted = rates.iter().filter(|(_, is_calm)| few || *is_calm);
            let rate = Summary::new(counted.map(|(rate, _)| *rate)).context("no turns")?;
            add(team, WORKING, &THROUGHPUT, rate.median);
            let opening = team.board.values(FIRST_ANSWER).map(|ns| ns as f64 / 1e3);
            let opening = Summary::new(opening).context("no processes")?;
            add(team, OPENED, &OPENING, opening.median);
        }
        for team in teams.iter_mut().filter(|_| processes > 1) {
            for (case, how) in [
                (KILLED, Team::kill as fn(&mut Team, usize) -> _),
                (STOPPED, Team::stop),
            ] {
                let [waited, gap, ended] = team.disturb(self.seconds, how)?;
                add(team, case, &LONGEST, waited);
                add(team, case, &GAP, gap);
                add(team, case, &ENDED, ended);
                add(team, case, &LOST, team.lost() as f64);
            }
        }
        Ok(samples)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::Mutex;
    use std::thread;

    use super::*;

    /// A set that forgets one of so many keys.
    struct Forgetful(u64, Mutex<HashSet<u64>>);

    impl InFile for Forgetful {
        fn insert(&self, key: u64) -> bool {
            key % self.0 == 0 || self.1.lock().unwrap().insert(key)
        }

        fn contains(&self, key: u64) -> bool {
            self.1.lock().unwrap().contains(&key)
        }

        fn remove(&self, key: u64) -> bool {
            self.1.lock().unwrap().remove(&key)
        }
    }

    #[test]
    fn forgotten_keys_are_counted_and_refused() {
        for (one_of, is_right) in [(u64::MAX, true), (50, false)] {
            let folder = tempfile::tempdir().unwrap();
            let team = Team {
                member: Member {
                    subject: ROBUST.into(),
                    filter: PathBuf::new(),
                    board: PathBuf::new(),
                    process: 0,
                    processes: 1,
                    seed: 1,
                },
                board: Board::create(&folder.path().join("board"), 1).unwrap(),
                filter: Box::new(Forgetful(one_of, Mutex::default())),
                processes: Vec::new(),
            };
            let (board, random) = (&team.board, &mut SmallRng::seed_from_u64(1));
            board.of(0)[HIGH].store(100, Ordering::Relaxed);
            (0..100).for_each(|number| assert!(team.filter.insert(team.member.key(0, number))));
            board.action().store(WORK_TIMED, Ordering::Relaxed);
            thread::scope(|scope| {
                scope.spawn(|| {
                    while board.values(OPERATIONS).sum::<u64>() < 10_000 {
                        thread::yield_now();
                    }
                    board.action().store(WAIT, Ordering::Relaxed);
                });
                team.member.work(&*team.filter, board, random);
            });
            let lost = team.lost();
            assert_eq!(lost == 0, is_right, "{lost}");
            let sample = Sample {
                quantity: LOST.name.into(),
                value: lost as f64,
                ..Sample::default()
            };
            assert_eq!((STUDY.extras.judge)(&[sample]).is_ok(), is_right);
        }
    }
}
