//! The sidecar file beside every CSV file: what a result was measured with.
//!
//! It names the machine, the compiler, the source and the run, so that a figure can be judged later
//! and elsewhere. It holds no host name, no user name and no directory, and of each path only the
//! file name.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use sysinfo::System;

use super::files;
use crate::machine::{Compiler, Machine, Source, command_line, now};
use crate::wording::counted;

/// All that is known about a run. If something cannot be found out, the reason is given instead.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sidecar {
    pub run: Run,
    pub machine: Machine,
    pub compiler: Compiler,
    /// The program that measured.
    pub program: Source,
    /// This crate; the program may add subjects of its own.
    pub harness: Source,
    /// What each subject is, by its name.
    pub subjects: BTreeMap<String, String>,
    /// What the workloads' labels stand for.
    pub workloads: Vec<Panel>,
    /// The experiment as in its file; empty if there is no file.
    #[serde(default, skip_serializing_if = "toml::Table::is_empty")]
    pub experiment: toml::Table,
    /// Meaning of the CSV's columns, by their names.
    pub columns: BTreeMap<String, String>,
}

/// A workload by its values in the CSV and by the name that a reader should see.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Panel {
    pub label: String,
    pub load_factor: f64,
    pub hit: u8,
    pub skew: f64,
    /// What the threads do, without those values.
    pub title: String,
}

/// What was run, and when. Fields that older files lack are empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Run {
    pub title: String,
    pub question: String,
    /// Start of this run, in UTC, as in RFC 3339; in older files, of the whole command.
    pub started: String,
    /// Command line, paths shortened to file names.
    pub command: String,
    pub seed: u64,
    /// Where the keys came from.
    pub keys: String,
    /// The builds that measured a round each, in turn; none if the program measured all itself.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub builds: Vec<String>,
    pub pinning: String,
    /// Which operations were timed one by one, if any, and what the timing cost.
    pub latency: Option<String>,
    /// What an operation that takes no time would show, in ns, if operations were timed one by one.
    pub timing_ns: Option<u64>,
    /// The machines that were simulated, one line each; nothing was measured then.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub simulated: Vec<String>,
    /// Load average of the system at the start, over 1, 5 and 15 minutes: what the machine was
    /// doing before, earlier runs of the same command included. Empty if the system does not report
    /// it.
    pub load_average: Vec<f64>,
    /// When the run was resumed after an interruption, each time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resumed: Vec<String>,
    /// Number of rows the run made; while some are missing, the least number it is to make.
    pub rows: Option<usize>,
    /// When everything was measured; absent while something is missing.
    pub ended: Option<String>,
}

impl Run {
    /// Returns the question that the results answer; one made of the title if the experiment asks none.
    pub fn asked(&self) -> String {
        match &*self.question {
            "" => format!("{}: how fast is each?", self.title),
            question => question.to_owned(),
        }
    }

    /// Describes a run of this process that starts now.
    pub fn begin([title, question]: [&str; 2], seed: u64, keys: String, pinning: String) -> Self {
        let mut run = Self {
            title: title.into(),
            question: question.into(),
            command: command_line(),
            seed,
            keys,
            pinning,
            ..Self::default()
        };
        run.start();
        run
    }

    /// Describes a run that starts now, with keys that are generated from the seed.
    pub fn seeded(about: [&str; 2], seed: u64, pinning: impl Into<String>) -> Self {
        let keys = format!("generated from seed {seed}");
        Self::begin(about, seed, keys, pinning.into())
    }

    /// Updates the start and the load, for a run that waited until others were done.
    pub fn start(&mut self) {
        let load = System::load_average().map(|load| vec![load.one, load.five, load.fifteen]);
        self.started = now();
        self.load_average = load.unwrap_or_default();
    }
}

impl Sidecar {
    /// Returns the shortest latency in ns that a single operation can have and be distinguished from
    /// nothing: twice what an operation without duration would show. 0 if that is not known.
    pub fn shortest_ns(&self) -> f64 {
        2.0 * self.run.timing_ns.unwrap_or_default() as f64
    }

