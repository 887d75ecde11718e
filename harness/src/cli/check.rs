//! The `check` command: searches for answers that no order of the calls explains, and prints them
//! readably.

use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use check::perturbation;
use check::recorder;
use check::{self, Candidate, Check, Found, MAX_THREADS, Report, Rounds, Settings, Totals};
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
    /// Record nothing, and check only answers that each thread can foresee: keys of its own in a
    /// churning table, copies that must add up, unique inserts of which one must succeed. Makes many
    /// more calls per second, on larger tables.
    #[arg(long)]
    answers: bool,
    /// How long to check each subject with each number of threads.
    #[arg(long, value_name = "S", default_value = "10", value_parser = seconds, allow_negative_numbers = true)]
    seconds: Duration,
    /// Seed of the keys and calls; by default drawn anew and printed.
    #[arg(long, value_name = "X")]
    seed: Option<u64>,
    /// Repeat the calls of this one round of the seed. How they overlap is up to the machine, so a
    /// violation may take a while to reappear.
    #[arg(long, value_name = "R", requires = "seed")]
    round: Option<u64>,
    /// Give up when a round has not ended for this long: its threads are deadlocked or livelocked.
    /// A round takes less than a second, or a few on a busy machine.
    #[arg(long, value_name = "S", default_value = "120", value_parser = seconds, allow_negative_numbers = true)]
    patience: Duration,
    /// Do not stop threads in the middle of their calls. Builds without the feature `steps` never
    /// do.
    #[arg(long)]
    no_perturb: bool,
}

fn threads(text: &str) -> Result<usize> {
    let threads = text.parse().context("that is not a number")?;
    if !(1..=MAX_THREADS).contains(&threads) {
        bail!("choose 1 to {MAX_THREADS}, as many calls as the checker can handle at once");
    }
    Ok(threads)
}

impl Options {
    /// Returns the settings of one search, with a seed of its own unless one is given.
    fn settings(&self, threads: usize) -> Settings {
        Settings {
            check: [Check::History, Check::Answers][usize::from(self.answers)],
            threads,
            time: self.seconds,
            // 32 bits, short enough to type.
            seed: self.seed.unwrap_or_else(|| rand::random::<u32>().into()),
            rounds: self.round.map_or(Rounds::ALL, Rounds::only),
            perturb: perturbation::AVAILABLE && !self.no_perturb,
        }
    }
}

