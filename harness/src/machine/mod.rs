//! What a result was measured with: the sidecar file beside every CSV.
//!
//! It names the machine, the compiler, the source and the run, so that a figure can be judged later and
//! elsewhere. It holds no host name, no user name and no directory: of every path only the file name.

pub mod pinning;
mod source;
pub mod topology;

use std::collections::BTreeMap;
use std::env;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use sysinfo::{CpuRefreshKind, System};

use crate::results::statistics::{Axis, Case};
use crate::show::outputs;

pub(crate) use source::executable;
pub use source::{Modified, Program, Source};

/// All that is known about a run. What cannot be found out says so, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sidecar {
    /// The run.
    pub run: Run,
    /// The machine.
    pub machine: Machine,
    /// The compiler.
    pub compiler: Compiler,
    /// The program that measured; descriptions of before it was recorded are of the harness itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<Source>,
    /// This crate, which the program may bring subjects of its own to.
    #[serde(alias = "source")]
    pub harness: Source,
    /// What each subject is, by its name.
    pub subjects: BTreeMap<String, String>,
    /// What the workloads' labels stand for.
    pub workloads: Vec<Panel>,
    /// The experiment as its file has it; empty for what has none.
    #[serde(default, skip_serializing_if = "toml::Table::is_empty")]
    pub experiment: toml::Table,
    /// Meaning of the CSV's columns, by their names.
    pub columns: BTreeMap<String, String>,
}

/// A workload as the CSV names it, and as a reader should see it named.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Panel {
    /// Label, as in the CSV.
    pub label: String,
    /// Load factor, as in the CSV.
    pub load_factor: f64,
    /// Hit ratio, as in the CSV.
    #[serde(default)]
    pub hit: u8,
    /// Skew, as in the CSV.
    #[serde(default)]
    pub skew: f64,
    /// What the threads do, without those values.
    pub title: String,
}

/// What was run, and when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// Title of the experiment.
    pub title: String,
    /// The question that it answers.
    #[serde(default)]
    pub question: String,
    /// Start, in UTC, as in RFC 3339.
    pub started: String,
    /// Command line, paths shortened to file names.
    pub command: String,
    /// Seed of generated keys and of all shuffles.
    pub seed: u64,
    /// Where the keys came from.
    pub keys: String,
    /// How threads were bound to cores.
    pub pinning: String,
    /// Which operations were timed one by one, if any, and what the timing cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<String>,
    /// Load average of the system when it started, over 1, 5 and 15 minutes: what else the machine was
    /// doing. Empty where the system does not tell.
    #[serde(default)]
    pub load_average: Vec<f64>,
    /// When it went on after it had been interrupted, each time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resumed: Vec<String>,
    /// How many rounds each workload had and why no more, where the experiment leaves that open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rounds: Vec<String>,
    /// How many rows the run made; while something is missing, how many it is to make at least. Absent in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<usize>,
    /// When all was measured; absent while something is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
}

/// The machine as the operating system describes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Model of the processor.
    pub processor: String,
    /// Physical cores.
    pub cores: usize,
    /// Hardware threads of each core.
    pub threads_per_core: usize,
    /// Caches, each with its size and the processors that share one.
    pub caches: Vec<String>,
    /// Each core that is online, with its node, its package and its hardware threads.
    #[serde(default)]
    pub core_list: Vec<String>,
    /// When programs get huge pages: the setting of transparent huge pages, the one in brackets in force.
    #[serde(default)]
    pub huge_pages: String,
    /// Memory in GiB.
    pub memory_gib: f64,
    /// Whether the processor reports that it is virtual.
    pub hypervisor: String,
    /// Frequency governor.
    pub governor: String,
    /// Operating system.
    pub system: String,
    /// Kernel.
    pub kernel: String,
}

/// The compiler that built the measuring program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Compiler {
    /// `rustc --version`.
    pub rustc: String,
    /// Compilation target.
    pub target: String,
    /// Cargo's profile.
    #[serde(default)]
    pub profile: String,
    /// Optimisation level, as in the profile.
    pub opt_level: String,
    /// Link-time optimisation, as in the profile: `lto`.
    #[serde(default)]
    pub lto: String,
    /// Codegen units of a crate, as in the profile.
    #[serde(default)]
    pub codegen_units: String,
    /// Flags from `RUSTFLAGS` or Cargo's configuration.
    pub flags: String,
    /// Whether threads could be stopped at any step, which makes every access to shared memory slower.
    #[serde(default)]
    pub steps: bool,
    /// Whether the filter asked the system for huge pages.
    #[serde(default)]
    pub huge_pages: bool,
}

impl Run {
    /// A run of this process that starts now.
    pub fn begin(
        title: String,
        question: String,
        seed: u64,
        keys: String,
        pinning: String,
    ) -> Self {
        let load = System::load_average().map(|load| vec![load.one, load.five, load.fifteen]);
        Self {
            title,
            question,
            started: now(),
            command: command_line(),
            seed,
            keys,
            pinning,
            latency: None,
            load_average: load.unwrap_or_default(),
            resumed: Vec::new(),
            rounds: Vec::new(),
            rows: None,
            ended: None,
        }
    }
}

