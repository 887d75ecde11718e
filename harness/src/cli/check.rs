//! The `check` command: searches for answers that no order of the calls explains, and prints them
//! readably.

use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use check::perturbation;
use check::{self, Finding, MAX_THREADS, Report, Settings, Totals};
use clap::Args;
use indicatif::HumanCount;

use crate::ending::{Ending, stop_on_ctrl_c};
use crate::machine;
use crate::show::{Bar, note, say};
use crate::studies::seconds;
use crate::subjects::{Registry, SubjectInfo};
use crate::wording::{counted, large};

#[derive(Debug, Args)]
pub(super) struct Options {
    /// Subjects to check, one after another; `harness list` names them.
    #[arg(
        long,
        alias = "subject",
        value_name = "NAME,…",
        value_delimiter = ',',
        required = true
    )]
    subjects: Vec<String>,
    /// Numbers of threads, one after another. With more threads than cores, threads are also preempted in
    /// the middle of a call.
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = threads, default_value = "8")]
    threads: Vec<usize>,
    /// How long to check each subject with each number of threads.
    #[arg(long, value_name = "S", default_value = "10", value_parser = seconds, allow_negative_numbers = true)]
    seconds: Duration,
    /// Seed of the keys and calls; by default drawn at random and printed.
    #[arg(long, value_name = "X")]
    seed: Option<u64>,
    /// Repeat the calls of this one round of the seed. How they overlap depends on the machine, so a
    /// violation may take a while to reappear.
    #[arg(long, value_name = "R", requires = "seed")]
    round: Option<u64>,
    /// Seconds after which an unfinished round counts as deadlocked or livelocked. A round takes less than
    /// a second, or a few on a busy machine.
    #[arg(long, value_name = "S", default_value = "120", value_parser = seconds, allow_negative_numbers = true)]
    patience: Duration,
}

fn threads(text: &str) -> Result<usize> {
    let threads = text.parse().context("that is not a number")?;
    ensure!(
        (1..=MAX_THREADS).contains(&threads),
        "choose 1 to {MAX_THREADS}, as many calls as the checker can handle at once"
    );
    Ok(threads)
}

impl Options {
    /// Returns the settings of one search, with a seed of its own unless one is given.
    fn settings(&self, threads: usize) -> Settings {
        Settings {
            threads,
            time: self.seconds,
            // 32 bits, short enough to type.
            seed: self.seed.unwrap_or_else(|| rand::random::<u32>().into()),
            round: self.round,
        }
    }
}

pub(super) fn check(registry: &Registry, options: &Options) -> Result<Ending> {
    let mut searches = Vec::new();
    for name in &options.subjects {
        let subject = registry.get(name)?;
        for &threads in &options.threads {
            let settings = options.settings(threads);
            check::validate(&subject.candidate, &settings)?;
            searches.push((subject, settings));
        }
    }
    let stop = stop_on_ctrl_c()?;
    let (planned, mut all) = (searches.len(), Totals::default());
    for (subject, settings) in searches {
        all += search(subject, &settings, options.patience, stop)?;
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    if planned > 1 {
        let (calls, undecided) = (large(all.calls(), "call"), HumanCount(all.undecided));
        say!("In all: {calls}; undecided: {undecided} classes of keys");
    }
    Ok(Ending::from_flag(stop))
}

fn search(
    subject: &SubjectInfo,
    settings: &Settings,
    patience: Duration,
    stop: &AtomicBool,
) -> Result<Totals> {
    announce(subject, settings)?;
    let (bar, begun) = (Bar::new(settings.time.as_secs()), Instant::now());
    let report = run(subject, settings, patience, stop, &mut |totals| {
        bar.move_to(begun.elapsed().as_secs(), &rounds_and_calls(totals));
    });
    drop(bar);
    let (totals, found) = report?;
    if let Some(found) = &found {
        show_violation(found, subject, settings);
    }
    show_totals(&totals);
    let (name, is_set) = (subject.name, subject.candidate.set);
    let fits_set = found.as_ref().is_some_and(|found| found.fits_set);
    let hint = if fits_set {
        "; if it is a set, declare `const SET: bool = true` in its `impl Subject`"
    } else {
        ""
    };
    ensure!(found.is_none(), "{name} is not linearizable{hint}");
    if stop.load(Ordering::Relaxed) {
        say!("no violation so far; interrupted");
    } else {
        let as_set = if is_set { ", checked as a set" } else { "" };
        say!("no violation{as_set}");
        // In tables that are meant to be full, half of the inserts are refused.
        if totals.refused > totals.inserts / 10 * 9 {
            say!(
                "note: nearly all inserts were refused, so little was checked; check the size in `with_buckets`"
            );
        }
    }
    Ok(totals)
}

fn announce(subject: &SubjectInfo, settings: &Settings) -> Result<()> {
    note!("{}: {}", subject.name, subject.description);
    let Settings { threads, seed, .. } = settings;
    note!("  {}, seed {seed}", counted(*threads, "thread"));
    note!(
        "  {}",
        if perturbation::AVAILABLE {
            "this build has the feature `steps`: it stops threads inside calls"
        } else {
            "this build lacks the feature `steps`: calls overlap only by chance; `cargo run --features steps` also \
             stops threads inside calls"
        }
    );
    if !subject.candidate.names_classes()? {
        note!(
            "  it does not implement `Subject::class`: only missed keys are violations, not false finds \
             or refusals"
        );
    }
    Ok(())
}

/// Runs a check, and calls `each` with the totals after each round. If a round takes longer than `patience`, ends the
/// process: there is no other way to stop a thread that is stuck in a call.
fn run(
    subject: &SubjectInfo,
    settings: &Settings,
    patience: Duration,
    stop: &AtomicBool,
    each: &mut dyn FnMut(&Totals),
) -> Result<Report> {
    let (sender, ended) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut rounds = 0;
            loop {
                match ended.recv_timeout(patience) {
                    Ok(all) => rounds = all,
                    Err(RecvTimeoutError::Disconnected) => return,
                    Err(RecvTimeoutError::Timeout) => break,
                }
            }
            say!(
                "STUCK after {}: the next one has not ended for {patience:?}. To repeat its calls:",
                counted(rounds, "round")
            );
            say!(as is: "{}", command(subject, settings, settings.round.unwrap_or(rounds)));
            note!("error: a call does not return; to wait for longer, use --patience S");
            process::exit(1)
        });
        let report = check::run(&subject.candidate, settings, stop, &mut |totals| {
            // This fails only if the process is about to end.
            _ = sender.send(totals.rounds);
            each(totals);
        });
        // Ends the watch.
        drop(sender);
        report
    })
}

