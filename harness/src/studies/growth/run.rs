//! Runs one contender from no keys to all of them: threads that insert and look up, slice by slice.

use std::sync::Mutex;

use anyhow::{Context, Result};
use subject::Subject;

use super::slices::{between, ends, part};
use super::worker::{Tally, Timed, Worker};
use super::{Growth, Row};
use crate::machine::pinning::Cores;
use crate::run::crew::{Crew, Member};
use crate::studies::study::Progress;
use crate::workload::latency::Latencies;

/// A set that can be run.
pub(super) trait Contender: Subject {
    /// What it is, and for how many keys it has room at first.
    const START: &'static str;

    /// Creates an empty set that is to hold `keys` keys in the end.
    ///
    /// # Errors
    ///
    /// Fails if it cannot have that size.
    fn for_keys(keys: u64) -> Result<Self>;

    /// Returns the number of tables that a lookup may search now.
    fn parts(&self) -> usize;
}

/// The settings of a run, apart from the contender.
#[derive(Clone, Copy)]
pub(super) struct GrowthRun<'a> {
    pub(super) growth: &'a Growth,
    pub(super) threads: usize,
    pub(super) cores: &'a Cores,
    pub(super) round: usize,
}

/// What one thread did in a slice, or all of them.
struct Report {
    /// From the common start to the end of this thread, or of the last one.
    seconds: f64,
    pinned: bool,
    tally: Tally,
    latencies: Timed,
}

/// Returns a row for each slice. Calls `progress` with the name of the contender before each slice;
/// if it asks to stop, the slices done so far are returned.
///
/// # Errors
///
/// Fails if a contender cannot be created, refuses a key or loses one, or panics.
pub(super) fn run<C: Contender>(run: &GrowthRun, progress: &mut Progress) -> Result<Vec<Row>> {
    let (keys, threads) = (run.growth.keys, run.threads);
    let contender = &C::for_keys(keys)
        .with_context(|| format!("{} cannot be created for {keys} keys", C::NAME))?;
    let worker = |thread| Mutex::new(Worker::new(run.growth, run.round, contender, thread));
    let workers: Vec<_> = (0..threads).map(worker).collect();
    let mut rows: Vec<Row> = Vec::new();
    for slice in between(&ends(keys, run.growth.slices)) {
        if progress(&format!("round {}, {}", run.round, C::NAME)).is_break() {
            break;
        }
        let work = |member: Member| {
            // Nobody else asks for it.
            let mut worker = workers[member.thread].lock().expect("it has not panicked");
            let own = part(&slice, member.thread, threads);
            let opened = member.arrival.wait();
            let (tally, latencies) = worker.insert_all(own, slice.start);
            Report {
                seconds: opened.elapsed().as_secs_f64(),
                pinned: member.pinned,
                tally,
                latencies,
            }
        };
        let crew = Crew::new(run.cores, threads);
        let (reports, ()) = crew.run(&work, |_, arrival| drop(arrival))?;
        let together = reports.into_iter().reduce(Report::and);
        let report = together.context("0 threads measure nothing")?;
        report.tally.check(C::NAME, slice.end)?;
        let before = rows.last().map_or(0.0, |row| row.elapsed);
        rows.push(report.row(run, contender, slice.end, before));
    }
    Ok(rows)
}

impl Report {
    /// Adds what another thread did in the same slice.
    fn and(mut self, other: Self) -> Self {
        // The longest time counts: all begin at the same moment.
        self.seconds = self.seconds.max(other.seconds);
        self.pinned &= other.pinned;
        self.tally.add(&other.tally);
        self.latencies.inserts.add(&other.latencies.inserts);
        self.latencies.lookups.add(&other.latencies.lookups);
        self
    }

