//! Workers that are killed at each instruction of a call.
//!
//! The test lets a worker make one instruction after another (`ptrace`). What others find after a kill is in the file
//! alone, so the test keeps the file as it is after each instruction that changes it, and puts it back after the worker
//! has been killed: that is a kill at every instruction. `KILL_PLACES=N` kills workers indeed, at N instructions of
//! each call, or at all if it has few more. From N = 1,000 on, it also kills saves next to other calls.

use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;
use std::{env, fs, process, thread};

use filter::{Filter, SnapshotError};
use nix::errno::Errno;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{self, Signal};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, gettid};

use crate::any::{AnyFilter, patiently};
use crate::file::File;
use crate::storm::{self, TABLE, has_tags};
use crate::worker::{self, Worker};

const TEST: &str = "single::call_killed_at_any_instruction_is_atomic";
const BUCKETS: usize = 32;
/// The number of the word after the buckets that announces a snapshot, and of all words.
const ANNOUNCEMENT: usize = BUCKETS.next_multiple_of(8);
const WORDS: usize = ANNOUNCEMENT + 1 + BUCKETS;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Insert,
    InsertIfAbsent,
    Remove,
    TakeOverAll,
    Save,
    /// Instead of a key, it has the number of a period.
    AdvanceTo,
}

/// A call, and its key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call(pub(crate) Kind, pub(crate) u64);

const TAKE_OVER_ALL: Call = Call(Kind::TakeOverAll, u64::MAX);
const SAVE: Call = Call(Kind::Save, u64::MAX);

impl Call {
    fn from_task(kind: &str, key: &str) -> Call {
        use Kind::*;
        let kinds = [Insert, InsertIfAbsent, Remove, TakeOverAll, Save, AdvanceTo];
        let kind = kinds[kind.parse::<usize>().unwrap()];
        Call(kind, key.parse().unwrap())
    }

    fn run(self, filter: &AnyFilter) {
        match self.0 {
            Kind::Insert => filter.insert(&self.1).unwrap(),
            Kind::InsertIfAbsent => filter.insert_if_absent(&self.1).map(|_| ()).unwrap(),
            Kind::Remove => assert!(filter.remove(&self.1).unwrap()),
            Kind::TakeOverAll => filter.take_over_all().unwrap(),
            Kind::Save => drop(filter.to_bytes().unwrap()),
            Kind::AdvanceTo => filter.advance_to(self.1),
        }
    }

    /// True if the call has taken effect, given how often its key is there.
    fn is_effective(self, copies: usize) -> bool {
        (copies == 1) == matches!(self.0, Kind::Insert | Kind::InsertIfAbsent)
    }
}

/// Opens the filter, makes a call, and stops before and after it.
fn work(task: &str) {
    let [kind, key, path] = task.splitn(3, ' ').collect::<Vec<_>>()[..] else {
        panic!("{task}");
    };
    let (call, path) = (Call::from_task(kind, key), path.to_owned());
    let (send, receive) = mpsc::channel();
    // Another thread has the first id of the block.
    thread::spawn(move || {
        send.send(AnyFilter::open(path.as_ref()).unwrap()).unwrap();
        thread::sleep(Duration::MAX);
    });
    let filter = receive.recv().unwrap();
    assert_eq!(filter.remove("none"), Ok(false));
    let traced = ptrace::traceme().map(|()| gettid().as_raw());
    println!("\n{}", traced.unwrap_or_else(|error| -(error as i32)));
    signal::raise(Signal::SIGSTOP).unwrap();
    call.run(&filter);
    signal::raise(Signal::SIGSTOP).unwrap();
    process::exit(0);
}

/// A worker, and the thread of it that makes the call.
pub(crate) struct Traced(Worker, Pid);

impl Traced {
    /// Starts a worker that stops before the call.
    fn start(path: &Path, Call(kind, key): Call) -> Result<Traced, Errno> {
        let task = format!("{} {key} {}", kind as usize, path.display());
        let mut worker = Worker::start(TEST, &task);
        let number = worker.lines().find_map(|line| line.parse().ok());
        match number.expect("a worker says which thread it is") {
            thread @ 0.. => {
                let traced = Traced(worker, Pid::from_raw(thread));
                assert!(!traced.wait());
                ptrace::setoptions(traced.1, Options::PTRACE_O_EXITKILL)?;
                Ok(traced)
            }
            error => Err(Errno::from_raw(-error)),
        }
    }

