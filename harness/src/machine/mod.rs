//! Describes the machine, the compiler and the source for the results, and binds threads to cores.
//!
//! Descriptions hold no host name, no user name and no directory, and of each path only the file name. The directory of
//! results is as given.

pub(crate) mod hand_over;
pub mod pinning;
mod source;
mod waits;

use std::env;
use std::fs;
use std::mem;
use std::num::NonZero;
use std::thread;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use sysinfo::{CpuRefreshKind, ProcessesToUpdate, System};

pub(crate) use hand_over::hand_over;
pub use pinning::Cores;
pub(crate) use source::executable;
pub use source::{Program, Source};
pub(crate) use waits::Waits;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    pub processor: String,
    /// Physical cores.
    pub cores: usize,
    pub threads_per_core: usize,
    /// Whether the processor reports that it is virtual.
    pub is_virtual: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Compiler {
    pub rustc: String,
    pub target: String,
    /// Cargo's profile.
    pub profile: String,
    /// Flags from `RUSTFLAGS` or Cargo's configuration.
    pub flags: String,
    /// Whether threads could be stopped at any step, which slows accesses to shared memory.
    pub steps: bool,
    /// Whether subjects could run on simulated cores, which slows accesses as well.
    pub simulation: bool,
}

impl Machine {
    pub fn describe() -> Result<Self> {
        let mut system = System::new().context("cannot ask the system about this machine")?;
        system.refresh_cpu_list(CpuRefreshKind::nothing());
        let processors = system.cpus().len().max(1);
        let cores = System::physical_core_count().map_or(processors, |cores| cores.max(1));
        let brand = system.cpus().first().map_or("", |cpu| cpu.brand().trim());
        let brand = if brand.is_empty() { "unknown" } else { brand };
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        Ok(Self {
            processor: brand.to_owned() + &generation(&cpuinfo).unwrap_or_default(),
            cores,
            threads_per_core: processors.div_ceil(cores),
            is_virtual: cpuinfo.split_whitespace().any(|word| word == "hypervisor"),
        })
    }
}

/// Tells generations apart: in a virtual machine, all may have the same name.
fn generation(cpuinfo: &str) -> Option<String> {
    let number = |name: &str| {
        let mut fields = cpuinfo.lines().filter_map(|line| line.split_once(':'));
        fields.find_map(|(field, value)| (field.trim() == name).then(|| value.trim()))
    };
    let (family, model) = (number("cpu family")?, number("model")?);
    Some(format!(" (family {family}, model {model})"))
}

impl Compiler {
    pub fn describe() -> Self {
        Self {
            rustc: env!("HARNESS_RUSTC").into(),
            target: env!("HARNESS_TARGET").into(),
            profile: env!("HARNESS_PROFILE").into(),
            flags: without_directories(env!("HARNESS_RUSTFLAGS").split_whitespace()),
            steps: cfg!(feature = "steps"),
            simulation: cfg!(feature = "simulation"),
        }
    }

    /// Describes the flags and the profile of the build, if they are not those of published figures.
    pub(crate) fn unlike_published(&self) -> String {
        match (&*self.flags, &*self.profile) {
            ("", "figures") => String::new(),
            ("", profile) => format!(" with profile {profile}"),
            (flags, profile) => format!(" with {flags}, profile {profile}"),
        }
    }
}

/// Returns the current time in UTC, to the second, as in RFC 3339.
pub fn now() -> String {
    let now = jiff::Timestamp::now();
    now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Fails if this many bytes exceed the memory that is available without swapping, if that is known. The error
/// begins with `option`, the option or field that needs the memory.
pub fn check_memory(option: &str, bytes: f64) -> Result<()> {
    let available = available_memory().map_or(f64::INFINITY, |bytes| bytes as f64);
    let gib = |bytes: f64| bytes / f64::from(1 << 30);
    ensure!(
        bytes <= available,
        "{option}: needs up to {:.1} GiB of memory, but at most {:.1} GiB are available; use fewer keys",
        gib(bytes),
        gib(available)
    );
    Ok(())
}

/// Returns the bytes that this process can still allocate without swapping, within the limits of its container.
fn available_memory() -> Option<u64> {
    let mut system = System::new().ok()?;
    system.refresh_memory();
    let own = sysinfo::get_current_pid().ok().and_then(|own| {
        system.refresh_processes(ProcessesToUpdate::Some(&[own]), false);
        system.process(own)?.cgroup_limits()
    });
    let host = (system.total_memory() > 0).then(|| system.available_memory());
    // What is cached counts as used there, but can be reclaimed.
    let limits = [own, system.cgroup_limits()].into_iter().flatten();
    let limits = limits.map(|limit| limit.total_memory.saturating_sub(limit.rss));
    limits.chain(host).chain(address_limit()).min()
}

/// Returns the bytes that `ulimit -v` allows.
fn address_limit() -> Option<u64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let (_, limit) = limits.split_once("Max address space")?;
    limit.split_whitespace().next()?.parse().ok()
}

/// Returns a note if a container allows fewer cores than this process may run on.
pub(crate) fn quota_note(usable: usize) -> Option<String> {
    let allowed = thread::available_parallelism().map_or(usable, NonZero::get);
    (allowed < usable).then(|| {
        format!("a CPU quota allows {allowed} of {usable} cores: threads are halted at times")
    })
}

/// Returns the command line of this process for a description, without directories except that of the results.
pub fn command_line() -> String {
    let arguments = env::args_os().skip(1);
    let arguments: Vec<_> = arguments
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    let arguments = without_directories(arguments.iter().map(String::as_str));
    format!("{} {arguments}", executable())
}

/// Joins words, such as those of a command line, and shortens the directories of every path in them, except that of
/// `--out`, to `…`.
pub fn without_directories<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let file = |path: &'a str| {
        let file = path.trim_end_matches('/').rsplit_once(['/', '\\']);
        file.map_or(path.to_owned(), |(_, file)| format!("…/{file}"))
    };
    let mut is_out = false;
    let shorten = |word: &'a str| {
        if mem::replace(&mut is_out, word == "--out") || word.starts_with("--out=") {
            return word.to_owned();
        }
        let (_, value) = word.split_once('=').unwrap_or(("", word));
        let files: Vec<_> = value.split(',').map(file).collect();
        format!("{}{}", &word[..word.len() - value.len()], files.join(","))
    };
    words.into_iter().map(shorten).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_beyond_limit_is_refused() {
        assert!(check_memory("--keys", 0.0).is_ok());
        if available_memory().is_some() {
            let error = check_memory("--keys", 1e30).unwrap_err().to_string();
            assert!(error.starts_with("--keys: needs"), "{error}");
        }
    }

    #[test]
    fn cpu_quota_below_usable_cores_is_noted() {
        let allowed = thread::available_parallelism().unwrap().get();
        assert_eq!(quota_note(allowed), None);
        assert!(quota_note(allowed + 1).is_some());
    }

    #[test]
    fn commands_are_described_without_directories_but_out() {
        let words = "pair --builds=a/b/1,c/2 --out=u/v /x/y.toml --out r/s x/1,2 /";
        let expected = "pair --builds=…/1,…/2 --out=u/v …/y.toml --out r/s …/1,2 /";
        assert_eq!(without_directories(words.split(' ')), expected);
    }

    #[test]
    fn processors_of_one_name_differ_by_generation() {
        let cpuinfo = "cpu family\t: 25\nmodel\t\t: 17\nmodel name\t: AMD EPYC\n";
        assert_eq!(generation(cpuinfo).unwrap(), " (family 25, model 17)");
        assert_eq!(generation("Model : a board\n"), None);
    }
}
