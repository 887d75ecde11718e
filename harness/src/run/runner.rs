//! Runs an experiment and hands out one row per measurement.
//!
//! In each round all subjects are measured right after one another, at every number of threads (and
//! of frozen ones, and at every rate of operations, if an experiment has those), and the next round
//! starts with the next subject. So whatever the machine does meanwhile, the measurements of one
//! round are about equally affected. The module `bench` describes how one measurement is made.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::experiment::stopping::{self, Progress, Reason};
use crate::results::record::Row;
use crate::run::bench::Bench;
pub use crate::run::bench::Sweep;
use crate::run::plan::{Measurement, Part};
use crate::workload::Workload;

/// A report of a run's progress.
#[allow(clippy::large_enum_variant, reason = "there is one at a time")]
#[derive(Debug)]
pub enum Event<'a> {
    /// This measurement comes next.
    Next(&'a Measurement),
    /// This was measured.
    Made(Row),
    /// A workload has completed all its rounds.
    Ended {
        /// The workload.
        workload: &'a Workload,
        /// Number of its rounds.
        rounds: usize,
        /// Why there are no more.
        reason: Reason,
    },
}

/// Makes all measurements of the [plan](crate::run::plan::Plan), in its order, with as many rounds
/// as the experiment's [`StoppingRule`](crate::experiment::stopping::StoppingRule) requires. Passes
/// each row to the observer as soon as it is made. Once `stop` is set, the current measurement is
/// aborted and leaves no row.
///
/// # Errors
///
/// Fails if a subject is not in the registry, cannot be built, or gives wrong answers, and with
/// errors of the observer.
pub fn run(
    sweep: &Sweep,
    stop: &AtomicBool,
    observer: &mut dyn FnMut(Event) -> Result<()>,
) -> Result<()> {
    let plan = sweep.plan;
    let started = Instant::now();
    for (index, part) in plan.parts.iter().enumerate() {
        let (left, later) = (plan.parts.len() - index, &plan.parts[index + 1..]);
        let share = (sweep.experiment.stopping_rule()).share(started.elapsed(), left);
        // Workloads are measured one after another: if a later one has rows, this one is over.
        let is_over = (sweep.made.iter()).any(|row| later.iter().any(|part| part.holds(row)));
        if !run_part(sweep, part, share, is_over, stop, observer)? {
            return Ok(());
        }
    }
    Ok(())
}

/// Measures one workload, with no more rounds than the minimum if it `is_over`. Returns `false` if
/// it was stopped.
fn run_part(
    sweep: &Sweep,
    part: &Part,
    share: Option<Duration>,
    is_over: bool,
    stop: &AtomicBool,
    observer: &mut dyn FnMut(Event) -> Result<()>,
) -> Result<bool> {
    let rule = sweep.experiment.stopping_rule();
    let mut rows: Vec<Row> = (sweep.made.iter().filter(|row| part.holds(row)).cloned()).collect();
    let rounds_begun = rows.iter().map(|row| row.round).max().unwrap_or(0);
    let started = Instant::now();
    let mut bench = None;
    for round in 1.. {
        let round_started = Instant::now();
        for measurement in part.round(round) {
            if rows.iter().any(|row| measurement.made(row)) {
                continue;
            }
            let bench = match &mut bench {
                Some(bench) => bench,
                None => bench.insert(Bench::ready(sweep, part, stop)?),
            };
            observer(Event::Next(&measurement))?;
            let Some(row) = bench.measure(&measurement)? else {
                return Ok(false);
            };
            rows.push(row.clone());
            observer(Event::Made(row))?;
        }
        if round < rounds_begun {
            continue;
        }
        let progress = Progress {
            rounds: round,
            imprecision: if rule.adapts() {
                stopping::imprecision(&rows, &part.subjects[0])
            } else {
                0.0
            },
            spent: started.elapsed(),
            last_round: round_started.elapsed(),
            share: if is_over { Some(Duration::ZERO) } else { share },
        };
        if let Some(reason) = rule.reason(&progress) {
            observer(Event::Ended {
                workload: &part.workload,
                rounds: round,
                reason,
            })?;
            break;
        }
    }
    Ok(true)
}

/// What a measurement costs, in seconds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rehearsal {
    /// For the keys that are drawn once for all measurements of a workload.
    pub(crate) drawn: f64,
    /// For each time it was made: the total, and the timed part of it.
    pub(crate) took: Vec<(f64, f64)>,
}

