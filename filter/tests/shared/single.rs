//! Workers that are killed at each instruction of a call.
//!
//! The tests let a worker make one instruction after another (`ptrace`). What others find after a kill is in the file alone, so
//! the tests keep the file as it is after each instruction that changes it, and put it back after the worker has been killed: that is
//! a kill at every instruction. `KILL_STRIDE=N` kills workers at each N-th instruction indeed.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process;
use std::{env, fs};

use filter::CuckooFilter;
use filter::shared::SharedCuckooFilter;
use nix::errno::Errno;
use nix::sched::{self, CpuSet};
use nix::sys::signal::{self, Signal};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::sys::{ptrace, ptrace::Options};
use nix::unistd::{Pid, gettid};

use crate::file::File;
use crate::storm::{self, TABLE, has_tags};
use crate::worker::{self, Worker};

const BUCKETS: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Insert,
    InsertIfAbsent,
    Remove,
    TakeOverAll,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Call(Kind, u64);

impl Call {
    fn run(self, filter: &SharedCuckooFilter) -> bool {
        match self.0 {
            Kind::Insert => filter.insert(&self.1).map(|()| true).unwrap(),
            Kind::InsertIfAbsent => filter.insert_if_absent(&self.1).unwrap(),
            Kind::Remove => filter.remove(&self.1).unwrap(),
            Kind::TakeOverAll => filter.take_over_all().map(|()| true).unwrap(),
        }
    }

    /// The number of copies of the key once the call has returned true.
    fn copies(self) -> usize {
        usize::from([Kind::Insert, Kind::InsertIfAbsent].contains(&self.0))
    }
}

/// Opens the filter, makes a call, and stops before and after it.
fn work(task: &str) {
    let words: Vec<_> = task.splitn(3, ' ').collect();
    let kinds = [
        Kind::Insert,
        Kind::InsertIfAbsent,
        Kind::Remove,
        Kind::TakeOverAll,
    ];
    let call = Call(
        kinds[words[0].parse::<usize>().unwrap()],
        words[1].parse().unwrap(),
    );
    let filter = open(Path::new(words[2]));
    let traced = ptrace::traceme().map(|()| gettid().as_raw());
    println!("\n{}", traced.unwrap_or_else(|error| -(error as i32)));
    signal::raise(Signal::SIGSTOP).unwrap();
    let answer = call.run(&filter);
    signal::raise(Signal::SIGSTOP).unwrap();
    process::exit(i32::from(answer));
}

fn open(path: &Path) -> SharedCuckooFilter {
    CuckooFilter::builder().open_shared(path).unwrap()
}

/// A worker, and the thread of it that makes the call.
struct Traced {
    worker: Worker,
    thread: Pid,
}

impl Traced {
    /// Starts a worker that stops before the call.
    fn start(test: &str, path: &Path, call: Call) -> Result<Traced, Errno> {
        let task = format!("{} {} {}", call.0 as usize, call.1, path.display());
        let mut worker = Worker::start(test, &task);
        let lines = BufReader::new(worker.process.stdout.take().unwrap()).lines();
        let mut numbers = lines
            .map_while(Result::ok)
            .filter_map(|line| line.parse().ok());
        let number: i32 = numbers.next().expect("a worker");
        if number < 0 {
            return Err(Errno::from_raw(-number));
        }
        let thread = Pid::from_raw(number);
        let traced = Traced { worker, thread };
        assert_eq!(traced.wait(), WaitStatus::Stopped(thread, Signal::SIGSTOP));
        ptrace::setoptions(thread, Options::PTRACE_O_EXITKILL)?;
        Ok(traced)
    }

    fn wait(&self) -> WaitStatus {
        waitpid(self.thread, Some(WaitPidFlag::__WALL)).unwrap()
    }

    /// Makes one instruction. False if the call is over.
    fn step(&mut self) -> bool {
        ptrace::step(self.thread, None).unwrap();
        match self.wait() {
            WaitStatus::Stopped(_, Signal::SIGTRAP) => true,
            WaitStatus::Stopped(_, Signal::SIGSTOP) => false,
            status => panic!("{status:?}"),
        }
    }

    /// Ends the call and returns its answer.
    fn answer(self) -> bool {
        loop {
            ptrace::cont(self.thread, None).unwrap();
            match self.wait() {
                WaitStatus::Stopped(_, Signal::SIGSTOP) => {}
                WaitStatus::Exited(_, answer @ (0 | 1)) => return answer == 1,
                status => panic!("{status:?}"),
            }
        }
    }
}

