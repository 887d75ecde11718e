//! What one process measures: subjects that take turns of half a millisecond, or of some milliseconds to fill a table.

use std::hint::black_box;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use crossbeam_utils::Backoff;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use subject::SLOTS_PER_BUCKET;
use sysinfo::System;

use super::work::Kind;
use super::{One, Row};
use crate::machine::{Cores, Waits, hand_over, throughout};
use crate::results::median;
use crate::run::{Crew, Member, ensure_rare};
use crate::subjects::{Registry, SubjectInfo};
use crate::workload::{
    Cycle, KeySource, Keys, Lookups, Measured, Phase, Present, Tally, Watch, copied, drawn_lookups,
};

/// Tables of each subject, where a turn does not need a new one; of [large](One::is_large) ones, one.
const TABLES: usize = 3;
/// From so many keys on, to fill a table takes longer than all else.
const LARGE: usize = 1_000_000;
/// The most batches that a thread makes before a turn; in the turn it makes four times as many of lookups, and
/// as many of updates.
const BATCHES: usize = 20;
/// Keys of a table for each batch, so that turns with a small table are shorter.
const BATCH_OF: usize = 3_000;
/// Before a turn with a small table, one lookup for each so many bytes of it, and at most so many batches: an exact set
/// is thirty times as large as a filter.
const WARMED_BYTES: usize = 32;
const MOST_WARMING: usize = 100;
/// Keys that a batch of updates inserts and removes; a batch of lookups asks for a thousand.
const UPDATES: usize = 400;
/// The most keys of a slice; those of all threads together are one in 60 of a table's.
const SLICE: usize = 500;
const SHARE: usize = 60;
/// The keys that turns draw from, beyond those that a table holds.
const MORE_KEYS: usize = 1 << 20;
/// Rounds of turns that do not count, as the processor is still learning; and the fewest that follow. Where a
/// turn fills a large table, it has learnt soon: none, and one.
const WARM_UP: usize = 2;
const FEWEST_ROUNDS: usize = 9;

/// A subject, with the tables that it keeps, and how many keys these refused.
struct Contestant<'a> {
    name: &'a str,
    info: &'a SubjectInfo,
    tables: Vec<Arc<dyn Measured>>,
    refused: usize,
    /// Batches of a turn; of lookups, four times as many.
    batches: AtomicUsize,
}

/// What a thread did of one workload in one turn.
struct Turn {
    contestant: usize,
    /// Which of the [measures](super::Work::measures) of the work it is.
    measure: usize,
    done: Done,
}

/// What it counted, when it began and when it ended, and how long it waited for its core meanwhile.
#[derive(Clone, Copy)]
struct Done {
    tally: Tally,
    times: [Instant; 2],
    waited: Duration,
}

/// Where threads meet before and after a turn. They spin, so that they begin together.
#[derive(Default)]
struct Meeting(AtomicUsize);

impl Meeting {
    /// What a thread that panics stores, so that nobody waits for it.
    const BROKEN: usize = usize::MAX / 2;

    /// Waits until threads have come so often, over all meetings. Returns whether none has panicked.
    fn wait_for(&self, all: usize) -> bool {
        // Release pairs with the acquire below: all that go on see what each did before it came.
        self.0.fetch_add(1, Ordering::Release);
        let backoff = Backoff::new();
        loop {
            let came = self.0.load(Ordering::Acquire);
            if came >= all {
                return came < Self::BROKEN;
            }
            backoff.snooze();
        }
    }
}

struct Leaving<'a>(&'a Meeting);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.0.store(Meeting::BROKEN, Ordering::Release);
        }
    }
}

struct Arena<'a> {
    one: &'a One,
    is_oversubscribed: bool,
    contestants: Vec<Contestant<'a>>,
    keys: Keys,
    drawn: Arc<[usize]>,
    meeting: Meeting,
    is_over: AtomicBool,
    /// The table of a turn that needs a new one.
    new_table: Mutex<Option<Arc<dyn Measured>>>,
}

