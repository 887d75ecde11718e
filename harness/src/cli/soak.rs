//! The `soak` command: checks our filters for hours, in pieces, and keeps a tally over all runs.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use check::perturbation;
use check::{self, Check, Report, Rounds, Settings, answers, scenario};
use clap::{Args, value_parser};

use super::check::{run, tell, threads};
use crate::machine::{self, Source};
use crate::results::file::Writer;
use crate::results::rows::{Record, read};
use crate::run::ending::{Ending, stop_on_ctrl_c};
use crate::show::files;
use crate::show::outputs::Outputs;
use crate::show::print::{note, say};
use crate::show::progress::minutes;
use crate::show::sidecar::{Run, Sidecar};
use crate::studies::soak::{NONE, Row, operations};
use crate::studies::study::{Shown, seconds};
use crate::subjects::registry::{Registry, SubjectInfo};
use crate::wording::{counted, grouped, large};

/// Name of the files.
const NAME: &str = "soak";

/// Our filters that answer single calls, in each layout.
const OURS: [&str; 4] = [
    "lock-free",
    "growing",
    "lock-free-fitted",
    "lock-free-copies",
];

/// How long a piece may take without a finished round: a round takes less than a second, or a few on
/// a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Debug, Args)]
pub(super) struct Options {
    /// Operations to reach in total, over all rows of soak.csv.
    #[arg(long, value_name = "N", default_value_t = 10_000_000_000, value_parser = value_parser!(u64).range(1..))]
    operations: u64,
    /// Stop after this many minutes, even if fewer operations were reached; run again to continue.
    #[arg(long, value_name = "M", value_parser = value_parser!(u64).range(1..=10_000))]
    minutes: Option<u64>,
    /// How long a piece takes.
    #[arg(long, value_name = "S", default_value = "60", value_parser = seconds, allow_negative_numbers = true)]
    piece: Duration,
    /// Subjects to check.
    #[arg(long, value_name = "NAME,NAME,…", value_delimiter = ',', default_values = OURS)]
    only: Vec<String>,
    /// Numbers of threads, one after another.
    #[arg(long, value_name = "N,N,…", value_delimiter = ',', default_values = ["2", "8"], value_parser = threads)]
    threads: Vec<usize>,
    /// Directory of the results, created if need be.
    #[arg(long, value_name = "DIR", default_value = "results")]
    out: PathBuf,
}

/// What a piece checks, apart from its seed.
struct Piece<'a> {
    entry: &'a SubjectInfo,
    check: Check,
    scenario: String,
    rounds: Rounds,
    threads: usize,
}

/// Returns the pieces that follow one another, again and again.
fn pieces<'a>(registry: &'a Registry, options: &Options) -> Result<Vec<Piece<'a>>> {
    let mut pieces = Vec::new();
    for name in &options.only {
        let entry = registry.get(name)?;
        let histories = named(scenario::Kind::suiting(entry.candidate())?);
        let answers = named(answers::Kind::suiting(entry.candidate())?);
        for (check, scenarios) in [(Check::History, histories), (Check::Answers, answers)] {
            for (first, scenario) in scenarios.iter().enumerate() {
                let rounds = Rounds {
                    first: first as u64,
                    step: scenarios.len() as u64,
                };
                pieces.extend(options.threads.iter().map(|&threads| Piece {
                    entry,
                    check,
                    scenario: scenario.clone(),
                    rounds,
                    threads,
                }));
            }
        }
    }
    Ok(pieces)
}

fn named(kinds: Vec<impl ToString>) -> Vec<String> {
    kinds.iter().map(ToString::to_string).collect()
}

impl Piece<'_> {
    fn settings(&self, time: Duration) -> Settings {
        Settings {
            check: self.check,
            threads: self.threads,
            time,
            // 32 bits, short enough to type.
            seed: rand::random::<u32>().into(),
            rounds: self.rounds,
            perturb: perturbation::AVAILABLE,
            simulate: false,
        }
    }

    /// Checks it. Returns its row, unless no round ended; prints a violation.
    fn run(&self, time: Duration, commit: &str, stop: &AtomicBool) -> Result<Option<Row>> {
        let settings = self.settings(time);
        let (started, begun) = (machine::now(), Instant::now());
        let report = run(self.entry, &settings, PATIENCE, stop, &mut |_| ());
        let Report { totals, found } = report.with_context(|| {
            let seed = settings.seed;
            format!(
                "{} with {} threads and seed {seed}",
                self.entry.name, self.threads
            )
        })?;
        if let Some(found) = &found {
            tell(found, self.entry, &settings);
        }
        Ok((totals.rounds > 0).then(|| Row {
            check: self.check.name().into(),
            subject: self.entry.name.into(),
            scenario: self.scenario.clone(),
            threads: self.threads,
            stopped: settings.perturb,
            seed: settings.seed,
            started,
            seconds: begun.elapsed().as_secs_f64(),
            rounds: totals.rounds,
            operations: totals.calls(),
            undecided: totals.undecided,
            violation: found.map_or_else(|| NONE.into(), |found| format!("round {}", found.round)),
            commit: commit.into(),
        }))
    }
}