impl Sidecar {
    /// That of a run of this program, on this machine, that leaves these columns; without subjects and workloads.
    pub fn describe(run: Run, columns: &[(&str, &str)]) -> Result<Self> {
        let column = |(name, meaning): &(&str, &str)| (name.to_string(), meaning.trim().to_owned());
        Ok(Self {
            run,
            machine: Machine::describe()?,
            compiler: Compiler::describe(),
            program: Some(Source::of_program()),
            harness: Source::of_harness(),
            subjects: BTreeMap::new(),
            workloads: Vec::new(),
            experiment: toml::Table::new(),
            columns: columns.iter().map(column).collect(),
        })
    }

    /// The text of the file, with a line of explanation on top.
    pub fn text(&self) -> Result<String> {
        let text = toml::to_string(self)?;
        Ok(format!(
            "# What the CSV file of the same name was measured with.\n\n{text}"
        ))
    }

    /// Writes the file, whole or not at all.
    pub fn write(&self, path: &Path) -> Result<()> {
        outputs::write(path, &self.text()?)
    }

    /// Reads a file that [`Sidecar::write`] left.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read the sidecar {}", path.display()))?;
        toml::from_str(&text).with_context(|| format!("in the sidecar {}", path.display()))
    }

    /// The first workload that the CSV names so, with values as in the case, but for that on the axis.
    pub fn panel(&self, axis: Axis, case: &Case) -> Option<&Panel> {
        let fits = |of: Axis, value: f64| axis == of || case.value(of) == Some(value);
        self.workloads.iter().find(|panel| {
            panel.label == case.workload
                && fits(Axis::Load, panel.load_factor)
                && fits(Axis::Hit, panel.hit.into())
                && fits(Axis::Skew, panel.skew)
        })
    }
}

impl Machine {
    /// Describes this machine.
    pub fn describe() -> Result<Self> {
        let mut system = System::new().context("cannot ask the system about this machine")?;
        system.refresh_memory();
        system.refresh_cpu_list(CpuRefreshKind::nothing());
        let processors = system.cpus().len().max(1);
        let cores = System::physical_core_count().map_or(processors, |cores| cores.max(1));
        Ok(Self {
            processor: system
                .cpus()
                .first()
                .map(|cpu| cpu.brand().trim().to_owned())
                .filter(|brand| !brand.is_empty())
                .unwrap_or_else(|| unknown("the system does not name it")),
            cores,
            threads_per_core: processors.div_ceil(cores),
            caches: caches(Path::new("/sys/devices/system/cpu/cpu0/cache")),
            core_list: topology::cores(),
            huge_pages: line_of("/sys/kernel/mm/transparent_hugepage/enabled")
                .unwrap_or_else(|| unknown("the system does not show it")),
            memory_gib: (system.total_memory() as f64 / f64::from(1 << 30) * 10.0).round() / 10.0,
            hypervisor: hypervisor(),
            governor: line_of("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
                .unwrap_or_else(|| unknown("the system does not show it")),
            system: System::long_os_version()
                .unwrap_or_else(|_| unknown("the system does not name itself")),
            kernel: System::kernel_version()
                .unwrap_or_else(|_| unknown("the system does not show it")),
        })
    }
}

impl Compiler {
    /// Describes the compiler of this program.
    pub fn describe() -> Self {
        Self {
            rustc: env!("HARNESS_RUSTC").into(),
            target: env!("HARNESS_TARGET").into(),
            profile: env!("HARNESS_PROFILE").into(),
            opt_level: env!("HARNESS_OPT_LEVEL").into(),
            lto: env!("HARNESS_LTO").into(),
            codegen_units: env!("HARNESS_CODEGEN_UNITS").into(),
            flags: without_directories(env!("HARNESS_RUSTFLAGS").split_whitespace()),
            steps: cfg!(feature = "steps"),
            huge_pages: cfg!(feature = "huge-pages"),
        }
    }
}

/// The present moment in UTC, to the second, as in RFC 3339.
pub fn now() -> String {
    jiff::Timestamp::now()
        .strftime("%Y-%m-%dT%H:%M:%SZ")
        .to_string()
}

/// Bytes of memory that can still be used without swapping.
pub fn available_memory() -> Result<u64> {
    let mut system = System::new().context("cannot ask the system for its memory")?;
    system.refresh_memory();
    Ok(system.available_memory())
}

/// The command line of this process as a description shows it, without directories.
pub fn command_line() -> String {
    let arguments: Vec<String> = env::args_os()
        .skip(1)
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    let arguments = without_directories(arguments.iter().map(String::as_str));
    format!("{} {arguments}", executable())
}

/// Joins words, such as those of a command line, and shortens every path in them to its file name.
pub fn without_directories<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let shorten = |word: &'a str| {
        let (option, value) = match word.split_once('=') {
            Some((option, value)) => (Some(option), value),
            None => (None, word),
        };
        let value = match value.trim_end_matches('/').rsplit_once(['/', '\\']) {
            Some((_, file)) => file,
            None => value,
        };
        option.map_or(value.to_owned(), |option| format!("{option}={value}"))
    };
    let words: Vec<_> = words.into_iter().map(shorten).collect();
    words.join(" ")
}

