//! The file that states targets: the pairs to measure, and the ratios that they should reach.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::experiment::{first_repeated, name_problem};
use crate::studies::pair::Work;

/// The file that is read by default. It explains the fields.
const OURS: &str = include_str!("../../../targets.toml");

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    pairs: Vec<Pairs>,
}

/// What `harness pair` measures, with the name of the results and the targets for them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Pairs {
    pub(super) name: String,
    pub(super) title: String,
    pub(super) first: String,
    pub(super) against: Vec<String>,
    pub(super) workload: Vec<Work>,
    pub(super) threads: Vec<usize>,
    pub(super) keys: usize,
    #[serde(default, rename = "target")]
    pub(super) targets: Vec<Target>,
}

/// A ratio of the throughput of one subject to that of another, or at another number of threads.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Target {
    /// What rows name, such as `lookup-hit` or `remove`.
    pub(super) workloads: Vec<String>,
    pub(super) threads: Vec<usize>,
    /// The subject whose throughput is the numerator.
    pub(super) subject: String,
    /// The subject whose throughput is the denominator; by default the same subject.
    pub(super) over: Option<String>,
    /// The number of threads of the denominator; by default that of the numerator.
    pub(super) over_threads: Option<usize>,
    /// The ratio below which the result falls short.
    pub(super) at_least: f64,
    /// The ratio aimed for; no less than `at_least`.
    pub(super) aim: f64,
    /// The previous targets, and until when they applied.
    #[serde(default)]
    pub(super) earlier: String,
}

/// Reads and checks a file, or ours. Errors name the field and say what is allowed.
pub(super) fn read(path: Option<&Path>) -> Result<Vec<Pairs>> {
    let Some(path) = path else {
        return parse(OURS);
    };
    let text = fs::read_to_string(path);
    let parsed = text.map_err(Into::into).and_then(|text| parse(&text));
    parsed.with_context(|| format!("in the targets {}", path.display()))
}

pub(super) fn parse(text: &str) -> Result<Vec<Pairs>> {
    let File { pairs } = toml::from_str(text)?;
    ensure!(!pairs.is_empty(), "add at least one [[pairs]] table");
    let names: Vec<_> = pairs.iter().map(|of| &of.name).collect();
    if let Some(twice) = first_repeated(&names) {
        bail!("field `name`: two are called {twice:?}, and would share their output files");
    }
    for of in &pairs {
        of.check()
            .with_context(|| format!("[[pairs]] {:?}", of.name))?;
    }
    Ok(pairs)
}

impl Pairs {
    fn check(&self) -> Result<()> {
        if let Some(problem) = name_problem(&self.name) {
            bail!("field `name`: {problem}");
        }
        for (number, target) in (1..).zip(&self.targets) {
            let named = || format!("[[pairs.target]] number {number}");
            target.check(self).with_context(named)?;
        }
        Ok(())
    }
}

impl Target {
    /// Checks the target against what is measured.
    fn check(&self, of: &Pairs) -> Result<()> {
        let measured: Vec<_> = of.workload.iter().flat_map(|of| of.measures()).collect();
        one_of("workloads", &self.workloads, &measured)?;
        one_of("threads", &self.threads, &of.threads)?;
        one_of("over_threads", self.over_threads.as_slice(), &of.threads)?;
        let mut subjects = of.against.clone();
        subjects.push(of.first.clone());
        one_of("subject", std::slice::from_ref(&self.subject), &subjects)?;
        one_of("over", self.over.as_slice(), &subjects)?;
        for (field, none) in [
            ("workloads", self.workloads.is_empty()),
            ("threads", self.threads.is_empty()),
        ] {
            ensure!(!none, "field `{field}`: name at least one");
        }
        let is_itself = self.over.as_ref().is_none_or(|over| *over == self.subject);
        let is_other = |threads: &usize| self.over_threads.is_some_and(|over| over != *threads);
        ensure!(
            !is_itself || self.threads.iter().all(is_other),
            "field `over`: name another subject, or in `over_threads` another number of threads; this one compares a \
             measurement with itself"
        );
        ensure!(
            self.at_least > 0.0 && self.at_least.is_finite(),
            "field `at_least`: {} is not a ratio above 0",
            self.at_least
        );
        ensure!(
            self.aim >= self.at_least && self.aim.is_finite(),
            "field `aim`: {} must be {} (`at_least`) or more",
            self.aim,
            self.at_least
        );
        Ok(())
    }
}

