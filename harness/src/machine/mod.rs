//! Describes the machine, the compiler and the source for the results, and binds threads to cores.
//!
//! Descriptions hold no host name, no user name and no directory, and of each path only the file name.

pub(crate) mod hand_over;
pub mod pinning;
mod source;
pub mod topology;
mod waits;

use std::env;
use std::num::NonZero;
use std::path::Path;
use std::thread;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use sysinfo::{CpuRefreshKind, ProcessesToUpdate, System};

pub(crate) use hand_over::{hand_over, throughout};
pub use pinning::Cores;
pub(crate) use source::executable;
pub use source::{Program, Source};
pub use topology::{HardwareThread, Policy, show_list};
pub(crate) use waits::Waits;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Machine {
    pub processor: String,
    /// Physical cores.
    pub cores: usize,
    pub threads_per_core: usize,
    /// Caches, each with its size and the processors that share it.
    pub caches: Vec<String>,
    /// Each online core, with its node, its package and its hardware threads.
    pub core_list: Vec<String>,
    /// The setting of transparent huge pages, with the current choice in brackets.
    pub huge_pages: String,
    pub memory_gib: f64,
    /// Whether the processor reports that it is virtual.
    pub hypervisor: String,
    /// Frequency governor.
    pub governor: String,
    pub system: String,
    pub kernel: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Compiler {
    pub rustc: String,
    pub target: String,
    /// Cargo's profile.
    pub profile: String,
    pub opt_level: String,
    /// In older files: link-time optimisation, as in the profile.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub lto: String,
    /// In older files: codegen units per crate, as in the profile.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub codegen_units: String,
    /// Flags from `RUSTFLAGS` or Cargo's configuration.
    pub flags: String,
    /// Whether threads could be stopped at any step, which slows accesses to shared memory.
    pub steps: bool,
    /// Whether subjects could run on simulated cores, which slows them as well.
    pub simulation: bool,
    /// Whether the filter asked the system for huge pages.
    pub huge_pages: bool,
}

impl Machine {
    pub fn describe() -> Result<Self> {
        let mut system = System::new().context("cannot ask the system about this machine")?;
        system.refresh_memory();
        system.refresh_cpu_list(CpuRefreshKind::nothing());
        let processors = system.cpus().len().max(1);
        let cores = System::physical_core_count().map_or(processors, |cores| cores.max(1));
        let brand = system.cpus().first();
        let brand = brand.map(|cpu| cpu.brand().trim().to_owned());
        let brand = brand.filter(|brand| !brand.is_empty());
        let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").ok();
        let generation = cpuinfo.as_deref().and_then(generation);
        let shown =
            |line: Option<String>| line.unwrap_or_else(|| unknown("the system does not show it"));
        Ok(Self {
            processor: shown(brand) + &generation.unwrap_or_default(),
            cores,
            threads_per_core: processors.div_ceil(cores),
            caches: caches(Path::new("/sys/devices/system/cpu/cpu0/cache")),
            core_list: topology::cores(Path::new(topology::SYSTEM)),
            huge_pages: shown(line_of("/sys/kernel/mm/transparent_hugepage/enabled")),
            memory_gib: (system.total_memory() as f64 / f64::from(1 << 30) * 10.0).round() / 10.0,
            hypervisor: hypervisor(cpuinfo.as_deref()),
            governor: shown(line_of(
                "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
            )),
            system: shown(System::long_os_version().ok()),
            kernel: shown(System::kernel_version().ok()),
        })
    }
}

impl Compiler {
    pub fn describe() -> Self {
        Self {
            rustc: env!("HARNESS_RUSTC").into(),
            target: env!("HARNESS_TARGET").into(),
            profile: env!("HARNESS_PROFILE").into(),
            opt_level: env!("HARNESS_OPT_LEVEL").into(),
            flags: without_directories(env!("HARNESS_RUSTFLAGS").split_whitespace()),
            steps: cfg!(feature = "steps"),
            simulation: cfg!(feature = "simulation"),
            huge_pages: cfg!(feature = "huge-pages"),
            ..Self::default()
        }
    }

    /// Returns the profile, unless published figures are measured with it. In older files it is called
    /// `release`, with the same settings.
    pub fn other_profile(&self) -> Option<&str> {
        let published = matches!(
            (&*self.profile, &*self.lto),
            ("figures" | "", _) | (_, "fat")
        );
        (!published).then_some(&self.profile)
    }

    /// Describes the flags and the profile of the build, if they are not those of published figures.
    pub(crate) fn unlike_published(&self) -> String {
        let profile = self.other_profile().map(|of| format!("profile {of}"));
        let flags = Some(self.flags.clone()).filter(|flags| !flags.is_empty());
        let parts: Vec<_> = flags.into_iter().chain(profile).collect();
        match &parts[..] {
            [] => String::new(),
            parts => format!(" with {}", parts.join(", ")),
        }
    }
}

/// Returns the current time in UTC, to the second, as in RFC 3339.
pub fn now() -> String {
    let now = jiff::Timestamp::now();
    now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Fails if this many bytes do not fit into the memory that is available without swapping, if that is known. The error
/// begins with `asked_by`, the option or field that asks for them.
pub fn check_memory(asked_by: &str, bytes: f64) -> Result<()> {
    ensure_fits(asked_by, bytes, available_memory())
}

fn ensure_fits(asked_by: &str, bytes: f64, available: Option<u64>) -> Result<()> {
    let Some(most) = available else { return Ok(()) };
    let gib = |bytes: f64| bytes / f64::from(1 << 30);
    ensure!(
        bytes <= most as f64,
        "{asked_by}: needs up to {:.1} GiB of memory; at most {:.1} GiB are available",
        gib(bytes),
        gib(most as f64)
    );
    Ok(())
}

/// Returns the bytes that this process can still allocate without swapping, within the limits of its container; `None` if
/// the system does not tell.
fn available_memory() -> Option<u64> {
    let mut system = System::new().ok()?;
    system.refresh_memory();
    let own = sysinfo::get_current_pid().ok();
    let own = own.and_then(|own| {
        system.refresh_processes(ProcessesToUpdate::Some(&[own]), false);
        system.process(own)?.cgroup_limits()
    });
    let host = (system.total_memory() > 0).then(|| system.available_memory());
    // What is cached counts as used there, but can be reclaimed.
    let limits = [own, system.cgroup_limits()].into_iter().flatten();
    let limits = limits.map(|limit| limit.total_memory.saturating_sub(limit.rss));
    limits.chain(host).min()
}

/// Says how many cores a container allows, if that is fewer than this process may run on.
pub(crate) fn quota_note(usable: usize) -> Option<String> {
    let allowed = thread::available_parallelism().map_or(usable, NonZero::get);
    let few = format!(
        "note: a CPU quota allows {allowed} of {usable} cores: threads are halted at times"
    );
    (allowed < usable).then_some(few)
}

/// Returns the command line of this process for a description, without directories.
pub fn command_line() -> String {
    let arguments = env::args_os().skip(1);
    let text = |of: std::ffi::OsString| of.to_string_lossy().into_owned();
    let arguments: Vec<_> = arguments.map(text).collect();
    let arguments = without_directories(arguments.iter().map(String::as_str));
    format!("{} {arguments}", executable())
}

/// Joins words, such as those of a command line, and shortens every path in them to its file name.
pub fn without_directories<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let file = |path: &'a str| {
        let file = path.trim_end_matches('/').rsplit_once(['/', '\\']);
        file.map_or(path, |(_, file)| file)
    };
    let shorten = |word: &'a str| {
        let (_, value) = word.split_once('=').unwrap_or(("", word));
        let files: Vec<_> = value.split(',').map(file).collect();
        format!("{}{}", &word[..word.len() - value.len()], files.join(","))
    };
    words.into_iter().map(shorten).collect::<Vec<_>>().join(" ")
}

