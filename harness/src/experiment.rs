//! An experiment: a TOML file that describes a sweep.
//!
//! ```
//! # use harness::experiment::Experiment;
//! # use harness::subjects::registry::Registry;
//! let experiment = Experiment::parse(r#"
//!     name     = "demo"
//!     title    = "Lookups of resident keys"
//!     subjects = ["lock-free", "roofline"]
//!     threads  = "auto"
//!     rounds   = 7
//!     seconds  = 0.2
//!     keys     = 60_000
//!     seed     = 1
//!
//!     [[workload]]
//!     kind = "lookup-hit"
//!     load = 0.92
//! "#)?;
//! assert_eq!(experiment.threads.counts(2), [1, 2, 4, 8]);
//! experiment.check_subjects(&Registry::standard())?;
//! # Ok::<(), anyhow::Error>(())
//! ```

use std::fmt::{self, Debug};
use std::fs;
use std::path::Path;
use std::result;
use std::str::FromStr;

use anyhow::{Context, Error, Result, anyhow, bail, ensure};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use toml::{Table, Value};

use crate::latency::Latency;
use crate::machine;
use crate::subjects::{Registry, original};
use crate::workload::Workload;

/// Every subject under every workload at every thread count, `rounds` times. A file
/// names the subjects, the workloads, and values other than the defaults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Experiment {
    /// Name of the output files: lower-case letters, digits and hyphens; by default that of the file.
    pub name: String,
    /// Title of the figure; by default the name.
    pub title: String,
    /// The question that the experiment answers, for the report.
    pub question: String,
    pub subjects: Vec<String>,
    /// Further subjects. The figure then shows how many times as fast the first of `subjects` is as each other one.
    pub against: Vec<String>,
    pub threads: Threads,
    /// How many additional threads are frozen in the middle of an insert or remove while the others
    /// are measured. With any value other than 0, every measurement has a table of its own, and
    /// throughput is counted from outside, as the measured threads may be blocked.
    pub frozen: Vec<usize>,
    /// If set, operations are timed one by one: in the closed loop, and at the rates given here. All
    /// workloads must then be time-bounded.
    pub latency: Option<Latency>,
    /// How often everything is measured, 1 to 1,000. Medians and their intervals are over rounds.
    pub rounds: usize,
    /// Duration of one time-bounded measurement in seconds, above 0 and at most 600. Workloads that
    /// fill or empty a table are repeated until they add up to this.
    pub seconds: f64,
    /// Distinct keys that fill a table to its load factor, at least 1,000; this sets the table's
    /// size. By default 60,000.
    pub keys: Option<usize>,
    /// Slots of each table, in place of `keys`, for tables of the same size at all load factors. With `keys`,
    /// a table is the larger, the less it is filled.
    pub slots: Option<usize>,
    pub seed: u64,
    /// The workloads, one panel of the figure each.
    #[serde(rename = "workload")]
    pub workloads: Vec<Workload>,
}

impl Default for Experiment {
    fn default() -> Self {
        Self {
            name: String::new(),
            title: String::new(),
            question: String::new(),
            subjects: Vec::new(),
            against: Vec::new(),
            threads: Threads::Auto,
            frozen: vec![0],
            latency: None,
            rounds: 9,
            seconds: 0.1,
            keys: None,
            slots: None,
            seed: 1,
            workloads: Vec::new(),
        }
    }
}

/// A measurement of fewer keys shows little except its own overhead.
pub const MIN_KEYS: usize = 1_000;
const DEFAULT_KEYS: usize = 60_000;
pub const MAX_THREADS: usize = 1_024;
const MAX_ROUNDS: usize = 1_000;
const MAX_SECONDS: f64 = 600.0;

/// The most memory that a sweep needs, in bytes, deliberately on the high side: for each key three sets of keys and
/// their shuffled orders, and for each slot one table of every subject.
const BYTES_PER_KEY: f64 = 60.0;
const BYTES_PER_SLOT: f64 = 40.0;

impl Experiment {
    /// Reads and checks the experiment of a file. Errors name the first wrong field, and the allowed values.
    pub fn read(path: &Path) -> Result<Self> {
        let hint = "cannot read the file; give a path with its ending, or a name that `harness list` shows";
        let text = fs::read_to_string(path).context(hint)?;
        let name = path.file_stem().unwrap_or_default();
        Self::parse_named(&text, &name.to_string_lossy())
    }

    pub fn parse(text: &str) -> Result<Self> {
        Self::parse_named(text, "")
    }

    fn parse_named(text: &str, name: &str) -> Result<Self> {
        let read = toml::from_str(text);
        let mut experiment: Self =
            read.map_err(|error| wrong_workload(text).unwrap_or(error.into()))?;
        if experiment.name.is_empty() {
            name.clone_into(&mut experiment.name);
        }
        if experiment.title.is_empty() {
            experiment.title.clone_from(&experiment.name);
        }
        experiment.validate()?;
        Ok(experiment)
    }