pub(super) fn check(registry: &Registry, options: &Options) -> Result<Ending> {
    let mut searches = Vec::new();
    for name in &options.subjects {
        let entry = registry.get(name)?;
        for &threads in &options.threads {
            let settings = options.settings(threads);
            check::validate(&entry.candidate, &settings)?;
            searches.push((entry, settings));
        }
    }
    let stop = stop_on_ctrl_c()?;
    let (searches_planned, mut calls, mut undecided) = (searches.len(), 0, 0);
    for (entry, settings) in searches {
        let totals = search(entry, &settings, options.patience, stop)?;
        calls += totals.calls();
        undecided += totals.undecided;
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    if searches_planned > 1 {
        let undecided = HumanCount(undecided);
        say!(
            "In all: {}; undecided: {undecided} classes of keys",
            large(calls, "call")
        );
    }
    Ok(Ending::of(stop))
}

fn search(
    entry: &SubjectInfo,
    settings: &Settings,
    patience: Duration,
    stop: &AtomicBool,
) -> Result<Totals> {
    announce(entry, settings)?;
    let (bar, begun) = (Bar::new(settings.time.as_secs()), Instant::now());
    let report = run(entry, settings, patience, stop, &mut |totals| {
        bar.move_to(begun.elapsed().as_secs(), &rounds_and_calls(totals));
    });
    drop(bar);
    let (totals, found) = report?;
    if let Some(found) = &found {
        tell(found, entry, settings);
    }
    show(&totals);
    ensure!(found.is_none(), refuted(&entry.candidate, settings.check)?);
    if stop.load(Ordering::Relaxed) {
        say!("no violation so far; interrupted");
    } else {
        say!("{}", passed(&entry.candidate, &totals));
    }
    Ok(totals)
}

/// Says what is wrong with a subject, and what to change if it is only declared wrongly.
fn refuted(candidate: &Candidate, check: Check) -> Result<String> {
    let found = match check {
        Check::History => "is not linearizable",
        Check::Answers => "gives wrong answers",
    };
    let hint = match (candidate.set, candidate.copies_of_two()?) {
        (false, Some(1)) => {
            ": it accepts a key twice and holds it once. If it is a set, declare `const SET: bool = true` \
             in its `impl Subject`, and it is checked as one; if not, it loses copies"
        }
        (true, Some(2)) => {
            ": it is declared a set, but holds a key twice; remove `SET` from its `impl Subject`"
        }
        _ => "",
    };
    Ok(format!("{} {found}{hint}", candidate.name))
}

/// Says that no violation was found, and warns if nearly all inserts were refused: then hardly any key
/// could be missed.
fn passed(candidate: &Candidate, totals: &Totals) -> String {
    let as_set = ["", ", checked as a set"][usize::from(candidate.set)];
    // In tables that are meant to be full, half are refused.
    let are_refused = totals.refused > totals.inserts / 10 * 9;
    let doubt = ", but nearly all inserts were refused: little was checked";
    format!(
        "no violation{as_set}{}",
        if are_refused { doubt } else { "" }
    )
}

fn announce(entry: &SubjectInfo, settings: &Settings) -> Result<()> {
    note!("{}: {}", entry.name, entry.description);
    let Settings { threads, seed, .. } = settings;
    note!("  {}, seed {seed}", counted(*threads, "thread"));
    let how = match (perturbation::AVAILABLE, settings.perturb) {
        (true, true) => "this build has steps: threads are stopped in the middle of calls",
        (true, false) => "this build has steps, but threads are not disturbed",
        (false, _) => {
            "this build has no steps: calls overlap by chance alone; with `--features steps` threads \
             are stopped in the middle of calls"
        }
    };
    note!("  {how}");
    if !entry.candidate.names_classes()? {
        note!(
            "  it does not reveal which keys it treats as equal: only missed keys are violations, not \
             wrong finds or refusals"
        );
    }
    if settings.check == Check::History {
        let overhead = recorder::overhead().as_nanos();
        note!("  recording takes {overhead} ns a call");
    }
    Ok(())
}

/// Runs a check, and calls `each` with the totals after each round. If a round takes longer than `patience`, ends the
/// process.
fn run(
    entry: &SubjectInfo,
    settings: &Settings,
    patience: Duration,
    stop: &AtomicBool,
    each: &mut dyn FnMut(&Totals),
) -> Result<Report> {
    let again = again(entry, settings);
    let give_up = |before| {
        say!(
            "STUCK after {}: the next one has not ended for {patience:?}. To repeat its calls:",
            counted(before, "round")
        );
        say!(as is: "{}", again(before));
        note!("error: a call does not return; to wait for longer, use --patience S");
        // There is no other way to stop a thread that is stuck in a call.
        process::exit(1)
    };
    watched(patience, give_up, |ended| {
        check::run(&entry.candidate, settings, stop, &mut |totals| {
            // This fails only if the watch has ended, and with it the process.
            _ = ended.send(totals.rounds);
            each(totals);
        })
    })
}

/// Does the work, which sends the number of finished rounds after each. Calls `give_up` with the last number if a round
/// takes longer than `patience`; then returns only once that has returned, even if the work ends meanwhile.
fn watched<T>(
    patience: Duration,
    give_up: impl FnOnce(u64) + Send,
    work: impl FnOnce(Sender<u64>) -> T,
) -> T {
    let (sender, ended) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(move || {
            before_too_long_a_round(patience, |slice| ended.recv_timeout(slice)).map(give_up)
        });
        work(sender)
    })
}

/// The patience is waited for in so many slices: if the process is stopped, as by Ctrl-Z, and goes on much
/// later, it has lost one slice at most.
const SLICES: u32 = 100;

/// Waits for the numbers of finished rounds. Returns the last one before a round that takes longer than `patience`,
/// or `None` if there is no such round.
fn before_too_long_a_round(
    patience: Duration,
    mut wait: impl FnMut(Duration) -> Result<u64, RecvTimeoutError>,
) -> Option<u64> {
    let (mut before, mut slices) = (0, 0);
    while slices < SLICES {
        match wait(patience / SLICES) {
            Ok(rounds) => (before, slices) = (rounds, 0),
            Err(RecvTimeoutError::Timeout) => slices += 1,
            Err(RecvTimeoutError::Disconnected) => return None,
        }
    }
    Some(before)
}

/// Returns a function that formats the command line that repeats the round after this many others.
fn again(entry: &SubjectInfo, settings: &Settings) -> impl Fn(u64) -> String + Send + 'static {
    let (name, settings) = (entry.name, *settings);
    let program = machine::executable();
    let answers = (settings.check == Check::Answers).then_some(" --answers");
    let answers = answers.unwrap_or_default();
    move |before| {
        let Settings { threads, seed, .. } = settings;
        let round = settings.rounds.number(before);
        format!(
            "  {program} check --subjects {name} --threads {threads} --seed {seed} --round {round} \
             --seconds 60{answers}"
        )
    }
}