fn unknown(reason: &str) -> String {
    format!("unknown: {reason}")
}

fn hypervisor() -> String {
    match std::fs::read_to_string("/proc/cpuinfo") {
        Ok(text) => {
            let mut words = text.split_whitespace();
            let visible = words.any(|word| word == "hypervisor");
            (if visible { "present" } else { "not visible" }).into()
        }
        Err(_) => unknown("the system has no /proc/cpuinfo"),
    }
}

/// Reads Linux's description of one processor's caches, for example `L2 1280K, shared by processors 0`.
fn caches(directory: &Path) -> Vec<String> {
    let describe = |index: usize| {
        let of = |file: &str| line_of(directory.join(format!("index{index}")).join(file));
        let kind = match of("type")?.as_str() {
            "Data" => "d",
            "Instruction" => "i",
            _ => "",
        };
        let (level, size, shared) = (of("level")?, of("size")?, of("shared_cpu_list")?);
        Some(format!(
            "L{level}{kind} {size}, shared by processors {shared}"
        ))
    };
    let found: Vec<_> = (0..).map_while(describe).collect();
    if found.is_empty() {
        vec![unknown("the system does not show them")]
    } else {
        found
    }
}

fn line_of(path: impl AsRef<Path>) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sidecar() -> Sidecar {
        Sidecar {
            run: Run::begin(
                "A \"quoted\" title".into(),
                "Are they fast?".into(),
                u64::from(u32::MAX),
                "generated".into(),
                "in order".into(),
            ),
            machine: Machine::describe().unwrap(),
            compiler: Compiler::describe(),
            program: Some(Source::of_program()),
            harness: Source::of_harness(),
            subjects: BTreeMap::new(),
            workloads: vec![Panel {
                label: "lookup-hit".into(),
                load_factor: 0.92,
                hit: 0,
                skew: 0.0,
                title: "Lookups that hit".into(),
            }],
            experiment: toml::toml! {
                rounds = 2
                [[workload]]
                kind = "insert"
            },
            columns: BTreeMap::new(),
        }
    }

    #[test]
    fn files_from_before_are_read() {
        let committed = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("paper-figures");
        for entry in std::fs::read_dir(committed).unwrap() {
            let file = entry.unwrap().path();
            if file.to_string_lossy().ends_with(".machine.toml") {
                Sidecar::read(&file).unwrap();
            }
        }
        let old = toml::to_string(&sidecar()).unwrap();
        let later = [
            "load_average",
            "core_list",
            "huge_pages",
            "rounds = 2",
            "profile",
            "lto",
            "codegen_units",
            "name",
        ];
        let is_old = |line: &&str| !later.iter().any(|later| line.starts_with(later));
        let mut old: toml::Table = (old.lines().filter(is_old).collect::<Vec<_>>())
            .join("\n")
            .parse()
            .unwrap();
        old.remove("program");
        let source = old.remove("harness").unwrap();
        old.insert("source".into(), source);
        let read: Sidecar = toml::from_str(&old.to_string()).unwrap();
        assert_eq!((&read.program, &*read.harness.name), (&None, "harness"));
        assert_eq!(read.compiler.lto, "");
        assert_eq!(
            (read.run.ended, read.machine.huge_pages),
            (None, String::new())
        );
    }

    #[test]
    fn what_is_written_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tiny.machine.toml");
        sidecar().write(&path).unwrap();
        let read = Sidecar::read(&path).unwrap();
        assert_eq!(read.run.title, "A \"quoted\" title");
        assert_eq!(read.run.load_average.len(), 3);
        assert!(!path.with_extension("toml.new").exists());
        assert_eq!(
            read,
            Sidecar {
                run: read.run.clone(),
                ..sidecar()
            }
        );
    }

    #[test]
    fn the_machine_is_described() {
        let machine = Machine::describe().unwrap();
        assert!(machine.cores >= 1 && machine.threads_per_core >= 1);
        assert!(machine.memory_gib > 0.0);
        assert!(!machine.processor.is_empty() && !machine.caches.is_empty());
        assert!(Compiler::describe().rustc.starts_with("rustc "));
        assert!(now().parse::<jiff::Timestamp>().is_ok());
        assert!(available_memory().unwrap() > 0);
    }

    #[test]
    fn directories_are_left_out() {
        assert_eq!(
            without_directories([
                "sweep",
                "/home/me/a.toml",
                "--out=/tmp/x/",
                "--keys",
                "b/c.txt"
            ]),
            "sweep a.toml --out=x --keys c.txt"
        );
    }
}
