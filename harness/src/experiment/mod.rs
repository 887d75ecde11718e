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

pub mod stopping;
pub mod target;
pub mod threads;

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::experiment::stopping::StoppingRule;
use crate::experiment::target::Target;
use crate::experiment::threads::{MAX_THREADS, Threads};
use crate::machine::topology::Policy;
use crate::subjects::registry::Registry;
use crate::workload::Workload;
use crate::workload::latency::Latency;

/// What to run: every subject under every workload at every thread count, `rounds` times.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Name of the output files: lower-case letters, digits and hyphens.
    pub name: String,
    /// Title of the figure.
    pub title: String,
    /// The question that the experiment answers, for the report.
    #[serde(default)]
    pub question: String,
    /// The structures to measure, by their registered names.
    pub subjects: Vec<String>,
    /// The thread counts.
    pub threads: Threads,
    /// How many additional threads are frozen in the middle of an insert or remove while the others
    /// are measured. With any value other than 0, every measurement has a table of its own, and
    /// throughput is counted from outside, as the measured threads may be blocked.
    #[serde(default = "none_frozen")]
    pub frozen: Vec<usize>,
    /// If operations are timed one by one, the rates at which they arrive. All workloads must then
    /// be time-bounded.
    #[serde(default)]
    pub latency: Option<Latency>,
    /// How often everything is measured, 1 to 1,000. If one of the next three fields is set, this
    /// is the minimum. Medians and their intervals are over rounds.
    pub rounds: usize,
    /// The most rounds of a workload, `rounds` to 1,000; needs `precision` or `minutes`.
    #[serde(default)]
    pub max_rounds: Option<usize>,
    /// Adds rounds until the interval of every ratio of the first subject to another is this
    /// narrow: half its width over its median, above 0 and below 1. Needs `max_rounds` or
    /// `minutes`.
    #[serde(default)]
    pub precision: Option<f64>,
    /// Minutes after which no rounds are added, above 0 and at most 10,080, a week. Workloads share
    /// them; `rounds` rounds are made even if they take longer.
    #[serde(default)]
    pub minutes: Option<f64>,
    /// Duration of one time-bounded measurement in seconds, above 0 and at most 600. Inserts to a
    /// load factor and removes take as long as they take.
    pub seconds: f64,
    /// Distinct keys that fill a table to its load factor, at least 1,000; this sets the table's
    /// size.
    pub keys: usize,
    /// The seed from which generated keys and every shuffle derive.
    pub seed: u64,
    /// The workloads, one panel of the figure each.
    #[serde(rename = "workload")]
    pub workloads: Vec<Workload>,
    /// The order in which threads are bound to cores.
    #[serde(default)]
    pub pinning: Policy,
    /// Ratios that the experiment should reach.
    #[serde(default, rename = "target")]
    pub targets: Vec<Target>,
    /// The experiment as the file has it.
    #[serde(skip)]
    pub as_written: toml::Table,
}

/// A file with several experiments.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Several {
    #[serde(rename = "experiment")]
    experiments: Vec<Experiment>,
}

fn none_frozen() -> Vec<usize> {
    vec![0]
}

/// The fewest keys an experiment may ask for: with fewer, a measurement shows little but its own
/// overhead.
pub const MIN_KEYS: usize = 1_000;
const MAX_ROUNDS: usize = 1_000;
const MAX_MINUTES: f64 = 10_080.0;
const MAX_SECONDS: f64 = 600.0;

/// The most memory that a sweep needs per key, in bytes: three sets of keys, their shuffled orders,
/// and one table of every subject. Deliberately on the high side.
const BYTES_PER_KEY: u64 = 100;

/// Reads and checks the experiments of a file, one or several. Errors name the file and the field,
/// and say what is allowed.
pub fn read(path: &Path) -> Result<Vec<Experiment>> {
    let name = path.display();
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read the experiment {name}"))?;
    parse(&text).with_context(|| format!("in the experiment {name}"))
}

