//! Who has each cache line, and what an access to it costs.
//!
//! A line is a resource that one core at a time can have for writing. A hand-over takes the
//! machine's latency; the next one begins when the last has arrived, so that a fight for one line is
//! serial. Uncontended accesses of one core overlap. The crate's docs explain the model.

use kcas::steps::Access;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::caches::Cache;
use super::regions::Regions;
use crate::model::Model;

/// The holders of a line are bits of a number.
const MAX_CORES: usize = 128;

/// A moment or a duration, in picoseconds.
pub(crate) type Time = u64;

pub(crate) fn time(ns: f64) -> Time {
    (ns * 1e3).round() as Time
}

/// What happens to a core that accesses a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// It makes the access now, and goes on at this time.
    Done(Time),
    /// The line arrives at this time; until then it waits, and then it makes the access.
    Arrives(Time),
    /// It waits in the queue of the line.
    Queued,
}

/// A core that waits for a line, and whether to write it.
type Waiter = (usize, bool);

#[derive(Debug, Default)]
struct Line {
    /// One bit for each core whose caches have it.
    holders: u128,
    /// The core that alone may write it.
    owner: Option<usize>,
    /// The core that could write it before, and until when it still can.
    last: Option<(usize, Time)>,
    /// Hand-overs whose end the scheduler awaits.
    under_way: usize,
    /// When the last hand-over ended.
    arrived: Time,
    /// To whom it was, and when the one before it ended.
    reached: Option<(usize, Time)>,
    queue: Vec<Waiter>,
}

#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) model: Model,
    pub(crate) regions: Regions,
    lines: Vec<Line>,
    l1: Vec<Cache>,
    l2: Vec<Cache>,
    llc: Vec<Cache>,
    /// When the last store of each core leaves its store buffer.
    drained: Vec<Time>,
    /// When each core last paused or mispredicted a branch. It asks for no line before that.
    resumed: Vec<Time>,
    random: SmallRng,
}

impl Memory {
    pub(crate) fn new(model: &Model, cores: usize, seed: u64) -> Self {
        let domains = model.llc_of(cores - 1) + 1;
        let caches = |level, count: usize| (0..count).map(|_| Cache::new(level)).collect();
        Self {
            regions: Regions::default(),
            lines: Vec::new(),
            l1: caches(&model.l1, cores),
            l2: caches(&model.l2, cores),
            llc: caches(&model.llc, domains),
            drained: vec![0; cores],
            resumed: vec![0; cores],
            random: SmallRng::seed_from_u64(seed),
            model: model.clone(),
        }
    }

    /// Returns the number of an address's line.
    #[inline]
    fn number(&mut self, address: usize) -> u32 {
        let number = self.regions.number(address);
        if self.lines.len() < self.regions.lines() {
            self.lines.resize_with(self.regions.lines(), Line::default);
        }
        number
    }

    /// Puts all lines of this name into the last-level caches, as if the program had used them before; with
    /// `everywhere`, also into all cores' own caches, as if all cores had read them.
    pub(crate) fn warm(&mut self, what: &str, everywhere: bool) {
        self.lines.resize_with(self.regions.lines(), Line::default);
        for line in self.regions.called(what) {
            self.llc.iter_mut().for_each(|cache| {
                cache.touch(line);
            });
            for core in 0..if everywhere { self.l2.len() } else { 0 } {
                self.lines[line as usize].holders |= 1 << core;
                self.keep(core, line);
            }
        }
    }

    pub(crate) fn access(
        &mut self,
        core: usize,
        address: usize,
        access: Access,
        now: Time,
    ) -> Step {
        let number = self.number(address);
        let line = &mut self.lines[number as usize];
        let holds = line.holders & 1 << core != 0;
        let writes = access != Access::Load;
        // An access that begins before the line leaves is done before it leaves.
        let lends = (line.last).is_some_and(|(last, until)| last == core && now <= until);
        let alone = line.owner == Some(core) || line.holders == 1 << core;
        if lends || (holds && (!writes || alone)) {
            if writes && !lends && line.owner != Some(core) {
                line.owner = Some(core);
                self.outdate(core, number);
            }
            return Step::Done(self.hit(core, number, access, now));
        }
        let others = line.holders & !(1 << core);
        let from = match line.owner {
            Some(owner) if owner != core => Some(owner),
            // A writer takes the line from all who read it; the farthest takes longest.
            _ if writes && others != 0 => farthest(&self.model, others, core),
            _ => None,
        };
        match from {
            Some(from) => self.hand_over((from, core), number, access, now),
            None => Step::Done(self.fetch(core, number, access, now)),
        }
    }

