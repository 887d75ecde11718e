//! Runs one experiment, reports its progress, and writes its files.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::{Context, Result};

use super::options::{Options, Prepared, duration, measurements};
use super::{figure, findings};
use crate::machine::{self, Source};
use crate::results::file::Writer;
use crate::results::record::Row;
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
    mut prepared: Prepared,
    options: &Options,
    stop: &AtomicBool,
    rows: &mut Vec<Row>,
) -> Result<()> {
    let csv = prepared.files.csv.clone();
    let csv = csv.display();
    let is_complete = prepared.is_complete();
    let earlier = prepared.earlier.take();
    if let (true, Some(earlier)) = (is_complete, &earlier) {
        let done = counted(earlier.rows.len(), "row");
        note!(
            "{}: complete, with {done} in {csv}",
            prepared.experiment.name
        );
        rows.clone_from(&earlier.rows);
        return Ok(());
    }
    let keys = options.keys(&prepared.experiment)?;
    announce(&prepared, &keys);
    let (mut sidecar, mut writer, made) = match earlier {
        Some(earlier) => resume(earlier, &prepared)?,
        None => begin(&prepared, options)?,
    };
    if let Some(latency) = &sidecar.run.latency {
        note!("  latency: {latency}");
    }

    rows.clone_from(&made);
    let started = Instant::now();
    let all = measurements(&prepared.experiment, &prepared.plan);
    let bar = progress::bar(all as u64).with_position(rows.len() as u64);
    let mut last = 0;
    let is_over = || stop.load(Ordering::Relaxed);
    let sweep = Sweep {
        experiment: &prepared.experiment,
        registry,
        keys: &keys,
        plan: &prepared.plan,
        cores: &prepared.cores,
        made: &made,
    };
    let result = runner::run(&sweep, stop, &mut |event| {
        match event {
            Event::Next(now) => {
                let (round, workload) = (now.round, now.workload.describe());
                if bar.is_hidden() && last != round {
                    note!("  {}/{all} done, now round {round}", bar.position());
                }
                let at = format!("{}: {workload}, threads {}", now.subject, now.threads);
                bar.set_message(at);
                last = round;
            }
            Event::Made(row) => {
                writer.write(&row)?;
                rows.push(row);
                bar.inc(1);
            }
        }
        Ok(())
    });
    bar.finish_and_clear();
    if rows.is_empty() {
        say!("Nothing was measured.");
    } else if let Some(table) = rows.printed(Some(&sidecar)) {
        say!("\n{table}");
    }
    if result.is_ok() && !is_over() {
        note!("  took {}", minutes(started.elapsed()));
        sidecar.run.rows = Some(rows.len());
        sidecar.run.ended = Some(machine::now());
    }
    let written = write(&prepared.files, &sidecar, rows);
    if let Some(warning) = findings::overload_warning(rows) {
        note!("{warning}");
    }
    written.end(result.with_context(|| {
        let done = counted(rows.len(), "row");
        format!("the run ended early, with {done} in {csv}")
    }))?;
    if is_over() {
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

/// The description, the file and the rows of a run so far.
type Begun = (Sidecar, Writer<Row>, Vec<Row>);

/// Begins a run: moves files of an earlier one aside, and makes new ones, without rows.
fn begin(prepared: &Prepared, options: &Options) -> Result<Begun> {
    Outputs::reserve(&options.out, &prepared.experiment.name)?;
    let mut sidecar = prepared.sidecar.clone();
    sidecar.run.start();
    sidecar.write(&prepared.files.sidecar)?;
    Ok((sidecar, Writer::create(&prepared.files.csv)?, Vec::new()))
}

/// Continues an earlier run of this plan.
fn resume(earlier: Earlier, prepared: &Prepared) -> Result<Begun> {
    let missing = earlier.missing(&prepared.plan, &prepared.experiment);
    let Earlier {
        mut sidecar,
        rows,
        writer,
        torn,
    } = earlier;
    let done = counted(rows.len(), "row");
    note!("  going on after {done} from before");
    if !torn.is_empty() {
        note!("  note: the last of them was cut off in its middle and is measured again: {torn:?}");
    }
    if sidecar.run.ended.take().is_some() {
        note!("  note: this run was complete, but {missing} of its rows are missing now");
    }
    let sources = [&sidecar.harness, &sidecar.program];
    if !sources.into_iter().all(Source::is_as_committed) {
        note!(
            "  note: the source may differ from its commit; whether it does so as before cannot be checked"
        );
    }
    sidecar.run.resumed.push(machine::now());
    sidecar.write(&prepared.files.sidecar)?;
    Ok((sidecar, writer, rows))
}

fn announce(prepared: &Prepared, keys: &KeySource) {
    let (experiment, plan) = (&prepared.experiment, &prepared.plan);
    note!("{}: {}", experiment.name, experiment.title);
    note!("  keys: {}", keys.description);
    if let Some(asked) = keys.scaled_down_from {
        note!(
            "  that is too few for {asked} keys in a table: tables hold {} instead",
            keys.residents()
        );
    }
    let of_keys = keys.warning.clone();
    let warnings = [of_keys, experiment.warning(prepared.cores.count())];
    for line in (warnings.iter().flatten()).chain(&plan.skipped) {
        note!("  {line}");
    }
    note!(
        "  {} of {} s, with all that they need: about {}",
        counted(measurements(experiment, plan), "measurement"),
        experiment.seconds,
        minutes(duration(experiment, plan))
    );
}