    /// False if the thread has stopped itself.
    fn wait(&self) -> bool {
        match waitpid(self.1, Some(WaitPidFlag::__WALL)).unwrap() {
            WaitStatus::Stopped(_, Signal::SIGTRAP) => true,
            WaitStatus::Stopped(_, Signal::SIGSTOP) => false,
            status => panic!("{status:?}"),
        }
    }

    /// Makes one instruction. False if the call is over.
    fn step(&self) -> bool {
        ptrace::step(self.1, None).unwrap();
        self.wait()
    }
}

/// Kills the worker. The thread is waited for first, since the process ends after it.
impl Drop for Traced {
    fn drop(&mut self) {
        let _ = self.0.process.kill();
        let _ = waitpid(self.1, Some(WaitPidFlag::__WALL));
    }
}

/// What is left in a file: the header with the records of the first 16 ids, the table, and the snapshot.
pub(crate) type Left = Vec<u8>;

pub(crate) const RECORDS: usize = 4_096 + 16 * 256;

/// Returns what announces a snapshot: the number of the snapshot in the higher bits, odd while it is under way.
fn announced(left: &Left) -> u64 {
    let word = &left[RECORDS + 8 * ANNOUNCEMENT..][..8];
    u64::from_ne_bytes(word.try_into().unwrap())
}

/// True if a killed worker has left an operation or a snapshot.
fn is_unfinished(left: &Left) -> bool {
    has_tags(&left[RECORDS..]) || announced(left) >> 33 & 1 == 1
}

/// A filter in a given state, which is put back before each call.
pub(crate) struct Table {
    pub(crate) file: File,
    opened: fs::File,
    pub(crate) filter: AnyFilter,
    filled: Left,
    pub(crate) keys: Vec<u64>,
    present: usize,
    /// What announces a snapshot when a call begins.
    announced: u64,
}

impl Table {
    /// Inserts the first of some keys of different classes. The others are absent.
    pub(crate) fn create(name: &str, present: usize, expires: bool) -> Table {
        let file = File::new(name);
        let filter = AnyFilter::create(&file.0, BUCKETS, expires);
        let keys: Vec<_> = storm::keys(BUCKETS).take(8 * BUCKETS).collect();
        for key in &keys[..present] {
            filter.insert(key).unwrap();
        }
        let opened = fs::File::options().read(true).write(true).open(&file.0);
        let mut table = Table {
            file,
            opened: opened.unwrap(),
            filter,
            filled: Vec::new(),
            keys,
            present,
            announced: 0,
        };
        table.filled = table.read();
        table
    }

    pub(crate) fn read(&self) -> Left {
        let mut left = vec![0; RECORDS + 8 * WORDS];
        let (records, table) = left.split_at_mut(RECORDS);
        self.opened.read_exact_at(records, 0).unwrap();
        self.opened.read_exact_at(table, TABLE).unwrap();
        left
    }

    pub(crate) fn put_back(&self, left: &Left) {
        let (records, table) = left.split_at(RECORDS);
        self.opened.write_all_at(records, 0).unwrap();
        self.opened.write_all_at(table, TABLE).unwrap();
    }

    /// Fills the table again. The record of the next worker keeps another call.
    fn begin(&self) {
        let (heir, key) = (
            AnyFilter::open(&self.file.0).unwrap(),
            self.keys.last().unwrap(),
        );
        assert_eq!(heir.insert_if_absent(key), Ok(true));
        let table = &self.filled[RECORDS..];
        self.opened.write_all_at(table, TABLE).unwrap();
        self.filter.recount();
    }

    /// Starts a worker that stops before the call.
    pub(crate) fn start(&self, call: Call) -> Traced {
        let worker = Traced::start(&self.file.0, call).unwrap();
        let word = self.announced.to_ne_bytes();
        let place = TABLE + 8 * ANNOUNCEMENT as u64;
        self.opened.write_all_at(&word, place).unwrap();
        worker
    }