    pub fn check_subjects(&self, registry: &Registry) -> Result<()> {
        for subject in self.subjects.iter().chain(&self.against) {
            registry
                .get(subject)
                .context("field `subjects` or `against`")?;
        }
        Ok(())
    }

    /// Returns all subjects. The first one is also measured as NAME#2: differences between the two are noise.
    pub fn contestants(&self) -> Vec<String> {
        let itself = format!("{}#2", original(&self.subjects[0]));
        let mut all = [&self.subjects[..], &self.against].concat();
        if !all.contains(&itself) {
            all.insert(1, itself);
        }
        all
    }

    /// Returns the rates at which operations are due, as shares of each subject's throughput in the
    /// closed loop; `None` is that loop itself, which comes first.
    pub fn offered(&self) -> impl Iterator<Item = Option<f64>> {
        let shares = self.latency.iter().flat_map(|latency| &latency.offered);
        [None].into_iter().chain(shares.copied().map(Some))
    }

    pub fn freezes(&self) -> bool {
        self.frozen.iter().any(|&frozen| frozen > 0)
    }

    /// Returns the number of keys that fill a table to the highest load factor.
    pub fn most_keys(&self) -> usize {
        let loads = self.workloads.iter().map(Workload::load);
        match self.slots {
            Some(slots) => (slots as f64 * loads.fold(0.0, f64::max)) as usize,
            None => self.keys.unwrap_or(DEFAULT_KEYS),
        }
    }

    /// Returns the load factor to which all keys fill the tables of a workload: its own, or the highest of
    /// all where tables have the same slots.
    pub fn full_load(&self, workload: &Workload) -> f64 {
        let loads = self.workloads.iter().filter(|_| self.slots.is_some());
        loads.map(Workload::load).fold(workload.load(), f64::max)
    }

    /// Returns how many of these keys a workload fills its tables with.
    pub fn residents(&self, workload: &Workload, keys: usize) -> usize {
        (keys as f64 * (workload.load() / self.full_load(workload))).round() as usize
    }

    /// Checks that this build can freeze threads, if any are to be frozen.
    pub fn check_build(&self) -> Result<()> {
        ensure!(
            !self.freezes() || cfg!(feature = "steps"),
            "field `frozen`: threads can be frozen only in a build with the feature `steps`; use \
             `cargo run --release -p harness --features steps -- sweep experiments/{}.toml`",
            self.name
        );
        Ok(())
    }

    pub fn check_memory(&self) -> Result<()> {
        let keys = self.most_keys() as f64;
        let loads = self
            .workloads
            .iter()
            .map(|workload| self.full_load(workload));
        let slots = keys / loads.fold(1.0, f64::min);
        let bytes = keys * BYTES_PER_KEY + slots * BYTES_PER_SLOT;
        machine::check_memory("fields `keys` and `load`", bytes)
    }

    /// Checks every value.
    pub fn validate(&self) -> Result<()> {
        let (name, rounds, seconds) = (&self.name, self.rounds, self.seconds);
        let fits = |byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
        ensure!(
            !name.is_empty() && name.bytes().all(fits),
            "field `name`: {name:?} must be lower-case letters, digits and hyphens, as it names the output files"
        );
        ensure!(
            (1..=MAX_ROUNDS).contains(&rounds),
            "field `rounds`: {rounds} is not between 1 and {MAX_ROUNDS}"
        );
        ensure!(
            seconds > 0.0 && seconds <= MAX_SECONDS,
            "field `seconds`: {seconds} must be above 0 and at most {MAX_SECONDS}"
        );
        check_list("subjects", &self.subjects, "", |_| true)?;
        let all = [&self.subjects[..], &self.against].concat();
        check_list("against", &all, "", |_| true)?;
        ensure!(
            self.slots.is_none() || self.keys.is_none(),
            "field `slots`: it determines the number of keys; leave out `keys`"
        );
        ensure!(
            !self.workloads.is_empty(),
            "field `workload`: add at least one [[workload]] table"
        );
        let residents =
            (self.workloads.iter()).map(|workload| self.residents(workload, self.most_keys()));
        let keys = residents.min().unwrap_or_default();
        ensure!(
            keys >= MIN_KEYS,
            "field `keys`: {keys} are too few; {MIN_KEYS} or more are needed"
        );
        let between = format!("above {MAX_THREADS}");
        check_list("frozen", &self.frozen, &between, |&frozen| {
            frozen <= MAX_THREADS
        })?;
        if let Threads::List(list) = &self.threads {
            let between = format!("not between 1 and {MAX_THREADS}");
            check_list("threads", list, &between, |count| {
                let (Count::Exactly(threads) | Count::PerCore(threads)) = count;
                (1..=MAX_THREADS).contains(threads)
            })?;
        }
        check_list("workload", &self.workloads, "", |_| true)?;
        for workload in &self.workloads {
            let label = workload.label();
            workload
                .validate()
                .with_context(|| format!("[[workload]] {label}"))?;
            ensure!(
                workload.is_time_bounded() || !self.freezes() && self.latency.is_none(),
                "fields `frozen` and `latency`: {label} ends when every key is done, so it is measured as a whole, and may \
                 never end if a frozen thread holds a lock; use lookups or a mix"
            );
        }
        let Some(latency) = &self.latency else {
            return Ok(());
        };
        ensure!(
            !self.freezes(),
            "field `latency`: operations that wait for frozen threads never end; leave out `frozen`"
        );
        let shares = "not from 0.001 to 10: it is a share of the closed loop's throughput, which is always measured";
        let mut offered = latency.offered.iter();
        match offered.find(|share| !(0.001..=10.0).contains(*share)) {
            Some(wrong) => bail!("field `latency.offered`: {wrong} is {shares}"),
            None => Ok(()),
        }
    }
}

