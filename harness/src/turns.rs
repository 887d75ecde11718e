//! Subjects that take turns of half a millisecond, or of some milliseconds to fill a table: disturbances of the machine
//! affect all of them. Threads last as long as all turns, and take them in an order that is redrawn for each round of
//! turns. The first rounds warm up, and turns that other programs disturbed do not count.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use figures::stats::Summary;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

use crate::crew::{Member, ThreadGroup};
use crate::machine::{Cores, Waits};

/// How turns are taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turns {
    pub(crate) subjects: usize,
    pub(crate) threads: usize,
    /// Turns end after this time, all subjects together.
    pub(crate) seconds: Duration,
    /// Rounds of turns that do not count, as the processor is still learning, and the fewest that follow.
    pub(crate) warm_up: usize,
    pub(crate) min_rounds: usize,
    /// Batches of a turn of the first subject. Slower ones have fewer.
    pub(crate) batches: usize,
    pub(crate) seed: u64,
}

/// One turn, the same for all threads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    pub(crate) subject: usize,
    /// Number of its round of turns, from 0.
    pub(crate) round: usize,
    /// Number of the turn among all of them.
    pub(crate) number: usize,
    /// Number of batches, each of which takes a thirtieth of a millisecond or so.
    pub(crate) batches: usize,
}

/// The work of threads in turns.
pub(crate) trait Act: Sync {
    /// The state that a thread keeps from turn to turn.
    type Own: Send;

    fn own(&self, thread: usize) -> Self::Own;

    /// Gets ready on one thread, while the others wait: makes a new table, for instance.
    fn begin(&self, _: &Turn) {}

    /// Gets ready on each thread, which then wait for one another: fills its part, or warms the caches.
    fn prepare(&self, own: &mut Self::Own, turn: &Turn);

    /// Performs the timed work, and returns the number of operations.
    fn work(&self, own: &mut Self::Own, turn: &Turn) -> u64;

    /// Collects the results of each thread, not timed.
    fn end(&self, _: &mut Self::Own, _: &Turn) {}
}

/// A thread's part of a turn: when it began and ended, and how long the thread waited for its core meanwhile.
#[derive(Clone, Copy, Debug)]
struct Stint {
    operations: u64,
    times: [Instant; 2],
    waited: Duration,
}

/// The throughput of all threads in a turn, in millions per second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    pub(crate) mops: f64,
    pub(crate) operations: u64,
    pub(crate) seconds: f64,
    pub(crate) is_disturbed: bool,
}

/// All turns.
pub(crate) struct Taken<O> {
    /// The turns after the warm-up, in their order, by subject.
    pub(crate) rates: Vec<Vec<Rate>>,
    /// The states of the threads.
    pub(crate) own: Vec<O>,
    pub(crate) pinned: bool,
}

/// A subject in turns, compared with the first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Compared {
    /// Throughput of the first subject over that of this one: median over the turns.
    pub(crate) ratio: f64,
    /// Throughput of this one in million operations per second: median over the turns.
    pub(crate) mops: f64,
    /// How many turns count; 0 if others disturbed nearly all. Ratio and throughput are then of all.
    pub(crate) turns: usize,
}

/// The state that all threads of a crew share while they take turns.
struct Session<'a, A> {
    turns: Turns,
    act: &'a A,
    /// Calls between the start of a thread and its turns: where its stack lies differs from process to process.
    depth: usize,
    batches: Vec<AtomicUsize>,
    is_over: AtomicBool,
}

impl Turns {
    /// Takes turns until the time is over, or `stop` is set.
    pub(crate) fn take<A: Act>(
        self,
        act: &A,
        cores: &Cores,
        stop: &AtomicBool,
    ) -> Result<Taken<A::Own>> {
        let session = Session {
            turns: self,
            act,
            depth: SmallRng::seed_from_u64(!self.seed).random_range(0..64),
            batches: (0..self.subjects).map(|_| self.batches.into()).collect(),
            is_over: AtomicBool::new(false),
        };
        let crew = ThreadGroup::new(cores, self.threads);
        let work = |member: Member| {
            let (pinned, thread) = (member.pinned, member.thread);
            let mut own = act.own(thread);
            member.arrival.wait();
            let mut meetings = member.meetings;
            let mut meet = || meetings.meet();
            let mut take = || session.take(thread, &mut own, &mut meet, stop);
            let done = deeper(session.depth, &mut take);
            (done, own, pinned)
        };
        let (threads, ()) = crew.run(&work, |_, arrival| drop(arrival))?;
        let pinned = threads.iter().all(|(.., pinned)| *pinned);
        let (done, own): (Vec<_>, _) = threads
            .into_iter()
            .map(|(done, own, _)| (done, own))
            .unzip();
        let rates = |subject: usize| {
            let count = done[0][subject].len();
            let rate = |turn| rate(done.iter().map(move |thread| &thread[subject][turn]));
            (self.warm_up.min(count)..count).map(rate).collect()
        };
        Ok(Taken {
            rates: (0..self.subjects).map(rates).collect(),
            own,
            pinned,
        })
    }
}

