//! `check --tally`: takes turns between scenarios, and keeps a row of each piece over all runs.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use check::{self, Check, Panicked, Rounds, Settings, answers, scenario};

use super::check::{Options, run, tell};
use crate::machine::{self, Source};
use crate::results::{Columns, Writer, read};
use crate::run::{Ending, stop_on_ctrl_c};
use crate::show::{Outputs, Run, Sidecar, files, note, print, say};
use crate::studies::Presented;
use crate::studies::soak::{NONE, Row, operations};
use crate::subjects::{Registry, SubjectInfo};
use crate::wording::{counted, large};

const NAME: &str = "soak";

/// The longest piece, and the shortest: in less time, perhaps no round ends.
const PIECE: Duration = Duration::from_secs(60);
const SHORTEST: Duration = Duration::from_secs(1);

/// A scenario that is checked for some time, with a seed of its own.
struct Piece<'a> {
    entry: &'a SubjectInfo,
    scenario: String,
    settings: Settings,
}

/// Returns the pieces, which are all different, and repeated in this order.
fn pieces<'a>(registry: &'a Registry, options: &Options) -> Result<Vec<Piece<'a>>> {
    let mut pieces = Vec::new();
    for name in once(&options.subjects) {
        let entry = registry.get(name)?;
        let histories = named(&scenario::Kind::suiting(&entry.candidate)?);
        let answers = named(&answers::Kind::suiting(&entry.candidate)?);
        for (check, scenarios) in [(Check::History, histories), (Check::Answers, answers)] {
            let step = scenarios.len() as u64;
            for (first, scenario) in (0..).zip(scenarios) {
                for &threads in once(&options.threads) {
                    let settings = Settings {
                        check,
                        rounds: Rounds { first, step },
                        ..options.settings(threads)
                    };
                    check::validate(&entry.candidate, &settings)?;
                    pieces.push(Piece {
                        entry,
                        scenario: scenario.clone(),
                        settings,
                    });
                }
            }
        }
    }
    // Short enough for each to have a turn.
    let time = options.seconds.div_f64(pieces.len().max(1) as f64);
    let time = time.clamp(SHORTEST, PIECE);
    pieces.iter_mut().for_each(|of| of.settings.time = time);
    Ok(pieces)
}

/// Returns each of these once.
fn once<T: PartialEq>(all: &[T]) -> impl Iterator<Item = &T> {
    let first = |(nth, one): (usize, _)| (!all[..nth].contains(one)).then_some(one);
    all.iter().enumerate().filter_map(first)
}

fn named(kinds: &[impl ToString]) -> Vec<String> {
    kinds.iter().map(ToString::to_string).collect()
}

impl Piece<'_> {
    fn is_of(&self, row: &Row) -> bool {
        let Settings { check, threads, .. } = self.settings;
        (row.check == check.name() && row.threads == threads)
            && (row.subject == self.entry.name && row.scenario == self.scenario)
    }

    /// Checks the piece. Returns its row, or `None` if no round ended; prints a violation. If a call does not return,
    /// writes the row, and ends the process.
    fn run(
        &self,
        seed: u64,
        patience: Duration,
        stop: &AtomicBool,
        writer: &mut Writer<Row>,
    ) -> Result<Option<Row>> {
        let settings = Settings {
            seed,
            ..self.settings
        };
        // What stays if no round ends.
        let mut row = Row {
            check: settings.check.name().into(),
            subject: self.entry.name.into(),
            scenario: self.scenario.clone(),
            threads: settings.threads,
            stopped: settings.perturb,
            seed,
            started: machine::now(),
            seconds: 0.0,
            rounds: 1,
            operations: 0,
            undecided: 0,
            violation: "a call does not return".into(),
            commit: Source::of_harness().short(),
        };
        let (begun, unended) = (Instant::now(), row.clone());
        let stuck = || {
            writer.write(&unended)?;
            writer.sync()
        };
        let report = run(self.entry, &settings, patience, stop, stuck, &mut |_| ());
        row.seconds = begun.elapsed().as_secs_f64();
        let (totals, found) = match report {
            // Other errors, such as a lack of memory, say nothing about the subject.
            Err(error) if error.is::<Panicked>() => {
                row.violation = format!("{error:#}");
                return Ok(Some(row));
            }
            report => report?,
        };
        if let Some(found) = &found {
            tell(found, self.entry, &settings);
        }
        Ok((totals.rounds > 0).then(|| Row {
            rounds: totals.rounds,
            operations: totals.calls(),
            undecided: totals.undecided,
            violation: found.map_or_else(|| NONE.into(), |found| format!("round {}", found.round)),
            ..row
        }))
    }
}