/// Returns the error of the first wrong workload, with its number: serde reports the place of another one.
fn wrong_workload(text: &str) -> Option<Error> {
    let table: Table = text.parse().ok()?;
    let mut workloads = table.get("workload")?.as_array()?.iter().zip(1..);
    workloads.find_map(|(workload, number)| {
        let error = workload.clone().try_into::<Workload>().err()?;
        Some(anyhow!("[[workload]] number {number}: {error}"))
    })
}

/// Checks that a list is not empty, has no value twice, and has only values that fit.
fn check_list<T: PartialEq + Debug>(
    field: &str,
    list: &[T],
    range: &str,
    fits: impl Fn(&T) -> bool,
) -> Result<()> {
    ensure!(!list.is_empty(), "field `{field}`: name at least one");
    for (index, value) in list.iter().enumerate() {
        ensure!(fits(value), "field `{field}`: {value:?} is {range}");
        ensure!(
            !list[..index].contains(value),
            "field `{field}`: {value:?} appears twice"
        );
    }
    Ok(())
}

#[derive(Clone, Debug, PartialEq)]
pub enum Threads {
    /// 1, 2, 4 … below the number of cores, the number of cores, and two and four times as many.
    Auto,
    /// A list of counts, some of which may coincide on a given machine.
    List(Vec<Count>),
}

#[derive(Clone, Copy, PartialEq)]
pub enum Count {
    Exactly(usize),
    PerCore(usize),
}

impl Threads {
    /// Returns the thread counts, ascending, on a machine with this many cores.
    pub fn counts(&self, cores: usize) -> Vec<usize> {
        let mut counts: Vec<usize> = match self {
            Self::List(list) => (list.iter())
                .map(|count| match *count {
                    Count::Exactly(threads) => threads,
                    Count::PerCore(times) => (times * cores).min(MAX_THREADS),
                })
                .collect(),
            Self::Auto => std::iter::successors(Some(1), |threads| Some(threads * 2))
                .take_while(|&threads| threads < cores)
                .chain([cores, 2 * cores, 4 * cores])
                .filter(|&threads| threads <= MAX_THREADS)
                .collect(),
        };
        counts.sort_unstable();
        counts.dedup();
        counts
    }
}

impl fmt::Debug for Count {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Exactly(threads) => write!(formatter, "{threads}"),
            Self::PerCore(times) => write!(formatter, "{times}x"),
        }
    }
}

impl Serialize for Threads {
    fn serialize<S: Serializer>(&self, serializer: S) -> result::Result<S::Ok, S::Error> {
        match self {
            Self::Auto => serializer.serialize_str("auto"),
            Self::List(list) => {
                serializer.collect_seq(list.iter().map(|count| format!("{count:?}")))
            }
        }
    }
}

/// Parses a number of threads such as `4`, or of threads per core such as `2x`.
impl FromStr for Count {
    type Err = String;

    fn from_str(text: &str) -> result::Result<Self, String> {
        let count = match text.strip_suffix('x') {
            Some(times) => times.parse().map(Self::PerCore),
            None => text.parse().map(Self::Exactly),
        };
        count.map_err(|_| format!("{text:?} is not a number such as 4, or 2x for two per core"))
    }
}

/// Parses `auto`, or counts with commas between them.
impl FromStr for Threads {
    type Err = String;

    fn from_str(text: &str) -> result::Result<Self, String> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        let counts: result::Result<_, _> = text.split(',').map(str::parse).collect();
        counts.map(Self::List)
    }
}

