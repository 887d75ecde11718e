//! The `reproduce` command: measures the figures, and writes the page that shows them.

use std::env;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::report;
use crate::ending::{Ending, INTERRUPTED};
use crate::machine::Compiler;
use crate::show::note;
use crate::subjects::Registry;
use crate::sweep;

const QUICK: &[&str] = &["pair"];

/// The experiments of `reproduce --full`. With the other steps they take 55 minutes on two cores, and builds some more.
const FULL: &[&str] = &[
    "pair",
    "full",
    "full-large",
    "oversubscribed",
    "latency",
    "rivals",
    "load-factor",
    "ablations",
    "relatives",
    "speed-cached",
    "speed-updates",
    "speed-large",
    "speed-large-updates",
];

/// The other steps: a name, the feature that the build needs, and arguments. Each runs in a process of its own. With
/// ten times as many simulated operations, throughputs differ by 2 %; with half as many, by up to a fifth.
const STEPS: &[(&str, Option<&str>, &str)] = &[
    ("memory", None, "memory --rounds 6"),
    ("kcas", None, "kcas --rounds 6"),
    ("growth", None, "growth"),
    #[cfg(processes)]
    ("processes", None, "processes --rounds 6"),
    ("stalls", Some("steps"), "sweep stalls"),
    (
        "simulated-machines",
        Some("simulation"),
        "simulate machines --rounds 6 --operations 20000 \
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
    let names = if full { FULL } else { QUICK };
    let read = |name| options.read(registry, &directory.join(name).with_extension("toml"));
    let experiments = names.iter().map(read).collect::<Result<_>>()?;
    let swept = sweep::sweep(registry, experiments, None, options)?;
    if swept == Ending::Interrupted {
        return Ok(swept);
    }
    let mut failed = Vec::new();
    for &(name, feature, line) in STEPS.iter().filter(|_| full) {
        note!("{name}");
        let mut command = command(feature)?;
        command.args(line.split_whitespace());
        command.arg("--out").arg(&options.out);
        if let Some(cores) = options.cores.iter().find(|_| line.starts_with("sweep")) {
            command.args(["--cores", cores]);
        }
        match command.status().map(|status| status.code()) {
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
    let features = [
        ("steps", cfg!(feature = "steps")),
        ("simulation", cfg!(feature = "simulation")),
    ];
    let has = |feature: &&str| features.contains(&(*feature, true));
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

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::Cli;
    use super::*;

    #[test]
    fn steps_are_commands() {
        for &(name, _, line) in STEPS {
            let words = ["harness"].into_iter().chain(line.split_whitespace());
            assert!(Cli::try_parse_from(words).is_ok(), "{name}");
        }
    }

    #[cfg(processes)]
    #[test]
    fn index_marks_what_is_not_reproduced() {
        let top = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let page = std::fs::read_to_string(top.join("paper-figures/index.md")).unwrap();
        let rows = page.lines().filter(|line| line.starts_with("| ["));
        let unmarked = rows.filter(|line| !line.contains('†'));
        let listed: std::collections::BTreeSet<_> = unmarked
            .map(|line| &line[3..line.find(']').unwrap()])
            .collect();
        let made = (FULL.iter().copied()).chain(STEPS.iter().map(|(name, ..)| *name));
        assert_eq!(listed, made.collect());
        for name in FULL {
            assert!(
                top.join(format!("experiments/{name}.toml")).is_file(),
                "{name}"
            );
        }
    }
}
