//! Runs one experiment, reports its progress, and writes its files.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::{Context, Result};

use super::options::{Options, Prepared, duration, measurements};
use super::{figure, findings};
use crate::experiment::Experiment;
use crate::machine::pinning::Cores;
use crate::machine::{self, Source};
use crate::results::file::Writer;
use crate::results::record::Row;
use crate::run::plan::Plan;
use crate::run::resume::Earlier;
use crate::run::runner::{self, Event, Sweep};
use crate::show::files;
use crate::show::outputs::{Outputs, Written};
use crate::show::print::{note, say};
use crate::show::progress::{self, minutes};
use crate::show::sidecar::Sidecar;
use crate::studies::study::Presented;
use crate::subjects::registry::Registry;
use crate::wording::counted;
use crate::workload::keys::KeySource;

/// Runs one experiment, fills in its rows and writes its files. Some rows are missing if `stop` was
/// set, or after an error.
pub(super) fn run(
    registry: &Registry,
    prepared: Prepared,
    options: &Options,
    stop: &AtomicBool,
    rows: &mut Vec<Row>,
) -> Result<()> {
    let is_complete = prepared.is_complete();
    let Prepared {
        experiment,
        plan,
        cores,
        files,
        sidecar,
        earlier,
    } = prepared;
    if let (true, Some(earlier)) = (is_complete, &earlier) {
        let (name, csv) = (&experiment.name, files.csv.display());
        note!(
            "{name}: complete, with {} in {csv}",
            counted(earlier.rows.len(), "row")
        );
        rows.clone_from(&earlier.rows);
        return Ok(());
    }
    let mut sizes = experiment.sizes().map(|size| {
        let keys = options.keys(&size)?;
        Ok((size, keys))
    });
    let first = sizes.next().transpose()?;
    if let Some((_, keys)) = &first {
        announce(&experiment, keys, (&plan, &cores));
    }
    let begun = match earlier {
        Some(earlier) => go_on(earlier, &files, &plan, &experiment),
        None => begin(sidecar, &files, &options.out, &experiment.name),
    };
    let (mut sidecar, mut writer, made) = begun?;
    if let Some(latency) = &sidecar.run.latency {
        note!("  latency: {latency}");
    }

    rows.clone_from(&made);
    let started = Instant::now();
    let all = measurements(&experiment, &plan);
    let bar = progress::bar(all as u64).with_position(rows.len() as u64);
    let mut last = String::new();
    // The keys of a size are made when its turn comes, and dropped after it.
    let mut measured = first
        .map(Ok)
        .into_iter()
        .chain(sizes)
        .map(|sized: Result<_>| {
            let (size, keys) = sized?;
            let sweep = Sweep {
                experiment: &size,
                registry,
                keys: &keys,
                plan: &plan,
                cores: &cores,
                made: &experiment.rows_of(&size, &made),
            };
            runner::run(&sweep, stop, &mut |event| {
                match event {
                    Event::Next(now) => {
                        let workload = now.workload.describe();
                        if bar.is_hidden() && last != workload {
                            note!("  {}/{all} done, now {workload}", bar.position());
                        }
                        bar.set_message(format!(
                            "{}: {workload}, threads {}",
                            now.subject, now.threads
                        ));
                        last = workload;
                    }
                    Event::Made(row) => {
                        writer.write(&row)?;
                        rows.push(row);
                        bar.inc(1);
                    }
                }
                Ok(())
            })
        });
    let ended = |result: &Result<()>| result.is_err() || stop.load(Ordering::Relaxed);
    let result = measured.find(ended).unwrap_or(Ok(()));
    drop(measured);
    bar.finish_and_clear();
    if rows.is_empty() {
        say!("Nothing was measured.");
    } else if let Some(table) = rows.printed(Some(&sidecar)) {
        say!("\n{table}");
    }
    let interrupted = stop.load(Ordering::Relaxed);
    if result.is_ok() && !interrupted {
        note!("  took {}", minutes(started.elapsed()));
        sidecar.run.rows = Some(rows.len());
        sidecar.run.ended = Some(machine::now());
    }
    let written = write(&files, &sidecar, rows);
    if let Some(warning) = findings::overload_warning(rows) {
        note!("{warning}");
    }
    written.end(result.with_context(|| {
        let (done, csv) = (rows.len(), files.csv.display());
        format!(
            "the run ended early, with {} in {csv}",
            counted(done, "row")
        )
    }))?;
    if interrupted {
        let done = rows.len();
        note!(
            "Interrupted after {done} of {all} measurements; their rows are kept. The same command with --resume goes \
             on from there."
        );
    }
    Ok(())
}

/// Writes the files of a run that has ended, but for the rows, which are in theirs.
fn write(files: &Outputs, sidecar: &Sidecar, rows: &[Row]) -> Written {
    let mut written = Written::default();
    if !rows.is_empty() {
        written.add(&files.csv, Ok(()));
    }
    written.add(&files.sidecar, sidecar.write(&files.sidecar));
    if !rows.is_empty() {
        let figure = figure::of(rows, Some(sidecar)).render();
        written.add(&files.figure, files::write(&files.figure, &figure));
        written.name();
    }
    written
}

/// Begins a run: moves files of an earlier one aside, and makes new ones, without rows.
fn begin(
    mut sidecar: Sidecar,
    files: &Outputs,
    directory: &Path,
    name: &str,
) -> Result<(Sidecar, Writer<Row>, Vec<Row>)> {
    Outputs::reserve(directory, name)?;
    sidecar.run.start();
    sidecar.write(&files.sidecar)?;
    Ok((sidecar, Writer::create(&files.csv)?, Vec::new()))
}

/// Continues an earlier run of this plan.
fn go_on(
    earlier: Earlier,
    files: &Outputs,
    plan: &Plan,
    experiment: &Experiment,
) -> Result<(Sidecar, Writer<Row>, Vec<Row>)> {
    let missing = earlier.missing(plan, experiment);
    let Earlier {
        mut sidecar,
        rows,
        writer,
        torn,
    } = earlier;
    note!(
        "  going on after {} from before",
        counted(rows.len(), "row")
    );
    if !torn.is_empty() {
        note!("  note: the last of them was cut off in its middle and is measured again: {torn:?}");
    }
    if sidecar.run.ended.take().is_some() {
        note!("  note: this run was complete, but {missing} of its rows are missing now");
    }
    let sources = [Some(&sidecar.harness), sidecar.program.as_ref()];
    if !sources.into_iter().flatten().all(Source::is_as_committed) {
        note!(
            "  note: the source may differ from its commit; whether it does so as before cannot be checked"
        );
    }
    sidecar.run.resumed.push(machine::now());
    sidecar.write(&files.sidecar)?;
    Ok((sidecar, writer, rows))
}

/// Prints what is about to be done, and how long that takes.
fn announce(experiment: &Experiment, keys: &KeySource, (plan, cores): (&Plan, &Cores)) {
    note!("{}: {}", experiment.name, experiment.title);
    note!("  keys: {}", keys.describe());
    if let Some(asked) = keys.scaled_down_from() {
        note!(
            "  that is too few for {asked} keys in a table: tables hold {} instead",
            keys.residents()
        );
    }
    if let Some(warning) = keys.warning() {
        note!("  {warning}");
    }
    for skipped in &plan.skipped {
        note!("  {skipped}");
    }
    if let Some(warning) = experiment.warning(cores.count()) {
        note!("  {warning}");
    }
    note!(
        "  {} of {} s, with all that they need: about {}",
        counted(measurements(experiment, plan), "measurement"),
        experiment.seconds,
        minutes(duration(experiment, plan))
    );
}
