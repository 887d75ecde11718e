//! `layouts`: measures the filter's layouts against theory, and leaves table, rows and figure.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use anyhow::{Context, Result};
use clap::{Args, value_parser};
use comfy_table::{CellAlignment, Table, presets};
use indicatif::{ProgressBar, ProgressStyle};

use super::{Ending, stop_on_ctrl_c};
use crate::layouts::{COLUMNS, Effort, Row, measure, steps};
use crate::machine::{self, Compiler, Machine, Run, Sidecar, Source};
use crate::outputs::Outputs;
use crate::plot_layouts;

#[derive(Debug, Args)]
pub(super) struct Options {
    /// Buckets of each table.
    #[arg(long, default_value_t = 1 << 18, value_parser = value_parser!(u32).range(1_000..))]
    buckets: u32,
    /// Tables of each layout that are filled until an insert is refused.
    #[arg(long, default_value_t = 11, value_parser = value_parser!(u32).range(1..))]
    tables: u32,
    /// Absent keys that are looked up in a table of each layout.
    #[arg(long, default_value_t = 20_000_000, value_parser = value_parser!(u64).range(1..1 << 50))]
    absent: u64,
    /// Keys follow from it.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Where the results go; created if need be.
    #[arg(long, value_name = "DIR", default_value = "results")]
    out: PathBuf,
}

pub(super) fn layouts(options: &Options) -> Result<Ending> {
    let effort = Effort {
        buckets: options.buckets as usize,
        tables: options.tables as usize,
        absent: options.absent,
        seed: options.seed,
    };
    let stop = stop_on_ctrl_c()?;
    let sidecar = describe(options)?;
    let bar = ProgressBar::new(steps(effort));
    let style = ProgressStyle::with_template("  {bar:20} {pos}/{len}, {eta} left  {wide_msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    let mut last = String::new();
    let rows = measure(effort, &mut |now| {
        if bar.is_hidden() && last != now {
            eprintln!("  {now}");
            last = now.to_owned();
        }
        bar.set_message(now.to_owned());
        bar.inc(1);
        match stop.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    bar.finish_and_clear();
    let rows = rows?;
    if rows.is_empty() {
        println!("Nothing was measured.");
        return Ok(Ending::Interrupted);
    }

    let (outputs, moved) = Outputs::claim(&options.out, "layouts")?;
    if let Some(moved) = moved {
        eprintln!("  earlier results are now {}", moved.display());
    }
    sidecar.write(&outputs.sidecar)?;
    let cannot_write = || format!("cannot write the results file {}", outputs.csv.display());
    let mut csv = csv::Writer::from_path(&outputs.csv).with_context(cannot_write)?;
    for row in &rows {
        csv.serialize(row).with_context(cannot_write)?;
    }
    csv.flush().with_context(cannot_write)?;
    plot_layouts::draw(&rows, Some(&sidecar), &outputs.figure)?;
    println!("{}", table(&rows));
    for file in [&outputs.csv, &outputs.sidecar, &outputs.figure] {
        println!("{}", file.display());
    }
    if stop.load(Ordering::Relaxed) {
        eprintln!("Interrupted; the layouts that were done are kept.");
        return Ok(Ending::Interrupted);
    }
    Ok(Ending::Complete)
}

fn describe(options: &Options) -> Result<Sidecar> {
    let column = |(name, meaning): &(&str, &str)| (name.to_string(), meaning.trim().to_owned());
    Ok(Sidecar {
        run: Run {
            title: "False positives and memory of the layouts".into(),
            started: machine::now(),
            command: machine::command_line(),
            seed: options.seed,
            keys: format!("generated from seed {}", options.seed),
            pinning: "one thread, not pinned: nothing is timed".into(),
        },
        machine: Machine::describe()?,
        compiler: Compiler::describe(),
        source: Source::describe(),
        subjects: BTreeMap::new(),
        workloads: Vec::new(),
        columns: COLUMNS.iter().map(column).collect(),
    })
}

fn table(rows: &[Row]) -> String {
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN);
    table.set_header([
        "layout",
        "timestamp bits",
        "planned load",
        "first refusal, min",
        "median",
        "false positives [95 %]",
        "theory",
        "bits a key",
        "theory",
    ]);
    for row in rows {
        table.add_row([
            format!("{}×{}", row.slots, row.bits),
            row.timestamp_bits.to_string(),
            format!("{:.3}", row.planned_load),
            format!("{:.4}", row.refusal_min),
            format!("{:.4}", row.refusal_median),
            format!(
                "{:.3e} [{:.3e}–{:.3e}]",
                row.rate, row.rate_lower, row.rate_upper
            ),
            format!("{:.3e}", row.rate_theory),
            format!("{:.2}", row.bits_a_key),
            format!("{:.2}", row.bits_a_key_theory),
        ]);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let (first, buckets) = (&rows[0], rows[0].buckets);
    format!(
        "{table}\n\nTables of {buckets} buckets, {} of each layout filled until an insert was refused. False \
         positives: of {} absent keys, in a table\nfilled to the planned load; theory: 2 × slots / 2^bits × load. \
         Bits a key: of the whole filter at that load; theory: 64 / slots / load.\n",
        first.tables, first.absent
    )
}
