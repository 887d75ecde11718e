//! An experiment: a TOML file with everything that a sweep needs to know. A file may also hold
//! several, as `[[experiment]]` tables, which may differ in anything, such as size.
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

mod file;
mod problems;
pub mod threads;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Deserializer, de};
use toml::Value;

use crate::machine::{self, Policy};
use crate::subjects::{Registry, original};
use crate::wording::grouped;
use crate::workload::{Latency, Workload};

pub use file::read;
pub(crate) use problems::first_repeated;
pub use threads::{Count, MAX_THREADS, Threads};

/// What to run: every subject under every workload at every thread count, `rounds` times. A file
/// names the subjects and the workloads, and what differs from the defaults.
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
    /// Whether cores without a measured thread are kept busy meanwhile.
    pub busy: bool,
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
            busy: false,
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
fn one_or_several<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<usize>, D::Error> {
    let several = match Value::deserialize(deserializer)? {
        Value::Array(several) => several,
        one => vec![one],
    };
    let whole = |value: Value| {
        let number = value.as_float().or(value.as_integer().map(|of| of as f64));
        let whole = number.filter(|of| of.fract() == 0.0 && (0.0..1e15).contains(of));
        let problem = format!("field `keys`: {value} is not a whole number, or far too many");
        whole
            .map(|of| of as usize)
            .ok_or(de::Error::custom(problem))
    };
    several.into_iter().map(whole).collect()
}

/// With fewer keys, a measurement shows little but its own overhead.
pub const MIN_KEYS: usize = 1_000;
/// Filling this many keys takes long enough for threads that share cores to be interrupted.
pub const INTERRUPTED_KEYS: usize = 1_000_000;
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

    /// Returns all subjects. The first one is measured twice, as NAME#2, too: what differs there is noise.
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

    /// Returns a warning about fills that end before their threads are interrupted; `None` if there are
    /// none on this many cores.
    pub fn warning(&self, cores: usize) -> Option<String> {
        let fills = self.workloads.iter().filter(|of| !of.is_time_bounded());
        let fills = fills.map(Workload::label).collect::<Vec<_>>().join(", ");
        let mut beyond = self.threads.counts(cores);
        beyond.retain(|&of| of > cores);
        let beyond: Vec<_> = beyond.iter().map(usize::to_string).collect();
        let beyond = beyond.join(", ");
        let keys = self.most_keys();
        let is_short = !fills.is_empty() && !beyond.is_empty() && keys < INTERRUPTED_KEYS;
        let [keys, enough] = [keys, INTERRUPTED_KEYS].map(|keys| grouped(keys as u64));
        is_short.then(|| {
            format!(
                "{fills} of {keys} keys on more threads than cores ({beyond}): each thread finishes before it is \
                 interrupted, so this does not show the cost of a lock whose holder is interrupted; for that, use \
                 {enough} keys or more"
            )
        })
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
    use super::testing::GOOD;
    use super::*;

    #[test]
    fn short_fills_on_more_threads_than_cores_are_warned_of() {
        let warning = |text: &str, cores| Experiment::parse(text).unwrap().warning(cores);
        let fill = GOOD.to_owned() + "\n[[workload]]\nkind = 'insert'\nload = 0.9";
        let told = warning(&fill, 1).unwrap();
        let expected = "insert of 1,000 keys on more threads than cores (2): ";
        let is_right = told.starts_with(expected) && told.ends_with("1,000,000 keys or more");
        assert!(is_right, "{told}");
        assert_eq!(warning(&fill, 2), None, "no more threads than cores");
        assert_eq!(warning(GOOD, 1), None, "no fill");
        assert_eq!(warning(&fill.replace("1000", "1000000"), 1), None);
        assert!(warning(&fill.replace("1000", "999999"), 1).is_some());
    }
}
