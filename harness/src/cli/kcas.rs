//! `kcas`: measures K-CAS itself, ours against others, and leaves table, rows and figure.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, value_parser};
use comfy_table::{Table, presets};

use super::Ending;
use super::results::Study;
use crate::machine::pinning::Cores;
use crate::machine::{Run, Sidecar};
use crate::show::print::{self, note, say};
use crate::studies::kcas::contest::Changes;
use crate::studies::kcas::engines::{ENGINES, Entry, MAX_THREADS};
use crate::studies::kcas::{
    COLUMNS, Effort, Measured, Verdict, check, figure, measure, sheet, steps,
};
use crate::wording::counted;

#[derive(Debug, Args)]
pub(super) struct Options {
    /// Numbers of threads, separated by commas.
    #[arg(
        long,
        value_name = "N,N,…",
        value_delimiter = ',',
        default_value = "1,2,4,8",
        value_parser = value_parser!(u16).range(1..=MAX_THREADS as i64)
    )]
    threads: Vec<u16>,
    /// How often everything is measured.
    #[arg(long, value_name = "N", default_value_t = 11, value_parser = value_parser!(u32).range(1..))]
    rounds: u32,
    /// Seconds of one measurement; there are 16 for each engine, number of threads and round.
    #[arg(long, value_name = "S", default_value = "0.1", value_parser = super::check::seconds, allow_negative_numbers = true)]
    seconds: Duration,
    /// Which words an operation changes follows from it.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Measure nothing: look for updates that are lost or done twice, and for operations that never end, once where
    /// words only grow and once where values return.
    ///
    /// With the greatest number of threads, for ten times as long as a measurement, once for k = 1, 2, 4 and 8.
    #[arg(long)]
    pub(super) check: bool,
    /// Where the results go; created if need be.
    #[arg(long, value_name = "DIR", default_value = "results")]
    out: PathBuf,
}

impl Options {
    fn effort(&self) -> Effort {
        let mut threads: Vec<usize> = self.threads.iter().copied().map(usize::from).collect();
        threads.sort_unstable();
        threads.dedup();
        Effort {
            engines: ENGINES.to_vec(),
            threads,
            rounds: self.rounds as usize,
            time: self.seconds,
            seed: self.seed,
        }
    }
}

pub(super) fn kcas(options: &Options) -> Result<Ending> {
    if cfg!(debug_assertions) {
        note!("note: this build is not optimised; measure with `cargo run --release`");
    }
    let effort = options.effort();
    if options.check {
        say!("{}", verdicts(&effort)?);
        return Ok(Ending::Complete);
    }
    let study = Study::begin(&options.out, "kcas", describe(options)?)?;
    #[cfg(feature = "steps")]
    say!("{}", exchanges());
    let Measured { rows, ended_by } = study.measure(steps(&effort), |mut progress| {
        measure(&effort, &mut progress)
    });
    study.end(
        &rows,
        |rows| sheet(rows).map_or_else(String::new, |sheet| sheet.to_string()),
        Some(figure::render),
        ended_by,
    )
}

fn describe(options: &Options) -> Result<Sidecar> {
    let subject = |entry: &Entry| {
        let meaning = format!("{}; {}", entry.description, entry.guarantees);
        (entry.name.to_owned(), meaning)
    };
    let run = Run::begin(
        "Changing k words at one moment".into(),
        "What does changing k words at one moment cost, and who does it best?".into(),
        options.seed,
        format!("words drawn from seed {}", options.seed),
        Cores::detect().describe(),
    );
    Ok(Sidecar {
        subjects: ENGINES.iter().map(subject).collect(),
        ..Sidecar::describe(run, COLUMNS)?
    })
}

/// Compare-and-swaps of an operation, as they were counted.
#[cfg(feature = "steps")]
fn exchanges() -> String {
    use crate::studies::kcas::engines::MAX_ENTRIES;
    use comfy_table::CellAlignment;

    let counted: Vec<_> = (ENGINES.iter().filter(|entry| entry.counted))
        .map(|entry| (entry.name, crate::studies::kcas::exchanges(entry)))
        .collect();
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN);
    let names = counted.iter().map(|(name, _)| *name);
    table.set_header(["k", "2k + 1", "3k + 1"].into_iter().chain(names));
    for entries in 1..=MAX_ENTRIES {
        let k = entries as u64;
        let counts = counted.iter().map(|(_, counts)| counts[entries - 1]);
        let numbers = [k, 2 * k + 1, 3 * k + 1].into_iter().chain(counts);
        table.add_row(numbers.map(|number| number.to_string()));
    }
    for column in table.column_iter_mut() {
        column.set_cell_alignment(CellAlignment::Right);
    }
    format!(
        "{table}\n\nCompare-and-swaps of one operation on k words that nobody disturbs, counted. One word takes one.\n"
    )
}

/// Sizes of operations that are checked.
const CHECKED: [usize; 4] = [1, 2, 4, 8];

/// What each engine was found to be. Increments first, of which hardly any gets stuck: who does leaves
/// threads behind.
fn verdicts(effort: &Effort) -> Result<String> {
    let threads = effort.threads.last().copied().unwrap_or(1);
    let longer = Effort {
        time: effort.time * 10,
        ..effort.clone()
    };
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN);
    let verdict = |entry, changes, entries| -> Result<String> {
        Ok(match check(entry, changes, entries, threads, &longer)? {
            Verdict::Right => "right".into(),
            Verdict::Wrong(words) => format!("{} WRONG", counted(words, "word")),
            Verdict::Stuck(threads) => format!("{} STUCK", counted(threads, "thread")),
        })
    };
    let cases = [
        (Changes::Increments, "words only grow"),
        (Changes::Returning, "values return"),
    ];
    table.set_header(["engine", "k", cases[0].1, cases[1].1]);
    let mut lines = Vec::new();
    for (changes, case) in cases {
        for entry in ENGINES {
            for entries in CHECKED {
                // At once: an engine that is wrong may also end the process.
                print::err(format_args!("  {case}, {}, k = {entries}: ", entry.name));
                let verdict = verdict(entry, changes, entries)?;
                note!("{verdict}");
                lines.push(verdict);
            }
        }
    }
    let (growing, returning) = lines.split_at(lines.len() / 2);
    let cases = ENGINES
        .iter()
        .flat_map(|entry| CHECKED.map(|entries| (entry.name, entries)));
    for ((name, entries), (growing, returning)) in cases.zip(growing.iter().zip(returning)) {
        table.add_row([name, &entries.to_string(), growing, returning]);
    }
    Ok(format!(
        "{table}\n\n{} on the same 16 words, {} each; words held against the sums of the \
         operations that took effect.\n",
        counted(threads, "thread"),
        counted(longer.time.as_secs_f64(), "second")
    ))
}