fn parse(text: &str) -> Result<Vec<Experiment>> {
    let written: toml::Table = toml::from_str(text)?;
    let Some(tables) = written.get("experiment") else {
        return Ok(vec![Experiment::of(text, written)?]);
    };
    let Several { mut experiments } = toml::from_str(text)?;
    let tables = tables.as_array().into_iter().flatten();
    for (experiment, table) in experiments.iter_mut().zip(tables) {
        experiment.as_written = table.as_table().cloned().unwrap_or_default();
    }
    ensure!(
        !experiments.is_empty(),
        "field `experiment`: add at least one [[experiment]] table"
    );
    for experiment in &experiments {
        let named = || format!("[[experiment]] {:?}", experiment.name);
        experiment.validate().with_context(named)?;
    }
    let names: Vec<_> = experiments.iter().map(|of| &of.name).collect();
    if let Some(twice) = first_repeated(&names) {
        bail!(
            "field `name`: two experiments are called {twice:?}, and would share their output files"
        );
    }
    Ok(experiments)
}

impl Experiment {
    /// Parses and checks the text of an experiment.
    pub fn parse(text: &str) -> Result<Self> {
        Self::of(text, toml::from_str(text)?)
    }

    /// Parses and checks an experiment, given as the text from which errors quote and the same as a
    /// table.
    fn of(text: &str, as_written: toml::Table) -> Result<Self> {
        let experiment = Self {
            as_written,
            ..toml::from_str(text)?
        };
        experiment.validate()?;
        Ok(experiment)
    }

    /// Checks that every subject is registered.
    pub fn check_subjects(&self, registry: &Registry) -> Result<()> {
        for subject in &self.subjects {
            registry.get(subject).context("field `subjects`")?;
        }
        Ok(())
    }

    /// Returns the rates at which operations arrive, in millions per second; 0 means as soon as the
    /// last one is done.
    pub fn offered_mops(&self) -> &[f64] {
        match &self.latency {
            Some(latency) => &latency.offered_mops,
            None => &[0.0],
        }
    }

