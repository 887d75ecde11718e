//! `reproduce`: all that the figures need, one thing after another, and the page that shows them.

use std::env;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::print::{note, say};
use super::{Ending, INTERRUPTED, sweep};
use crate::machine::Sidecar;
use crate::machine::pinning::Cores;
use crate::registry::Registry;
use crate::results::outputs::Outputs;
use crate::sweep::threads::Threads;
use crate::{report, sweep::resume};

/// The experiments of `reproduce --quick` and `reproduce --full`.
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
/// That which needs a build that can freeze threads.
const STALLS: &str = "stalls";

/// How often K-CAS is measured: the least that allows an interval.
const KCAS_ROUNDS: &str = "5";

/// What else `--full` runs, each in a process of its own: what one leaves behind, such as threads of an engine that
/// never end, disturbs no other.
struct Step {
    /// Its command, and the name of its results.
    name: &'static str,
    /// How long it takes on two cores, roughly.
    minutes: u32,
}

const STEPS: [Step; 4] = [
    Step {
        name: "layouts",
        minutes: 2,
    },
    Step {
        name: "memory",
        minutes: 2,
    },
    Step {
        name: "kcas",
        minutes: 3,
    },
    Step {
        name: STALLS,
        minutes: 6,
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
            "After the experiments come {}: about {minutes} min on two cores.",
            names.join(", ")
        );
    }
    if sweep::sweep(registry, &files, options)? == Ending::Interrupted {
        return Ok(Ending::Interrupted);
    }
    let mut failed = Vec::new();
    if full {
        for step in &STEPS {
            if options.resume && is_complete(&options.out, step.name)? {
                note!("{}: complete", step.name);
                continue;
            }
            note!("{}: about {} min", step.name, step.minutes);
            let arguments = arguments(step.name, directory, &options.out);
            match command(step.name)?.args(arguments).status() {
                Ok(status) if status.success() => {}
                Ok(status) if status.code() == Some(INTERRUPTED.into()) => {
                    note!("The same command with --resume goes on from there.");
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
    say!("{}", report::write(&options.out)?.display());
    if !failed.is_empty() {
        bail!(
            "not everything was measured: {} failed, as told above; the report holds the rest",
            failed.join(", ")
        );
    }
    Ok(Ending::Complete)
}

/// This program, or for stalls cargo, which builds it with the feature that they need.
fn command(step: &str) -> Result<Command> {
    if step != STALLS || cfg!(feature = "steps") {
        return Ok(Command::new(
            env::current_exe().context("cannot find this program")?,
        ));
    }
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["run", "--release", "--features", "steps"]);
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    command.arg("--manifest-path").arg(manifest).arg("--");
    Ok(command)
}

fn arguments(step: &str, directory: &Path, out: &Path) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = Vec::new();
    match step {
        STALLS => {
            arguments.push("sweep".into());
            arguments.push(directory.join(STALLS).with_extension("toml").into());
        }
        "kcas" => {
            let threads = Threads::Auto.counts(Cores::detect().count());
            let threads: Vec<_> = threads.iter().map(usize::to_string).collect();
            arguments.extend(["kcas", "--rounds", KCAS_ROUNDS, "--threads"].map(OsString::from));
            arguments.push(threads.join(",").into());
        }
        _ => arguments.push(step.into()),
    }
    arguments.push("--out".into());
    arguments.push(out.into());
    arguments
}

/// Whether there are results of this program on this machine, of a run that was not interrupted.
fn is_complete(directory: &Path, name: &str) -> Result<bool> {
    let files = Outputs::named(directory, name);
    if !files.csv.exists() || !files.sidecar.exists() {
        return Ok(false);
    }
    let sidecar = Sidecar::read(&files.sidecar)?;
    Ok(sidecar.run.ended.is_some() && resume::is_of_this_program(&sidecar)?)
}