fn one_of<T: PartialEq + std::fmt::Debug>(field: &str, named: &[T], measured: &[T]) -> Result<()> {
    for name in named {
        ensure!(
            measured.contains(name),
            "field `{field}`: {name:?} is none of what is measured: {measured:?}"
        );
    }
    Ok(())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Two targets, one of them for two workloads.
    pub(in super::super) const GOOD: &str = r#"
        [[pairs]]
        name     = "tiny"
        title    = "Tiny tables"
        first    = "lock-free"
        against  = ["roofline", "word-lock"]
        workload = ["lookup", "lookup-miss", "fill@0.5"]
        threads  = [1, 2]
        keys     = 1000

        [[pairs.target]]
        workloads = ["lookup", "lookup-miss"]
        threads   = [1]
        subject   = "word-lock"
        over      = "roofline"
        at_least  = 0.5
        aim       = 0.75
        earlier   = "0.6, aim 0.9, until 2020-02-20"

        [[pairs.target]]
        workloads    = ["remove@0.5"]
        threads      = [2]
        subject      = "lock-free"
        over_threads = 1
        at_least     = 1.7
        aim          = 1.95
    "#;

    #[test]
    fn ours_and_another_are_read() {
        assert!(read(None).unwrap().len() > 1);
        let [pairs] = &parse(GOOD).unwrap()[..] else {
            panic!("one is stated")
        };
        assert_eq!((pairs.keys, pairs.targets.len()), (1000, 2));
    }

    #[test]
    fn impossible_targets_name_their_field() {
        for case in [
            "\"tiny\" -> \"../tiny\" -> `name`",
            "[\"lookup\", \"lookup-miss\"] -> [] -> `workloads`",
            "\"lookup-miss\"]\n -> \"insert\"]\n -> `workloads`: \"insert\" is none",
            "[\"remove@0.5\"] -> [\"remove\"] -> `workloads`: \"remove\" is none",
            "threads   = [1] -> threads = [] -> `threads`",
            "threads   = [1] -> threads = [4] -> `threads`: 4 is none of what is measured: [1, 2]",
            "over_threads = 1 -> over_threads = 8 -> `over_threads`",
            "over_threads = 1 -> over_threads = 2 -> `over`",
            "over_threads = 1 ->  -> `over`",
            "over      = \"roofline\" -> over = \"word-lock\" -> `over`: name another subject",
            "over      = \"roofline\" -> over = \"bloom\" -> `over`: \"bloom\" is none",
            "at_least  = 0.5 -> at_least = 0.0 -> `at_least`",
            "at_least  = 0.5 -> at_least = nan -> `at_least`",
            "aim       = 0.75 -> aim = 0.4 -> `aim`: 0.4 must be 0.5",
            "aim       = 0.75 -> aim = 0.75\n goal = 1 -> unknown field `goal`",
            "fill@0.5 -> balloon -> \"balloon\" is none of lookup",
        ] {
            let [from, to, field] = case.split(" -> ").collect::<Vec<_>>()[..] else {
                panic!("{case}")
            };
            assert!(GOOD.contains(from), "{from}");
            let error = parse(&GOOD.replacen(from, to, 1)).unwrap_err();
            let error = format!("{error:#}");
            assert!(error.contains(field), "{to}: {error}");
        }
        let error = parse(&GOOD.repeat(2)).unwrap_err().to_string();
        assert!(error.contains("two are called \"tiny\""), "{error}");
    }
}
