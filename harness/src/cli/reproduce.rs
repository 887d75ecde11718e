//! The `reproduce` command: measures the figures, and writes the page that shows them.

use std::env;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::report;
use crate::ending::{Ending, INTERRUPTED};
use crate::machine::Compiler;
use crate::show::note;
use crate::subjects::Registry;
use crate::sweep;

const QUICK: &[&str] = &["pair.toml"];

/// The experiments of `reproduce --full`. On two cores it takes, builds included, an hour and a quarter, the limit
/// we set.
const FULL: &[&str] = &[
    "pair.toml",
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

/// The other steps: a name, the feature that the build needs, and arguments. Each runs in a process of its own. Files
/// are in the directory of the experiments. The simulation has as many rounds as the measurements: with ten times as many
/// operations, its throughputs differ by 2 %; with half as many, by up to a fifth.
const STEPS: [(&str, Option<&str>, &str); 4] = [
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

/// Measures pairs, or with `full` all experiments and studies; then writes the page.
pub(super) fn reproduce(
    registry: &Registry,
    full: bool,
    directory: &Path,
    options: &sweep::Options,
) -> Result<Ending> {
    let files = if full { FULL } else { QUICK };
    let files: Vec<_> = files.iter().map(|file| directory.join(file)).collect();
    let experiments = sweep::read(registry, &files, options)?;
    let swept = sweep::sweep(registry, experiments, None, options)?;
    if swept == Ending::Interrupted {
        return Ok(swept);
    }
    let mut failed = Vec::new();
    for (name, feature, line) in STEPS.into_iter().filter(|_| full) {
        note!("{name}");
        let mut command = command(feature)?;
        let status = command.args(arguments(line, directory, options)).status();
        match status.map(|status| status.code()) {
            Ok(Some(0)) => {}
            Ok(Some(code)) if code == INTERRUPTED.into() => return Ok(Ending::Interrupted),
            _ => failed.push(name),
        }
    }
    report(&options.out)?;
    ensure!(
        failed.is_empty(),
        "not everything was measured: {} failed (see above); the page has the rest",
        failed.join(", ")
    );
    Ok(swept)
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
    // Simulated times do not depend on the build; this one is made in half the time.
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
        arguments.extend(options.binding.arguments().map(OsString::from));
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
        let page = std::fs::read_to_string(top.join("paper-figures/index.md")).unwrap();
        let rows = page.lines().filter(|line| line.starts_with("| ["));
        let unmarked = rows.filter(|line| !line.contains('†'));
        let listed: BTreeSet<_> = unmarked
            .map(|line| line[3..line.find(']').unwrap()].to_owned())
            .collect();
        let files = FULL.iter().map(|file| top.join("experiments").join(file));
        let experiments = files.flat_map(|file| experiment::read(&file).unwrap());
        let steps = STEPS.iter().map(|(name, ..)| (*name).to_owned());
        let made = experiments.map(|experiment| experiment.name).chain(steps);
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
