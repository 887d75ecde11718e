//! The `reproduce` command: measures everything the figures need, and writes the page that shows
//! them.

use std::env;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::report;
use crate::run::ending::{Ending, INTERRUPTED};
use crate::run::resume;
use crate::show::outputs::Outputs;
use crate::show::print::note;
use crate::show::sidecar::Sidecar;
use crate::studies::kinds::read_any;
use crate::studies::sweep::command as sweep;
use crate::subjects::registry::Registry;

/// The experiments of `reproduce --quick` and `reproduce --full`. On two cores all of it, builds
/// included, takes an hour and a quarter, the limit we set: the eleven minutes of `sizes.toml` and
/// the four of `rivals-large.toml` would be too many.
const QUICK: &[&str] = &["quick.toml"];
const FULL: &[&str] = &[
    "full.toml",
    "full-large.toml",
    "oversubscribed.toml",
    "latency.toml",
    "rivals.toml",
    "load-factor.toml",
    "hits.toml",
    "skew.toml",
    "mixes.toml",
    "ablations.toml",
];
/// The experiment that needs a build that can freeze threads.
const STALLS: &str = "stalls";
/// The results of `simulate`, which needs a build that observes every access.
const SIMULATED: &str = "simulated-machines";

/// The machines that are simulated.
const MACHINES: &str = "ice-lake-8375c-2s,milan-7r13,sapphire-rapids,graviton-3";

/// Number of rounds that are simulated, as of those that are measured.
const SIMULATED_ROUNDS: &str = "9";
/// Operations of a row: with ten times as many, throughputs differ by 2 %; with half as many, by up to
/// a fifth.
const SIMULATED_OPERATIONS: &str = "20000";

/// A command that `--full` runs in a process of its own, so that nothing it leaves behind, such as
/// threads of an engine that never end, disturbs another.
struct Step {
    /// Name of the command and of its results.
    name: &'static str,
    /// Rough duration on two cores.
    minutes: u32,
}

impl Step {
    /// Returns the feature of the build that this step needs.
    fn feature(&self) -> Option<&'static str> {
        match self.name {
            STALLS => Some("steps"),
            SIMULATED => Some("simulation"),
            _ => None,
        }
    }
}

const STEPS: [Step; 5] = [
    Step {
        name: "layouts",
        minutes: 1,
    },
    Step {
        name: "memory",
        minutes: 2,
    },
    Step {
        name: "kcas",
        minutes: 5,
    },
    Step {
        name: STALLS,
        minutes: 5,
    },
    Step {
        name: SIMULATED,
        minutes: 8,
    },
];

/// Runs the experiments in `directory`.
pub(super) fn reproduce(
    registry: &Registry,
    full: bool,
    directory: &Path,
    options: &sweep::Options,
) -> Result<Ending> {
    let files = if full { FULL } else { QUICK };
    let files: Vec<_> = files.iter().map(|file| directory.join(file)).collect();
    if full {
        let minutes: u32 = STEPS.iter().map(|step| step.minutes).sum();
        let names: Vec<_> = STEPS.iter().map(|step| step.name).collect();
        note!(
            "The experiments are followed by {}: about {minutes} min on two cores.",
            names.join(", ")
        );
    }
    if sweep::sweep(registry, &files, options)? == Ending::Interrupted {
        return Ok(Ending::Interrupted);
    }
    let mut failed = Vec::new();
    if full {
        for step in &STEPS {
            // What another build has made, it has to judge itself: a sweep decides what --resume
            // skips, and a simulation begins again.
            if options.resume && step.feature().is_none() && is_complete(&options.out, step.name)? {
                note!("{}: complete", step.name);
                continue;
            }
            note!("{}: about {} min", step.name, step.minutes);
            let arguments = arguments(step.name, directory, options);
            match command(step)?.args(arguments).status() {
                Ok(status) if status.success() => {}
                Ok(status) if status.code() == Some(INTERRUPTED.into()) => {
                    note!("To continue from there, run the same command with --resume.");
                    return Ok(Ending::Interrupted);
                }
                Ok(status) => {
                    note!("{} failed ({status}); the others go on", step.name);
                    failed.push(step.name);
                }
                Err(error) => {
                    note!("{} cannot be run: {error}; the others go on", step.name);
                    failed.push(step.name);
                }
            }
        }
    }
    let ending = report::report(&options.out)?;
    if !failed.is_empty() {
        bail!(
            "not everything was measured: {} failed (see above); the report has the rest",
            failed.join(", ")
        );
    }
    Ok(ending)
}

/// Returns this program, or cargo, which builds it with the feature that the step needs.
fn command(step: &Step) -> Result<Command> {
    let has = |feature: &str| {
        (feature == "steps" && cfg!(feature = "steps"))
            || (feature == "simulation" && cfg!(feature = "simulation"))
    };
    let Some(feature) = step.feature().filter(|feature| !has(feature)) else {
        return Ok(Command::new(
            env::current_exe().context("cannot find this program")?,
        ));
    };
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["run", "--release", "--features", feature]);
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    command.arg("--manifest-path").arg(manifest).arg("--");
    Ok(command)
}

