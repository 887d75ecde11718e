//! Checks the K-CAS engines against the sums of what they did.

use anyhow::Result;

use super::Kcas;
use super::contest::{Changes, Contest, Stuck, Workload};
use super::engines::{ENGINES, EngineInfo};
use crate::machine::pinning::Cores;
use crate::show::print::{self, note};
use crate::show::sheet::markdown;
use crate::wording::counted;

/// The verdict on an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineVerdict {
    /// Nothing wrong was found.
    Right,
    /// This many words did not hold the sum of their operations.
    Wrong(usize),
    /// This many threads were in an operation that did not end.
    Stuck(usize),
}

/// Checks an engine against the sums: threads change the same 16 words, `entries` at a time, for
/// `kcas.seconds`.
///
/// If the engine is [stuck](EngineVerdict::Stuck), threads are left behind that disturb later
/// measurements.
///
/// # Errors
///
/// Fails if a thread panics.
pub fn check(
    entry: &EngineInfo,
    changes: Changes,
    entries: usize,
    threads: usize,
    kcas: &Kcas,
) -> Result<EngineVerdict> {
    let contest = Contest {
        workload: Workload::Contended,
        changes,
        entries,
        threads,
        time: kcas.seconds,
        seed: kcas.seed,
    };
    match contest.run(entry, &Cores::detect()) {
        Ok(outcome) if outcome.wrong_words == 0 => Ok(EngineVerdict::Right),
        Ok(outcome) => Ok(EngineVerdict::Wrong(outcome.wrong_words)),
        Err(error) => match error.downcast_ref::<Stuck>() {
            Some(stuck) => Ok(EngineVerdict::Stuck(stuck.threads)),
            None => Err(error),
        },
    }
}

/// Sizes of the operations that are checked.
const CHECKED: [usize; 4] = [1, 2, 4, 8];

/// Returns the verdict on each engine. Increments come first, since hardly any engine gets stuck in
/// them: one that does leaves threads behind.
pub(super) fn verdicts(kcas: &Kcas) -> Result<String> {
    let threads = kcas.threads().last().copied().unwrap_or(1);
    let longer = Kcas {
        seconds: kcas.seconds * 10,
        ..kcas.clone()
    };
    let verdict = |entry, changes, entries| -> Result<String> {
        Ok(match check(entry, changes, entries, threads, &longer)? {
            EngineVerdict::Right => "right".into(),
            EngineVerdict::Wrong(words) => format!("{} WRONG", counted(words, "word")),
            EngineVerdict::Stuck(threads) => format!("{} STUCK", counted(threads, "thread")),
        })
    };
    let cases = [
        (Changes::Increments, "words only grow"),
        (Changes::Returning, "values return"),
    ];
    let header = ["engine", "k", cases[0].1, cases[1].1];
    let mut found = Vec::new();
    for (changes, case) in cases {
        for entry in ENGINES {
            for entries in CHECKED {
                // Printed at once: a wrong engine may also end the process.
                print::err(format_args!("  {case}, {}, k = {entries}: ", entry.name));
                let verdict = verdict(entry, changes, entries)?;
                note!("{verdict}");
                found.push(verdict);
            }
        }
    }
    let (growing, returning) = found.split_at(found.len() / 2);
    let cases = ENGINES
        .iter()
        .flat_map(|entry| CHECKED.map(|entries| (entry.name, entries.to_string())));
    let lines =
        (cases.zip(growing).zip(returning)).map(|(((name, entries), growing), returning)| {
            [name.into(), entries, growing.clone(), returning.clone()]
        });
    Ok(format!(
        "{}\n\n{} on the same 16 words, {} each; words held against the sums of the \
         operations that took effect.\n",
        markdown(header, lines, []),
        counted(threads, "thread"),
        counted(longer.seconds.as_secs_f64(), "second")
    ))
}