/// The rows so far, and where further ones go.
struct Tally {
    files: Outputs,
    sidecar: Sidecar,
    writer: Writer<Row>,
    rows: Vec<Row>,
}

impl Tally {
    /// Opens that of an earlier run, or begins one.
    ///
    /// # Errors
    ///
    /// Fails if files cannot be read or written, or do not hold a tally.
    fn open(registry: &Registry, options: &Options) -> Result<Self> {
        files::create(&options.out)?;
        let files = Outputs::named(&options.out, NAME);
        let mut sidecar = describe(registry, options)?;
        let mut rows = Vec::new();
        let writer = if files.csv.exists() {
            let (writer, torn) = Writer::resume(&files.csv)?;
            if !torn.is_empty() {
                note!("  the last row was cut off, and is left out: {torn}");
            }
            rows = read(&files.csv).context("cannot continue the tally; choose another --out")?;
            writer
        } else {
            Writer::create(&files.csv)?
        };
        if files.sidecar.exists() {
            let before = Sidecar::read(&files.sidecar)?.run;
            sidecar.run.resumed = before.resumed;
            sidecar.run.resumed.push(sidecar.run.started);
            sidecar.run.started = before.started;
        }
        sidecar.write(&files.sidecar)?;
        Ok(Self {
            files,
            sidecar,
            writer,
            rows,
        })
    }

    fn add(&mut self, row: Row) -> Result<()> {
        self.writer.write(&row)?;
        self.writer.sync()?;
        self.rows.push(row);
        Ok(())
    }

    fn operations(&self) -> u64 {
        operations(&self.rows)
    }

    /// Fails if any row has a violation, whichever run found it.
    fn ensure_no_violation(&self) -> Result<()> {
        let Some(row) = self.rows.iter().find(|row| row.violation != NONE) else {
            return Ok(());
        };
        let Row {
            violation,
            seed,
            commit,
            ..
        } = row;
        bail!(
            "a violation: {}, seed {seed}, {violation}, at commit {commit}; when it is mended, choose another \
             --out to begin a new tally",
            of(row)
        )
    }

    /// Says how much of `all` is done, and how long the rest takes.
    fn progress(&self, all: u64) -> String {
        let done = self.operations();
        let shares = format!("{} of {}", grouped(done), large(all, "operation"));
        let seconds: f64 = self.rows.iter().map(|row| row.seconds).sum();
        if done == 0 || done >= all {
            return shares;
        }
        let left = Duration::from_secs_f64(seconds * (all - done) as f64 / done as f64);
        format!("{shares}; the rest takes about {}", minutes(left))
    }

    /// Prints the table, and completes the description.
    fn close(mut self, is_complete: bool) -> Result<()> {
        if let Some(sheet) = Row::printed(&self.rows, Some(&self.sidecar)) {
            say!("{sheet}");
        }
        self.sidecar.run.rows = Some(self.rows.len());
        self.sidecar.run.ended = is_complete.then(machine::now);
        self.sidecar.write(&self.files.sidecar)?;
        say!("{}", self.files.csv.display());
        say!("{}", self.files.sidecar.display());
        Ok(())
    }
}

/// Describes this run, which may be one of many.
fn describe(registry: &Registry, options: &Options) -> Result<Sidecar> {
    let run = Run::begin(
        "A tally of checked operations".into(),
        "How much was checked, and was anything wrong?".into(),
        0,
        "each piece drew its own seed, as in its row".into(),
        "threads are not pinned".into(),
    );
    let named = |name: &String| Ok((name.clone(), registry.get(name)?.description.to_owned()));
    Ok(Sidecar {
        subjects: options.only.iter().map(named).collect::<Result<_>>()?,
        ..Sidecar::describe(run, Row::COLUMNS)?
    })
}