/// Makes a short measurement, with nothing prepared for it, to see what it costs. Repeats it if it
/// is very short, as the first time costs more than later ones. Returns `None` if it was stopped.
pub(crate) fn rehearse(
    sweep: &Sweep,
    measurement: &Measurement,
    stop: &AtomicBool,
) -> Result<Option<Rehearsal>> {
    const TIMES: usize = 5;
    const MOMENT: Duration = Duration::from_millis(20);
    let started = Instant::now();
    let bench = Bench::new(sweep, &measurement.workload, stop);
    let mut rehearsal = Rehearsal {
        drawn: started.elapsed().as_secs_f64(),
        took: Vec::new(),
    };
    let started = Instant::now();
    while rehearsal.took.len() < TIMES && started.elapsed() < MOMENT {
        let begun = Instant::now();
        let Some(row) = bench.measure_once(measurement)? else {
            return Ok(None);
        };
        let took = begun.elapsed().as_secs_f64();
        rehearsal.took.push((took, row.seconds));
    }
    Ok(Some(rehearsal))
}

#[cfg(test)]
mod tests {
    use std::hash::Hash;
    use std::io::Write;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use anyhow::anyhow;
    use subject::Subject;

    use super::*;
    use crate::experiment::Experiment;
    use crate::machine::pinning::Cores;
    use crate::results::rows::Record;
    use crate::run::plan::Plan;
    use crate::subjects::SegmentLock;
    use crate::subjects::registry::Registry;
    use crate::workload::Ycsb;
    use crate::workload::keys::KeySource;
    use crate::workload::latency::Latency;

    const SECONDS: f64 = 0.01;

    fn experiment(subjects: &[&str], workloads: Vec<Workload>) -> Experiment {
        let text = format!(
            "name = 'tiny'\ntitle = 'A tiny sweep'\nsubjects = {subjects:?}\nthreads = [1, 2]\n\
             rounds = 2\nseconds = {SECONDS}\nkeys = 1000\nseed = 1\n\
             [[workload]]\nkind = 'insert'\nload = 0.9"
        );
        Experiment {
            workloads,
            ..Experiment::parse(&text).unwrap()
        }
    }

    fn mix() -> Workload {
        Workload::Mix {
            lookup: 80,
            insert: 10,
            remove: 10,
            hit: 50,
            load: 0.9,
        }
    }

    fn all_workloads() -> Vec<Workload> {
        vec![
            Workload::LookupHit { load: 0.92 },
            Workload::LookupMiss { load: 0.92 },
            Workload::Insert { load: 0.95 },
            Workload::Remove { load: 0.95 },
            mix(),
            Workload::Lookup {
                load: 0.92,
                hit: 50,
                skew: 0.99,
            },
            ycsb(Ycsb::A),
            ycsb(Ycsb::C),
            ycsb(Ycsb::D),
            ycsb(Ycsb::F),
            Workload::Window {
                lookup: 75,
                load: 0.9,
                skew: 0.0,
            },
            Workload::Grow {
                insert: 25,
                lookup: 75,
                hit: 50,
                from: 0.3,
                load: 0.95,
            },
        ]
    }

    fn ycsb(mix: Ycsb) -> Workload {
        Workload::Ycsb {
            mix,
            load: 0.9,
            skew: 0.99,
        }
    }

    /// Runs with nothing to stop it except the observer.
    fn observe(
        experiment: &Experiment,
        registry: &Registry,
        (keys, made): (&KeySource, &[Row]),
        stop: &AtomicBool,
        observer: &mut dyn FnMut(Event) -> Result<()>,
    ) -> Result<()> {
        let cores = &Cores::detect();
        let sweep = Sweep {
            experiment,
            registry,
            plan: &Plan::of(experiment, registry, cores)?,
            keys,
            cores,
            made,
        };
        run(&sweep, stop, observer)
    }