    /// Describes a run of this program here, with these columns, without subjects and workloads.
    pub fn describe(run: Run, columns: &[(&str, &str)]) -> Result<Self> {
        let column = |(name, meaning): &(&str, &str)| (name.to_string(), meaning.trim().to_owned());
        Ok(Self {
            run,
            machine: Machine::describe()?,
            compiler: Compiler::describe(),
            program: Source::of_program(),
            harness: Source::of_harness(),
            subjects: BTreeMap::new(),
            workloads: Vec::new(),
            experiment: toml::Table::new(),
            columns: columns.iter().map(column).collect(),
        })
    }

    /// Returns a message if some of the rows that the run made are missing, or if it did not end.
    pub(crate) fn missing(&self, rows: usize) -> Option<String> {
        match self.run.rows?.saturating_sub(rows) {
            0 if self.run.ended.is_some() => None,
            0 => Some("the run was not over: rows are missing".into()),
            missing => Some(format!("{missing} of {} rows are missing", missing + rows)),
        }
    }

    /// Describes what the run was measured with.
    pub(crate) fn machine_line(&self) -> String {
        let (machine, run) = (&self.machine, &self.run);
        let simulated = match &run.simulated[..] {
            [] => String::new(),
            machines => {
                // Their descriptions are long.
                let names = machines
                    .iter()
                    .filter_map(|machine| machine.split(':').next());
                let names: Vec<_> = names.collect();
                format!("Simulated: {}. Computed on ", names.join(", "))
            }
        };
        let threads = match machine.threads_per_core {
            1 => String::new(),
            threads => format!(" with {threads} hardware threads each"),
        };
        let is_virtual = match &*machine.hypervisor {
            "present" => ", virtual machine",
            _ => "",
        };
        let (processor, cores) = (self.processor(), counted(machine.cores, "core"));
        let rustc = self.compiler.rustc.split(" (").next().unwrap_or_default();
        let (unlike, sources) = (self.compiler.unlike_published(), self.sources());
        let day = run.started.split('T').next().unwrap_or_default();
        format!(
            "{simulated}{processor}, {cores}{threads}{is_virtual}. {rustc}{unlike}. {sources}. {day}."
        )
    }

    /// Names the processor, in older files, which lack its generation, with the cache that differs.
    pub(crate) fn processor(&self) -> String {
        let Machine {
            processor, caches, ..
        } = &self.machine;
        let cache = caches.iter().find(|of| of.starts_with("L1d "));
        match cache.and_then(|of| of.split(',').next()) {
            Some(cache) if !processor.contains(" (family ") => format!("{processor} ({cache})"),
            _ => processor.clone(),
        }
    }

    /// Describes the source: the commit of the harness, and before it the program if it is another.
    fn sources(&self) -> String {
        let (program, harness) = (&self.program, &self.harness);
        if program == harness {
            return format!("Commit {}", harness.short());
        }
        let version = program.version.split(':').next().unwrap_or_default();
        let of = |source: &Source| format!("commit {}", source.short());
        let named = format!("{} {version}, {}", program.name, of(program));
        format!("{named}; {}, {}", harness.name, of(harness))
    }

    /// Returns the text of the file, with an explanatory line on top.
    pub fn text(&self) -> Result<String> {
        let text = toml::to_string(self)?;
        Ok(format!(
            "# What the CSV file of the same name was measured with.\n\n{text}"
        ))
    }

    pub fn write(&self, path: &Path) -> Result<()> {
        files::write(path, &self.text()?)
    }

    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read the sidecar {}", path.display()))?;
        toml::from_str(&text).with_context(|| format!("in the sidecar {}", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_of_one_name_are_told_apart_where_only_caches_are_known() {
        let mut sidecar = Sidecar::describe(Run::default(), &[]).unwrap();
        let caches = [
            "L1i 32K, shared by processors 0",
            "L1d 48K, shared by processors 0",
        ];
        sidecar.machine.caches = caches.map(str::to_owned).into();
        for (processor, expected) in [
            ("AMD EPYC", "AMD EPYC (L1d 48K)"),
            (
                "AMD EPYC (family 26, model 2)",
                "AMD EPYC (family 26, model 2)",
            ),
        ] {
            sidecar.machine.processor = processor.into();
            assert_eq!(sidecar.processor(), expected);
            assert!(sidecar.machine_line().starts_with(expected));
        }
    }
}
