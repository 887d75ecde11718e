//! The `reproduce` command: measures everything the figures need, and writes the page that shows
//! them.

use std::env;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::report;
use crate::machine::Compiler;
use crate::run::{Ending, INTERRUPTED};
use crate::show::note;
use crate::studies::sweep::command as sweep;
use crate::subjects::Registry;

/// The experiments of `reproduce --full`. On two cores all of it, builds included, takes an hour and
/// a quarter, the limit we set: the 25 minutes of `sizes.toml` and the four each of
/// `rivals-large.toml` and `oversubscribed.toml` would be too many.
const FULL: &[&str] = &[
    "full.toml",
    "full-large.toml",
    "latency.toml",
    "rivals.toml",
    "load-factor.toml",
    "hits.toml",
    "skew.toml",
    "mixes.toml",
    "ablations.toml",
];

/// A command: its name, the feature of the build that it needs, and its arguments. It runs in a process of
/// its own, so that nothing it leaves behind, such as threads that never end, disturbs another. Files are in
/// the directory of the experiments.
type Step = (&'static str, Option<&'static str>, &'static str);

/// The first step is all of `--quick`. The simulation has as many rounds as the measurements. With ten times
/// as many operations, its throughputs differ by 2 %; with half as many, by up to a fifth.
const STEPS: [Step; 6] = [
    ("pair", None, "pair"),
    ("layouts", None, "space layouts"),
    ("memory", None, "space memory"),
    ("kcas", None, "kcas"),
    ("stalls", Some("steps"), "sweep stalls.toml"),
    (
        "simulated-machines",
        Some("simulation"),
        "simulate machines.toml --rounds 9 --operations 20000 \
         --machine ice-lake-8375c-2s,milan-7r13,sapphire-rapids,graviton-3",
    ),
];

/// Measures pairs, or with `full` all experiments in `directory` and all studies; then writes the page.
pub(super) fn reproduce(
    registry: &Registry,
    full: bool,
    directory: &Path,
    options: &sweep::Options,
) -> Result<Ending> {
    let mut steps = &STEPS[..1];
    if full {
        steps = &STEPS;
        let names = STEPS.map(|(name, ..)| name).join(", ");
        note!("The experiments are followed by {names}: about 30 min on two cores.");
        let files: Vec<_> = FULL.iter().map(|file| directory.join(file)).collect();
        if sweep::sweep(registry, &files, None, options)? == Ending::Interrupted {
            return Ok(Ending::Interrupted);
        }
    } else {
        options.check_pairs()?;
    }
    let mut failed = Vec::new();
    for &(name, feature, line) in steps {
        note!("{name}");
        let mut command = command(feature)?;
        let problem = match command.args(arguments(line, directory, options)).status() {
            Ok(status) if status.success() => continue,
            Ok(status) if status.code() == Some(INTERRUPTED.into()) => {
                return Ok(Ending::Interrupted);
            }
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        };
        note!("{name} failed ({problem}); the others go on");
        failed.push(name);
    }
    let ending = report(&options.out)?;
    ensure!(
        failed.is_empty(),
        "not everything was measured: {} failed (see above); the report has the rest",
        failed.join(", ")
    );
    Ok(ending)
}

/// Returns this program, or cargo, which builds it with the feature that a step needs.
fn command(feature: Option<&str>) -> Result<Command> {
    let has = |feature: &&str| match *feature {
        "steps" => cfg!(feature = "steps"),
        _ => cfg!(feature = "simulation"),
    };
    let Some(feature) = feature.filter(|feature| !has(feature)) else {
        let program = env::current_exe().context("cannot find this program")?;
        return Ok(Command::new(program));
    };
    // What is simulated takes the same simulated time in all builds; this one is made in half the time.
    let profile = match feature {
        "simulation" => "release".into(),
        _ => Compiler::describe().profile,
    };
    let manifest = env!("CARGO_MANIFEST_DIR");
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["run", "--features", feature, "--profile", &profile]);
    command.args(["--manifest-path", &format!("{manifest}/Cargo.toml"), "--"]);
    Ok(command)
}

fn arguments(line: &str, directory: &Path, options: &sweep::Options) -> Vec<OsString> {
    let place = |word: &str| match word.strip_suffix(".toml") {
        Some(_) => directory.join(word).into(),
        None => word.into(),
    };
    let mut arguments: Vec<OsString> = line.split_whitespace().map(place).collect();
    if line.starts_with("sweep") {
        arguments.extend(options.binding());
    } else if line == "pair" {
        arguments.extend(options.of_pairs());
    }
    arguments.push("--out".into());
    arguments.push((&options.out).into());
    arguments
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::Parser;

    use super::super::{Cli, Command};
    use super::*;
    use crate::experiment;

    /// Threads of stalls are bound as those of the other sweeps.
    #[test]
    fn each_step_is_a_command_with_the_options_of_the_others() {
        for given in ["", " --pinning scatter", " --cores 0-3,8"] {
            let full = format!("harness reproduce --full{given}");
            let Command::Reproduce { options, .. } = Cli::parse_from(full.split(' ')).command
            else {
                unreachable!()
            };
            for (name, _, line) in STEPS {
                let passed_on = arguments(line, Path::new("."), &options);
                let line = [&[OsString::from("harness")], &passed_on[..]].concat();
                assert!(Cli::try_parse_from(line).is_ok(), "{passed_on:?}");
                if name == "stalls" {
                    let options = &passed_on[2..passed_on.len() - 2];
                    assert!(options.iter().eq(given.split_whitespace()));
                }
            }
        }
    }

    #[test]
    fn the_table_of_figures_marks_what_is_not_reproduced() {
        let top = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let page = std::fs::read_to_string(top.join("paper-figures/README.md")).unwrap();
        let rows = page.lines().filter(|line| line.starts_with("| ["));
        let unmarked = rows.filter(|line| !line.contains('†'));
        let listed: BTreeSet<_> = unmarked
            .map(|line| line[3..line.find(']').unwrap()].to_owned())
            .collect();
        let files = FULL.iter().map(|file| top.join("experiments").join(file));
        let experiments = files.flat_map(|file| experiment::read(&file).unwrap());
        let of_steps = STEPS.iter().map(|(name, ..)| (*name).to_owned());
        let made = experiments.map(|of| of.name).chain(of_steps);
        assert_eq!(listed, made.collect());
    }

    #[cfg(feature = "simulation")]
    #[test]
    fn the_simulated_machines_are_known() {
        let [.., (_, _, line)] = STEPS;
        let (_, machines) = line.split_once("--machine ").unwrap();
        for machine in machines.split(',') {
            simulator::Model::named_or_read(machine).unwrap();
        }
    }
}