    fn rows(experiment: &Experiment, registry: &Registry, keys: &KeySource) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        let stop = AtomicBool::new(false);
        observe(experiment, registry, (keys, &[]), &stop, &mut |event| {
            if let Event::Made(row) = event {
                rows.push(row);
            }
            Ok(())
        })?;
        Ok(rows)
    }

    fn key(
        subject: &str,
        workload: &Workload,
        threads: usize,
        round: usize,
    ) -> (String, String, usize, usize) {
        (subject.into(), workload.label(), threads, round)
    }

    fn check_rows(keys: &KeySource) {
        let subjects = ["lock-free", "segment-lock", "global-lock", "roofline"];
        let experiment = experiment(&subjects, all_workloads());
        let rows = rows(&experiment, &Registry::standard(), keys).unwrap();

        let mut expected = Vec::new();
        for workload in &experiment.workloads {
            let able = if workload.label().starts_with("lookup") {
                4
            } else {
                3
            };
            for threads in [1, 2] {
                for round in [1, 2] {
                    expected.extend(
                        subjects[..able]
                            .iter()
                            .map(|subject| key(subject, workload, threads, round)),
                    );
                }
            }
        }
        let mut found: Vec<_> = rows
            .iter()
            .map(|row| {
                (
                    row.subject.clone(),
                    row.workload.clone(),
                    row.threads,
                    row.round,
                )
            })
            .collect();
        found.sort();
        expected.sort();
        assert_eq!(found, expected);

        let residents = keys.residents() as u64;
        for row in rows {
            row.validate().unwrap();
            assert_eq!((row.keys, row.refused), (residents, 0), "{row:?}");
            let slots = residents as f64 / row.load_factor;
            assert!(
                (slots..slots + 4.0).contains(&(row.slots as f64)),
                "{row:?}"
            );
            assert!(row.memory_bytes >= row.slots * 2, "{row:?}");
            // On a busy machine even the first thread may start long after the window has opened.
            assert!(row.seconds > 0.0, "{row:?}");
            let timed = row.p50_ns + row.p99_ns + row.p999_ns + row.max_ns;
            assert_eq!(timed, 0, "nobody asked for latencies: {row:?}");
            if row.workload == "insert" || row.workload == "remove" {
                assert_eq!(
                    row.operations % residents,
                    0,
                    "whole fills and drains only: {row:?}"
                );
            }
            assert_eq!(row.oversubscribed, row.threads > Cores::detect().count());
        }
    }

    #[test]
    fn generated_keys_give_a_row_for_everything_planned() {
        check_rows(&KeySource::generated(1_000, 1));
    }

    #[test]
    fn lines_give_a_row_for_everything_planned() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        (0..2_000).for_each(|line| writeln!(file, "key {line}").unwrap());
        check_rows(&KeySource::from_file(file.path(), 1_000, 1).unwrap());
    }

    /// Its inserts are measured, though no lookup can show their effect.
    #[test]
    fn a_subject_that_cannot_look_up_gives_rows_of_inserts() {
        let workloads = vec![
            Workload::Insert { load: 0.9 },
            Workload::LookupHit { load: 0.9 },
        ];
        let experiment = experiment(&["count-min", "hyperloglog"], workloads);
        let keys = KeySource::generated(1_000, 1);
        let rows = rows(&experiment, &Registry::standard(), &keys).unwrap();
        let of = |subject, workload| {
            let found =
                (rows.iter()).filter(|row| row.subject == subject && row.workload == workload);
            found.count()
        };
        for (subject, workload, expected) in [
            ("count-min", "insert", 4),
            ("count-min", "lookup-hit", 4),
            ("hyperloglog", "insert", 4),
            ("hyperloglog", "lookup-hit", 0),
        ] {
            assert_eq!(of(subject, workload), expected, "{subject} {workload}");
        }
    }

    #[test]
    fn operations_are_timed_at_each_rate() {
        let mut experiment = experiment(&["segment-lock"], vec![mix(), ycsb(Ycsb::A)]);
        experiment.seconds = 0.1;
        experiment.latency = Some(Latency {
            offered_mops: vec![0.0, 0.02],
            burst: 1,
            every: 10,
        });
        let keys = KeySource::generated(1_000, 1);
        let rows = rows(&experiment, &Registry::standard(), &keys).unwrap();
        assert_eq!(rows.len(), 2 * 2 * 2 * 2);
        for row in rows {
            row.validate().unwrap();
            assert!(row.p50_ns > 0 && row.max_ns > row.p50_ns, "{row:?}");
            // 2,000 operations are due at the rate, give or take some 45; on a busy machine, fewer
            // are done.
            let unhurried = row.offered_mops > 0.0;
            assert_eq!(row.operations < 2_300, unhurried, "{row:?}");
        }
    }

    /// A filter with a flaw of one kind.
    struct Flawed<const FLAW: u8>(SegmentLock, AtomicUsize);

    /// Claims to accept every key, but drops some.
    const DROPS: u8 = 0;
    /// Finds every key.
    const FINDS_ALL: u8 = 1;
    /// Claims to remove, but does not.
    const KEEPS: u8 = 2;
    /// Refuses some keys, as a full filter may.
    const REFUSES: u8 = 3;
    /// Panics when it is used.
    const PANICS: u8 = 4;
    /// Claims to accept the first key, but drops it.
    const DROPS_ONE: u8 = 5;

    impl<const FLAW: u8> Subject for Flawed<FLAW> {
        const NAME: &'static str = "flawed";
        const DESCRIPTION: &'static str = "a filter with a flaw";
        const GUARANTEES: &'static str = "none";

        fn with_buckets(buckets: usize) -> Result<Self> {
            Ok(Self(
                SegmentLock::with_buckets(buckets)?,
                AtomicUsize::new(0),
            ))
        }

        fn insert<K: Hash + ?Sized>(&self, key: &K) -> bool {
            match FLAW {
                PANICS => panic!("this subject panics on purpose"),
                DROPS | REFUSES if self.1.fetch_add(1, Ordering::Relaxed) % 50 == 49 => {
                    FLAW == DROPS
                }
                DROPS_ONE if self.1.fetch_add(1, Ordering::Relaxed) == 0 => true,
                _ => self.0.insert(key),
            }
        }

        fn contains<K: Hash + ?Sized>(&self, key: &K) -> bool {
            FLAW == FINDS_ALL || self.0.contains(key)
        }

        fn remove<K: Hash + ?Sized>(&self, key: &K) -> bool {
            FLAW == KEEPS || self.0.remove(key)
        }

        fn slots(&self) -> usize {
            Subject::slots(&self.0)
        }

        fn memory_bytes(&self) -> usize {
            Subject::memory_bytes(&self.0)
        }
    }

    fn rows_of_flawed<const FLAW: u8>(workload: Workload) -> Result<Vec<Row>> {
        let mut registry = Registry::new();
        registry.add::<Flawed<FLAW>>();
        rows(
            &experiment(&["flawed"], vec![workload]),
            &registry,
            &KeySource::generated(1_000, 1),
        )
    }

    fn complaint_about<const FLAW: u8>(workload: Workload) -> String {
        format!("{:#}", rows_of_flawed::<FLAW>(workload).unwrap_err())
    }

    #[test]
    fn a_subject_that_loses_keys_ends_the_run() {
        let touched = |workload: &Workload| !matches!(workload, Workload::LookupMiss { .. });
        for workload in all_workloads().into_iter().filter(touched) {
            let label = workload.label();
            let error = complaint_about::<DROPS>(workload);
            assert!(
                error.contains("\"flawed\" failed under") && error.contains(&label),
                "{error}"
            );
            assert!(error.contains("it lost a key"), "{error}");
        }
    }

    #[test]
    fn keys_that_no_thread_asks_for_are_looked_for_at_the_end() {
        // With such a skew, all lookups and updates concern some 20 keys of 1,000.
        let workload = Workload::Ycsb {
            mix: Ycsb::C,
            load: 0.9,
            skew: crate::workload::MAX_SKEW,
        };
        let error = complaint_about::<DROPS_ONE>(workload);
        assert!(error.contains("it lost a key: 1 of the keys"), "{error}");
    }

    #[test]
    fn a_subject_that_finds_what_is_not_there_ends_the_run() {
        let asks_for_absent =
            |of: &Workload| of.hit() < 100 && of.label() != "insert" && of.label() != "remove";
        for workload in all_workloads().into_iter().filter(asks_for_absent) {
            let error = complaint_about::<FINDS_ALL>(workload);
            assert!(error.contains("it finds what is not there"), "{error}");
        }
        let error = complaint_about::<KEEPS>(Workload::Remove { load: 0.92 });
        assert!(error.contains("it finds what is not there"), "{error}");
    }

    #[test]
    fn keys_refused_are_recorded_and_not_taken_for_lost() {
        for workload in all_workloads() {
            for row in rows_of_flawed::<REFUSES>(workload).unwrap() {
                assert!(row.refused >= 1_000 / 50 - 2, "{row:?}");
            }
        }
    }

    #[test]
    fn a_panicking_subject_ends_the_run() {
        let error = complaint_about::<PANICS>(Workload::Insert { load: 0.9 });
        assert!(
            error.contains("\"flawed\" failed under insert") && error.contains("panicked"),
            "{error}"
        );
    }

    #[test]
    fn a_stop_keeps_the_rows_made_so_far() {
        let experiment = experiment(&["global-lock", "segment-lock"], all_workloads());
        let stop = AtomicBool::new(false);
        let mut made = 0;
        let keys = KeySource::generated(1_000, 1);
        let registry = Registry::standard();
        observe(&experiment, &registry, (&keys, &[]), &stop, &mut |event| {
            made += usize::from(matches!(event, Event::Made(_)));
            stop.store(made == 3, Ordering::Relaxed);
            Ok(())
        })
        .unwrap();
        assert_eq!(made, 3);
    }

    #[test]
    fn what_was_made_is_not_made_again() {
        let experiment = experiment(
            &["global-lock", "segment-lock"],
            vec![mix(), Workload::Insert { load: 0.9 }],
        );
        let (registry, keys) = (Registry::standard(), KeySource::generated(1_000, 1));
        let all = rows(&experiment, &registry, &keys).unwrap();
        for kept in [0, 3, all.len() - 1, all.len()] {
            let stop = AtomicBool::new(false);
            let mut again = all[..kept].to_vec();
            observe(
                &experiment,
                &registry,
                (&keys, &all[..kept]),
                &stop,
                &mut |event| {
                    if let Event::Made(row) = event {
                        again.push(row);
                    }
                    Ok(())
                },
            )
            .unwrap();
            let names = |rows: &[Row]| -> Vec<_> {
                let name = |row: &Row| {
                    (
                        row.subject.clone(),
                        row.workload.clone(),
                        row.threads,
                        row.round,
                    )
                };
                rows.iter().map(name).collect()
            };
            assert_eq!(names(&again), names(&all));
        }
    }

    /// Returns how many rounds each workload has, and why no more.
    fn endings(experiment: &Experiment, made: &[Row]) -> Vec<(usize, Reason)> {
        let mut endings = Vec::new();
        let (registry, keys) = (Registry::standard(), KeySource::generated(1_000, 1));
        let stop = AtomicBool::new(false);
        observe(experiment, &registry, (&keys, made), &stop, &mut |event| {
            if let Event::Ended { rounds, reason, .. } = event {
                endings.push((rounds, reason));
            }
            Ok(())
        })
        .unwrap();
        endings
    }

    #[test]
    fn rounds_are_added_until_they_suffice() {
        let workloads = vec![mix(), Workload::LookupHit { load: 0.9 }];
        let plain = experiment(&["global-lock", "segment-lock"], workloads);
        assert_eq!(endings(&plain, &[]), [(2, Reason::AsPlanned); 2]);
        let never_precise = Experiment {
            max_rounds: Some(4),
            precision: Some(1e-9),
            ..plain.clone()
        };
        for (rounds, reason) in endings(&never_precise, &[]) {
            assert_eq!(rounds, 4);
            assert!(matches!(reason, Reason::MostRounds(_)), "{reason:?}");
        }
        let no_time = Experiment {
            minutes: Some(1e-9),
            ..plain.clone()
        };
        for (rounds, reason) in endings(&no_time, &[]) {
            assert_eq!(rounds, 2);
            assert!(matches!(reason, Reason::OutOfTime(_)), "{reason:?}");
        }
    }

    #[test]
    fn a_workload_before_one_that_was_measured_is_over() {
        let workloads = vec![mix(), Workload::LookupHit { load: 0.9 }];
        let plain = experiment(&["global-lock", "segment-lock"], workloads);
        let made = rows(
            &plain,
            &Registry::standard(),
            &KeySource::generated(1_000, 1),
        )
        .unwrap();
        let more = Experiment {
            max_rounds: Some(3),
            precision: Some(1e-9),
            ..plain
        };
        let rounds: Vec<_> = endings(&more, &made)
            .iter()
            .map(|ending| ending.0)
            .collect();
        assert_eq!(rounds, [2, 3]);
    }

    #[test]
    fn an_error_of_the_observer_ends_the_run() {
        let experiment = experiment(&["global-lock"], all_workloads());
        let stop = AtomicBool::new(false);
        let keys = KeySource::generated(1_000, 1);
        let mut observer = |_: Event| Err(anyhow!("the disk is full"));
        let registry = Registry::standard();
        let result = observe(&experiment, &registry, (&keys, &[]), &stop, &mut observer);
        assert_eq!(result.unwrap_err().to_string(), "the disk is full");
    }
}