/// Kills the worker. The thread is waited for first, since the process ends after it.
impl Drop for Traced {
    fn drop(&mut self) {
        let _ = self.worker.process.kill();
        let _ = waitpid(self.thread, Some(WaitPidFlag::__WALL));
    }
}

/// What is left in a file: the header with the records of the first 16 ids, and the table.
type Left = Vec<u8>;

const RECORDS: usize = 4_096 + 16 * 256;

/// A filter in a given state, which is put back before each call.
struct Table {
    test: &'static str,
    file: File,
    opened: fs::File,
    filter: SharedCuckooFilter,
    filled: Left,
    keys: Vec<u64>,
    present: usize,
}

impl Table {
    /// Inserts the first of some keys of different classes. The others are absent.
    fn new(test: &'static str, present: usize) -> Table {
        let file = File::new(test);
        let builder = CuckooFilter::builder().buckets(BUCKETS);
        let filter = builder.open_or_create_shared(&file.0).unwrap();
        let keys: Vec<_> = storm::keys(BUCKETS).take(8 * BUCKETS).collect();
        keys[..present]
            .iter()
            .for_each(|key| filter.insert(key).unwrap());
        let opened = fs::File::options().read(true).write(true).open(&file.0);
        let mut table = Table {
            test,
            file,
            opened: opened.unwrap(),
            filter,
            filled: Vec::new(),
            keys,
            present,
        };
        table.filled = table.read();
        table
    }

    fn read(&self) -> Left {
        let mut left = vec![0; RECORDS + 8 * BUCKETS];
        let (records, table) = left.split_at_mut(RECORDS);
        self.opened.read_exact_at(records, 0).unwrap();
        self.opened.read_exact_at(table, TABLE).unwrap();
        left
    }

    fn put_back(&self, left: &Left) {
        self.opened.write_all_at(&left[..RECORDS], 0).unwrap();
        self.opened.write_all_at(&left[RECORDS..], TABLE).unwrap();
    }

    /// Fills the table again. The record of the next worker has another call.
    fn begin(&self) {
        let (heir, key) = (open(&self.file.0), self.keys.last().unwrap());
        assert_eq!(heir.insert_if_absent(key), Ok(true));
        self.opened
            .write_all_at(&self.filled[RECORDS..], TABLE)
            .unwrap();
        self.filter.recount();
    }

    fn start(&self, call: Call) -> Traced {
        Traced::start(self.test, &self.file.0, call).unwrap()
    }

    /// Returns the places of the words that a call changes.
    fn changed(&self, call: Call) -> Vec<usize> {
        self.begin();
        call.run(&self.filter);
        let now = self.read();
        self.begin();
        let [now, before] = [&now, &self.filled].map(|left| left[RECORDS..].chunks(8));
        let words = now.zip(before).enumerate();
        let changed = words.filter(|(_, (now, before))| now != before);
        changed.map(|(place, _)| place).collect()
    }

    /// Finds a call of an absent key that changes this many words.
    fn call(&self, kind: Kind, changes: usize) -> Call {
        let absent = self.keys[self.present..].iter().map(|&key| Call(kind, key));
        let mut found = absent.filter(|&call| self.changed(call).len() == changes);
        found.next().expect("a key with this many changes")
    }

    /// Lets a worker go on until it has changed the file. False if its call is over before.
    fn advance(&self, worker: &mut Traced) -> bool {
        let before = self.read();
        while worker.step() {
            if self.read() != before {
                return true;
            }
        }
        false
    }

    /// Lets a worker end its call. Returns the file as it is before each change and at the end.
    fn finish(&self, worker: &mut Traced) -> Vec<Left> {
        let mut left = vec![self.read()];
        while self.advance(worker) {
            left.push(self.read());
        }
        left
    }

    /// Checks all keys but those of some calls, which may be there once. Returns the number of copies of these.
    fn check(&self, calls: &[Call], when: &str) -> Vec<usize> {
        let mut sum = 0;
        for (nth, key) in self.keys.iter().enumerate() {
            let count = self.filter.count(key);
            sum += count;
            if calls.iter().any(|call| call.1 == *key) {
                assert!(count <= 1, "{when}: key {key} is there {count} times");
            } else {
                assert_eq!(count, usize::from(nth < self.present), "{when}: key {key}");
            }
        }
        assert_eq!(
            [self.filter.recount(), self.filter.len()],
            [sum; 2],
            "{when}"
        );
        let counts = calls.iter().map(|call| self.filter.count(&call.1));
        counts.collect()
    }

