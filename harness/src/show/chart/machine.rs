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
