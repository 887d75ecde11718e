//! The `describe` command: summarises a file of keys.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::thread::available_parallelism;

use anyhow::{Context, Result, ensure};
use clap::{Args, value_parser};
use indicatif::{HumanBytes, HumanCount};
use profile::{Description, Exact, Settings, describe as describe_file, name, shown};
use relatives::sketches::hyper_log_log::{MAX_PRECISION, MIN_PRECISION};

use crate::machine::{self, without_directories};
use crate::results::description::{COLUMNS, rows};
use crate::run::ending::Ending;
use crate::show::outputs::{self, Outputs};
use crate::show::print::{Stdout, note};
use crate::show::progress;
use crate::show::sheet::markdown;
use crate::show::sidecar::{Run, Sidecar};
use crate::wording::large;

/// False positive rate of the layout whose rates the README quotes: four slots of twelve bits.
const DEFAULT_RATE: f64 = filter::layout::Layout::<4, 12>::FALSE_POSITIVE_RATE;

pub(super) const AFTER_HELP: &str = "Example: harness describe --keys access.log --top 5 --exact";

#[derive(Debug, Args)]
pub(super) struct Options {
    /// A text file of any size, one key per line; blank lines are skipped. `-` is the standard
    /// input. Lines end with a line feed byte, and the bytes between are taken as they are: convert
    /// UTF-16 first.
    #[arg(long, value_name = "FILE")]
    keys: PathBuf,
    /// Also count all keys exactly, and compare the estimates with that. Takes memory for every
    /// distinct key.
    #[arg(long)]
    exact: bool,
    /// Number of the heaviest keys to show.
    #[arg(long, value_name = "K", default_value_t = 10, value_parser = value_parser!(u32).range(1..=100_000))]
    top: u32,
    /// Largest overestimate of a count, as a share of all keys (ε): the lower, the more memory, 11
    /// MB for 0.00001. One key in a hundred may exceed it.
    #[arg(long, value_name = "SHARE", default_value_t = 0.000_1)]
    error: f64,
    /// Bits that choose a HyperLogLog register, 4 to 18: each one more doubles the memory, and two
    /// more halve the error. 14 means 16 KiB and 0.8 %.
    #[arg(long, value_name = "P", default_value_t = 14, value_parser = value_parser!(u8).range(i64::from(MIN_PRECISION)..=i64::from(MAX_PRECISION)))]
    precision: u8,
    /// Share of absent keys that the filters may find. By default that of our default layout, 1 in
    /// 512.
    #[arg(long, value_name = "SHARE", default_value_t = DEFAULT_RATE, hide_default_value = true)]
    false_positive_rate: f64,
    /// Threads that read and count; by default one per core.
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..=1_024))]
    threads: Option<u16>,
    /// Also write all numbers to describe.csv and describe.machine.toml in this directory, which is
    /// created if need be.
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
}

/// Base name of the files this command writes.
const NAME: &str = "describe";

pub(super) fn describe(options: &Options) -> Result<Ending> {
    let settings = settings(options)?;
    let run = Run::begin(
        "What a file of keys is like".into(),
        "How many keys are distinct, which are heavy, and how large would a filter of them be?"
            .into(),
        0,
        without_directories([&*name(&options.keys)]),
        "not pinned: nothing is timed".into(),
    );
    let out = match &options.out {
        None => None,
        Some(directory) => {
            let sidecar = Sidecar::describe(run, COLUMNS)?;
            Outputs::named(directory, NAME).check(&sidecar)?;
            Some((directory, sidecar))
        }
    };
    let size = std::fs::metadata(&options.keys).ok();
    let size = size
        .filter(std::fs::Metadata::is_file)
        .map(|file| file.len());
    let bar = progress::bar_of_bytes(size);
    let described = describe_file(&options.keys, &settings, &|bytes| bar.inc(bytes));
    bar.finish_and_clear();
    let description = described?;
    if let Some(warning) = &description.warning {
        note!("{warning}");
    }
    write(options, &description, Stdout)?;
    if let Some((directory, mut sidecar)) = out {
        let rows = rows(&description);
        sidecar.run.rows = Some(rows.len());
        sidecar.run.ended = Some(machine::now());
        outputs::publish(directory, NAME, &rows, &sidecar, None).end(Ok(()))?;
        let files = Outputs::named(directory, NAME);
        note!(
            "left {} and {}",
            files.csv.display(),
            files.sidecar.display()
        );
    }
    Ok(Ending::Complete)
}

fn settings(options: &Options) -> Result<Settings> {
    let threads = match options.threads {
        Some(threads) => threads.into(),
        None => available_parallelism()
            .context("cannot tell the number of cores; choose --threads")?
            .get(),
    };
    for (name, share) in [
        ("--error", options.error),
        ("--false-positive-rate", options.false_positive_rate),
    ] {
        ensure!(
            share > 0.0 && share < 1.0,
            "{name}: {share} is not above 0 and below 1"
        );
    }
    Ok(Settings {
        top: options.top as usize,
        error: options.error,
        precision: options.precision,
        false_positive_rate: options.false_positive_rate,
        threads,
        exact: options.exact,
    })
}