    /// Returns whether any measurement has frozen threads.
    pub fn freezes(&self) -> bool {
        self.frozen.iter().any(|&frozen| frozen > 0)
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

    /// Checks that keys and tables fit into `available` bytes of memory.
    pub fn check_memory(&self, available: u64) -> Result<()> {
        let most = available / BYTES_PER_KEY;
        ensure!(
            self.keys as u64 <= most,
            "field `keys`: {} keys do not fit into the memory available; at most {most} do",
            self.keys
        );
        Ok(())
    }

    fn validate(&self) -> Result<()> {
        ensure!(
            !self.name.is_empty()
                && self
                    .name
                    .bytes()
                    .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-')),
            "field `name`: {:?} must be lower-case letters, digits and hyphens, as it names the output files",
            self.name
        );
        ensure!(
            !self.title.trim().is_empty(),
            "field `title`: must not be empty, as it is the figure's title"
        );
        ensure!(
            !self.subjects.is_empty(),
            "field `subjects`: name at least one"
        );
        if let Some(twice) = first_repeated(&self.subjects) {
            bail!("field `subjects`: {twice:?} appears twice");
        }
        ensure!(
            !self.frozen.is_empty(),
            "field `frozen`: name at least one number; without the field it is [0]"
        );
        if let Some(frozen) = self.frozen.iter().find(|&&frozen| frozen > MAX_THREADS) {
            bail!("field `frozen`: {frozen} is not between 0 and {MAX_THREADS}");
        }
        if let Some(twice) = first_repeated(&self.frozen) {
            bail!("field `frozen`: {twice} appears twice");
        }
        self.threads.validate()?;
        ensure!(
            (1..=MAX_ROUNDS).contains(&self.rounds),
            "field `rounds`: {} is not between 1 and {MAX_ROUNDS}",
            self.rounds
        );
        self.validate_stopping()?;
        ensure!(
            self.seconds > 0.0 && self.seconds <= MAX_SECONDS,
            "field `seconds`: {} must be above 0 and at most {MAX_SECONDS}",
            self.seconds
        );
        ensure!(
            self.keys >= MIN_KEYS,
            "field `keys`: {} is too few; {MIN_KEYS} or more are needed",
            self.keys
        );
        ensure!(
            !self.workloads.is_empty(),
            "field `workload`: add at least one [[workload]] table"
        );
        for (index, workload) in self.workloads.iter().enumerate() {
            if let Err(error) = workload.validate() {
                bail!(
                    "[[workload]] number {}, field `{}`: {}",
                    index + 1,
                    error.field,
                    error.problem
                );
            }
        }
        let endless = |workload: &&Workload| self.freezes() && !workload.is_time_bounded();
        if let Some(workload) = self.workloads.iter().find(endless) {
            bail!(
                "field `frozen`: {} ends when every key is done, and so never if a thread is frozen \
                 with a lock; use a mix or lookups",
                workload.label()
            );
        }
        if let Some(twice) = first_repeated(&self.workloads) {
            bail!(
                "field `workload`: {} at load factor {} appears twice",
                twice.label(),
                twice.load()
            );
        }
        if let Some(latency) = &self.latency {
            latency.validate()?;
            ensure!(
                !self.freezes(),
                "field `latency`: operations that wait for frozen threads never end; leave out `frozen`"
            );
            ensure!(
                self.targets.is_empty(),
                "field `latency`: operations that are timed show no ratios of throughputs; leave out `target`"
            );
            if let Some(workload) = self.workloads.iter().find(|of| !of.is_time_bounded()) {
                bail!(
                    "field `latency`: {} ends when every key is done, and is measured as a whole; use lookups, \
                     a mix, ycsb or window",
                    workload.label()
                );
            }
        }
        ensure!(
            self.targets.is_empty() || !self.freezes(),
            "field `target`: ratios over subjects that frozen threads may stop are meaningless; leave out `frozen`"
        );
        for (index, target) in self.targets.iter().enumerate() {
            let number = index + 1;
            let named = || format!("[[target]] number {number}");
            (target.validate(&self.subjects, &self.threads, &self.workloads))
                .with_context(named)?;
        }
        Ok(())
    }
}

impl Experiment {
    /// Returns the rule that decides when a workload has had enough rounds.
    pub fn stopping_rule(&self) -> StoppingRule {
        let open_ended = self.precision.is_some() || self.minutes.is_some();
        StoppingRule {
            least: self.rounds,
            most: self
                .max_rounds
                .unwrap_or(if open_ended { MAX_ROUNDS } else { self.rounds }),
            precision: self.precision,
            budget: (self.minutes).map(|minutes| Duration::from_secs_f64(minutes * 60.0)),
        }
    }