/// Continues the tally until it is long enough.
pub(super) fn soak(registry: &Registry, options: &Options) -> Result<Ending> {
    if cfg!(debug_assertions) {
        note!("note: this build is not optimised; `cargo run --release` checks far more");
    }
    let pieces = pieces(registry, options)?;
    for piece in &pieces {
        check::validate(piece.entry.candidate(), &piece.settings(options.piece))?;
    }
    let mut tally = Tally::open(registry, options)?;
    let stop = stop_on_ctrl_c()?;
    let ended = extend(&mut tally, &pieces, options, &stop);
    let is_complete = tally.operations() >= options.operations;
    tally.close(is_complete)?;
    ended?;
    Ok(Ending::of(&stop))
}

/// Returns what the piece of a row checked.
fn of(row: &Row) -> String {
    let threads = counted(row.threads, "thread");
    format!("{}, {}, {threads}", row.subject, row.scenario)
}

/// Adds pieces until there are enough operations, the time is over, `stop` is set, or there is a
/// violation.
///
/// # Errors
///
/// Fails if any row has a violation, those of earlier runs included, a subject panics, or a row
/// cannot be written.
fn extend(tally: &mut Tally, pieces: &[Piece], options: &Options, stop: &AtomicBool) -> Result<()> {
    let begun = Instant::now();
    let limit = options
        .minutes
        .map(|minutes| Duration::from_secs(60 * minutes));
    let commit = Source::of_harness().short();
    note!("{}", tally.progress(options.operations));
    tally.ensure_no_violation()?;
    while tally.operations() < options.operations
        && !stop.load(Ordering::Relaxed)
        && limit.is_none_or(|limit| begun.elapsed() < limit)
    {
        // An earlier run may have ended anywhere; this one goes on there.
        let piece = &pieces[tally.rows.len() % pieces.len()];
        let Some(row) = piece.run(options.piece, &commit, stop)? else {
            continue;
        };
        let what = of(&row);
        tally.add(row)?;
        tally.ensure_no_violation()?;
        note!("  {what}: {}", tally.progress(options.operations));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use check::scenario::Scenarios;

    use crate::cli::check::tests::Forgetful;
    use crate::studies;

    #[test]
    fn a_violation_is_a_row_and_an_error() {
        let mut registry = Registry::standard();
        registry.add::<Forgetful>();
        let directory = tempfile::tempdir().unwrap();
        let options = Options {
            operations: u64::MAX,
            minutes: Some(1),
            piece: Duration::from_millis(500),
            only: vec!["forgetful".into()],
            threads: vec![2],
            out: directory.path().to_owned(),
        };
        let pieces = pieces(&registry, &options).unwrap();
        let mut tally = Tally::open(&registry, &options).unwrap();
        let error = extend(&mut tally, &pieces, &options, &AtomicBool::new(false)).unwrap_err();
        assert!(error.to_string().contains("forgetful"), "{error}");
        let rows: Vec<Row> = read(&tally.files.csv).unwrap();
        let (last, others) = rows.split_last().unwrap();
        assert!(last.violation.starts_with("round "), "{last:?}");
        assert!(others.iter().all(|row| row.violation == NONE));

        // A later run has nothing left to check, but does not call it a success.
        drop(tally);
        let options = Options {
            operations: 1,
            ..options
        };
        let mut tally = Tally::open(&registry, &options).unwrap();
        tally.add(studies::soak::sample()).unwrap();
        let again = extend(&mut tally, &pieces, &options, &AtomicBool::new(false)).unwrap_err();
        assert_eq!(again.to_string(), error.to_string());
    }

    /// Each scenario of the check is gone through, and by the rounds that `check --round` repeats.
    #[test]
    fn pieces_cover_all_scenarios_of_our_filters() {
        let registry = Registry::standard();
        let options = Options {
            operations: 1,
            minutes: None,
            piece: Duration::from_secs(1),
            only: OURS.map(str::to_owned).into(),
            threads: vec![2, 8],
            out: PathBuf::new(),
        };
        let pieces = pieces(&registry, &options).unwrap();
        assert_eq!(pieces.len(), 2 * (2 * (6 + 3) + (6 + 2) + (3 + 2)));
        for piece in pieces.iter().filter(|piece| piece.check == Check::History) {
            let candidate = piece.entry.candidate();
            let mut scenarios = Scenarios::new(candidate, piece.threads, 1).unwrap();
            for before in [0, 1, 5] {
                let scenario = scenarios.of_round(piece.rounds.number(before)).unwrap();
                assert_eq!(scenario.kind.to_string(), piece.scenario);
            }
        }
    }
}
