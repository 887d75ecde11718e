//! Turns the rows of `growth` into sentences.

use super::{GrowthRows, OURS, Quantity, RIVALS, Row};
use crate::results::verdict::Judge;
use crate::show::findings::{Finding, Judged, THROUGHPUT, Words, clauses};
use crate::show::sidecar::Sidecar;
use crate::wording::{counted, grouped};

/// Compares the filter that grows with each rival at a few sizes of the set, except for latencies that
/// the clock cannot tell from none.
pub(super) fn of(rows: &[Row], sidecar: Option<&Sidecar>, judge: &Judge) -> Vec<Finding> {
    let results = GrowthRows(rows);
    let Some(first) = rows.first() else {
        return Vec::new();
    };
    let quantities = [
        Quantity::Throughput,
        Quantity::LookupMedian,
        Quantity::LookupP99,
        Quantity::InsertP99,
        Quantity::LongestInsert,
        Quantity::BitsAKey,
        Quantity::Elapsed,
    ];
    let finding = |(quantity, rival): (Quantity, &str)| {
        let sizes = match quantity {
            Quantity::Elapsed => vec![first.all_keys],
            _ => results.sizes(),
        };
        let judged = |keys| {
            let both = (OURS, rival);
            if results.untold(keys, both, quantity, sidecar).is_some() {
                return None;
            }
            let compared = results.comparison(keys, both, quantity)?;
            Some(Judged::at(keys as f64, &compared, judge))
        };
        let at: Vec<_> = sizes.into_iter().filter_map(judged).collect();
        let words = words(quantity);
        let [worse, _] = words.losing_first();
        (!at.is_empty()).then(|| Finding {
            case: format!(
                "{} keys, {}",
                grouped(first.all_keys),
                counted(first.threads, "thread")
            ),
            other: rival.to_owned(),
            lost_at: (at.iter())
                .filter(|of| of.verdict == worse)
                .map(|of| of.place)
                .collect(),
            text: format!(
                "{} against {rival}, {}: {}.",
                OURS,
                quantity.name(),
                clauses(&words, named_sizes, &at)
            ),
        })
    };
    let rivals = RIVALS.into_iter();
    let all = rivals.flat_map(|rival| quantities.map(|quantity| (quantity, rival)));
    all.filter_map(finding).collect()
}

fn words(quantity: Quantity) -> Words {
    let is_good = quantity.is_good();
    let (above_one, below_one, quantity) = match quantity {
        Quantity::Throughput | Quantity::InsertThroughput => return THROUGHPUT,
        Quantity::BitsAKey => ("larger", "smaller", "the memory"),
        Quantity::Elapsed => ("longer", "shorter", "the time"),
        _ => ("longer", "shorter", "the latency"),
    };
    Words {
        is_good,
        above_one,
        below_one,
        quantity,
    }
}

fn named_sizes(sizes: &[f64]) -> String {
    let sizes: Vec<_> = sizes.iter().map(|&keys| grouped(keys as u64)).collect();
    format!("{} keys", sizes.join(", "))
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    fn of(rows: &[Row]) -> Vec<Finding> {
        Judge::of_page(|judge| super::of(rows, None, judge))
    }

    #[test]
    fn of_latencies_that_the_clock_cannot_tell_nothing_is_said() {
        let mut sidecar = crate::show::sidecar::sample();
        sidecar.run.timing_ns = Some(30);
        let rows = sample(&[[2.0, 1.0, 4.0]; 9]);
        let findings = Judge::of_page(|judge| super::of(&rows, Some(&sidecar), judge));
        let says = |what: &str| findings.iter().any(|finding| finding.text.contains(what));
        assert!(!says("lookup, median") && says("lookup, 99th percentile"));
    }

    #[test]
    fn losses_of_the_filter_that_grows_are_told_at_their_sizes() {
        let told = |rows: &[Row], start: &str| {
            let findings = of(rows).into_iter();
            let mut told = findings.filter(|finding| finding.text.starts_with(start));
            let finding = told.next().unwrap();
            assert!(told.next().is_none());
            (finding.text.clone(), finding.is_loss())
        };
        let mut rows = sample(&[[2.0, 1.0, 4.0]; 9]);
        for (start, expected, lost) in [
            (
                "growing against lock-free, lookups and inserts: ",
                "faster, 2.00 times the throughput, throughout, at 10, 10,000 keys.",
                false,
            ),
            (
                "growing against scalable-bloom, lookups and inserts: ",
                "slower, 0.50 times the throughput, throughout, at 10, 10,000 keys.",
                true,
            ),
            (
                "growing against scalable-bloom, lookup, median: ",
                "longer, 2.00 times the latency, throughout, at 10, 10,000 keys.",
                true,
            ),
            (
                "growing against lock-free, the whole way: ",
                "shorter, 0.50 times the time, at 10,000 keys.",
                false,
            ),
            (
                "growing against lock-free, memory: ",
                "too close to call throughout, at 10, 10,000 keys (1.00 times).",
                false,
            ),
        ] {
            assert_eq!(told(&rows, start), (format!("{start}{expected}"), lost));
        }
        // A single size at which it loses is enough.
        for row in rows
            .iter_mut()
            .filter(|row| row.keys == 10 && row.subject == OURS)
        {
            row.mops = 0.5;
        }
        let (text, lost) = told(&rows, "growing against lock-free, lookups and inserts: ");
        assert!(
            lost && text
                .ends_with(": slower, 0.50 times the throughput, at 10 keys; faster, 2.00 times the throughput, at 10,000 keys."),
            "{text}"
        );
    }
}