    /// Returns the row of the slice that ends with `keys` keys, `before` seconds after the first
    /// slice began.
    fn row<C: Contender>(&self, run: &GrowthRun, contender: &C, keys: u64, before: f64) -> Row {
        let Growth {
            lookups,
            keys: all_keys,
            ..
        } = *run.growth;
        let threads = run.threads;
        let tally = self.tally;
        let millions = |count: u64, seconds: f64| count as f64 / seconds / 1e6;
        let insert_seconds = tally.insert_ns as f64 / 1e9;
        let share = |of: &Latencies, share| (of.count() > 0).then(|| of.within(share));
        let Timed {
            inserts,
            lookups: timed,
        } = &self.latencies;
        Row {
            subject: C::NAME.into(),
            round: run.round,
            keys,
            all_keys,
            threads,
            oversubscribed: threads > run.cores.count(),
            pinned: self.pinned,
            lookups_per_insert: lookups,
            inserts: tally.inserts,
            lookups: tally.lookups,
            absent: tally.absent,
            wrong: tally.wrong,
            seconds: self.seconds,
            elapsed: before + self.seconds,
            mops: millions(tally.inserts + tally.lookups, self.seconds),
            insert_seconds,
            insert_mops: millions(tally.inserts, insert_seconds / threads as f64),
            lookup_p50_ns: share(timed, 0.5),
            lookup_p99_ns: share(timed, 0.99),
            lookup_max_ns: share(timed, 1.0),
            insert_p50_ns: share(inserts, 0.5),
            insert_p99_ns: share(inserts, 0.99),
            insert_max_ns: share(inserts, 1.0),
            memory_bytes: contender.memory_bytes() as u64,
            parts: contender.parts(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::hash::Hash;
    use std::ops::ControlFlow;
    use std::sync::atomic::{AtomicU64, Ordering};

    use subject::{Operations, Subject};

    use super::*;
    use crate::subjects::LockFree;

    /// The faults of the faulty contenders below.
    const LOSES: u8 = 0;
    const REFUSES: u8 = 1;
    const PANICS: u8 = 2;

    /// A filter that misbehaves once it has 500 keys.
    struct Faulty<const FAULT: u8> {
        filter: LockFree,
        inserts: AtomicU64,
    }

    impl<const FAULT: u8> Subject for Faulty<FAULT> {
        const NAME: &'static str = "faulty";
        const DESCRIPTION: &'static str = "goes wrong";
        const GUARANTEES: &'static str = "none";
        const OPERATIONS: Operations = Operations::INSERT;

        fn with_buckets(buckets: usize) -> Result<Self> {
            Ok(Self {
                filter: LockFree::with_buckets(buckets)?,
                inserts: AtomicU64::new(0),
            })
        }

        fn insert<K: Hash + ?Sized>(&self, key: &K) -> bool {
            let before = self.inserts.fetch_add(1, Ordering::Relaxed);
            match FAULT {
                _ if before < 500 => self.filter.insert(key),
                LOSES => true,
                REFUSES => false,
                _ => panic!("a planted panic"),
            }
        }

        fn contains<K: Hash + ?Sized>(&self, key: &K) -> bool {
            self.filter.contains(key)
        }

        fn remove<K: Hash + ?Sized>(&self, _: &K) -> bool {
            false
        }

        fn slots(&self) -> usize {
            self.filter.slots()
        }

        fn memory_bytes(&self) -> usize {
            self.filter.memory_bytes()
        }
    }

    impl<const FAULT: u8> Contender for Faulty<FAULT> {
        const START: &'static str = "goes wrong after 500 keys";

        fn for_keys(keys: u64) -> Result<Self> {
            Self::with_buckets(keys as usize)
        }

        fn parts(&self) -> usize {
            1
        }
    }

    fn growth() -> Growth {
        Growth {
            keys: 10_000,
            threads: Some(3),
            lookups: 4,
            slices: 6,
            rounds: 1,
            seed: 1,
        }
    }

    fn error<C: Contender>() -> String {
        let plan = GrowthRun {
            growth: &growth(),
            threads: 3,
            cores: &Cores::detect(),
            round: 1,
        };
        let rows = run::<C>(&plan, &mut |_| ControlFlow::Continue(()));
        rows.unwrap_err().to_string()
    }

    #[test]
    fn a_contender_that_loses_or_refuses_a_key_or_panics_ends_the_run() {
        // The slices end at 10, 32, 100, 316, 1,000 and so on.
        let lost = error::<Faulty<LOSES>>();
        assert!(lost.starts_with("faulty lost keys: "), "{lost}");
        assert!(lost.ends_with(" on the way to 1000 keys"), "{lost}");
        let refused = error::<Faulty<REFUSES>>();
        assert_eq!(refused, "faulty refused 500 keys on the way to 1000");
        assert_eq!(error::<Faulty<PANICS>>(), "a thread panicked");
    }
}
