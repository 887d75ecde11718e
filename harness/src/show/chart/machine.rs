//! The line that says what a run was measured with.

use crate::show::sidecar::Sidecar;
use crate::wording::counted;

/// Describes what the run was measured with.
pub(crate) fn machine_line(sidecar: &Sidecar) -> String {
    let (machine, run) = (&sidecar.machine, &sidecar.run);
    let simulated = match &run.simulated[..] {
        [] => String::new(),
        machines => format!("Simulated: {}. Computed on ", machines.join("; ")),
    };
    format!(
        "{simulated}{}, {}{}{}. {}{}. {}. {}.",
        machine.processor,
        counted(machine.cores, "core"),
        match machine.threads_per_core {
            1 => String::new(),
            threads => format!(" with {threads} hardware threads each"),
        },
        if machine.hypervisor == "present" {
            ", virtual machine"
        } else {
            ""
        },
        sidecar
            .compiler
            .rustc
            .split(" (")
            .next()
            .unwrap_or_default(),
        match &*sidecar.compiler.flags {
            "" => String::new(),
            flags => format!(" with {flags}"),
        },
        sources(sidecar),
        run.started.split('T').next().unwrap_or_default(),
    )
}

/// Says so if the machine had work when the run began: a load of more than half its cores. It may be
/// of what the same command measured before.
pub(crate) fn load_line(sidecar: &Sidecar) -> Option<String> {
    match sidecar.run.load_average.first() {
        Some(&load) if load > sidecar.machine.cores as f64 / 2.0 => Some(format!(
            "Load at the start, of earlier measurements or of others: {load:.1}."
        )),
        _ => None,
    }
}

/// Describes what measured: the commit of the harness, preceded by the program if it is another.
fn sources(sidecar: &Sidecar) -> String {
    let harness = &sidecar.harness;
    match &sidecar.program {
        Some(program) if program != harness => format!(
            "{} {}, commit {}; {}, commit {}",
            program.name,
            program.version.split(':').next().unwrap_or_default(),
            program.short(),
            harness.name,
            harness.short()
        ),
        _ => format!("Commit {}", harness.short()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A build for one processor differs from a portable one in nothing else that a reader sees.
    #[test]
    fn flags_of_the_compiler_are_named() {
        let mut sidecar = crate::show::sidecar::sample();
        sidecar.compiler.rustc = "rustc 1.95.0 (59807616e 2026-04-14)".into();
        for (flags, expected) in [
            ("", ". rustc 1.95.0. Commit "),
            (
                "-C target-cpu=native",
                ". rustc 1.95.0 with -C target-cpu=native. Commit ",
            ),
        ] {
            sidecar.compiler.flags = flags.into();
            sidecar.program = None;
            let line = machine_line(&sidecar);
            assert!(line.contains(expected), "{line}");
        }
    }

    #[test]
    fn the_load_at_the_start_is_told_where_it_is_high() {
        let mut sidecar = crate::show::sidecar::sample();
        sidecar.machine.cores = 2;
        for (load, told) in [(1.0, None), (1.1, Some("or of others: 1.1."))] {
            sidecar.run.load_average = vec![load, 0.0, 0.0];
            let line = load_line(&sidecar);
            assert_eq!(line.is_some(), told.is_some(), "{line:?}");
            assert!(line.is_none_or(|line| line.ends_with(told.unwrap_or_default())));
        }
    }
}