impl One {
    pub(in crate::studies) fn measure(&self, registry: &Registry) -> Result<Vec<Row>> {
        let cores = Cores::detect();
        let distance = || match cores.count() {
            1 => 0.0,
            _ => hand_over(&cores, [0, 1], 5),
        };
        let before = distance();
        let random = &mut SmallRng::seed_from_u64(self.seed());
        let arena = self.arena(&cores, registry, random)?;
        let depth = random.random_range(0..64);
        let crew = Crew::new(&cores, self.threads);
        let work = |member: Member| {
            let _leaving = Leaving(&arena.meeting);
            member.arrival.wait();
            let turns = deeper(depth, &mut || arena.take_turns(member.thread));
            (turns, member.pinned)
        };
        let (threads, _) = crew.run(&work, |_, arrival| arrival.wait())?;
        let common = Row {
            process: self.process,
            threads: self.threads,
            oversubscribed: arena.is_oversubscribed,
            pinned: threads.iter().all(|(_, pinned)| *pinned),
            keys: self.keys as u64,
            load_factor: self.work.load,
            hand_over_ns: throughout(before, distance()),
            load_average: System::load_average().map_or(0.0, |load| load.one),
            ..Row::default()
        };
        let turns: Vec<_> = threads.into_iter().map(|(turns, _)| turns).collect();
        let rows = arena.rows(&common, &turns);
        for row in &rows {
            ensure!(
                row.missed == 0,
                "{} missed {} keys that it has, in {}",
                row.subject,
                row.missed,
                row.workload
            );
            ensure_rare(row.false_positives, row.absent)
                .with_context(|| format!("{}, in {}", row.subject, row.workload))?;
        }
        Ok(rows)
    }

    /// Returns the seed of all that is random in this process.
    fn seed(&self) -> u64 {
        self.seed ^ (self.process as u64) << 32 ^ (self.threads as u64) << 48
    }

    fn arena<'a>(
        &'a self,
        cores: &Cores,
        registry: &'a Registry,
        random: &mut SmallRng,
    ) -> Result<Arena<'a>> {
        let mut contestants = Vec::new();
        for name in &self.subjects {
            let info = registry.get(name)?;
            if info.operations.missing(self.work.needs()).is_none() {
                // A subject that cannot be built ends it here, and not in a turn.
                self.table(info)?;
                contestants.push(Contestant {
                    name,
                    info,
                    tables: Vec::new(),
                    refused: 0,
                    batches: self.batches().into(),
                });
            }
        }
        let source = KeySource::generated(self.keys, self.seed());
        if self.work.kind != Kind::Fill {
            let count = contestants.len();
            let tables = count * self.tables();
            let mut places: Vec<_> = (0..tables).map(|place| place % count).collect();
            places.shuffle(random);
            // Allocated between the tables, to shift them against one another.
            let mut gaps = Vec::new();
            for place in places {
                gaps.push(black_box(vec![1_u8; 64 * random.random_range(1..256)]));
                let contestant = &mut contestants[place];
                let table = self.table(contestant.info)?;
                let mut order: Vec<_> = source.resident().collect();
                order.shuffle(random);
                // (Bounds hold no keys.)
                if contestant.info.operations.insert {
                    table.fill(source.keys(), &mut order, &AtomicBool::new(false));
                    contestant.refused += self.keys - order.len();
                }
                contestant.tables.push(table.into());
            }
        }
        let (keys, drawn) = if let Kind::Lookup { hits } = self.work.kind {
            let drawn = drawn_lookups(&source, hits, 0.0, random);
            (copied(source.keys(), &drawn), drawn)
        } else {
            // Its first keys are those of the source.
            let more = KeySource::generated(self.keys + MORE_KEYS, self.seed());
            (more.keys().clone(), Arc::default())
        };
        Ok(Arena {
            one: self,
            is_oversubscribed: self.threads > cores.count(),
            contestants,
            keys,
            drawn,
            meeting: Meeting::default(),
            is_over: AtomicBool::new(false),
            new_table: Mutex::default(),
        })
    }

    /// Creates an empty table in which all keys make up the load factor.
    fn table(&self, info: &SubjectInfo) -> Result<Box<dyn Measured>> {
        let slots = self.keys as f64 / self.work.load;
        (info.build)((slots / SLOTS_PER_BUCKET as f64).ceil() as usize)
    }

    fn is_large(&self) -> bool {
        self.keys >= LARGE
    }

    /// Returns the batches of a turn of the first subject.
    fn batches(&self) -> usize {
        (self.keys / BATCH_OF).clamp(1, BATCHES)
    }

    fn tables(&self) -> usize {
        if self.is_large() { 1 } else { TABLES }
    }

    /// Returns the rounds of turns that do not count, and the fewest that follow.
    fn rounds(&self) -> (usize, usize) {
        if self.is_large() && self.work.kind == Kind::Fill {
            (0, 1)
        } else {
            (WARM_UP, FEWEST_ROUNDS)
        }
    }
}