    /// The line is in the core's caches.
    fn hit(&mut self, core: usize, line: u32, access: Access, now: Time) -> Time {
        let (near, _) = self.l1[core].touch(line);
        let level = if near { self.model.l1 } else { self.model.l2 };
        if !near {
            self.keep(core, line);
        }
        let cost = time(level.ns / self.model.overlap.loads);
        match access {
            Access::Exchange => now.max(self.drained[core]) + time(self.model.exchange) + cost,
            _ => now + cost,
        }
    }

    /// The line is in no other core's caches, or is only read.
    fn fetch(&mut self, core: usize, line: u32, access: Access, now: Time) -> Time {
        let model = &self.model;
        let latency = if self.llc[model.llc_of(core)].holds(line) {
            model.llc.ns
        } else {
            let mut holders = self.lines[line as usize].holders;
            if holders == 0 {
                // Those whose last level has it.
                let beside = |&other: &usize| self.llc[model.llc_of(other)].holds(line);
                let beside = (0..self.l2.len()).filter(beside);
                holders = beside.fold(0, |holders, other| holders | 1 << other);
            }
            let holder = nearest(model, holders, core);
            holder.map_or(model.memory, |holder| model.between(holder, core))
        };
        let (overlap, writes) = (self.overlap(access, false), access != Access::Load);
        self.take(core, line, writes);
        let done = self.request_time(core, now, latency, overlap) + time(latency);
        match access {
            Access::Exchange => done.max(self.drained[core]) + time(self.model.exchange),
            _ => done,
        }
    }

    /// Notes that a core has paused, or mispredicted a branch: it could not foresee what it does from now on.
    pub(crate) fn resume(&mut self, core: usize, now: Time) {
        self.resumed[core] = now;
    }

    /// Returns when a core asks for a line: early enough for `overlap` lines to be under way at a time,
    /// if the core could foresee that it needs them.
    fn request_time(&self, core: usize, now: Time, latency: f64, overlap: f64) -> Time {
        let ahead = time(latency) - time(latency / overlap);
        now.saturating_sub(ahead).max(self.resumed[core].min(now))
    }

    fn overlap(&self, access: Access, upgrade: bool) -> f64 {
        match access {
            Access::Exchange if upgrade => self.model.overlap.upgrades,
            Access::Exchange => self.model.overlap.exchanges,
            _ => self.model.overlap.loads,
        }
    }

    /// The line comes from another core, or others must drop it.
    fn hand_over(
        &mut self,
        (from, core): (usize, usize),
        number: u32,
        access: Access,
        now: Time,
    ) -> Step {
        let writes = access != Access::Load;
        let line = &mut self.lines[number as usize];
        if line.under_way > 0 {
            line.queue.push((core, writes));
            return Step::Queued;
        }
        let upgrade = line.holders & 1 << core != 0;
        let awaited = self.model.between(from, core);
        let alone = awaited * self.model.unawaited;
        let overlap = self.overlap(access, upgrade);
        let requested = self.request_time(core, now, alone, overlap);
        let line = &mut self.lines[number as usize];
        // A core that has just loaded the line asks for the right to write it as early: it waits for
        // no hand-over but its own.
        let others = match line.reached {
            Some((last, before)) if upgrade && last == core => before,
            _ => line.arrived,
        };
        let (begin, latency) = if requested < others {
            (others, awaited)
        } else {
            (requested, alone)
        };
        line.reached = Some((core, others));
        let arrives = begin + time(latency);
        let kept = begin + time(latency * self.model.kept);
        let at_once = access == Access::Store || (begin < now && kept <= now);
        line.last = (line.owner == Some(from) && !at_once).then_some((from, kept));
        line.arrived = line.arrived.max(arrives);
        line.under_way = usize::from(!at_once);
        self.take(core, number, writes);
        match access {
            _ if !at_once => Step::Arrives(arrives),
            // The core goes on; what follows must wait until its store buffer is empty.
            Access::Store => {
                self.drained[core] = self.drained[core].max(arrives);
                Step::Done(now + time(latency / overlap))
            }
            Access::Exchange => {
                Step::Done(arrives.max(self.drained[core]) + time(self.model.exchange))
            }
            _ => Step::Done(arrives),
        }
    }