impl<A: Act> Session<'_, A> {
    /// Takes the turns of one thread. Returns its stints, by subject.
    fn take(
        &self,
        thread: usize,
        own: &mut A::Own,
        meet: &mut dyn FnMut() -> bool,
        stop: &AtomicBool,
    ) -> Vec<Vec<Stint>> {
        let Turns {
            subjects,
            seconds,
            warm_up,
            min_rounds,
            seed,
            ..
        } = self.turns;
        let random = &mut SmallRng::seed_from_u64(seed);
        let mut order: Vec<_> = (0..subjects).collect();
        let mut done: Vec<Vec<Stint>> = vec![Vec::new(); subjects];
        let start = Instant::now();
        for round in 0.. {
            // All threads draw the same.
            order.shuffle(random);
            if thread == 0 {
                let is_enough = round >= warm_up + min_rounds && start.elapsed() > seconds;
                let is_over = is_enough || stop.load(Ordering::Relaxed);
                // The meeting that follows publishes it.
                self.is_over.store(is_over, Ordering::Relaxed);
            }
            for (place, &subject) in order.iter().enumerate() {
                let mut turn = Turn {
                    subject,
                    round,
                    number: round * subjects + place,
                    batches: self.turns.batches,
                };
                if thread == 0 && !self.is_over.load(Ordering::Relaxed) {
                    self.act.begin(&turn);
                }
                if !meet() || self.is_over.load(Ordering::Relaxed) {
                    return done;
                }
                turn.batches = self.batches[subject].load(Ordering::Relaxed);
                self.act.prepare(own, &turn);
                if !meet() {
                    return done;
                }
                let waits = Waits::now();
                let start = Instant::now();
                let operations = self.act.work(own, &turn);
                let times = [start, Instant::now()];
                let waited = waits.since();
                done[subject].push(Stint {
                    operations,
                    times,
                    waited,
                });
                self.act.end(own, &turn);
                if thread == 0 && round + 1 == warm_up {
                    self.shorten(subject, &done);
                }
                // The next turn begins when all have ended this one.
                if !meet() {
                    return done;
                }
            }
        }
        done
    }

    /// Lets the turns of a slower subject last about as long as those of the first one, since other programs disturb a
    /// longer turn more often. The meeting that follows publishes it.
    fn shorten(&self, subject: usize, done: &[Vec<Stint>]) {
        let shortest = |subject: usize| {
            let seconds = |stint: &Stint| (stint.times[1] - stint.times[0]).as_secs_f64();
            let all = done[subject].iter().map(seconds);
            all.fold(f64::INFINITY, f64::min)
        };
        let batches = fit_batches(self.turns.batches, shortest(0), shortest(subject));
        self.batches[subject].store(batches, Ordering::Relaxed);
    }
}

/// Returns how many batches of this subject last about as long as all of the first one. Subjects that are about as fast
/// keep all.
fn fit_batches(all: usize, first: f64, this: f64) -> usize {
    let times = (this / first).round().max(1.0);
    ((all as f64 / times) as usize).max(1)
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

/// The time between the starts of two threads in any turn.
const START_GAP: Duration = Duration::from_micros(5);

/// Returns the throughput of all threads together, from when the first began until the last ended. A turn is disturbed
/// if a thread had to wait for its core for more than a hundredth of that time, or one began more than a twentieth
/// after another.
fn rate<'a>(turn: impl Iterator<Item = &'a Stint> + Clone) -> Rate {
    let all = |time: fn(&Stint) -> Instant| turn.clone().map(time);
    let (starts, ends) = (all(|stint| stint.times[0]), all(|stint| stint.times[1]));
    let (first, last) = (starts.clone().min(), starts.max());
    let (first, last) = first.zip(last).expect("there is a thread");
    let took = ends.max().expect("there is a thread") - first;
    let operations: u64 = turn.clone().map(|stint| stint.operations).sum();
    let waited = turn.map(|stint| stint.waited).max().unwrap_or_default();
    let seconds = took.as_secs_f64();
    Rate {
        mops: operations as f64 / seconds / 1e6,
        operations,
        seconds,
        is_disturbed: 100 * waited > took || 20 * (last - first) > took + 20 * START_GAP,
    }
}

