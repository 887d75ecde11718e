//! An experiment: a TOML file that describes a sweep. A file may also hold
//! several, as `[[experiment]]` tables.
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
use std::path::Path;
use std::str::FromStr;

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Deserializer, de};
use toml::Value;

use crate::latency::Latency;
use crate::machine::{self, Policy};
use crate::subjects::{Registry, original};
use crate::workload::Workload;

/// Every subject under every workload at every thread count, `rounds` times. A file
/// names the subjects, the workloads, and values other than the defaults.
#[derive(Clone, Debug, PartialEq, Deserialize)]
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
    /// size. Several numbers are several sizes, which take turns in each round.
    #[serde(deserialize_with = "one_or_several")]
    pub keys: Vec<usize>,
    /// Slots of each table, in place of `keys`, for tables of the same size at all load factors. With `keys`,
    /// a table is the larger, the less it is filled.
    pub slots: Option<usize>,
    pub seed: u64,
    /// The workloads, one panel of the figure each.
    #[serde(rename = "workload")]
    pub workloads: Vec<Workload>,
    pub pinning: Policy,
    /// The experiment as the file has it.
    #[serde(skip)]
    pub as_written: toml::Table,
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
            keys: vec![60_000],
            slots: None,
            seed: 1,
            workloads: Vec::new(),
            pinning: Policy::default(),
            as_written: toml::Table::new(),
        }
    }
}

/// Reads a whole number, or a list of them, which may be written as `1e6`.
fn one_or_several<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> std::result::Result<Vec<usize>, D::Error> {
    let values = match Value::deserialize(deserializer)? {
        Value::Array(values) => values,
        value => vec![value],
    };
    let whole = |value: Value| {
        let number = value.as_integer().map(|number| number as f64);
        let number = value
            .as_float()
            .or(number)
            .filter(|number| number.fract() == 0.0 && (0.0..1e15).contains(number));
        let problem = format!("field `keys`: {value} is not a whole number, or far too many");
        number
            .map(|number| number as usize)
            .ok_or(de::Error::custom(problem))
    };
    values.into_iter().map(whole).collect()
}

/// A measurement of fewer keys shows little except its own overhead.
pub const MIN_KEYS: usize = 1_000;
const MAX_ROUNDS: usize = 1_000;
const MAX_SECONDS: f64 = 600.0;

/// The most memory that a sweep needs, in bytes, deliberately on the high side: for each key three sets of keys and their
/// shuffled orders, and for each slot one table of every subject.
const BYTES_PER_KEY: f64 = 60.0;
const BYTES_PER_SLOT: f64 = 40.0;