    /// Finds a call of an absent key that changes this many words.
    fn call(&self, kind: Kind, changes: usize) -> Call {
        let has_changes = |call: &Call| {
            self.begin();
            call.run(&self.filter);
            let now = self.read();
            let words = now[RECORDS..].chunks(8);
            let pairs = words.zip(self.filled[RECORDS..].chunks(8));
            pairs.filter(|(now, before)| now != before).count() == changes
        };
        let absent = self.keys[self.present..].iter().map(|&key| Call(kind, key));
        let mut found = absent.take(BUCKETS).filter(has_changes);
        found.next().expect("a key with this many changes")
    }

    /// Lets a worker end its call. Returns the file as it is before each change and at the end, and the number of
    /// instructions. Whoever begins or ends a snapshot must have the lock.
    pub(crate) fn finish(&self, worker: &Traced) -> (Vec<Left>, usize) {
        let mut left = vec![self.read()];
        let mut last = announced(&left[0]);
        let mut steps = 0;
        while worker.step() {
            steps += 1;
            let now = self.read();
            if now == left[left.len() - 1] {
                continue;
            }
            // Not the tag of an operation that compares the word.
            if announced(&now) != last && !has_tags(&announced(&now).to_ne_bytes()) {
                last = announced(&now);
                assert_eq!(self.filter.to_bytes(), Err(SnapshotError::Busy));
            }
            left.push(now);
        }
        (left, steps)
    }

    /// Checks all keys but those of some calls, which may be there once. Returns of each call whether it has taken
    /// effect.
    fn check(&self, calls: &[Call], when: &str) -> Vec<bool> {
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
        let lengths = [self.filter.recount(), self.filter.len()];
        assert_eq!(lengths, [sum; 2], "{when}");
        let is_effective = |call: &Call| call.is_effective(self.filter.count(&call.1));
        calls.iter().map(is_effective).collect()
    }

    /// Checks that a copy has what the filter has.
    fn check_copy(&self, when: &str) {
        let copy = patiently(|| self.filter.copy()).expect(when);
        let is_same = |key| copy.count(key) == self.filter.count(key);
        assert!(self.keys.iter().all(is_same), "{when}: another copy");
    }

    /// Checks what is left when the workers of these calls have been killed. Their ids are taken over by a process that
    /// wants to know what has happened, or by one that claims and uses them; at once, or after others have met what is
    /// left. The filter can then be saved as it is.
    fn check_left(&self, calls: &[Call], left: &Left, place: &str) -> Vec<bool> {
        let mut after = Vec::new();
        for (with_others, as_heir) in [(true, false), (true, true), (false, true), (false, false)] {
            let how = format!("others: {with_others}, heir: {as_heir}");
            let when = format!("{calls:?} killed at {place}, {how}");
            self.put_back(left);
            let before = self.check(calls, &when);
            let is_other = |key: &&u64| calls.iter().all(|call| call.1 != **key);
            let others = self.keys[..self.present].iter().filter(is_other);
            let change = |filter: &AnyFilter, key| {
                assert_eq!(filter.remove(key), Ok(true), "{when}: key {key}");
                assert_eq!(filter.insert_if_absent(key), Ok(true), "{when}: key {key}");
            };
            if with_others {
                others.for_each(|key| change(&self.filter, key));
                self.check_copy(&when);
            }
            if as_heir {
                change(&AnyFilter::open(&self.file.0).unwrap(), &self.keys[0]);
            } else {
                self.filter.take_over_all().unwrap();
            }
            assert!(!has_tags(&self.read()[RECORDS..]), "{when}: tags are left");
            after = self.check(calls, &when);
            self.check_copy(&when);
            // Only another worker may complete a call.
            let are_same = after == before;
            assert!(are_same || with_others, "{when}: completed by the heir");
            let mut effects = before.iter().zip(&after);
            assert!(effects.all(|(before, after)| before <= after), "{when}");
        }
        after
    }