    fn validate_stopping(&self) -> Result<()> {
        if let Some(most) = self.max_rounds {
            ensure!(
                (self.rounds..=MAX_ROUNDS).contains(&most),
                "field `max_rounds`: {most} is not between {} (`rounds`) and {MAX_ROUNDS}",
                self.rounds
            );
            ensure!(
                self.precision.is_some() || self.minutes.is_some(),
                "field `max_rounds`: say with `precision` or `minutes` when fewer suffice"
            );
        }
        if let Some(precision) = self.precision {
            ensure!(
                precision > 0.0 && precision < 1.0,
                "field `precision`: {precision} must be above 0 and below 1"
            );
            ensure!(
                self.max_rounds.is_some() || self.minutes.is_some(),
                "field `precision`: say with `max_rounds` or `minutes` when to give up"
            );
            ensure!(
                self.subjects.len() > 1,
                "field `precision`: it is that of ratios, which need two subjects"
            );
            ensure!(
                self.latency.is_none(),
                "field `precision`: operations that are timed show no ratios of throughputs; leave out `latency`, or \
                 give `minutes` alone"
            );
            ensure!(
                !self.freezes(),
                "field `precision`: ratios over subjects that frozen threads may stop are meaningless; leave out \
                 `frozen`, or give `minutes` alone"
            );
        }
        if let Some(minutes) = self.minutes {
            ensure!(
                minutes > 0.0 && minutes <= MAX_MINUTES,
                "field `minutes`: {minutes} must be above 0 and at most {MAX_MINUTES}"
            );
        }
        Ok(())
    }
}

/// Returns the first value that appears a second time.
fn first_repeated<T: PartialEq>(list: &[T]) -> Option<&T> {
    let repeats = |(index, value): &(usize, &T)| list[..*index].contains(value);
    list.iter()
        .enumerate()
        .find(repeats)
        .map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
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

    fn complaint(from: &str, to: &str) -> String {
        assert!(GOOD.contains(from));
        format!(
            "{:#}",
            Experiment::parse(&GOOD.replace(from, to)).unwrap_err()
        )
    }

    #[test]
    fn a_good_file_is_understood() {
        let experiment = Experiment::parse(GOOD).unwrap();
        assert_eq!(experiment.subjects, ["lock-free", "roofline"]);
        assert_eq!(experiment.threads.counts(64), [1, 2]);
        assert_eq!(experiment.workloads[0], Workload::LookupHit { load: 0.92 });
        assert_eq!(experiment.workloads[1].label(), "mix-90-5-5");
    }

    #[test]
    fn frozen_threads_need_a_build_with_steps() {
        let experiment = Experiment::parse(GOOD).unwrap();
        assert_eq!(experiment.frozen, [0]);
        assert!(experiment.check_build().is_ok());
        let frozen = GOOD.replace("seed ", "frozen = [0, 2]\nseed ");
        let experiment = Experiment::parse(&frozen).unwrap();
        assert_eq!(experiment.frozen, [0, 2]);
        let checked = experiment.check_build().map_err(|error| error.to_string());
        assert_eq!(checked.is_ok(), cfg!(feature = "steps"), "{checked:?}");
        if let Err(error) = checked {
            let command = "--features steps -- sweep experiments/tiny.toml";
            assert!(error.contains(command), "{error}");
        }
    }

    #[test]
    fn impossible_values_name_their_field() {
        for (from, to, field) in [
            ("\"tiny\"", "\"../tiny\"", "`name`"),
            ("\"A tiny sweep\"", "\" \"", "`title`"),
            ("[\"lock-free\", \"roofline\"]", "[]", "`subjects`"),
            ("\"roofline\"", "\"lock-free\"", "`subjects`"),
            ("[2, 1]", "[0, 1]", "`threads`"),
            ("[2, 1]", "[1, 1]", "`threads`"),
            ("[2, 1]", "[]", "`threads`"),
            ("[2, 1]", "[1025]", "`threads`"),
            ("[2, 1]", "\"all\"", "`threads`"),
            ("[2, 1]", "[\"2y\"]", "`threads`"),
            ("[2, 1]", "[\"0x\"]", "`threads`"),
            ("[2, 1]", "[-1]", "`threads`"),
            ("seed ", "frozen = []\nseed ", "`frozen`"),
            (
                "seed ",
                "frozen = [1, 1]\nseed ",
                "`frozen`: 1 appears twice",
            ),
            ("seed ", "frozen = [1025]\nseed ", "`frozen`: 1025"),
            ("seed ", "frozen = [-1]\nseed ", "frozen"),
            (
                "seed     = 7",
                "seed = 7\nfrozen = [2]\n[[workload]]\nkind = 'insert'\nload = 0.9",
                "`frozen`: insert ends when",
            ),
            ("rounds   = 2", "rounds = 0", "`rounds`"),
            (
                "rounds   = 2",
                "rounds = 2\nmax_rounds = 1\nminutes = 1",
                "`max_rounds`: 1 is not between 2",
            ),
            (
                "rounds   = 2",
                "rounds = 2\nmax_rounds = 9",
                "`max_rounds`: say with `precision`",
            ),
            (
                "rounds   = 2",
                "rounds = 2\nprecision = 0.05",
                "`precision`: say with `max_rounds`",
            ),
            (
                "rounds   = 2",
                "rounds = 2\nmax_rounds = 9\nprecision = 1.0",
                "`precision`: 1 must be",
            ),
            (
                "rounds   = 2",
                "rounds = 2\nmax_rounds = 9\nprecision = nan",
                "`precision`: NaN must be",
            ),
            (
                "[\"lock-free\", \"roofline\"]",
                "[\"lock-free\"]\nmax_rounds = 9\nprecision = 0.1",
                "`precision`: it is that of ratios",
            ),
            (
                "seed ",
                "frozen = [1]\nminutes = 1\nprecision = 0.1\nseed ",
                "`precision`: ratios over",
            ),
            (
                "seed ",
                "pinning = \"spread\"\nseed ",
                "`pinning`: \"spread\" is none of \"cores\", \"compact\"",
            ),
            (
                "seed ",
                "latency = { offered_mops = [0] }\nminutes = 1\nprecision = 0.1\nseed ",
                "`precision`: operations that are timed",
            ),
            ("rounds   = 2", "rounds = 2\nminutes = 0.0", "`minutes`"),
            ("rounds   = 2", "rounds = 2\nminutes = 1e9", "`minutes`"),
            ("0.01", "0.0", "`seconds`"),
            ("0.01", "nan", "`seconds`"),
            ("0.01", "-1.0", "`seconds`"),
            ("1000", "0", "`keys`"),
            ("1000", "-5", "keys"),
            ("load = 0.92", "load = 1.5", "`load`"),
            ("load = 0.92", "load = 0.0", "`load`"),
            ("lookup = 90", "lookup = 91", "100"),
            (
                "kind = \"lookup-hit\"",
                "kind = \"insert\"\nload = 0.92\n[[workload]]\nkind = \"insert\"",
                "`workload`: insert at load factor 0.92 appears twice",
            ),
        ] {
            let error = complaint(from, to);
            assert!(error.contains(field), "{to}: {error}");
        }
    }

    #[test]
    fn rounds_are_as_many_as_told_unless_more_is_asked_for() {
        let rule = |more: &str| {
            let text = GOOD.replace("rounds   = 2", &format!("rounds = 2\n{more}"));
            Experiment::parse(&text).unwrap().stopping_rule()
        };
        assert!(!rule("").adapts());
        let precise = rule("max_rounds = 9\nprecision = 0.05");
        assert_eq!((precise.least, precise.most), (2, 9));
        assert_eq!((precise.precision, precise.budget), (Some(0.05), None));
        let timed = rule("minutes = 1.5");
        assert_eq!((timed.least, timed.most), (2, MAX_ROUNDS));
        assert_eq!(timed.budget, Some(Duration::from_secs(90)));
    }

    #[test]
    fn unknown_and_missing_fields_are_named() {
        let error = complaint("seed     = 7", "seed = 7\nspeed = 7");
        assert!(error.contains("unknown field `speed`"), "{error}");
        let error = complaint("load = 0.92", "load = 0.92\nlod = 1");
        assert!(error.contains("unknown field `lod`"), "{error}");
        let error = complaint("rounds   = 2", "");
        assert!(error.contains("missing field `rounds`"), "{error}");
    }

    /// Returns GOOD as an `[[experiment]]` table.
    fn as_table(name: &str) -> String {
        let tables = GOOD.replace("[[workload]]", "[[experiment.workload]]");
        format!("[[experiment]]\n{}\n", tables.replace("tiny", name))
    }

    #[test]
    fn a_file_holds_one_experiment_or_several() {
        assert_eq!(parse(GOOD).unwrap(), [Experiment::parse(GOOD).unwrap()]);
        let several = parse(&(as_table("one") + &as_table("two"))).unwrap();
        let names: Vec<_> = several.iter().map(|of| of.name.as_str()).collect();
        assert_eq!(names, ["one", "two"]);
        assert_eq!(several[1].workloads.len(), 2);
        for (experiment, name) in several.iter().zip(["one", "two"]) {
            assert_eq!(experiment.as_written["name"].as_str(), Some(name));
            assert_eq!(
                experiment.as_written["workload"].as_array().unwrap().len(),
                2
            );
        }
    }

    #[test]
    fn errors_in_several_experiments_are_located() {
        let complaint = |text: &str| format!("{:#}", parse(text).unwrap_err());
        let error = complaint(&(as_table("one") + &as_table("one")));
        assert!(
            error.contains("`name`: two experiments are called \"one\""),
            "{error}"
        );
        let error = complaint(&(as_table("one") + &as_table("two").replace("0.92", "1.5")));
        assert!(
            error.contains("[[experiment]] \"two\"") && error.contains("`load`"),
            "{error}"
        );
        assert!(complaint("experiment = []").contains("at least one"));
        let error = complaint(&("rounds = 3\n".to_owned() + &as_table("one")));
        assert!(error.contains("unknown field `rounds`"), "{error}");
    }

    #[test]
    fn targets_and_frozen_threads_do_not_go_together() {
        let target = "[[target]]\nworkloads = ['lookup-hit']\nthreads = [1]\nsubject = 'lock-free'\n\
                      over = 'roofline'\nat_least = 0.5\naim = 0.5\n";
        let text = GOOD.to_owned() + "\n" + target;
        assert_eq!(Experiment::parse(&text).unwrap().targets.len(), 1);
        let text = text.replace("seed ", "frozen = [0, 2]\nseed ");
        let error = Experiment::parse(&text).unwrap_err().to_string();
        assert!(error.contains("`target`"), "{error}");
    }

    #[test]
    fn latencies_are_of_operations_that_end_and_do_not_end_the_measurement() {
        let timed = GOOD.replace("seed ", "latency = { offered_mops = [0, 1] }\nseed ");
        let experiment = Experiment::parse(&timed).unwrap();
        assert_eq!(experiment.offered_mops(), [0.0, 1.0]);
        assert_eq!(Experiment::parse(GOOD).unwrap().offered_mops(), [0.0]);
        let insert = "\n[[workload]]\nkind = 'insert'\nload = 0.9";
        let target = "\n[[target]]\nworkloads = ['lookup-hit']\nthreads = [1]\nsubject = 'lock-free'\n\
                      over = 'roofline'\nat_least = 0.5\naim = 0.5\n";
        for (text, expected) in [
            (timed.clone() + insert, "`latency`: insert ends when"),
            (timed.clone() + target, "leave out `target`"),
            (
                timed.replace("seed ", "frozen = [1]\nseed "),
                "leave out `frozen`",
            ),
            (
                timed.replace("[0, 1]", "[-1]"),
                "`latency.offered_mops`: -1",
            ),
        ] {
            let error = Experiment::parse(&text).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn unknown_subjects_list_the_known_ones() {
        let experiment = Experiment::parse(GOOD).unwrap();
        assert!(experiment.check_subjects(&Registry::standard()).is_ok());
        let error = experiment.check_subjects(&Registry::new()).unwrap_err();
        let error = format!("{error:#}");
        assert!(
            error.contains("`subjects`: unknown subject \"lock-free\""),
            "{error}"
        );
    }

    #[test]
    fn sizes_beyond_memory_are_refused() {
        let experiment = Experiment::parse(GOOD).unwrap();
        assert!(experiment.check_memory(1_000 * BYTES_PER_KEY).is_ok());
        let error = experiment.check_memory(1_000 * BYTES_PER_KEY - 1);
        assert!(error.unwrap_err().to_string().contains("`keys`"));
    }
}