impl<'de> Deserialize<'de> for Threads {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> result::Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        // As on the command line.
        let text = value.to_string().replace(['[', ']', '"', ' '], "");
        let expected = r#""auto", or a list such as [1, 2, 4] or [1, "1x", "2x"]"#;
        let problem = format!("field `threads`: {value} is not {expected}");
        text.parse().map_err(|_: String| de::Error::custom(problem))
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use super::{Count, Experiment, Threads};
    use crate::workload::tests::parse;

    /// Returns an experiment of two rounds with one and two threads.
    pub(crate) fn tiny(subjects: &[&str], workloads: &[&str]) -> Experiment {
        Experiment {
            name: "tiny".into(),
            subjects: subjects.iter().copied().map(str::to_owned).collect(),
            threads: Threads::List(vec![Count::Exactly(1), Count::Exactly(2)]),
            rounds: 2,
            seconds: 1e-3,
            keys: Some(1_000),
            workloads: workloads.iter().map(|text| parse(text).unwrap()).collect(),
            ..Experiment::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_fields_have_defaults() {
        let text = "subjects = ['lock-free']\nworkload = [{ kind = 'insert', load = 0.9 }]";
        let experiment = Experiment::parse_named(text, "my-own").unwrap();
        assert_eq!(
            (&*experiment.name, &*experiment.title),
            ("my-own", "my-own")
        );
        assert_eq!((experiment.rounds, experiment.most_keys()), (9, 60_000));
        assert_eq!(experiment.threads.counts(2), [1, 2, 4, 8]);
    }

    #[test]
    fn written_experiment_is_read_back() {
        let text = include_str!("../../experiments/latency.toml");
        let experiment = Experiment::parse(text).unwrap();
        let written = toml::to_string(&experiment).unwrap();
        assert_eq!(Experiment::parse(&written).unwrap(), experiment);
    }

    #[test]
    fn impossible_value_names_its_field() {
        let finds = |fields: &str, expected: &str| {
            let good = "name = 'tiny'\nsubjects = ['lock-free']\nkeys = 2000\n\
                        workload = [{ kind = 'insert', load = 0.9 }]";
            let mut table: Table = good.parse().unwrap();
            table.extend(fields.parse::<Table>().unwrap());
            let error = format!("{:#}", Experiment::parse(&table.to_string()).unwrap_err());
            assert!(error.contains(expected), "{fields}: {error}");
        };
        for line in "
            name = '../tiny' | `name`
            subjects = [] | `subjects`
            subjects = ['a', 'a'] | `subjects`: \"a\" appears twice
            against = ['lock-free'] | `against`: \"lock-free\" appears twice
            threads = [0, 1] | `threads`: 0 is not between 1 and 1024
            threads = [1, 1] | `threads`: 1 appears twice
            threads = ['0x'] | `threads`
            threads = ['2y'] | `threads`
            threads = 'all' | `threads`
            frozen = [1025] | `frozen`: 1025
            frozen = [1] | `frozen` and `latency`: insert ends when
            latency = {} | `frozen` and `latency`: insert ends when
            latency = { offered_mops = [2] } | unknown field `offered_mops`
            speed = 7 | unknown field `speed`
            rounds = 0 | `rounds`: 0 is not between 1 and 1000
            seconds = 0.0 | `seconds`
            seconds = nan | `seconds`
            keys = 999 | `keys`: 999 are too few; 1000 or more
            slots = 3000 | leave out `keys`
            workload = [{ kind = 'insert', load = 0.5 }, { kind = 'lookup', hitt = 5 }] | number 2: unknown field `hitt`
            workload = [{ kind = 'upsert' }] | `upsert`
            workload = [{ kind = 'insert', load = 1.5 }] | [[workload]] insert: field `load`"
            .lines()
            .skip(1)
        {
            let (fields, expected) = line.trim().split_once(" | ").unwrap();
            finds(fields, expected);
        }
        let lookups = "workload = [{ kind = 'lookup-hit', load = 0.9 }]";
        for latency in [
            "{}\nfrozen = [1]",
            "{ offered = [0] }",
            "{ offered = [nan] }",
        ] {
            finds(&format!("latency = {latency}\n{lookups}"), "`latency");
        }
    }

    #[test]
    fn thread_counts_depend_on_cores() {
        let threads: Threads = "4x,1,1x,8".parse().unwrap();
        assert_eq!(threads.counts(1), [1, 4, 8]);
        assert_eq!(threads.counts(2), [1, 2, 8]);
        assert_eq!(threads.counts(1_000), [1, 8, 1_000, MAX_THREADS]);
        assert_eq!(Threads::Auto.counts(1), [1, 2, 4]);
        assert_eq!(Threads::Auto.counts(6), [1, 2, 4, 6, 12, 24]);
        assert_eq!(Threads::Auto.counts(512).last(), Some(&1024));
    }
}
