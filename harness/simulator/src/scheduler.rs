//! The scheduler: the thread whose clock is behind all others' runs next.
//!
//! Each thread has a core of its own, or shares one with others in time slices. A thread that waits
//! for a line keeps its core; one that sleeps, or gives its core away, does not.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use kcas::simulation::{Access, Named, Pause};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use crate::coherence::{Memory, Step, Time, time};
use crate::model::{Model, Waiting};
use crate::{Counts, Limits, Options, Part};

/// Compute times vary by this share, evenly, so that threads do not march in step.
const VARIATION: f64 = 0.1;

/// Whether the code of a thread goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    GoOn,
    Wait,
}

/// A core, and the threads that share it.
#[derive(Clone, Debug, Default)]
struct Shift {
    running: Option<usize>,
    /// Those that could run, the next one first.
    waiting: VecDeque<usize>,
    /// When the running one has to let another one run.
    over: Time,
}

#[derive(Debug, Default)]
struct State {
    clock: Time,
    /// How many of its operations have been counted.
    counted: u64,
    /// Whether it has paused since its last access.
    paused: bool,
    operations: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    has_ended: bool,
}

/// The cores of a machine, and its memory.
#[derive(Debug)]
pub(crate) struct Scheduler {
    memory: Memory,
    waiting: Waiting,
    mispredicted: Time,
    compute: f64,
    /// The longest delay before an access.
    delay: Time,
    threads: Vec<State>,
    cores: Vec<Shift>,
    /// How long a thread runs while others wait for its core.
    slice: Time,
    ready: BinaryHeap<Reverse<(Time, usize)>>,
    /// Threads that wait for all others.
    together: Vec<usize>,
    /// Sleeping threads, by the address at which they sleep.
    asleep: BTreeMap<usize, VecDeque<usize>>,
    limits: Limits,
    part: Part,
    /// Accesses of all parts.
    accesses: u64,
    began: Time,
    random: SmallRng,
    passed_on: Vec<(Time, usize)>,
}

impl Scheduler {
    pub(crate) fn new(model: &Model, threads: usize, options: &Options) -> Self {
        let cores = threads.min(model.cores());
        let seed = options.seed;
        let mut scheduler = Self {
            memory: Memory::new(model, cores, seed ^ 1),
            waiting: model.waiting,
            mispredicted: time(model.mispredicted),
            compute: options.compute,
            delay: time(options.delay),
            threads: (0..threads).map(|_| State::default()).collect(),
            cores: vec![Shift::default(); cores],
            slice: time(options.slice.unwrap_or_default()),
            ready: BinaryHeap::new(),
            together: Vec::new(),
            asleep: BTreeMap::new(),
            limits: options.limits.clone(),
            part: Part::default(),
            accesses: 0,
            began: 0,
            random: SmallRng::seed_from_u64(seed),
            passed_on: Vec::new(),
        };
        (0..threads).for_each(|thread| scheduler.begin(thread));
        scheduler
    }

    /// A thread begins a part of the run; not all do at exactly the same moment.
    fn begin(&mut self, thread: usize) {
        let at = self.began + self.random.random_range(0..1_000);
        self.make_ready(thread, at);
        // Nor are the first slices of all cores over at the same moment.
        if self.slice > 0 {
            let over = at + self.random.random_range(0..self.slice);
            let core = self.core_of(thread);
            self.cores[core].over = over;
        }
    }

    fn core_of(&self, thread: usize) -> usize {
        thread % self.cores.len()
    }

    /// A thread can run from this time on: at once, if its core is free.
    fn make_ready(&mut self, thread: usize, at: Time) {
        let slice = self.slice;
        self.threads[thread].clock = at;
        let core = self.core_of(thread);
        let core = &mut self.cores[core];
        match core.running {
            Some(_) => core.waiting.push_back(thread),
            None => {
                core.running = Some(thread);
                core.over = at + slice;
                self.ready.push(Reverse((at, thread)));
            }
        }
    }