/// Compares a subject with the first: a ratio is taken within each round of turns. If fewer than a third of the fewest
/// turns were undisturbed, all are taken, and none counts. `None` if there are no turns.
pub(crate) fn compare(first: &[Rate], this: &[Rate], min_rounds: usize) -> Option<Compared> {
    let both = first.iter().zip(this);
    let calm: Vec<_> = (both.clone())
        .filter(|(first, this)| !first.is_disturbed && !this.is_disturbed)
        .collect();
    let turns = if 3 * calm.len() < min_rounds {
        0
    } else {
        calm.len()
    };
    let counted = if turns > 0 { calm } else { both.collect() };
    let ratios = counted
        .iter()
        .map(|(first, this)| (first.mops / this.mops).ln());
    let mops = counted.iter().map(|(_, this)| this.mops);
    Some(Compared {
        ratio: Summary::new(ratios)?.median.exp(),
        mops: Summary::new(mops)?.median,
        turns,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slower_subject_takes_fewer_batches() {
        for (this, expected) in [(1.0, 20), (0.5, 20), (1.4, 20), (2.0, 10), (100.0, 1)] {
            assert_eq!(fit_batches(20, 1.0, this), expected, "{this}");
        }
    }

    #[test]
    fn rate_counts_all_threads_from_first_start() {
        let begun = Instant::now();
        let second = |from: u64, waited| Stint {
            operations: 1_000_000,
            times: [from, from + 1].map(|seconds| begun + Duration::from_secs(seconds)),
            waited: Duration::from_millis(waited),
        };
        for (starts, mops) in [([0, 0], 2.0), ([0, 1], 1.0), ([2, 0], 2.0 / 3.0)] {
            let rate = rate(starts.map(|from| second(from, 0)).iter());
            assert_eq!(rate.mops, mops, "{starts:?}");
            assert_eq!(rate.is_disturbed, starts != [0, 0], "{starts:?}");
        }
        for (ms, is_disturbed) in [(9, false), (11, true)] {
            let rate = rate([second(0, 0), second(0, ms)].iter());
            assert_eq!(rate.is_disturbed, is_disturbed);
        }
    }

    #[test]
    fn disturbed_turns_do_not_count() {
        let [calm, disturbed] = [false, true].map(|is_disturbed| Rate {
            mops: if is_disturbed { 0.5 } else { 2.0 },
            operations: 1,
            seconds: 1.0,
            is_disturbed,
        });
        let (mut first, mut this) = (vec![calm, disturbed], vec![disturbed, calm]);
        first.extend([calm; 2]);
        this.extend([calm; 2]);
        let all = compare(&first, &this, 9).unwrap();
        assert_eq!((all.ratio, all.turns), (1.0, 0));
        first.push(calm);
        this.push(calm);
        let compared = compare(&first, &this, 9).unwrap();
        assert_eq!((compared.mops, compared.turns), (2.0, 3));
        assert_eq!(compare(&[], &[], 9), None);
    }

    /// Counts: in each turn, a thread does as many operations as the turn has batches.
    struct Counts(AtomicUsize);

    impl Act for Counts {
        type Own = Vec<(usize, usize)>;

        fn own(&self, _: usize) -> Self::Own {
            Vec::new()
        }

        fn begin(&self, turn: &Turn) {
            self.0.store(turn.number, Ordering::Relaxed);
        }

        fn prepare(&self, own: &mut Self::Own, turn: &Turn) {
            // No thread begins a turn that another has not ended.
            assert_eq!(self.0.load(Ordering::Relaxed), turn.number);
            own.push((turn.round, turn.subject));
        }

        fn work(&self, _: &mut Self::Own, turn: &Turn) -> u64 {
            turn.batches as u64
        }
    }

    #[test]
    fn threads_share_turns_in_shuffled_rounds() {
        let turns = Turns {
            subjects: 5,
            threads: 2,
            seconds: Duration::ZERO,
            warm_up: 2,
            min_rounds: 9,
            batches: 3,
            seed: 1,
        };
        let (act, never) = (Counts(AtomicUsize::new(0)), AtomicBool::new(false));
        let taken = turns.take(&act, &Cores::detect(), &never).unwrap();
        assert_eq!(taken.own[0], taken.own[1]);
        let rounds: Vec<Vec<_>> = (taken.own[0].chunks(5))
            .map(|round| round.iter().map(|(_, subject)| *subject).collect())
            .collect();
        assert_eq!(rounds.len(), 11);
        let mut orders = rounds.clone();
        orders.sort();
        orders.dedup();
        assert!(orders.len() > 5, "{rounds:?}");
        for mut round in rounds {
            round.sort_unstable();
            assert_eq!(round, [0, 1, 2, 3, 4]);
        }
        // Turns of the warm-up do not count.
        assert!(taken.rates.iter().all(|rates| rates.len() == 9));
        assert_eq!(taken.rates[0][0].operations, 2 * 3);
        // After a stop, no turn is taken.
        let taken = turns.take(&act, &Cores::detect(), &AtomicBool::new(true));
        assert!(taken.unwrap().own.concat().is_empty());
    }
}