    /// A line has arrived. Returns when the core goes on, and when which other cores get the line.
    pub(crate) fn arrived(
        &mut self,
        core: usize,
        address: usize,
        access: Access,
        now: Time,
    ) -> (Time, Vec<(Time, usize)>) {
        let number = self.number(address);
        let line = &mut self.lines[number as usize];
        line.under_way -= 1;
        let next = if line.under_way == 0 && !line.queue.is_empty() {
            self.pass_on(core, number, now)
        } else {
            Vec::new()
        };
        (self.hit(core, number, access, now), next)
    }

    /// Passes a line on to a writer that waits, or to all readers that do.
    fn pass_on(&mut self, core: usize, number: u32, now: Time) -> Vec<(Time, usize)> {
        let at = self.choose(core, number);
        let line = &mut self.lines[number as usize];
        let chosen: Vec<Waiter> = if line.queue[at].1 {
            vec![line.queue.remove(at)]
        } else {
            line.queue.extract_if(.., |(_, writes)| !*writes).collect()
        };
        let owned = self.lines[number as usize].owner == Some(core);
        let (mut latest, mut next) = (0.0_f64, Vec::new());
        for (next_core, writes) in chosen {
            let latency = self.model.between(core, next_core);
            latest = latest.max(latency);
            let line = &mut self.lines[number as usize];
            line.under_way += 1;
            line.reached = None;
            line.arrived = line.arrived.max(now + time(latency));
            self.take(next_core, number, writes);
            next.push((now + time(latency), next_core));
        }
        let kept = now + time(latest * self.model.kept);
        self.lines[number as usize].last = owned.then_some((core, kept));
        next
    }

    /// Chooses the core that gets a line next: of those at one distance the one that waited longest;
    /// near ones more often than far ones, by the inverse of the distance.
    fn choose(&mut self, core: usize, number: u32) -> usize {
        let queue = &self.lines[number as usize].queue;
        let weight = |(other, _): &Waiter| 1.0 / self.model.between(core, *other).max(1e-3);
        let all: f64 = queue.iter().map(weight).sum();
        let mut drawn = self.random.random_range(0.0..all);
        let drawn = queue.iter().position(|waiter| {
            drawn -= weight(waiter);
            drawn < 0.0
        });
        let distance = weight(&queue[drawn.unwrap_or_default()]);
        let same = |waiter: &Waiter| weight(waiter) == distance;
        queue.iter().position(same).unwrap_or_default()
    }

    fn take(&mut self, core: usize, number: u32, writes: bool) {
        let line = &mut self.lines[number as usize];
        if writes {
            line.holders = 1 << core;
            line.owner = Some(core);
        } else {
            line.holders |= 1 << core;
            // What its owner has written goes to the last level.
            line.owner = None;
        }
        let domain = self.model.llc_of(core);
        self.llc[domain].touch(number);
        if writes {
            self.outdate(core, number);
        }
        self.keep(core, number);
    }

    /// The core writes a line: what the last-level caches of others have is out of date.
    fn outdate(&mut self, core: usize, number: u32) {
        let domain = self.model.llc_of(core);
        let others = self.llc.iter_mut().enumerate();
        let others = others.filter(|(other, _)| *other != domain);
        others.for_each(|(_, cache)| cache.drop(number));
    }

    /// Puts a line into the core's own caches; another may leave them.
    fn keep(&mut self, core: usize, number: u32) {
        self.l1[core].touch(number);
        if let (_, Some(out)) = self.l2[core].touch(number) {
            let line = &mut self.lines[out as usize];
            let is_valid = line.holders & 1 << core != 0;
            line.holders &= !(1 << core);
            if line.owner == Some(core) {
                line.owner = None;
            }
            if is_valid {
                self.llc[self.model.llc_of(core)].touch(out);
            }
        }
    }
}

fn cores(holders: u128) -> impl Iterator<Item = usize> {
    (0..MAX_CORES).filter(move |core| holders & 1 << core != 0)
}

fn farthest(model: &Model, holders: u128, core: usize) -> Option<usize> {
    let distance = |other: usize| model.between(other, core);
    cores(holders).max_by(|&one, &other| distance(one).total_cmp(&distance(other)))
}

fn nearest(model: &Model, holders: u128, core: usize) -> Option<usize> {
    let distance = |other: usize| model.between(other, core);
    cores(holders & !(1 << core)).min_by(|&one, &other| distance(one).total_cmp(&distance(other)))
}
