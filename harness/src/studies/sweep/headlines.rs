//! The sentences that a sweep of our filter ends with: beside the best lock, and beside the paper.

use crate::results::statistics::{Axis, Case, Results};
use crate::results::verdict::Judge;
use crate::wording::counted;

/// Our filter, the subject of the paper's ratio.
pub(super) const OURS: &str = "lock-free";
/// The baseline the paper compares with.
const FINE_GRAINED: &str = "segment-lock";
/// The strongest lock that we know.
const BEST_LOCK: &str = "word-lock";

/// The paper's number (Wang et al. 2025), and what can be compared with it.
const PAPER: &str = "The paper reports lookups at 1.94 times fine-grained locks, on average: its abstract does not say over \
                     what. That is of its code on its machine, under locks whose lookups take them. Only the kind of lock \
                     can be compared.";

/// Summarises the rows: each workload beside the best lock, then lookups beside the paper's
/// baseline. Empty if the rows measure something else.
pub(super) fn headlines(results: &Results, judge: &Judge) -> Vec<String> {
    let subjects = results.subjects();
    if results.axis() != Axis::Threads || results.timed() || !subjects.contains(&OURS) {
        return Vec::new();
    }
    let cases = results.cases();
    let beside = |rival, case| beside(results, judge, case, rival);
    let mut told: Vec<_> = (cases.iter())
        .filter_map(|case| beside(BEST_LOCK, case))
        .collect();
    let lookups = cases.iter().filter(|case| is_lookup(case));
    let mut lookups: Vec<_> = lookups
        .filter_map(|case| beside(FINE_GRAINED, case))
        .collect();
    if !lookups.is_empty() {
        lookups.push(PAPER.to_owned());
    }
    told.append(&mut lookups);
    told
}

/// Separates one thread from one on each core, since they show different things: the cost of an
/// operation, and the cost that threads impose on each other.
fn beside(results: &Results, judge: &Judge, case: &Case, rival: &str) -> Option<String> {
    let at = |threads: f64| {
        let comparison = results.comparison(case, threads, OURS, rival)?;
        let shown = comparison.ratio.shown(|ratio| format!("{ratio:.2}"));
        let threads = counted(threads as usize, "thread");
        let reservation = judge.verdict(&comparison).reservation();
        Some(format!("{shown} at {threads}{reservation}"))
    };
    let ratios: Vec<_> = (results.one_and_all(case).into_iter())
        .filter_map(at)
        .collect();
    (!ratios.is_empty()).then(|| {
        let which = match rival {
            BEST_LOCK => "the best lock, ",
            _ => "",
        };
        format!(
            "{}, over {which}{rival}: {}.",
            named(case),
            ratios.join("; ")
        )
    })
}

fn is_lookup(case: &Case) -> bool {
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