/// Runs the action this many calls deeper, where it uses other cache lines of the stack.
fn deeper<T>(calls: usize, action: &mut dyn FnMut() -> T) -> T {
    let used = black_box([0_u64; 6]);
    let done = match calls {
        0 => action(),
        _ => deeper(calls - 1, action),
    };
    black_box(used);
    done
}

impl Arena<'_> {
    /// Takes turns until the time is over, in an order for each round that all threads draw.
    fn take_turns(&self, thread: usize) -> Vec<Turn> {
        let One { threads, work, .. } = *self.one;
        let (warm_up, fewest) = self.one.rounds();
        let random = &mut SmallRng::seed_from_u64(self.one.seed());
        let start = Instant::now();
        let mut meetings = 0;
        let mut meet = || {
            meetings += 1;
            self.meeting.wait_for(meetings * threads)
        };
        let mut lookups = match work.kind {
            Kind::Lookup { .. } => {
                let first = self.drawn.len() / threads * thread;
                vec![Phase::Lookup(Lookups {
                    cycle: Cycle::new(0..self.drawn.len(), first),
                    present: Present::Drawn(Arc::clone(&self.drawn), self.one.keys),
                })]
            }
            Kind::Fill | Kind::Update => Vec::new(),
        };
        let mut order: Vec<_> = (0..self.contestants.len()).collect();
        let mut turns: Vec<Turn> = Vec::new();
        for round in 0.. {
            order.shuffle(random);
            if thread == 0 && round >= warm_up + fewest && start.elapsed() > self.one.seconds {
                self.is_over.store(true, Ordering::Relaxed);
            }
            for (place, &contestant) in order.iter().enumerate() {
                let number = round * order.len() + place;
                let of = &self.contestants[contestant];
                if thread == 0 && work.kind == Kind::Fill {
                    let table = self.one.table(of.info).expect("it could be built before");
                    *self.new_table.lock().expect("nobody panics") = Some(table.into());
                }
                if !meet() || self.is_over.load(Ordering::Relaxed) {
                    return turns;
                }
                let table = match of.tables.get(round % self.one.tables()) {
                    Some(table) => Arc::clone(table),
                    None => {
                        let made = self.new_table.lock().expect("nobody panics");
                        made.clone().expect("made before all met")
                    }
                };
                let batches = of.batches.load(Ordering::Relaxed);
                // The table may have left the caches since its last turn, as it would not in a program that uses it all
                // the time.
                match work.kind {
                    Kind::Lookup { .. } => {
                        _ = self.perform(&*table, self.warming(&*table), &mut lookups);
                    }
                    Kind::Update => {
                        let slices = &mut self.slices(self.one.batches(), 2 * number + 1, thread);
                        _ = self.perform(&*table, 1, slices);
                    }
                    Kind::Fill => {}
                }
                let mut timed = |measure, times, phases: &mut [Phase]| {
                    turns.push(Turn {
                        contestant,
                        measure,
                        done: self.perform(&*table, times, phases),
                    });
                };
                if !meet() {
                    return turns;
                }
                match work.kind {
                    Kind::Lookup { .. } => timed(0, 4 * batches, &mut lookups),
                    Kind::Update => timed(0, 1, &mut self.slices(batches, 2 * number, thread)),
                    Kind::Fill => {
                        let part = self.part(number, thread);
                        timed(0, 1, &mut [Phase::Insert(part.clone())]);
                        if !meet() {
                            return turns;
                        }
                        if of.info.operations.remove {
                            timed(1, 1, &mut [Phase::Remove(part)]);
                        }
                    }
                }
                // (More threads than cores do not take turns of a length.)
                if thread == 0 && round + 1 == warm_up && !self.is_oversubscribed {
                    self.shorten(contestant, &turns);
                }
                if !meet() {
                    return turns;
                }
            }
        }
        turns
    }

    /// Lets the turns of a slower contestant last about as long as those of the first one, since other programs disturb a
    /// longer turn more often. The meeting that follows publishes it.
    fn shorten(&self, contestant: usize, turns: &[Turn]) {
        let least = |contestant| {
            let turns = turns.iter().filter(|turn| turn.contestant == contestant);
            let took = turns.map(|turn| (turn.done.times[1] - turn.done.times[0]).as_secs_f64());
            took.fold(f64::INFINITY, f64::min)
        };
        let fitting = fitting(self.one.batches(), least(0), least(contestant));
        let batches = &self.contestants[contestant].batches;
        batches.store(fitting, Ordering::Relaxed);
    }

    /// Performs the phases one after another, this many times; of lookups, a batch each time.
    fn perform(&self, table: &dyn Measured, times: usize, phases: &mut [Phase]) -> Done {
        let stop = AtomicBool::new(matches!(self.one.work.kind, Kind::Lookup { .. }));
        let watch = Watch::new(&stop);
        let waits = Waits::now();
        let (mut tally, start) = (Tally::default(), Instant::now());
        for _ in 0..times {
            for phase in &mut *phases {
                tally.add(&table.perform(&self.keys, phase, &watch, None));
            }
        }
        let times = [start, Instant::now()];
        Done {
            tally,
            times,
            waited: waits.since(),
        }
    }

    /// Returns the keys that a thread inserts into a new table in a turn.
    fn part(&self, turn: usize, thread: usize) -> Range<usize> {
        let One { keys, threads, .. } = *self.one;
        let first = turn * keys % MORE_KEYS;
        first + keys * thread / threads..first + keys * (thread + 1) / threads
    }

    /// Returns what a thread inserts into a filled table in a turn, and removes again slice by slice:
    /// keys that have not been in it for long, if ever.
    fn slices(&self, batches: usize, turn: usize, thread: usize) -> Vec<Phase> {
        let One { keys, threads, .. } = *self.one;
        let length = (keys / SHARE / threads).clamp(1, SLICE);
        let count = (batches * UPDATES).div_ceil(length);
        let slice = |slice: usize| {
            let number = (turn * count + slice) * threads + thread;
            let first = keys + number % (MORE_KEYS / length) * length;
            let slice = first..first + length;
            [Phase::Insert(slice.clone()), Phase::Remove(slice)]
        };
        (0..count).flat_map(slice).collect()
    }

    /// Returns the batches of lookups after which a table is in the caches as far as it fits.
    fn warming(&self, table: &dyn Measured) -> usize {
        let batches = self.one.batches();
        if self.one.is_large() {
            return batches;
        }
        let for_all = table.memory_bytes() / WARMED_BYTES / 1_000;
        for_all.clamp(batches, MOST_WARMING)
    }

    fn rows(&self, common: &Row, threads: &[Vec<Turn>]) -> Vec<Row> {
        let mut rows = Vec::new();
        for (measure, workload) in self.one.work.measures().into_iter().enumerate() {
            let mut first = Vec::new();
            for (number, contestant) in self.contestants.iter().enumerate() {
                let of = |turn: &&Turn| (turn.contestant, turn.measure) == (number, measure);
                let of_thread = |turns: &'_ Vec<Turn>| -> Vec<Done> {
                    let turns = turns.iter().filter(of).skip(self.one.rounds().0);
                    turns.map(|turn| turn.done).collect()
                };
                let threads: Vec<_> = threads.iter().map(of_thread).collect();
                let count = threads[0].len();
                // (If the first one cannot do it, nothing can be compared.)
                if count == 0 || (number > 0 && first.is_empty()) {
                    continue;
                }
                let mut all = Tally::default();
                (threads.iter().flatten()).for_each(|done| all.add(&done.tally));
                let of_turn = |turn: usize| threads.iter().map(move |turns: &Vec<_>| &turns[turn]);
                let rate = |turn| rate(of_turn(turn), self.is_oversubscribed);
                let rates: Vec<_> = (0..count).map(rate).collect();
                if number == 0 {
                    first.clone_from(&rates);
                }
                let both = first.iter().zip(&rates).map(|(ours, rate)| [ours, rate]);
                let (both, turns) = counted(both, self.one.rounds().1);
                let ratios = both.iter().map(|[ours, rate]| (ours.mops / rate.mops).ln());
                let mut ratios: Vec<_> = ratios.collect();
                let mut rates: Vec<_> = both.iter().map(|[_, rate]| rate.mops).collect();
                let refused = contestant.refused as u64 + all.refused;
                // The answers of subjects that hold no keys mean nothing.
                all = Some(all)
                    .filter(|_| contestant.info.holds_keys)
                    .unwrap_or_default();
                let table = contestant.tables.first();
                rows.push(Row {
                    first: self.contestants[0].name.into(),
                    subject: contestant.name.into(),
                    workload: workload.clone(),
                    turns,
                    ratio: median(&mut ratios).exp(),
                    mops: median(&mut rates),
                    memory_bytes: table.map_or(0, |table| table.memory_bytes() as u64),
                    refused,
                    missed: if refused == 0 { all.missing } else { 0 },
                    absent: all.absent,
                    false_positives: all.false_positives,
                    ..common.clone()
                });
            }
        }
        rows
    }
}