fn write(options: &Options, description: &Description, mut out: impl io::Write) -> io::Result<()> {
    let exact = description.exact.as_ref();
    let count = |number: f64| HumanCount(number.round() as u64);
    writeln!(
        out,
        "{}: {}, one a line; {}",
        name(&options.keys),
        large(description.keys, "key"),
        large(description.blank, "blank line")
    )?;
    writeln!(
        out,
        "Different keys: {} ± {} (one standard error, {:.2} %){}\n",
        count(description.distinct),
        count(description.distinct * description.standard_error),
        100.0 * description.standard_error,
        exact.map_or_else(String::new, |exact| off(description, exact))
    )?;
    writeln!(
        out,
        "The heaviest keys; counts are too high by at most {}, except for one key in a hundred:\n\n{}\n",
        count(description.count_error),
        heaviest(description)
    )?;
    writeln!(
        out,
        "Together they are {:.2} % of all keys. {}\n",
        100.0 * description.share_of_heaviest(),
        skew(description)
    )?;
    writeln!(
        out,
        "Filters of {} that find one absent key in {}, or nearly so:\n\n{}\n",
        large(description.distinct.round() as u64, "key"),
        count(1.0 / options.false_positive_rate),
        sizes(description)
    )?;
    let taken = description.sketch_bytes as u64;
    writeln!(out, "The sketches took {}.", HumanBytes(taken))?;
    if let Some(exact) = exact {
        writeln!(
            out,
            "\nCompared with exact counts, from which no estimate differs by more than {}:\n\n{}",
            HumanCount(exact.worst),
            bounds(exact)
        )?;
    }
    Ok(())
}

/// Formats the error of the estimated number of distinct keys.
fn off(description: &Description, exact: &Exact) -> String {
    let error = description.distinct / exact.distinct as f64 - 1.0;
    format!(
        "; exactly {}: off by {:+.2} %, {:.1} standard errors",
        HumanCount(exact.distinct),
        100.0 * error,
        error.abs() / description.standard_error
    )
}

fn skew(description: &Description) -> String {
    match &description.skew {
        None => {
            "Too few keys are heavy enough to show how their counts fall; a lower --error may show it.".to_owned()
        }
        Some(skew) => format!(
            "Counts fall as 1 / rank^{:.2} (Zipf):\nleast squares of ln count on ln rank, over the {} heaviest keys \
             whose counts are told within a tenth;\nthe law explains {:.1} % of the variance.",
            skew.exponent,
            skew.keys,
            100.0 * skew.explained
        ),
    }
}

fn heaviest(description: &Description) -> impl fmt::Display {
    let exact = description.exact.as_ref();
    let mut header = vec!["rank", "key", "count", "share"];
    header.extend(exact.iter().flat_map(|_| ["exactly", "too high by"]));
    let lines = (description.heaviest.iter().enumerate()).map(|(place, heavy)| {
        let share = 100.0 * heavy.count as f64 / description.keys as f64;
        let mut line = vec![
            (place + 1).to_string(),
            shown(&heavy.label),
            HumanCount(heavy.count).to_string(),
            format!("{share:.2} %"),
        ];
        if let Some(exact) = exact {
            let count = exact.counts[place];
            line.push(HumanCount(count).to_string());
            line.push(HumanCount(heavy.count.saturating_sub(count)).to_string());
        }
        line
    });
    let numbers = (0..header.len()).filter(|&column| column != 1);
    markdown(header, lines, numbers)
}

fn sizes(description: &Description) -> impl fmt::Display {
    let header = [
        "filter",
        "set to",
        "size",
        "bits a key",
        "absent keys found",
        "can remove",
    ];
    let lines = description.sizes.iter().map(|size| {
        [
            size.filter.to_owned(),
            size.parameters.clone(),
            HumanBytes(size.bytes).to_string(),
            format!("{:.1}", 8.0 * size.bytes as f64 / description.distinct),
            format!("{:.3} %", 100.0 * size.rate),
            (if size.removes { "yes" } else { "no" }).to_owned(),
        ]
    });
    markdown(header, lines, 2..header.len())
}

fn bounds(exact: &Exact) -> impl fmt::Display {
    let header = ["sketch", "what", "measured", "allowed", "verdict"];
    let number = |value: f64| match value {
        value if value >= 100.0 => HumanCount(value.round() as u64).to_string(),
        value => format!("{value:.4}")
            .trim_end_matches('0')
            .trim_end_matches('.')
            .to_owned(),
    };
    let lines = exact.bounds.iter().map(|bound| {
        [
            bound.structure.to_owned(),
            bound.quantity.clone(),
            number(bound.measured),
            format!("{} to {}", number(bound.least), number(bound.most)),
            (if bound.holds() { "held" } else { "BROKEN" }).to_owned(),
        ]
    });
    markdown(header, lines, 2..header.len())
}