impl Experiment {
    pub fn check_subjects(&self, registry: &Registry) -> Result<()> {
        for subject in self.subjects.iter().chain(&self.against) {
            registry.get(subject).context("field `subjects`")?;
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

    pub fn most_keys(&self) -> usize {
        self.keys.iter().copied().max().unwrap_or_default()
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
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Several {
    #[serde(rename = "experiment")]
    experiments: Vec<Experiment>,
}

/// Reads and checks the experiments of a file, one or several. One without a name gets that of the
/// file. Errors name the file, the first wrong field, and the allowed values.
pub fn read(path: &Path) -> Result<Vec<Experiment>> {
    let (file, name) = (path.display(), path.file_stem().unwrap_or_default());
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read the experiment {file}"))?;
    parse(&text, &name.to_string_lossy()).with_context(|| format!("in the experiment {file}"))
}

fn parse(text: &str, name: &str) -> Result<Vec<Experiment>> {
    let written: toml::Table = toml::from_str(text)?;
    let Some(tables) = written.get("experiment") else {
        return Ok(vec![complete(toml::from_str(text)?, written, name)?]);
    };
    let Several { experiments } = toml::from_str(text)?;
    let tables = tables.as_array().into_iter().flatten();
    let tables = tables.map(|table| table.as_table().cloned().unwrap_or_default());
    ensure!(
        !experiments.is_empty(),
        "field `experiment`: add at least one [[experiment]] table"
    );
    let complete = |(experiment, table): (Experiment, _)| {
        let named = format!("[[experiment]] {:?}", experiment.name);
        complete(experiment, table, "").context(named)
    };
    let experiments = experiments.into_iter().zip(tables).map(complete);
    let experiments = experiments.collect::<Result<Vec<_>>>()?;
    let names: Vec<_> = experiments
        .iter()
        .map(|experiment| &experiment.name)
        .collect();
    if let Some(twice) = first_repeated(&names) {
        bail!(
            "field `name`: two experiments are called {twice:?}, and would share their output files"
        );
    }
    Ok(experiments)
}

/// Fills in the defaults that depend on other fields, and checks the experiment.
fn complete(mut experiment: Experiment, written: toml::Table, name: &str) -> Result<Experiment> {
    if !written.contains_key("name") {
        experiment.name = name.to_owned();
    }
    if !written.contains_key("title") {
        experiment.title = experiment.name.clone();
    }
    if let Some(slots) = experiment.slots {
        ensure!(
            !written.contains_key("keys"),
            "field `slots`: it determines the number of keys; leave out `keys`"
        );
        let loads = experiment.workloads.iter().map(Workload::load);
        experiment.keys = vec![(slots as f64 * loads.fold(0.0, f64::max)) as usize];
    }
    experiment.as_written = written;
    experiment.validate()?;
    Ok(experiment)
}

impl Experiment {
    pub fn parse(text: &str) -> Result<Self> {
        complete(toml::from_str(text)?, toml::from_str(text)?, "")
    }
}

impl Experiment {
    fn validate(&self) -> Result<()> {
        let (name, rounds, seconds) = (&self.name, self.rounds, self.seconds);
        let fits = |byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
        ensure!(
            !name.is_empty() && name.bytes().all(fits),
            "field `name`: {name:?} must be lower-case letters, digits and hyphens, as it names the output files"
        );
        ensure!(
            !self.title.trim().is_empty(),
            "field `title`: it must not be empty, as it is the figure's title"
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
        if let Some(name) = self
            .against
            .iter()
            .find(|name| self.subjects.contains(name))
        {
            bail!("field `against`: {name:?} is one of `subjects`");
        }
        if let Some(twice) = first_repeated(&self.against) {
            bail!("field `against`: {twice:?} appears twice");
        }
        let few = format!("too few; {MIN_KEYS} or more are needed");
        check_list("keys", &self.keys, &few, |&keys| {
            let residents = |workload| self.residents(workload, keys);
            self.workloads.iter().map(residents).fold(keys, usize::min) >= MIN_KEYS
        })?;
        let between = format!("not between 0 and {MAX_THREADS}");
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
        self.validate_workloads()?;
        self.validate_latency()
    }

    fn validate_workloads(&self) -> Result<()> {
        ensure!(
            !self.workloads.is_empty(),
            "field `workload`: add at least one [[workload]] table"
        );
        for (index, workload) in self.workloads.iter().enumerate() {
            let number = || format!("[[workload]] number {}", index + 1);
            workload.validate().with_context(number)?;
            ensure!(
                workload.is_time_bounded() || !self.freezes(),
                "field `frozen`: {} ends when every key is done, so it may never end if a frozen thread holds a lock; use a \
                 mix or lookups",
                workload.label()
            );
        }
        if let Some(twice) = first_repeated(&self.workloads) {
            let (label, load) = (twice.label(), twice.load());
            bail!("field `workload`: {label} at load factor {load} appears twice");
        }
        Ok(())
    }

    /// Checks that operations can be timed one by one, if they are to be.
    fn validate_latency(&self) -> Result<()> {
        let Some(latency) = &self.latency else {
            return Ok(());
        };
        if !latency.offered.is_empty() {
            let shares = "not from 0.001 to 10: it is a share of the closed loop's throughput, which is always measured";
            check_list("latency.offered", &latency.offered, shares, |share| {
                (0.001..=10.0).contains(share)
            })?;
        }
        ensure!(
            !self.freezes(),
            "field `latency`: operations that wait for frozen threads never end; leave out `frozen`"
        );
        if let Some(whole) = self
            .workloads
            .iter()
            .find(|workload| !workload.is_time_bounded())
        {
            bail!(
                "field `latency`: {} ends when every key is done, and is measured as a whole; use lookups, a mix, ycsb or window",
                whole.label()
            );
        }
        Ok(())
    }
}

/// Checks that a list is not empty, has no value twice, and has only values that fit.
fn check_list<T: PartialEq + Debug>(
    field: &str,
    list: &[T],
    range: &str,
    fits: impl Fn(&T) -> bool,
) -> Result<()> {
    ensure!(!list.is_empty(), "field `{field}`: name at least one");
    if let Some(wrong) = list.iter().find(|value| !fits(value)) {
        bail!("field `{field}`: {wrong:?} is {range}");
    }
    if let Some(twice) = first_repeated(list) {
        bail!("field `{field}`: {twice:?} appears twice");
    }
    Ok(())
}

fn first_repeated<T: PartialEq>(list: &[T]) -> Option<&T> {
    let repeats = |(index, value): &(usize, &T)| list[..*index].contains(value);
    let mut numbered = list.iter().enumerate();
    numbered.find(repeats).map(|(_, value)| value)
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

pub const MAX_THREADS: usize = 1_024;

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
            Self::PerCore(times) => write!(formatter, "\"{times}x\""),
        }
    }
}

impl fmt::Display for Threads {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Auto => formatter.write_str("auto"),
            Self::List(list) => {
                let list: Vec<_> = list.iter().map(|count| format!("{count:?}")).collect();
                formatter.write_str(&list.join(",").replace('"', ""))
            }
        }
    }
}

/// Parses a number of threads such as `4`, or of threads per core such as `2x`.
impl FromStr for Count {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
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

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        let counts = text.split(',').map(str::parse);
        counts
            .collect::<std::result::Result<_, _>>()
            .map(Self::List)
    }
}