    /// A thread leaves its core to the next one.
    fn leave_core(&mut self, thread: usize) {
        let now = self.threads[thread].clock;
        let core = self.core_of(thread);
        let core = &mut self.cores[core];
        core.running = core.waiting.pop_front();
        if let Some(next) = core.running {
            let at = self.threads[next].clock.max(now + time(self.waiting.give));
            core.over = at + self.slice;
            self.ready.push(Reverse((at, next)));
        }
    }

    /// A thread lets the others of its core run before it.
    fn let_others_run(&mut self, thread: usize) {
        let core = self.core_of(thread);
        self.cores[core].waiting.push_back(thread);
        self.leave_core(thread);
    }

    fn others_wait(&self, thread: usize) -> bool {
        !self.cores[self.core_of(thread)].waiting.is_empty()
    }

    pub(crate) fn counts(&self, thread: usize) -> (Arc<AtomicU64>, Arc<AtomicBool>) {
        let State {
            operations, stop, ..
        } = &self.threads[thread];
        (Arc::clone(operations), Arc::clone(stop))
    }

    pub(crate) fn name(&mut self, named: Named) {
        if named.len > 0 {
            self.memory.regions.name(named);
        }
    }

    /// See [`Memory::warm`]: the table of the subject.
    pub(crate) fn warm(&mut self, everywhere: bool) {
        self.memory.warm("bucket", everywhere);
    }

    /// Returns the thread that runs next, at its time; `None` if none can.
    pub(crate) fn next(&mut self) -> Option<usize> {
        let Reverse((at, thread)) = self.ready.pop()?;
        self.threads[thread].clock = at;
        Some(thread)
    }

    /// Charges what a thread computes before an access.
    pub(crate) fn compute(&mut self, thread: usize) {
        let state = &mut self.threads[thread];
        // Between two looks at what it waits for it computes nothing.
        if !std::mem::take(&mut state.paused) {
            let vary = 1.0 + VARIATION * self.random.random_range(-1.0..1.0);
            state.clock += time(self.compute * vary);
        }
    }

    /// Counts the operations that a thread has done since it was last asked.
    fn count(&mut self, thread: usize) {
        let state = &mut self.threads[thread];
        // Relaxed: all threads are simulated by one.
        let done = state.operations.load(Ordering::Relaxed);
        let more = done - state.counted;
        if more == 0 {
            return;
        }
        state.counted = done;
        if self.part.stopped.is_some() {
            return;
        }
        self.part.operations += more;
        let limit = self.limits.of(self.part.number);
        if limit.is_some_and(|limit| self.part.operations >= limit) {
            self.part.stopped = Some(state.clock - self.began);
            for state in &self.threads {
                state.stop.store(true, Ordering::Relaxed);
            }
        }
    }

    /// The thread waits until no other one is behind it, or while others have its core.
    pub(crate) fn take_turn(&mut self, thread: usize) -> Next {
        self.count(thread);
        if self.delay > 0 && self.random.random_ratio(1, 8) {
            self.threads[thread].clock += self.random.random_range(0..self.delay);
        }
        let clock = self.threads[thread].clock;
        if self.others_wait(thread) && clock >= self.cores[self.core_of(thread)].over {
            self.let_others_run(thread);
            return Next::Wait;
        }
        match self.ready.peek() {
            Some(Reverse((other, _))) if *other < clock => {
                self.ready.push(Reverse((clock, thread)));
                Next::Wait
            }
            _ => Next::GoOn,
        }
    }

    /// The thread, whose turn it is, makes an access, or waits for its line.
    pub(crate) fn access(&mut self, thread: usize, address: usize, access: Access) -> Next {
        self.part.counts.count(access);
        self.accesses += 1;
        let (core, clock) = (self.core_of(thread), self.threads[thread].clock);
        match self.memory.access(core, address, access, clock) {
            Step::Done(at) => {
                self.threads[thread].clock = at;
                Next::GoOn
            }
            Step::Arrives(at) => {
                self.ready.push(Reverse((at, thread)));
                Next::Wait
            }
            Step::Queued => Next::Wait,
        }
    }

