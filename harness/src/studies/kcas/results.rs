//! The rows of `kcas`, and the quantities that a table, a figure or a sentence computes from them.

use super::Row;
use super::contest::Workload;
use super::engines::{ENGINES, EngineInfo, MAX_ENTRIES};
use crate::results::series::Series;
use crate::results::summary::Summary;
use crate::results::verdict::{Comparison, Judge, Verdict};
use crate::wording::counted;

/// The conditions under which engines are compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Label of the workload.
    pub workload: String,
    /// Number of threads.
    pub threads: usize,
    /// Number of words per operation.
    pub entries: usize,
}

/// The rows of a run.
#[derive(Clone, Copy, Debug)]
pub struct KcasRows<'a>(pub &'a [Row]);

impl KcasRows<'_> {
    fn series(self, case: &Case, engine: &str) -> Series {
        let rows = self.0.iter().filter(|row| {
            row.engine == engine
                && row.workload == case.workload
                && row.threads == case.threads
                && row.entries == case.entries
        });
        Series::of(rows, |row| (row.stuck == 0).then_some(row.mops))
    }

    /// Summarises the throughput over the rounds, in million operations per second; `None` if
    /// nothing was measured.
    pub fn throughput(self, case: &Case, engine: &str) -> Option<Summary> {
        self.series(case, engine).summary()
    }

    /// Compares the throughput of engine `a` with that of engine `b`, within each round that has
    /// both.
    pub fn comparison(self, case: &Case, a: &str, b: &str) -> Option<Comparison> {
        let [a, b] = [a, b].map(|engine| self.series(case, engine));
        Comparison::between(&a, &b)
    }

    /// Says what went wrong in measurements of this engine; `None` if nothing did.
    pub fn flaws(self, engine: &str) -> Option<String> {
        let rows = || self.0.iter().filter(|row| row.engine == engine);
        let words: usize = rows().map(|row| row.wrong_words).sum();
        let given_up = rows().filter(|row| row.stuck > 0).count();
        let wrong = (words > 0).then(|| counted(words, "wrong word"));
        let stuck = (given_up > 0).then(|| {
            let measurements = counted(given_up, "measurement");
            format!("{measurements} given up, with threads stuck")
        });
        let flaws: Vec<_> = wrong.into_iter().chain(stuck).collect();
        (!flaws.is_empty()).then(|| flaws.join(", "))
    }

    /// Returns the engines that were measured, in the order of [`ENGINES`].
    pub fn engines(self) -> Vec<&'static EngineInfo> {
        let measured = |entry: &&EngineInfo| self.0.iter().any(|row| row.engine == entry.name);
        ENGINES.iter().filter(measured).collect()
    }

    /// Returns the numbers of threads that were measured, in the order they appear in.
    pub fn threads(self) -> Vec<usize> {
        let mut threads: Vec<_> = self.0.iter().map(|row| row.threads).collect();
        threads.sort_unstable();
        threads.dedup();
        threads
    }

    /// Returns whether there were more threads than cores.
    pub fn oversubscribed(self, threads: usize) -> bool {
        let mut rows = self.0.iter();
        rows.any(|row| row.threads == threads && row.oversubscribed)
    }
}

/// Says, for each workload and each other engine, in how many cases of threads and words ours is
/// ahead.
pub(super) fn findings(rows: &[Row], judge: &Judge) -> Vec<String> {
    let results = KcasRows(rows);
    let engines = results.engines();
    let Some((ours, others)) = engines.split_first() else {
        return Vec::new();
    };
    let sentence = |(workload, other): (Workload, &&EngineInfo)| {
        let mut compared = Vec::new();
        for threads in results.threads() {
            let case = |entries| Case {
                workload: workload.label().into(),
                threads,
                entries,
            };
            let of = |entries| results.comparison(&case(entries), ours.name, other.name);
            compared.extend((1..=MAX_ENTRIES).filter_map(of));
        }
        let verdicts: Vec<_> = compared.iter().map(|of| judge.verdict(of)).collect();
        let count = |of| verdicts.iter().filter(|verdict| **verdict == of).count();
        let (faster, slower) = (count(Verdict::Faster), count(Verdict::Slower));
        let too_few = count(Verdict::TooFewRounds);
        let untold = match too_few {
            0 => String::new(),
            _ => format!(", no claim for want of rounds in {too_few}"),
        };
        let medians = compared.iter().map(|of| of.ratio.median);
        (!compared.is_empty()).then(|| {
            format!(
                "Words {}: {} against {}: of {} cases of threads and k, faster in {faster}, slower in {slower}, too close \
                 or too noisy to call in {}{untold}; {:.2} to {:.2} times the throughput.",
                workload.label(),
                ours.name,
                other.name,
                compared.len(),
                compared.len() - faster - slower - too_few,
                medians.clone().fold(f64::INFINITY, f64::min),
                medians.fold(0.0, f64::max),
            )
        })
    };
    let pairs = Workload::ALL
        .into_iter()
        .flat_map(|workload| others.iter().map(move |other| (workload, other)));
    pairs.filter_map(sentence).collect()
}
