//! Rows, and what a table, a figure or a sentence asks of them.

use super::Row;
use super::contest::Workload;
use super::engines::{ENGINES, Entry, MAX_ENTRIES};
use crate::results::series::Series;
use crate::results::statistics::Summary;
use crate::results::verdict::Verdict;

/// Where engines are compared with each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Label of the workload.
    pub workload: String,
    /// Threads.
    pub threads: usize,
    /// Words of an operation.
    pub entries: usize,
}

/// Rows, and what a figure or a table asks of them.
#[derive(Clone, Copy, Debug)]
pub struct Results<'a>(pub &'a [Row]);

impl Results<'_> {
    fn series(self, case: &Case, engine: &str) -> Series {
        let rows = self.0.iter().filter(|row| {
            row.engine == engine
                && row.workload == case.workload
                && row.threads == case.threads
                && row.entries == case.entries
        });
        Series::of(rows, |row| Some(row.mops))
    }

    /// Throughput over the rounds, in million operations per second; `None` where nothing was
    /// measured.
    pub fn throughput(self, case: &Case, engine: &str) -> Option<Summary> {
        self.series(case, engine).summary()
    }

    /// Throughput of engine `a` over that of engine `b`, taken within each round that has both.
    pub fn ratio(self, case: &Case, a: &str, b: &str) -> Option<Summary> {
        let [a, b] = [a, b].map(|engine| self.series(case, engine));
        a.over(&b).summary()
    }

    /// Words found wrong after measurements of this engine.
    pub fn wrong_words(self, engine: &str) -> usize {
        let rows = self.0.iter().filter(|row| row.engine == engine);
        rows.map(|row| row.wrong_words).sum()
    }

    /// The engines that were measured, in the order of [`ENGINES`].
    pub fn engines(self) -> Vec<&'static Entry> {
        let measured = |entry: &&Entry| self.0.iter().any(|row| row.engine == entry.name);
        ENGINES.iter().filter(measured).collect()
    }

    /// The numbers of threads that were measured, in their order.
    pub fn threads(self) -> Vec<usize> {
        let mut threads: Vec<_> = self.0.iter().map(|row| row.threads).collect();
        threads.sort_unstable();
        threads.dedup();
        threads
    }

    /// Whether there were more threads than cores.
    pub fn oversubscribed(self, threads: usize) -> bool {
        let mut rows = self.0.iter();
        rows.any(|row| row.threads == threads && row.oversubscribed)
    }
}

/// For each kind of contest and each other engine: in how many cases, of threads and words, ours is
/// ahead of it.
pub(super) fn findings(rows: &[Row]) -> Vec<String> {
    let results = Results(rows);
    let engines = results.engines();
    let Some((ours, others)) = engines.split_first() else {
        return Vec::new();
    };
    let sentence = |(workload, other): (Workload, &&Entry)| {
        let mut ratios = Vec::new();
        for threads in results.threads() {
            let case = |entries| Case {
                workload: workload.label().into(),
                threads,
                entries,
            };
            let ratio = |entries| results.ratio(&case(entries), ours.name, other.name);
            ratios.extend((1..=MAX_ENTRIES).filter_map(ratio));
        }
        let count = |of| {
            ratios
                .iter()
                .filter(|ratio| Verdict::of(*ratio) == of)
                .count()
        };
        let (faster, slower) = (count(Verdict::Faster), count(Verdict::Slower));
        let too_few = count(Verdict::TooFewRounds);
        let untold = match too_few {
            0 => String::new(),
            _ => format!(", no claim for want of rounds in {too_few}"),
        };
        let medians = ratios.iter().map(|ratio| ratio.median);
        (!ratios.is_empty()).then(|| {
            format!(
                "Words {}: {} against {}: of {} cases of threads and k, faster in {faster}, slower in {slower}, too close \
                 or too noisy to call in {}{untold}; {:.2} to {:.2} times the throughput.",
                workload.label(),
                ours.name,
                other.name,
                ratios.len(),
                ratios.len() - faster - slower - too_few,
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