    /// Kills a worker at each instruction of a call.
    fn kill(&self, call: Call, places: Option<usize>) {
        self.begin();
        let worker = self.start(call);
        let (mut left, steps) = self.finish(&worker);
        drop(worker);
        assert!(self.read() == left[left.len() - 1]);
        if let Some(places) = places {
            left.clear();
            let stride = (steps / places).max(1);
            for first in (0..).step_by(stride) {
                let nth = first + rand::random_range(0..stride);
                self.begin();
                let worker = self.start(call);
                let is_over = !(0..nth).all(|_| worker.step());
                drop(worker);
                left.push(self.read());
                if is_over {
                    break;
                }
            }
        }
        let unfinished = left.iter().filter(|left| is_unfinished(left)).count();
        let kills = left.len();
        println!("{call:?}: killed at {kills} places of {steps}, {unfinished} of them unfinished");
        let mut took_effect = false;
        for (nth, left) in left.iter().enumerate() {
            let effects = self.check_left(&[call], left, &format!("{nth} of {kills}"));
            assert!(effects[0] >= took_effect, "{call:?} is undone at {nth}");
            took_effect = effects[0];
        }
        assert!(took_effect);
    }

    /// Kills the worker of a call at places where it has tags in the table or a snapshot under way, and then, at each
    /// instruction, that of another call, which meets them or takes them over.
    fn kill_both(&self, calls: [Call; 2], every: usize) {
        self.begin();
        let base = self.read();
        let [first, second] = calls.map(|call| self.start(call));
        let (states, _) = self.finish(&first);
        drop([first, second]);
        let unfinished = (0..states.len()).filter(|&nth| is_unfinished(&states[nth]));
        for nth in unfinished.step_by(every) {
            self.put_back(&base);
            let [first, second] = calls.map(|call| self.start(call));
            while self.read() != states[nth] {
                assert!(first.step(), "another course of {:?}", calls[0]);
            }
            drop(first);
            let (left, _) = self.finish(&second);
            drop(second);
            for (at, left) in left.iter().enumerate() {
                self.check_left(&calls, left, &format!("{nth} and {at}"));
            }
        }
    }
}

/// True if one process may trace another here. Says so if not.
pub(crate) fn can_trace(table: &Table) -> bool {
    match Traced::start(&table.file.0, TAKE_OVER_ALL) {
        Ok(_) => true,
        Err(error @ (Errno::EPERM | Errno::EACCES | Errno::ENOSYS)) => {
            // Not by `eprintln`, which is shown of failed tests alone.
            let line = format!("NOT TESTED, since ptrace is refused: {error}\n");
            io::stderr().write_all(line.as_bytes()).unwrap();
            false
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn call_killed_at_any_instruction_is_atomic() {
    if let Some(task) = worker::task() {
        return work(&task);
    }
    let places = env::var("KILL_PLACES").ok();
    let places = places.map(|places| places.parse().unwrap());
    let mut half = Table::create("single", 2 * BUCKETS, false);
    if !can_trace(&half) {
        return;
    }
    half.kill(half.call(Kind::Insert, 1), places);
    half.kill(half.call(Kind::InsertIfAbsent, 1), places);
    half.kill(Call(Kind::Remove, half.keys[3]), places);
    // A process that was killed has left a snapshot.
    half.announced = 1 << 33;
    half.kill(TAKE_OVER_ALL, places);
    half.kill(Call(Kind::Remove, half.keys[3]), places);
    half.kill(SAVE, places);
    drop(half);
    let full = Table::create("single", 4 * BUCKETS * 93 / 100, false);
    for chain in [2, 3] {
        full.kill(full.call(Kind::Insert, chain), places);
        full.kill(full.call(Kind::InsertIfAbsent, chain), places);
    }
    let first = full.call(Kind::InsertIfAbsent, 3);
    full.kill_both([first, TAKE_OVER_ALL], 1);
    full.kill_both([first, first], 1);
    // Takes half an hour.
    if places.is_some_and(|places| places >= 1_000) {
        full.kill_both([first, SAVE], 3);
        for second in [first, SAVE, TAKE_OVER_ALL] {
            full.kill_both([SAVE, second], 16);
        }
    }
}
