//! The sentences that a sweep of our filter ends with: beside the best lock, and beside the paper.

use crate::results::headline::{Headline, PAPER_LOOKUP_RATIO};
use crate::results::statistics::{Axis, Case, Results};
use crate::results::verdict::{Comparison, Marks, Verdict};
use crate::wording::{counted, noun};

/// Our filter, the subject of the paper's ratio.
pub(super) const OURS: &str = "lock-free";
/// The baseline the paper compares with.
pub(super) const FINE_GRAINED: &str = "segment-lock";
/// The strongest lock that we know.
const BEST_LOCK: &str = "word-lock";

/// Summarises the rows: each workload beside the best lock, then the sentences to compare with the
/// paper's, one for each workload of lookups. Empty if the rows measure something else.
pub(super) fn headlines(results: &Results) -> Vec<String> {
    let subjects = results.subjects();
    if results.axis() != Axis::Threads || results.timed() || !subjects.contains(&OURS) {
        return Vec::new();
    }
    let cases = results.cases();
    let beside_the_best = cases
        .iter()
        .filter_map(|case| beside_the_best(results, case));
    let lookups = cases.iter().filter(|case| is_lookup(case));
    let beside_the_paper = lookups.filter_map(|case| beside_the_paper(results, case));
    beside_the_best.chain(beside_the_paper).collect()
}

/// Separates one thread from several, since they show different things: the cost of an operation,
/// and the cost that threads impose on each other.
fn beside_the_best(results: &Results, case: &Case) -> Option<String> {
    let at = |threads: f64| {
        let Comparison { ratio, verdict } = results.comparison(case, threads, OURS, BEST_LOCK)?;
        let shown = Marks::default().shown(&ratio, None, |ratio| format!("{ratio:.2}"));
        let threads = counted(threads as usize, "thread");
        Some(format!("{shown} at {threads}{}", verdict.reservation()))
    };
    let ratios: Vec<_> = results.places(case).into_iter().filter_map(at).collect();
    (!ratios.is_empty()).then(|| {
        let ratios = ratios.join("; ");
        format!(
            "Beside the best lock, {BEST_LOCK}, {}: {ratios}.",
            named(case)
        )
    })
}

fn beside_the_paper(results: &Results, case: &Case) -> Option<String> {
    let headline = Headline::of(results, case, OURS, FINE_GRAINED)?;
    let threads: Vec<_> = headline.threads.iter().map(usize::to_string).collect();
    let mean = headline.mean;
    Some(format!(
        "Headline: {} is {} times as fast as {FINE_GRAINED}, averaged over {} {}{}; the paper reports \
         {PAPER_LOOKUP_RATIO}.",
        named(case),
        Marks::default().shown(mean, None, |mean| format!("{mean:.2}")),
        threads.join(", "),
        noun(
            headline.threads.last().copied().unwrap_or_default(),
            "thread"
        ),
        Verdict::of(mean).reservation(),
    ))
}

pub(super) fn is_lookup(case: &Case) -> bool {
    case.workload.starts_with("lookup")
}

/// Names the workload, with its share of hits if its label does not say it, and its load factor if
/// that is one.
pub(super) fn named(case: &Case) -> String {
    let workload = match case.value(Axis::Hit) {
        Some(hit) if case.workload == "lookup" => format!("lookup, {hit} % hits"),
        _ => case.workload.clone(),
    };
    case.marked(match case.value(Axis::Load) {
        Some(load) => format!("{workload} (load factor {load})"),
        None => workload,
    })
}