impl<'de> Deserialize<'de> for Threads {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let value = toml::Value::deserialize(deserializer)?;
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
            keys: vec![1_000],
            workloads: workloads.iter().map(|text| parse(text).unwrap()).collect(),
            ..Experiment::default()
        }
    }

    /// An experiment in which everything is possible.
    pub(crate) const GOOD: &str = r#"
        name     = "tiny"
        title    = "A tiny sweep"
        subjects = ["lock-free", "roofline"]
        threads  = [2, 1]
        rounds   = 2
        seconds  = 0.01
        keys     = 1000
        seed     = 7

        [[workload]]
        kind = "lookup-hit"
        load = 0.92

        [[workload]]
        kind = "mix"
        lookup = 90
        insert = 5
        remove = 5
        load = 0.9
    "#;

    /// Returns the error of that experiment with `to` in place of `from`; tables of `to` come last.
    pub(super) fn complaint(from: &str, to: &str) -> String {
        assert!(GOOD.contains(from));
        let (values, tables) = to.split_once("[[").unwrap_or((to, ""));
        let mut text = GOOD.replacen(from, values, 1);
        if !tables.is_empty() {
            text += &format!("\n[[{tables}");
        }
        format!("{:#}", Experiment::parse(&text).unwrap_err())
    }
}

#[cfg(test)]
mod tests {
    use super::testing::{GOOD, complaint};
    use super::*;

    #[test]
    fn missing_fields_have_defaults() {
        let text = "subjects = ['lock-free']\nkeys = [1e6, 2_000]\n[[workload]]\nkind = 'insert'\nload = 0.9";
        let [experiment] = &parse(text, "my-own").unwrap()[..] else {
            panic!("one experiment");
        };
        assert_eq!(
            (&*experiment.name, &*experiment.title),
            ("my-own", "my-own")
        );
        assert_eq!(experiment.keys, [1_000_000, 2_000]);
        assert_eq!((experiment.rounds, experiment.seconds), (9, 0.1));
        assert_eq!(experiment.threads.counts(2), [1, 2, 4, 8]);
    }

    /// Returns GOOD as an `[[experiment]]` table.
    fn as_table(name: &str) -> String {
        let tables = GOOD.replace("[[workload]]", "[[experiment.workload]]");
        format!("[[experiment]]\n{}\n", tables.replace("tiny", name))
    }

    #[test]
    fn file_holds_one_experiment_or_several() {
        assert_eq!(parse(GOOD, "").unwrap(), [Experiment::parse(GOOD).unwrap()]);
        let several = parse(&(as_table("one") + &as_table("two")), "").unwrap();
        assert_eq!(several[1].workloads.len(), 2);
        for (experiment, name) in several.iter().zip(["one", "two"]) {
            assert_eq!(experiment.name, name);
            assert_eq!(experiment.as_written["name"].as_str(), Some(name));
        }
        let refuses = |text: &str, expected: &str| {
            let error = format!("{:#}", parse(text, "").unwrap_err());
            assert!(error.contains(expected), "{error}");
        };
        let (one, two) = (as_table("one"), as_table("two"));
        refuses(&format!("{one}{one}"), "two experiments are called \"one\"");
        let wrong = "[[experiment]] \"two\": [[workload]] number 1: field `load`";
        refuses(&(one.clone() + &two.replace("0.92", "1.5")), wrong);
        refuses("experiment = []", "at least one");
        refuses(&format!("rounds = 3\n{one}"), "unknown field `rounds`");
    }

