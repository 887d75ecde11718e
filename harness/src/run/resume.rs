//! Resumes an interrupted run, but only with the same experiment, program and machine.

use anyhow::{Context, Result, ensure};
use toml::{Table, Value};

use crate::experiment::Experiment;
use crate::results::{Row, Writer, read};
use crate::run::Plan;
use crate::show::{Outputs, Sidecar};

/// The fields of a sidecar that may differ between the parts of one run.
const MAY_DIFFER: [&str; 8] = [
    "run.started",
    "run.command",
    "run.load_average",
    // The cost of timing is measured each time; what is timed is part of the experiment.
    "run.latency",
    "run.timing_ns",
    "run.resumed",
    "run.rows",
    "run.ended",
];

#[derive(Debug)]
pub struct Earlier {
    pub sidecar: Sidecar,
    pub rows: Vec<Row>,
    pub writer: Writer<Row>,
    /// Half a row that was cut off at the end, empty if there was none.
    pub torn: String,
}

impl Earlier {
    pub fn is_complete(&self, plan: &Plan, experiment: &Experiment) -> bool {
        self.sidecar.run.ended.is_some() && plan.missing(experiment.rounds, &self.rows) == 0
    }
}

/// Returns what an earlier run left in these files, to continue from; `None` if there are no rows.
pub fn earlier(files: &Outputs, now: &Sidecar) -> Result<Option<Earlier>> {
    let name = files.csv.display();
    if !files.csv.exists() {
        return Ok(None);
    }
    let sidecar = Sidecar::read(&files.sidecar)
        .context("cannot resume; without --resume, a new run keeps these results aside")?;
    let (mut differences, [before, now]) = (Vec::new(), [&sidecar, now].map(Table::try_from));
    compare("", &before?, &now?, &mut differences);
    ensure!(
        differences.is_empty(),
        "cannot resume {name}: it was measured differently; without --resume, a new run keeps these results aside\n  {}",
        differences.join("\n  ")
    );
    let (writer, torn) = Writer::resume(&files.csv)?;
    let rows = read(&files.csv).context(
        "cannot resume; delete the line named here, and it is measured again, or run without --resume, which keeps \
         these results aside",
    )?;
    Ok(Some(Earlier {
        rows,
        sidecar,
        writer,
        torn,
    }))
}

/// Returns whether this program, on this machine, made the results that `before` describes.
pub fn is_of_this_program(before: &Sidecar) -> Result<bool> {
    let now = Sidecar::describe(before.run.clone(), &[])?;
    let same = now.machine == before.machine && now.compiler == before.compiler;
    Ok(same && now.harness == before.harness && now.program == before.program)
}

/// Finds the fields in which a run differs from an earlier one, but must not.
fn compare(path: &str, before: &Table, now: &Table, found: &mut Vec<String>) {
    let added = now.keys().filter(|name| !before.contains_key(*name));
    for name in before.keys().chain(added) {
        let path = match path {
            "" => name.clone(),
            _ => format!("{path}.{name}"),
        };
        match (before.get(name), now.get(name)) {
            _ if MAY_DIFFER.contains(&path.as_str()) => {}
            (Some(Value::Table(before)), Some(Value::Table(now))) => {
                compare(&path, before, now, found);
            }
            (before, now) if before == now => {}
            (before, now) => {
                let show =
                    |value: Option<&Value>| value.map_or("nothing".into(), ToString::to_string);
                found.push(format!("{path} was {}, is {}", show(before), show(now)));
            }
        }
    }
}
