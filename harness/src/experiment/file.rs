//! Reads experiments from their file, which holds one, or several as tables.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use super::{Experiment, first_repeated};
use crate::workload::Workload;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Several {
    #[serde(rename = "experiment")]
    experiments: Vec<Experiment>,
}

/// Reads and checks the experiments of a file, one or several. One without a name gets that of the
/// file. Errors name the file and all wrong fields, and say what is allowed.
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
    let names: Vec<_> = experiments.iter().map(|of| &of.name).collect();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::testing::GOOD;

    #[test]
    fn what_a_file_leaves_out_has_defaults() {
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
    fn a_file_holds_one_experiment_or_several() {
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
        let wrong = "[[experiment]] \"two\": [[workload]] number 1, field `load`";
        refuses(&(one.clone() + &two.replace("0.92", "1.5")), wrong);
        refuses("experiment = []", "at least one");
        refuses(&format!("rounds = 3\n{one}"), "unknown field `rounds`");
    }
}