fn arguments(step: &str, directory: &Path, options: &sweep::Options) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = Vec::new();
    match step {
        STALLS => {
            arguments.push("sweep".into());
            arguments.push(directory.join(STALLS).with_extension("toml").into());
            arguments.extend(options.resume.then(|| "--resume".into()));
            arguments.extend(options.binding());
        }
        SIMULATED => {
            arguments.push("simulate".into());
            arguments.push(directory.join("machines.toml").into());
            let options = ["--machine", MACHINES, "--rounds", SIMULATED_ROUNDS];
            let operations = ["--operations", SIMULATED_OPERATIONS];
            arguments.extend(options.into_iter().chain(operations).map(OsString::from));
        }
        "layouts" | "memory" => arguments.extend(["space".into(), step.into()]),
        _ => arguments.push(step.into()),
    }
    arguments.push("--out".into());
    arguments.push((&options.out).into());
    arguments
}

/// Returns whether all results of this program on this machine are there. What cannot be read is
/// measured again.
fn is_complete(directory: &Path, name: &str) -> Result<bool> {
    let files = Outputs::named(directory, name);
    let (Ok(sidecar), Ok(rows)) = (Sidecar::read(&files.sidecar), read_any(&files.csv)) else {
        return Ok(false);
    };
    let is_whole = sidecar.run.ended.is_some() && rows.missing(&sidecar).is_none();
    Ok(is_whole && resume::is_of_this_program(&sidecar)?)
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::super::{Cli, Command};
    use super::*;
    use crate::machine::now;
    use crate::results::file::Writer;
    use crate::results::record::{COLUMNS, sample};
    use crate::show::sidecar::Run;

    /// The rows of stalls come from another build, so only that build can decide whether they are
    /// complete; its threads are bound as those of the other sweeps.
    #[test]
    fn the_sweep_of_stalls_is_given_the_options_of_the_others() {
        for given in [
            &[] as &[&str],
            &["--resume"],
            &["--pinning", "scatter"],
            &["--resume", "--cores", "0-3,8"],
        ] {
            let full = ["harness", "reproduce", "--full"].iter().chain(given);
            let Command::Reproduce { options, .. } = Cli::parse_from(full).command else {
                unreachable!()
            };
            let passed_on = arguments(STALLS, Path::new("."), &options);
            assert_eq!(passed_on[2..passed_on.len() - 2], *given);
        }
    }

    /// The simulation runs in a build of its own, for machines that are known.
    #[test]
    fn the_simulation_names_its_machines() {
        let given = ["harness", "reproduce", "--full"];
        let Command::Reproduce { options, .. } = Cli::parse_from(given).command else {
            unreachable!()
        };
        let passed_on = arguments(SIMULATED, Path::new("experiments"), &options);
        let Ok(cli) = Cli::try_parse_from([OsString::from("harness")].into_iter().chain(passed_on))
        else {
            panic!("it is a command line of this program");
        };
        assert!(matches!(cli.command, Command::Simulate { .. }));
        #[cfg(feature = "simulation")]
        for machine in MACHINES.split(',') {
            simulator::Model::named_or_read(machine).unwrap();
        }
        let step = STEPS.iter().find(|step| step.name == SIMULATED);
        assert_eq!(step.and_then(Step::feature), Some("simulation"));
    }

    #[test]
    fn what_takes_long_says_so_where_it_is_described() {
        let experiments = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("experiments");
        let read = |file: &str| std::fs::read_to_string(experiments.join(file)).unwrap();
        let cli = Cli::command();
        for Step { name, minutes } in STEPS {
            let described = match name {
                STALLS => read("stalls.toml"),
                SIMULATED => read("machines.toml"),
                _ => {
                    let command = cli.find_subcommand(name).unwrap();
                    command.get_long_about().unwrap().to_string()
                }
            };
            let described: Vec<_> = described.split([' ', '\n', '#']).collect();
            let described = described.join(" ").replace("  ", " ");
            let expected = match minutes {
                1 => "bout a minute on two cores".into(),
                _ => format!("bout {minutes} minutes on two cores"),
            };
            assert!(described.contains(&expected), "{name}: {described}");
        }
    }

    #[test]
    fn a_step_is_complete_with_all_its_rows_only() {
        let directory = tempfile::tempdir().unwrap();
        let is_complete = || is_complete(directory.path(), "step").unwrap();
        assert!(!is_complete());
        let files = Outputs::named(directory.path(), "step");
        let mut writer = Writer::create(&files.csv).unwrap();
        for round in 1..=2 {
            let row = sample("lock-free", "insert", 1, round, 1.0);
            writer.write(&row).unwrap();
        }
        let run = Run::begin(
            String::new(),
            String::new(),
            1,
            String::new(),
            String::new(),
        );
        let mut sidecar = Sidecar::describe(run, COLUMNS).unwrap();
        for (rows, ended, expected) in [
            (2, Some(now()), true),
            (3, Some(now()), false),
            (2, None, false),
        ] {
            (sidecar.run.rows, sidecar.run.ended) = (Some(rows), ended);
            sidecar.write(&files.sidecar).unwrap();
            assert_eq!(is_complete(), expected, "{rows}");
        }
        std::fs::write(&files.sidecar, "torn").unwrap();
        assert!(!is_complete());
    }
}