/// Continues the tally in a directory, or begins one, for as long as the options say.
pub(super) fn keep(registry: &Registry, options: &Options, directory: &Path) -> Result<Ending> {
    let pieces = pieces(registry, options)?;
    print::leaves_files();
    files::create(directory)?;
    let files = Outputs::named(directory, NAME);
    let mut sidecar = describe(&pieces)?;
    let mut rows: Vec<Row> = Vec::new();
    let mut writer = if files.csv.exists() {
        let (writer, torn) = Writer::resume(&files.csv)?;
        if !torn.is_empty() {
            note!("  the last row was cut off, and is left out: {torn}");
        }
        rows = read(&files.csv).context("cannot continue the tally; choose another directory")?;
        writer
    } else {
        Writer::create(&files.csv)?
    };
    if let Some(Sidecar { run: before, .. }) = files.described()? {
        let now = std::mem::replace(&mut sidecar.run.started, before.started);
        sidecar.run.resumed = before.resumed;
        sidecar.run.resumed.push(now);
    }
    sidecar.write(&files.sidecar)?;
    let stop = stop_on_ctrl_c()?;
    let begun = Instant::now();
    let mut ended = ensure_no_violation(&rows);
    while ended.is_ok() && begun.elapsed() < options.seconds && !stop.load(Ordering::Relaxed) {
        // An earlier run may have ended anywhere; this one goes on there.
        let last = |piece: &Piece| rows.last().is_some_and(|row| piece.is_of(row));
        let next = pieces.iter().position(last).map_or(0, |last| last + 1);
        let piece = &pieces[next % pieces.len()];
        let seed = options.settings(1).seed;
        ended = piece
            .run(seed, options.patience, stop, &mut writer)
            .and_then(|row| {
                if let Some(row) = row {
                    writer.write(&row)?;
                    writer.sync()?;
                    let checked = large(operations(&rows) + row.operations, "operation");
                    note!("  {}: {checked} in all", of(&row));
                    rows.push(row);
                }
                ensure_no_violation(&rows)
            });
    }
    if let Some(sheet) = rows.printed(Some(&sidecar)) {
        say!("{sheet}");
    }
    sidecar.run.rows = Some(rows.len());
    sidecar.run.ended = Some(machine::now());
    sidecar.write(&files.sidecar)?;
    say!("{}\n{}", files.csv.display(), files.sidecar.display());
    ended?;
    Ok(Ending::of(stop))
}

/// Describes this run, which may be one of many.
fn describe(pieces: &[Piece]) -> Result<Sidecar> {
    let about = [
        "A tally of checked operations",
        "How much was checked, and was anything wrong?",
    ];
    let keys = "each piece drew its own seed, as in its row".into();
    let run = Run::begin(about, 0, keys, "threads are not pinned".into());
    let described = |of: &Piece| (of.entry.name.to_owned(), of.entry.description.to_owned());
    Ok(Sidecar {
        subjects: pieces.iter().map(described).collect(),
        ..Sidecar::describe(run, Row::COLUMNS)?
    })
}

/// Returns what the piece of a row checked.
fn of(row: &Row) -> String {
    let threads = counted(row.threads, "thread");
    format!("{}, {}, {threads}", row.subject, row.scenario)
}