fn unknown(reason: &str) -> String {
    format!("unknown: {reason}")
}

/// Tells generations apart: in a virtual machine, all may have the same name.
fn generation(cpuinfo: &str) -> Option<String> {
    let number = |name: &str| {
        let fields = cpuinfo.lines().filter_map(|line| line.split_once(':'));
        let mut values = fields.filter(|(field, _)| field.trim() == name);
        values.next().map(|(_, value)| value.trim().to_owned())
    };
    let (family, model) = (number("cpu family")?, number("model")?);
    Some(format!(" (family {family}, model {model})"))
}

fn hypervisor(cpuinfo: Option<&str>) -> String {
    match cpuinfo {
        Some(text) if text.split_whitespace().any(|word| word == "hypervisor") => "present".into(),
        Some(_) => "not visible".into(),
        None => unknown("the system has no /proc/cpuinfo"),
    }
}

/// Reads Linux's description of caches, such as `L2 1280K, shared by processors 0`.
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
        return vec![unknown("the system does not show them")];
    }
    found
}

fn line_of(path: impl AsRef<Path>) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_check_without_known_memory_passes() {
        for (available, fits) in [(None, true), (Some(1_000), false), (Some(2_000), true)] {
            assert_eq!(ensure_fits("--keys", 2_000.0, available).is_ok(), fits);
        }
        let error = ensure_fits("--keys", f64::INFINITY, Some(1 << 30)).unwrap_err();
        assert!(error.to_string().starts_with("--keys: "), "{error}");
        assert!(available_memory().is_none_or(|bytes| bytes > 0));
    }

    #[test]
    fn cpu_quota_is_noted_where_fewer_cores_are_allowed() {
        let allowed = thread::available_parallelism().unwrap().get();
        assert_eq!(quota_note(allowed), None);
        assert!(quota_note(allowed + 1).is_some());
    }

    #[test]
    fn commands_are_described_without_directories() {
        let words = "pair --builds=a/b/1,c/2 /x/y.toml --out r/ 1,2 /";
        let shown = "pair --builds=1,2 y.toml --out r/ 1,2 /";
        assert_eq!(without_directories(words.split(' ')), shown);
    }

    #[test]
    fn processors_of_one_name_differ_by_their_generation() {
        let cpuinfo = "cpu family\t: 25\nmodel\t\t: 17\nmodel name\t: AMD EPYC\n";
        let shown = generation(cpuinfo).unwrap();
        assert_eq!(shown, " (family 25, model 17)");
        assert_eq!(generation("Model : a board\n"), None);
    }

    #[test]
    fn what_is_built_unlike_published_figures_is_named() {
        for (profile, lto, flags, expected) in [
            ("figures", "", "", ""),
            ("release", "fat", "", ""),
            ("release", "", "", " with profile release"),
            ("figures", "", "-C a=b", " with -C a=b"),
            ("dev", "", "-C a=b", " with -C a=b, profile dev"),
        ] {
            let compiler = Compiler {
                profile: profile.into(),
                lto: lto.into(),
                flags: flags.into(),
                ..Compiler::describe()
            };
            assert_eq!(compiler.unlike_published(), expected);
        }
    }
}
