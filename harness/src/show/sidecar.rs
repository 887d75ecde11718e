//! The description of a result, `NAME.machine.toml`: what it was measured with.
//!
//! It holds no host name, no user name and no directory, and of each path only the file name.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::files;
use crate::machine::{Compiler, Machine, Source, command_line, now};
use crate::wording::counted;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sidecar {
    pub run: Run,
    pub machine: Machine,
    pub compiler: Compiler,
    /// The program that measured.
    pub program: Source,
    /// This crate; the program may add subjects of its own.
    pub harness: Source,
    /// The description of each subject, by its name.
    pub subjects: BTreeMap<String, String>,
    /// The title of each workload, by its label in the CSV.
    #[serde(default)]
    pub workloads: BTreeMap<String, String>,
    /// The experiment as in its file, or the options of a study.
    #[serde(default)]
    pub experiment: toml::Table,
}

/// What was run, and when.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Run {
    pub title: String,
    pub question: String,
    /// Start, in UTC, as in RFC 3339.
    pub started: String,
    /// Command line, paths shortened to file names.
    pub command: String,
    pub seed: u64,
    /// The builds that measured a round each, in turn; none if the program measured all itself.
    pub builds: Vec<String>,
    pub pinning: String,
    /// What an operation that takes no time would show, in ns, if operations were timed one by one.
    pub timing_ns: Option<u64>,
    /// The machines that were simulated, one line each; nothing was measured then.
    pub simulated: Vec<String>,
    /// When rounds were added, each time.
    pub resumed: Vec<String>,
    /// Number of rows of the run.
    pub rows: Option<usize>,
    /// Subjects of which some measurements failed, for wrong answers for example.
    pub failed: Vec<String>,
    /// When everything was measured; absent while something is missing.
    pub ended: Option<String>,
}

impl Run {
    /// Describes a run of this process that starts now.
    pub fn begin([title, question]: [&str; 2], seed: u64, pinning: String) -> Self {
        Self {
            title: title.into(),
            question: question.into(),
            command: command_line(),
            seed,
            pinning,
            started: now(),
            ..Self::default()
        }
    }
}

impl Sidecar {
    /// Describes a run of this program here, without subjects, workloads and experiment.
    pub fn describe(run: Run) -> Result<Self> {
        Ok(Self {
            run,
            machine: Machine::describe()?,
            compiler: Compiler::describe(),
            program: Source::program(),
            harness: Source::harness(),
            subjects: BTreeMap::new(),
            workloads: BTreeMap::new(),
            experiment: toml::Table::new(),
        })
    }

    /// Returns the shortest latency in ns that differs from none: twice what an operation without duration would show.
    /// 0 if that is not known.
    pub fn shortest_ns(&self) -> f64 {
        2.0 * self.run.timing_ns.unwrap_or_default() as f64
    }

    /// Returns a message if some of the rows that the run made are missing, or if it did not end.
    pub(crate) fn missing(&self, rows: usize) -> Option<String> {
        match self.run.rows?.saturating_sub(rows) {
            0 if self.run.ended.is_some() => None,
            0 => Some("the run was not over: rows are missing".into()),
            missing => Some(format!("{missing} of {} rows are missing", missing + rows)),
        }
    }

    /// Describes machine, compiler, source and day in one line.
    pub(crate) fn machine_line(&self) -> String {
        let (machine, run) = (&self.machine, &self.run);
        // The descriptions of simulated machines are long.
        let simulated = run
            .simulated
            .iter()
            .map(|machine| machine.split(':').next());
        let simulated: Vec<_> = simulated.flatten().collect();
        let mut line = format!("Simulated: {}", simulated.join(", "));
        if simulated.is_empty() {
            line = format!("{}, {}", machine.processor, counted(machine.cores, "core"));
            if machine.threads_per_core != 1 {
                line += &format!(" with {} hardware threads each", machine.threads_per_core);
            }
            if machine.is_virtual {
                line += ", virtual machine";
            }
        }
        let rustc = self.compiler.rustc.split(" (").next().unwrap_or_default();
        let (unlike, sources) = (self.compiler.unlike_published(), self.sources());
        let day = run.started.split('T').next().unwrap_or_default();
        if simulated.is_empty() {
            line += &format!(". {rustc}{unlike}");
        }
        line + &format!(". {sources}. {day}.")
    }

    /// Names the commit of the harness, and before it the program if it is another.
    fn sources(&self) -> String {
        let (program, harness) = (&self.program, &self.harness);
        if program == harness {
            return format!("Commit {}", harness.short());
        }
        let named = [program, harness].map(|source| {
            let Source { name, version, .. } = source;
            format!("{name} {version}, commit {}", source.short())
        });
        named.join("; ")
    }

    pub fn write(&self, path: &Path) -> Result<()> {
        let text = toml::to_string(self)?;
        let heading = "# What the CSV file of the same name was measured with.";
        files::write(path, &format!("{heading}\n\n{text}"))
    }

    pub fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path)
            .with_context(|| format!("cannot read the description {}", path.display()))?;
        toml::from_str(&text).with_context(|| format!("in the description {}", path.display()))
    }
}