    #[test]
    fn impossible_values_name_their_field_and_what_is_allowed() {
        let finds = |to: &str, expected: &str| {
            let error = complaint("seed     = 7", to);
            assert!(error.contains(expected), "{to}: {error}");
        };
        let insert = "[[workload]]\nkind = 'insert'\nload = 0.9";
        let ends = "`frozen`: insert ends when every key is done";
        finds(&format!("frozen = [2]\n{insert}"), ends);
        let latency = |with: &str, expected| finds(&format!("latency = {{}}\n{with}"), expected);
        latency(insert, "`latency`: insert ends when");
        latency("frozen = [1]", "leave out `frozen`");
        finds(&format!("{insert}\nlod = 1"), "unknown field `lod`");
        let twice = "`workload`: lookup-hit at load factor 0.92 appears twice";
        finds("[[workload]]\nkind = 'lookup-hit'\nload = 0.92", twice);
        // The replaced text, its replacement, and a part of the error.
        for line in "
            \"tiny\" | \"../tiny\" | `name`
            \"A tiny sweep\" | \" \" | `title`
            [\"lock-free\", \"roofline\"] | [] | `subjects`
            \"roofline\" | \"lock-free\" | `subjects`: \"lock-free\" appears twice
            seed     = 7 | against = [\"roofline\"] | `against`: \"roofline\" is one of
            seed     = 7 | against = [\"a\", \"a\"] | `against`: \"a\" appears twice
            [2, 1] | [0, 1] | `threads`: 0 is not between 1 and 1024
            [2, 1] | [1, 1] | `threads`: 1 appears twice
            [2, 1] | [] | `threads`
            [2, 1] | [1025] | `threads`
            [2, 1] | \"all\" | `threads`
            [2, 1] | [\"2y\"] | `threads`
            [2, 1] | [\"0x\"] | `threads`
            [2, 1] | [-1] | `threads`
            seed     = 7 | frozen = [] | `frozen`
            seed     = 7 | frozen = [1, 1] | `frozen`: 1 appears twice
            seed     = 7 | frozen = [1025] | `frozen`: 1025
            seed     = 7 | frozen = [-1] | frozen
            seed     = 7 | pinning = \"spread\" | unknown variant `spread`, expected one of `cores`, `compact`
            seed     = 7 | latency = { offered = [-1] } | `latency.offered`: -1.0 is not from
            seed     = 7 | latency = { offered = [nan] } | `latency.offered`: NaN
            seed     = 7 | latency = { offered = [0] } | `latency.offered`: 0.0
            seed     = 7 | latency = { offered = [30] } | `latency.offered`: 30.0
            seed     = 7 | latency = { offered = [1, 1.0] } | `latency.offered`: 1.0 appears twice
            seed     = 7 | latency = { offered_mops = [2] } | unknown field `offered_mops`
            seed     = 7 | speed = 7 | unknown field `speed`
            rounds   = 2 | rounds = 0 | `rounds`: 0 is not between 1 and 1000
            0.01 | 0.0 | `seconds`
            0.01 | nan | `seconds`
            0.01 | -1.0 | `seconds`
            1000 | 0 | `keys`: 0 is too few; 1000 or more
            1000 | -5 | keys
            1000 | 1e3.5 | line 8
            1000 | 1000.5 | `keys`: 1000.5 is not a whole number
            1000 | [] | `keys`
            1000 | [1000, 999] | `keys`: 999
            1000 | [1000, 1000] | `keys`: 1000 appears twice
            load = 0.92 | load = 1.5 | `load`
            load = 0.92 | load = 0.99 | number 1: field `load`
            lookup = 90 | lookup = 91 | sum to 100
            insert = 5 | insert = 4 | equal
            \"mix\" | \"upsert\" | `upsert`"
            .lines()
            .skip(1)
        {
            let parts: Vec<_> = line.trim().split(" | ").collect();
            let error = complaint(parts[0], parts[1]);
            assert!(error.contains(parts[2]), "{line}: {error}");
        }
    }

    #[test]
    fn thread_counts_depend_on_cores() {
        let threads: Threads = "4x,1,1x,8".parse().unwrap();
        assert_eq!(threads.counts(1), [1, 4, 8]);
        assert_eq!(threads.counts(2), [1, 2, 8]);
        assert_eq!(threads.counts(1_000), [1, 8, 1_000, MAX_THREADS]);
        let auto: Threads = "auto".parse().unwrap();
        assert_eq!(auto.counts(1), [1, 2, 4]);
        assert_eq!(auto.counts(6), [1, 2, 4, 6, 12, 24]);
        assert_eq!(auto.counts(512).last(), Some(&1024));
    }
}
