//! The scheduler: the core whose clock is behind all others' runs next.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use kcas::steps::Access;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::coherence::{Memory, Step, Time, time};
use super::lookahead::Lookahead;
use super::{Options, Part, Pause, Report};
use crate::model::Model;

/// Compute times are drawn uniformly, up to this share below or above their mean, so that cores do not march in step.
const VARIATION: f64 = 1.0;

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
    lookahead: Lookahead,
}

#[derive(Debug)]
pub(crate) struct Scheduler {
    pub(crate) memory: Memory,
    options: Options,
    cores: Vec<State>,
    ready: BinaryHeap<Reverse<(Time, usize)>>,
    /// Cores that wait for all others.
    together: Vec<usize>,
    /// Sleeping cores, by the address at which they sleep.
    asleep: BTreeMap<usize, VecDeque<usize>>,
    part: Part,
    began: Time,
    random: SmallRng,
}

impl Scheduler {
    pub(crate) fn new(model: &Model, cores: usize, options: &Options) -> Self {
        let mut scheduler = Self {
            memory: Memory::new(model, cores, options.seed ^ 1),
            options: options.clone(),
            cores: (0..cores).map(|_| State::default()).collect(),
            ready: BinaryHeap::new(),
            together: Vec::new(),
            asleep: BTreeMap::new(),
            part: Part::default(),
            began: 0,
            random: SmallRng::seed_from_u64(options.seed),
        };
        (0..cores).for_each(|core| scheduler.begin(core));
        scheduler
    }

    /// A core begins a part of the run; not all do at exactly the same moment.
    fn begin(&mut self, core: usize) {
        let at = self.began + self.random.random_range(0..1_000);
        self.ready.push(Reverse((at, core)));
    }

    pub(crate) fn counts(&self, core: usize) -> (Arc<AtomicU64>, Arc<AtomicBool>) {
        let state = &self.cores[core];
        (Arc::clone(&state.operations), Arc::clone(&state.stop))
    }

    /// Returns the core that runs next, and sets its clock; `None` if none can run.
    pub(crate) fn next(&mut self) -> Option<usize> {
        let Reverse((at, core)) = self.ready.pop()?;
        self.cores[core].clock = at;
        Some(core)
    }

    /// Charges what a core computes before an access, which it may not have foreseen.
    pub(crate) fn compute(&mut self, core: usize, address: usize, access: Access) {
        let state = &mut self.cores[core];
        let base = self.memory.regions.base(address);
        if state.lookahead.misses(access, base.unwrap_or(u32::MAX)) {
            self.memory.resume(core, state.clock);
        }
        // Between two looks at a word that it waits for, a core computes nothing.
        if !std::mem::take(&mut state.paused) {
            let vary = 1.0 + VARIATION * self.random.random_range(-1.0..1.0);
            state.clock += time(self.options.compute * vary);
        }
    }

    /// Counts the operations that a core has done since it was last asked.
    fn count(&mut self, core: usize) {
        let state = &mut self.cores[core];
        // Relaxed: all cores are simulated by one.
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
        let limit = self.options.limits.get(self.part.number);
        if limit.is_some_and(|&limit| self.part.operations >= limit) {
            self.part.stopped = Some(state.clock - self.began);
            for state in &self.cores {
                state.stop.store(true, Ordering::Relaxed);
            }
        }
    }

    /// The core waits until no other one is behind it. Returns whether it can go on at once.
    pub(crate) fn take_turn(&mut self, core: usize) -> bool {
        self.count(core);
        let clock = self.cores[core].clock;
        match self.ready.peek() {
            Some(Reverse((other, _))) if *other < clock => {
                self.ready.push(Reverse((clock, core)));
                false
            }
            _ => true,
        }
    }

    /// The core, whose turn it is, makes an access and returns true, or waits for its line.
    pub(crate) fn access(&mut self, core: usize, address: usize, access: Access) -> bool {
        self.part.counts.accesses += 1;
        let clock = self.cores[core].clock;
        match self.memory.access(core, address, access, clock) {
            Step::Done(at) => {
                self.cores[core].clock = at;
                return true;
            }
            Step::Arrives(at) => self.ready.push(Reverse((at, core))),
            Step::Queued => {}
        }
        false
    }

    /// The line that a core waited for is there.
    pub(crate) fn arrived(&mut self, core: usize, address: usize, access: Access) {
        let now = self.cores[core].clock;
        let (goes_on, next) = self.memory.arrived(core, address, access, now);
        self.cores[core].clock = goes_on;
        self.ready.extend(next.into_iter().map(Reverse));
    }

    /// An exchange has failed, which the core did not expect.
    pub(crate) fn failed(&mut self, core: usize) {
        self.cores[core].clock += time(self.memory.model.mispredicted);
        self.memory.resume(core, self.cores[core].clock);
    }

    /// The core pauses. Returns whether it then can go on at once.
    pub(crate) fn pause(&mut self, core: usize, pause: Pause) -> bool {
        let cost = match pause {
            Pause::Spin(times) => self.memory.model.waiting.pause * f64::from(times),
            Pause::Yield => self.memory.model.waiting.give,
            Pause::Call => {
                self.part.counts.calls += 1;
                self.memory.model.waiting.call
            }
        };
        self.cores[core].clock += time(cost);
        self.cores[core].paused = true;
        self.memory.resume(core, self.cores[core].clock);
        self.take_turn(core)
    }

    pub(crate) fn park(&mut self, core: usize, address: usize) {
        self.part.counts.parked += 1;
        self.asleep.entry(address).or_default().push_back(core);
    }

    pub(crate) fn wake(&mut self, core: usize, address: usize) {
        let sleepers = self.asleep.get_mut(&address);
        if let Some(sleeper) = sleepers.and_then(VecDeque::pop_front) {
            self.cores[core].clock += time(self.memory.model.waiting.wake);
            let awake = self.cores[core].clock + time(self.memory.model.waiting.awake);
            self.ready.push(Reverse((awake, sleeper)));
        } else {
            self.part.counts.calls += 1;
            self.cores[core].clock += time(self.memory.model.waiting.call);
        }
    }

    /// The core waits until all others wait here or have ended.
    pub(crate) fn await_others(&mut self, core: usize) {
        self.count(core);
        self.together.push(core);
        self.begin_part_if_all_wait();
    }

    pub(crate) fn end(&mut self, core: usize) {
        self.count(core);
        self.cores[core].has_ended = true;
        self.begin_part_if_all_wait();
    }

    fn begin_part_if_all_wait(&mut self) {
        let running = self.cores.iter().filter(|state| !state.has_ended).count();
        if running == 0 || self.together.len() < running {
            return;
        }
        let together = std::mem::take(&mut self.together);
        let latest = together.iter().map(|&core| self.cores[core].clock).max();
        self.began = latest.unwrap_or_default();
        self.part = Part {
            number: self.part.number + 1,
            ..Part::default()
        };
        for core in together {
            let state = &mut self.cores[core];
            state.counted = 0;
            state.operations.store(0, Ordering::Relaxed);
            state.stop.store(false, Ordering::Relaxed);
            self.begin(core);
        }
    }

    /// Reports the last part of the run.
    pub(crate) fn report(&self) -> Report {
        let latest = self.cores.iter().map(|state| state.clock).max();
        let duration = latest.unwrap_or_default().saturating_sub(self.began);
        let duration = self.part.stopped.unwrap_or(duration);
        Report {
            operations: self.part.operations,
            seconds: duration as f64 / 1e12,
            counts: self.part.counts,
        }
    }
}