    /// The line that a thread waited for is there.
    pub(crate) fn arrived(&mut self, thread: usize, address: usize, access: Access) {
        let (core, now) = (self.core_of(thread), self.threads[thread].clock);
        let mut next = std::mem::take(&mut self.passed_on);
        self.threads[thread].clock = self.memory.arrived(core, address, access, now, &mut next);
        for (at, core) in next.drain(..) {
            // A core that waits for a line still has the thread that wants it.
            let waiting = self.cores[core].running;
            self.ready
                .extend(waiting.map(|thread| Reverse((at, thread))));
        }
        self.passed_on = next;
    }

    /// An exchange has failed, which the thread did not expect.
    pub(crate) fn failed(&mut self, thread: usize) {
        self.part.counts.failed += 1;
        self.threads[thread].clock += self.mispredicted;
        self.resume(thread);
    }

    /// What the thread does from now on, its core could not foresee.
    fn resume(&mut self, thread: usize) {
        let (core, now) = (self.core_of(thread), self.threads[thread].clock);
        self.memory.resume(core, now);
    }

    pub(crate) fn pause(&mut self, thread: usize, pause: Pause) -> Next {
        let cost = match pause {
            Pause::Yield if self.others_wait(thread) => {
                self.let_others_run(thread);
                return Next::Wait;
            }
            Pause::Spin(times) => self.waiting.pause * f64::from(times),
            Pause::Yield => self.waiting.give,
            Pause::Call => {
                self.part.counts.calls += 1;
                self.waiting.call
            }
        };
        self.part.counts.paused += time(cost);
        self.threads[thread].clock += time(cost);
        self.threads[thread].paused = true;
        self.resume(thread);
        self.take_turn(thread)
    }

    pub(crate) fn park(&mut self, thread: usize, address: usize) {
        self.part.counts.parked += 1;
        self.asleep.entry(address).or_default().push_back(thread);
        self.leave_core(thread);
    }

    pub(crate) fn wake(&mut self, thread: usize, address: usize) {
        let sleepers = self.asleep.get_mut(&address);
        if let Some(sleeper) = sleepers.and_then(VecDeque::pop_front) {
            self.threads[thread].clock += time(self.waiting.wake);
            let awake = self.threads[thread].clock + time(self.waiting.awake);
            self.make_ready(sleeper, awake);
        } else {
            self.part.counts.calls += 1;
            self.threads[thread].clock += time(self.waiting.call);
        }
    }

    /// The thread waits until all others wait here or have ended.
    pub(crate) fn await_others(&mut self, thread: usize) {
        self.count(thread);
        self.together.push(thread);
        self.leave_core(thread);
        self.begin_part_if_all_wait();
    }

    pub(crate) fn end(&mut self, thread: usize) {
        self.count(thread);
        self.threads[thread].has_ended = true;
        self.leave_core(thread);
        self.begin_part_if_all_wait();
    }

    fn begin_part_if_all_wait(&mut self) {
        let running = self.threads.iter().filter(|state| !state.has_ended).count();
        if running == 0 || self.together.len() < running {
            return;
        }
        let together = std::mem::take(&mut self.together);
        let latest = together
            .iter()
            .map(|&thread| self.threads[thread].clock)
            .max();
        self.began = latest.unwrap_or_default();
        self.part = Part {
            number: self.part.number + 1,
            ..Part::default()
        };
        self.memory.forget();
        for thread in together {
            let state = &mut self.threads[thread];
            state.counted = 0;
            state.operations.store(0, Ordering::Relaxed);
            state.stop.store(false, Ordering::Relaxed);
            self.begin(thread);
        }
    }

    /// Returns the accesses of all parts of the run.
    pub(crate) fn accesses(&self) -> u64 {
        self.accesses
    }

    /// Returns the last part of the run, with its duration, and what was observed of lines.
    pub(crate) fn result(&self) -> (Part, Time, &Memory) {
        let latest = self.threads.iter().map(|state| state.clock).max();
        let duration = latest.unwrap_or_default().saturating_sub(self.began);
        let duration = self.part.stopped.unwrap_or(duration);
        (self.part.clone(), duration, &self.memory)
    }
}

impl Counts {
    fn count(&mut self, access: Access) {
        *match access {
            Access::Load => &mut self.loads,
            Access::Store => &mut self.stores,
            Access::Exchange | Access::Other => &mut self.exchanges,
        } += 1;
    }
}