/// Returns how many batches last about as long as all of the first subject, if all of this one took so long. Those of
/// subjects that are about as fast stay as they are.
fn fitting(all: usize, first: f64, this: f64) -> usize {
    let times = (this / first).round().max(1.0);
    ((all as f64 / times) as usize).max(1)
}

/// Returns the turns of both subjects that count, and how many: those that nobody disturbed. If these are less than a third
/// of the fewest turns, all are returned, and none counts.
fn counted<'a>(
    turns: impl Iterator<Item = [&'a Rate; 2]> + Clone,
    fewest: usize,
) -> (Vec<[&'a Rate; 2]>, usize) {
    let is_disturbed = |of: &[&Rate; 2]| of.iter().any(|rate| rate.is_disturbed);
    let undisturbed: Vec<_> = turns.clone().filter(|of| !is_disturbed(of)).collect();
    match undisturbed.len() {
        few if 3 * few < fewest => (turns.collect(), 0),
        count => (undisturbed, count),
    }
}

/// The throughput of a turn, in millions a second, and whether others disturbed it.
#[derive(Clone, Copy)]
struct Rate {
    mops: f64,
    is_disturbed: bool,
}

/// The time by which threads begin apart in a short turn anyway.
const APART: Duration = Duration::from_micros(5);

/// Returns the throughput of all threads together, from when the first began until the last ended. A turn is disturbed if a
/// thread had to wait for its core for more than a hundredth of that time, or one began more than a twentieth after another;
/// unless there are more threads than cores, which do not begin together and always wait.
fn rate<'a>(turn: impl Iterator<Item = &'a Done> + Clone, is_oversubscribed: bool) -> Rate {
    let all = |of: fn(&Done) -> Instant| turn.clone().map(of);
    let (starts, ends) = (all(|done| done.times[0]), all(|done| done.times[1]));
    let (first, last) = (starts.clone().min(), starts.max());
    let (first, last) = first.zip(last).expect("there is a thread");
    let took = ends.max().expect("there is a thread") - first;
    let operations: u64 = turn.clone().map(|done| done.tally.operations).sum();
    let waited = turn.map(|done| done.waited).max().unwrap_or_default();
    let is_disturbed = 100 * waited > took || 20 * (last - first) > took + 20 * APART;
    Rate {
        mops: operations as f64 / took.as_secs_f64() / 1e6,
        is_disturbed: is_disturbed && !is_oversubscribed,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::run::runner::tests::flawed::{FINDS_ALL, Flawed};

    fn one(subjects: &[&str], work: &str) -> One {
        One {
            subjects: subjects.iter().copied().map(str::to_owned).collect(),
            work: work.parse().unwrap(),
            threads: 1,
            process: 1,
            seconds: Duration::from_millis(1),
            keys: 1_000,
            seed: 1,
        }
    }

    #[test]
    fn turns_of_slower_subjects_are_shorter() {
        for (this, expected) in [(1.0, 20), (0.5, 20), (1.4, 20), (2.0, 10), (100.0, 1)] {
            assert_eq!(fitting(20, 1.0, this), expected, "{this}");
        }
    }

    /// Without a core of its own, a thread may begin when another has ended.
    #[test]
    fn threads_that_take_turns_on_a_core_are_no_faster() {
        let begun = Instant::now();
        let second = |from: u64| {
            let at = |seconds| begun + Duration::from_secs(seconds);
            let tally = Tally {
                operations: 1_000_000,
                ..Tally::default()
            };
            Done {
                tally,
                times: [at(from), at(from + 1)],
                waited: Duration::ZERO,
            }
        };
        for (starts, expected) in [([0, 0], 2.0), ([0, 1], 1.0), ([2, 0], 2.0 / 3.0)] {
            for is_oversubscribed in [false, true] {
                let rate = rate(starts.map(second).iter(), is_oversubscribed);
                assert_eq!(rate.mops, expected, "{starts:?}");
                let is_disturbed = starts != [0, 0] && !is_oversubscribed;
                assert_eq!(rate.is_disturbed, is_disturbed, "{starts:?}");
            }
        }
        for (ms, is_disturbed) in [(9, false), (11, true)] {
            let mut waits = second(0);
            waits.waited = Duration::from_millis(ms);
            let rate = rate([second(0), waits].iter(), false);
            assert_eq!(rate.is_disturbed, is_disturbed);
        }
    }

    #[test]
    fn turns_that_others_disturb_do_not_count() {
        let [calm, disturbed] = [false, true].map(|is_disturbed| Rate {
            mops: 1.0,
            is_disturbed,
        });
        let mut turns = vec![[&calm, &disturbed], [&disturbed, &calm]];
        turns.extend([[&calm, &calm]; 2]);
        let count = |turns: &[[&Rate; 2]]| {
            let (turns, count) = counted(turns.iter().copied(), 9);
            (turns.len(), count)
        };
        assert_eq!(count(&turns), (4, 0));
        turns.push([&calm, &calm]);
        assert_eq!(count(&turns), (3, 3));
    }

    #[test]
    fn what_the_first_one_cannot_do_is_not_compared() {
        let one = one(&["fastbloom", "fastbloom#2", "word-lock"], "fill");
        let rows = one.measure(&Registry::standard()).unwrap();
        let is_right = |row: &Row| row.workload == "fill" && row.ratio > 0.0;
        assert!(rows.len() == 3 && rows.iter().all(is_right), "{rows:?}");
    }

    #[test]
    fn a_subject_that_finds_what_is_not_there_ends_the_process() {
        let mut registry = Registry::standard();
        registry.add::<Flawed<FINDS_ALL>>();
        let error = one(&["lock-free", "flawed"], "lookup").measure(&registry);
        let error = format!("{:#}", error.unwrap_err());
        let why = "flawed, in lookup: it finds what is not there";
        assert!(error.contains(why), "{error}");
    }
}
