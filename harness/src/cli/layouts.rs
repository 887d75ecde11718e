//! `layouts`: measures the filter's layouts against theory, and leaves table, rows and figure.

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, value_parser};
use comfy_table::{CellAlignment, Table, presets};

use super::Ending;
use super::results::Study;
use crate::machine::{Run, Sidecar};
use crate::studies::layouts::{COLUMNS, Effort, Row, figure, measure, steps};

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
    let study = Study::begin(&options.out, "layouts", describe(options)?)?;
    let rows = study.measure(steps(effort), |mut progress| measure(effort, &mut progress))?;
    study.end(&rows, table, Some(figure::render), None)
}

fn describe(options: &Options) -> Result<Sidecar> {
    let run = Run::begin(
        "False positives and memory of the layouts".into(),
        "What does a lower false positive rate cost in memory?".into(),
        options.seed,
        format!("generated from seed {}", options.seed),
        "one thread, not pinned: nothing is timed".into(),
    );
    Sidecar::describe(run, COLUMNS)
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