fn ensure_no_violation(rows: &[Row]) -> Result<()> {
    let Some(row) = rows.iter().find(|row| row.violation != NONE) else {
        return Ok(());
    };
    bail!(
        "a violation: {}, seed {}, {}, at commit {}; once it is fixed, begin a new tally in another directory",
        of(row),
        row.seed,
        row.violation,
        row.commit
    )
}

#[cfg(test)]
mod tests {
    use super::super::check::tests::{forgetful, options};
    use super::*;
    use crate::run::runner::tests::flawed::{Flawed, PANICS};
    use crate::subjects::LockFree;
    use anyhow::ensure;
    use check::scenario::Scenarios;
    use subject::Subject;

    /// Each scenario of the check is gone through, and by the rounds that `check --round` repeats.
    #[test]
    fn pieces_cover_all_scenarios_of_our_filters() {
        let registry = Registry::standard();
        let pieces = pieces(&registry, &options("--tally results --seconds 9e3")).unwrap();
        assert_eq!(pieces.len(), 2 * (3 * (6 + 3) + (3 + 2)));
        for of in &pieces {
            let (entry, settings) = (of.entry, &of.settings);
            assert_eq!(settings.time, PIECE);
            if settings.check == Check::Answers {
                continue;
            }
            let mut scenarios = Scenarios::new(&entry.candidate, settings.threads, 1).unwrap();
            for before in [0, 1, 5] {
                let round = settings.rounds.number(before);
                let found = scenarios.of_round(round).unwrap();
                assert_eq!(found.kind.to_string(), of.scenario);
            }
        }
    }

    #[test]
    fn what_is_named_twice_is_one_piece() {
        let registry = Registry::standard();
        let number = |named: &str| {
            let options = options(&format!("--tally results {named}"));
            pieces(&registry, &options).unwrap().len()
        };
        let twice = number("--subjects lock-free,growing,lock-free --threads 2,8,2");
        assert_eq!(twice, number("--subjects lock-free,growing --threads 2,8"));
    }

    /// The lock-free filter, for which there is never enough memory.
    struct Unbuilt(LockFree);

    impl Subject for Unbuilt {
        const NAME: &'static str = "unbuilt";
        const DESCRIPTION: &'static str = "without enough memory";
        const GUARANTEES: &'static str = "none";

        fn with_buckets(buckets: usize) -> Result<Self> {
            ensure!(buckets <= 2, "no memory on purpose");
            LockFree::with_buckets(buckets).map(Self)
        }

        subject::delegate! { self.0: insert contains remove memory_bytes }
    }

    #[test]
    fn an_error_that_is_no_violation_leaves_no_row() {
        let mut registry = Registry::new();
        registry.add::<Unbuilt>();
        let directory = tempfile::tempdir().unwrap();
        let options = options("--subjects unbuilt --threads 2 --seconds 20");
        let error = keep(&registry, &options, directory.path()).unwrap_err();
        let error = format!("{error:#}");
        assert!(error.contains("no memory on purpose"), "{error}");
        let rows = read::<Row>(&Outputs::named(directory.path(), NAME).csv).unwrap();
        assert_eq!(rows, []);
    }

    #[test]
    fn a_violation_of_an_earlier_run_is_an_error() {
        let mut registry = forgetful();
        registry.add::<Flawed<PANICS>>();
        for (subject, why) in [("declared", "round "), ("flawed", "panicked in round ")] {
            let directory = tempfile::tempdir().unwrap();
            let error = |options: &Options| {
                let kept = keep(&registry, options, directory.path());
                kept.unwrap_err().to_string()
            };
            let line = format!("--subjects {subject} --threads 2 --seconds 20");
            let mut options = options(&line);
            let found = error(&options);
            assert!(found.contains(subject) && found.contains(why), "{found}");
            // It has nothing left to check.
            options.seconds = Duration::from_nanos(1);
            assert_eq!(error(&options), found);
        }
    }
}