    /// Removes and inserts keys again.
    fn work_here(&self, but: &[Call]) {
        for key in &self.keys[..self.present] {
            if but.iter().all(|call| call.1 != *key) {
                assert_eq!(self.filter.remove(key), Ok(true), "key {key}");
                assert_eq!(self.filter.insert_if_absent(key), Ok(true), "key {key}");
            }
        }
    }

    /// Finishes what killed workers have left, as a process that wants to know, or as one that claims their ids.
    fn take_over(&self, as_heir: bool) {
        if as_heir {
            let (heir, key) = (open(&self.file.0), &self.keys[0]);
            assert_eq!(heir.remove(key), Ok(true));
            assert_eq!(heir.insert_if_absent(key), Ok(true));
        } else {
            self.filter.take_over_all().unwrap();
        }
    }

    /// Checks what is left when the workers of these calls have been killed. Returns how often their keys are there.
    fn check_left(&self, calls: &[Call], left: &Left, place: &str) -> Vec<usize> {
        let mut found = Vec::new();
        for (with_others, as_heir) in [(true, false), (true, true), (false, true), (false, false)] {
            let when =
                format!("{calls:?} killed at {place}, others: {with_others}, heir: {as_heir}");
            self.put_back(left);
            let before = self.check(calls, &when);
            if with_others {
                self.work_here(calls);
            }
            self.take_over(as_heir);
            assert!(!has_tags(&self.read()[RECORDS..]), "{when}: tags are left");
            found = self.check(calls, &when);
            // Only another worker may complete a call.
            assert!(with_others || found == before, "{when}: done by the heir");
            for (nth, call) in calls.iter().enumerate() {
                let is_undone = before[nth] == call.copies() && found[nth] != call.copies();
                assert!(!is_undone, "{when}: {call:?} is undone");
            }
        }
        found
    }

    /// Kills a worker at each instruction of a call.
    fn kill_at_each(&self, call: Call, stride: Option<usize>) {
        let mut took_effect = false;
        let mut check = |left: &Left, nth: usize| {
            let found = self.check_left(&[call], left, &nth.to_string());
            let is_effective = found == [call.copies()];
            assert!(
                is_effective || !took_effect,
                "{call:?} took effect before {nth}"
            );
            took_effect = is_effective;
        };
        self.begin();
        let mut worker = self.start(call);
        let left = self.finish(&mut worker);
        drop(worker);
        assert!(self.read() == left[left.len() - 1]);
        if let Some(stride) = stride {
            for nth in (0..).step_by(stride) {
                self.begin();
                let mut worker = self.start(call);
                let is_over = !(0..nth).all(|_| worker.step());
                drop(worker);
                check(&self.read(), nth);
                if is_over {
                    println!("{call:?}: {} kills in {nth} instructions", nth / stride);
                    break;
                }
            }
        } else {
            let with_tags = left
                .iter()
                .filter(|left| has_tags(&left[RECORDS..]))
                .count();
            println!(
                "{call:?}: {} changes, {with_tags} with tags",
                left.len() - 1
            );
            (0..).zip(&left).for_each(|(nth, left)| check(left, nth));
        }
        assert!(took_effect);
    }

    /// Starts the workers of two calls and lets the first make these changes.
    fn start_both(&self, base: &Left, calls: [Call; 2], changes: usize) -> [Traced; 2] {
        self.put_back(base);
        let mut workers = calls.map(|call| self.start(call));
        assert!((0..changes).all(|_| self.advance(&mut workers[0])));
        workers
    }

    /// Stops or kills the first of two workers wherever it has tags in the table. Stops or kills the second, which meets
    /// them, at every change (or at each of this number). If one is only stopped, it goes on once the other's id has been taken
    /// over and used.
    fn kill_pairs(&self, calls: [Call; 2], every: usize) {
        let [first, second] = calls;
        self.begin();
        let base = self.read();
        let states = self.finish(&mut self.start(first));
        let tagged = (0..states.len()).filter(|&nth| has_tags(&states[nth][RECORDS..]));
        let (mut count, mut runs) = (rand::random_range(0..every), 0);
        let (from, step) = (count % 4, every.min(4));
        for nth in tagged.skip(from).step_by(step) {
            let [one, mut two] = self.start_both(&base, calls, nth);
            drop(one);
            let both_killed = self.finish(&mut two);
            drop(two);
            let [one, mut two] = self.start_both(&base, calls, nth);
            let second_killed = self.finish(&mut two);
            let answer = two.answer();
            drop(one);
            let mut is_chosen = || {
                count += 1;
                runs += usize::from(count % every == 0);
                count % every == 0
            };
            for (at, left) in both_killed.iter().enumerate() {
                self.check_left(&calls, left, &format!("{nth} and {at}"));
                if is_chosen() {
                    let when = format!("{first:?} killed at {nth}, {second:?} stopped at {at}");
                    let [one, mut two] = self.start_both(&base, calls, nth);
                    drop(one);
                    let _ = (0..at).all(|_| self.advance(&mut two));
                    self.take_over(true);
                    self.check(&calls, &when);
                    self.end(two, calls, second, &when);
                }
            }
            for (at, left) in second_killed.iter().enumerate() {
                if is_chosen() {
                    let when = format!("{first:?} stopped at {nth}, {second:?} killed at {at}");
                    let [one, two] = self.start_both(&base, calls, nth);
                    drop(two);
                    self.put_back(left);
                    self.check(&calls, &when);
                    self.take_over(at % 2 == 0);
                    self.check(&calls, &when);
                    let is_winner = self.end(one, calls, first, &when);
                    let other_won = answer && at == second_killed.len() - 1;
                    let are_two = first == second && is_winner && other_won;
                    assert!(!are_two, "{when}: two winners");
                }
            }
        }
        println!("{first:?} and {second:?}: {runs} runs");
    }