/// Formats the command line that repeats a round.
fn command(subject: &SubjectInfo, settings: &Settings, round: u64) -> String {
    let (program, name) = (machine::executable(), subject.name);
    let Settings { threads, seed, .. } = settings;
    format!(
        "  {program} check --subjects {name} --threads {threads} --seed {seed} --round {round} --seconds 60"
    )
}

/// Prints a violation, for a person to read and repeat.
fn show_violation(found: &Finding, subject: &SubjectInfo, settings: &Settings) {
    let (round, threads) = (found.round, settings.threads);
    say!("VIOLATION: no order of these calls explains their answers.");
    say!(
        "round {round}: {}, {}",
        found.scenario,
        counted(threads, "thread")
    );
    say!(as is: "{}", found.history.trim_end());
    say!("(thread {threads} fills the table before all others, and empties it after them)");
    say!("To repeat the same calls, which may overlap differently:");
    say!(as is: "{}\n", command(subject, settings, round));
}

fn rounds_and_calls(totals: &Totals) -> String {
    let (rounds, calls) = (totals.rounds, totals.calls());
    format!("{}, {}", large(rounds, "round"), large(calls, "call"))
}

fn show_totals(totals: &Totals) {
    say!("{}:", rounds_and_calls(totals));
    say!(
        "  {}, {} of them refused; {}; {}",
        large(totals.inserts, "insert"),
        HumanCount(totals.refused),
        large(totals.lookups, "lookup"),
        large(totals.removes, "remove")
    );
    let (running, checking) = (totals.running, totals.checking);
    say!("  {running:.1?} running, {checking:.1?} checking");
    if totals.undecided > 0 {
        say!(
            "  not checked in some rounds, because too many calls overlapped: {} of keys; choose fewer threads",
            large(totals.undecided, "class")
        );
    }
}

#[cfg(test)]
mod tests {
    use std::hash::Hash;

    use clap::Parser;
    use subject::Subject;

    use super::super::{Cli, Command};
    use super::*;
    use crate::subjects::LockFree;

    /// The lock-free filter, which drops a key that it holds.
    struct Forgetful(LockFree);

    impl Subject for Forgetful {
        const NAME: &'static str = "forgetful";
        const DESCRIPTION: &'static str = "drops a key that it holds";
        const GUARANTEES: &'static str = "none";

        fn insert<K: Hash + ?Sized>(&self, key: &K) -> bool {
            self.0.insert_if_absent(key).is_ok()
        }

        subject::delegate! { self.0: with_buckets contains remove class memory_bytes }
    }

    #[test]
    fn violation_of_round_is_error_with_hint() {
        let line =
            "harness check --subjects forgetful --threads 2 --seconds 20 --seed 5 --round 1000000";
        let cli = Cli::parse_from(line.split(' '));
        let Command::Check(options) = cli.command else {
            unreachable!()
        };
        let mut registry = Registry::new();
        registry.add::<Forgetful>();
        let error = check(&registry, &options).unwrap_err().to_string();
        let expected = "forgetful is not linearizable; if it is a set, declare `const SET";
        assert!(error.starts_with(expected), "{error}");
        let (subject, never) = (registry.get("forgetful").unwrap(), AtomicBool::new(false));
        let settings = options.settings(2);
        let report = check::run(&subject.candidate, &settings, &never, &mut |_| ());
        assert_eq!(report.unwrap().1.unwrap().round, 1_000_000);
    }
}