/// Prints a violation, for a person to read and repeat.
fn tell(found: &Found, entry: &SubjectInfo, settings: &Settings) {
    let (round, threads) = (found.round, settings.threads);
    let (what, note) = match settings.check {
        Check::Answers => ("an answer is wrong.", String::new()),
        Check::History => (
            "no order of these calls explains their answers.",
            format!(
                "\n(thread {threads} fills the table before all others, and empties it after them)"
            ),
        ),
    };
    say!("VIOLATION: {what}");
    let of = format!("{}, {}", found.scenario, counted(threads, "thread"));
    say!("round {round}: {of}");
    say!(as is: "{}{note}", found.history.to_string().trim_end());
    say!("To repeat the same calls, which may overlap differently:");
    let settings = Settings {
        rounds: Rounds::only(round),
        ..*settings
    };
    say!(as is: "{}\n", again(entry, &settings)(0));
}

fn rounds_and_calls(totals: &Totals) -> String {
    let (rounds, calls) = (totals.rounds, totals.calls());
    format!("{}, {}", large(rounds, "round"), large(calls, "call"))
}

fn show(totals: &Totals) {
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

    fn options(line: &str) -> Options {
        let cli = Cli::parse_from(["harness", "check"].into_iter().chain(line.split(' ')));
        let Command::Check(options) = cli.command else {
            unreachable!()
        };
        options
    }

    #[test]
    fn a_check_of_hardly_any_keys_says_so() {
        let doubts = |inserts, refused| {
            let totals = Totals {
                inserts,
                refused,
                ..Totals::default()
            };
            passed(&Candidate::of::<LockFree>(), &totals).contains("little was checked")
        };
        assert!(!doubts(0, 0) && !doubts(1_000, 600) && doubts(1_000, 950));
    }

    /// The lock-free filter, declared as a set or not; if it forgets, it drops a key that it holds.
    struct Declared<const SET: bool, const FORGETS: bool>(LockFree);

    impl<const SET: bool, const FORGETS: bool> Subject for Declared<SET, FORGETS> {
        const NAME: &'static str = "declared";
        const DESCRIPTION: &'static str = "declared as a set or not";
        const GUARANTEES: &'static str = "none";
        const SET: bool = SET;

        fn insert<K: Hash + ?Sized>(&self, key: &K) -> bool {
            FORGETS && self.0.contains(key) || self.0.insert(key)
        }

        subject::delegate! { self.0: with_buckets contains remove memory_bytes }
    }

    #[test]
    fn a_stop_of_the_process_costs_a_slice_of_the_patience() {
        use RecvTimeoutError::{Disconnected, Timeout};
        let ended = |waits: &[&[Result<u64, RecvTimeoutError>]]| {
            let mut waits = waits.concat().into_iter();
            // However long one of them takes.
            let before = before_too_long_a_round(Duration::from_secs(100), |slice| {
                assert_eq!(slice, Duration::from_secs(1));
                waits.next().unwrap()
            });
            assert_eq!(waits.next(), None);
            before
        };
        let [most, all] = [&[Err(Timeout); 99][..], &[Err(Timeout); 100]];
        assert_eq!(ended(&[all]), Some(0));
        assert_eq!(ended(&[most, &[Ok(7)], all]), Some(7));
        assert_eq!(ended(&[most, &[Ok(7)], most, &[Err(Disconnected)]]), None);
    }

    #[test]
    fn what_is_checked_as_a_set_is_said_and_what_to_declare() {
        fn of<S: Subject>() -> [String; 2] {
            let candidate = Candidate::of::<S>();
            [
                passed(&candidate, &Totals::default()),
                refuted(&candidate, Check::History).unwrap(),
            ]
        }
        const FOUND: &str = "declared is not linearizable";
        let [said, hint] = of::<Declared<false, false>>();
        assert_eq!([&*said, &*hint], ["no violation", FOUND]);
        let [said, hint] = of::<Declared<true, true>>();
        assert_eq!([&*said, &*hint], ["no violation, checked as a set", FOUND]);
        let [_, hint] = of::<Declared<false, true>>();
        assert!(hint.contains("declare `const SET: bool = true`"), "{hint}");
        let [_, hint] = of::<Declared<true, false>>();
        assert!(hint.contains("remove `SET`"), "{hint}");
    }

    fn forgetful() -> Registry {
        let mut registry = Registry::new();
        registry.add::<Declared<false, true>>();
        registry
    }

    #[test]
    fn a_round_of_a_seed_is_repeated() {
        let settings = options("--subjects declared --seed 5 --round 1000000").settings(2);
        let registry = forgetful();
        let declared = registry.get("declared").unwrap();
        let never = AtomicBool::new(false);
        let report = check::run(&declared.candidate, &settings, &never, &mut |_| ());
        let found = report.unwrap().1.unwrap();
        assert_eq!((settings.seed, found.round), (5, 1_000_000));
    }

    #[test]
    fn a_violation_is_an_error() {
        let options = options("--subjects declared --threads 2 --seconds 20");
        let error = check(&forgetful(), &options).unwrap_err().to_string();
        assert!(error.starts_with("declared is not linearizable"), "{error}");
    }
}