    /// Lets a worker go on, and checks everything. Returns its answer.
    fn end(&self, worker: Traced, calls: [Call; 2], call: Call, when: &str) -> bool {
        let answer = worker.answer();
        self.filter.take_over_all().unwrap();
        assert!(!has_tags(&self.read()[RECORDS..]), "{when}: tags are left");
        self.check(&calls, when);
        assert_eq!(self.filter.count(&call.1), call.copies(), "{when}");
        assert!(answer || calls[0].1 == calls[1].1, "{when}");
        answer
    }
}

/// True if one process may trace another here. Says so if not.
fn can_trace(table: &Table) -> bool {
    // The worker and this thread take turns, which is faster on one core.
    let cores = sched::sched_getaffinity(Pid::from_raw(0)).unwrap();
    let mut cores = (0..CpuSet::count()).filter(|&core| cores.is_set(core).unwrap());
    let mut core = CpuSet::new();
    core.set(cores.next().unwrap()).unwrap();
    sched::sched_setaffinity(Pid::from_raw(0), &core).unwrap();
    match Traced::start(table.test, &table.file.0, Call(Kind::TakeOverAll, u64::MAX)) {
        Ok(_) => true,
        Err(error @ (Errno::EPERM | Errno::EACCES | Errno::ENOSYS)) => {
            // Not `eprintln`, which is shown of failed tests alone.
            writeln!(io::stderr(), "NOT TESTED: ptrace is refused: {error}").unwrap();
            false
        }
        Err(error) => panic!("{error}"),
    }
}

fn stride() -> Option<usize> {
    let stride = env::var("KILL_STRIDE").ok()?;
    Some(stride.parse().unwrap())
}

#[test]
fn call_killed_at_each_instruction_is_whole_or_nothing() {
    if let Some(task) = worker::task() {
        return work(&task);
    }
    let test = "single::call_killed_at_each_instruction_is_whole_or_nothing";
    let half = Table::new(test, 2 * BUCKETS);
    if !can_trace(&half) {
        return;
    }
    half.kill_at_each(half.call(Kind::Insert, 1), stride());
    half.kill_at_each(half.call(Kind::InsertIfAbsent, 1), stride());
    half.kill_at_each(Call(Kind::Remove, half.keys[3]), stride());
    drop(half);
    let full = Table::new(test, 4 * BUCKETS * 93 / 100);
    for chain in [2, 3] {
        full.kill_at_each(full.call(Kind::Insert, chain), stride());
        full.kill_at_each(full.call(Kind::InsertIfAbsent, chain), stride());
    }
}

#[test]
fn calls_that_meet_are_whole_or_nothing_when_killed() {
    if let Some(task) = worker::task() {
        return work(&task);
    }
    let test = "single::calls_that_meet_are_whole_or_nothing_when_killed";
    let table = Table::new(test, 4 * BUCKETS * 93 / 100);
    if !can_trace(&table) {
        return;
    }
    let every = if stride().is_some() { 1 } else { 16 };
    let first = table.call(Kind::InsertIfAbsent, 3);
    let changed = table.changed(first);
    let meets = |call: &Call| {
        table
            .changed(*call)
            .iter()
            .any(|word| changed.contains(word))
    };
    let mut removes = table.keys[1..table.present]
        .iter()
        .map(|&key| Call(Kind::Remove, key));
    let remove = removes.find(meets).unwrap();
    for second in [first, remove, Call(Kind::TakeOverAll, u64::MAX)] {
        table.kill_pairs([first, second], every);
    }
}
