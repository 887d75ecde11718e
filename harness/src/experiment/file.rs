//! Reads experiments from their file, which holds one, or several as tables.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use super::Experiment;
use super::validation::first_repeated;

/// A file with several experiments.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Several {
    #[serde(rename = "experiment")]
    experiments: Vec<Experiment>,
}

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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::testing::{GOOD, complaint};
    use crate::workload::Workload;

    #[test]
    fn a_good_file_is_understood() {
        let experiment = Experiment::parse(GOOD).unwrap();
        assert_eq!(experiment.subjects, ["lock-free", "roofline"]);
        assert_eq!(experiment.threads.counts(64), [1, 2]);
        assert_eq!(experiment.workloads[0], Workload::LookupHit { load: 0.92 });
        assert_eq!(experiment.workloads[1].label(), "mix-90-5-5");
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
}
