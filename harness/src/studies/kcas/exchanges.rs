//! Counts the compare-and-swaps of an operation.

use crate::show::markdown;
use crate::subjects::engines::{Change, ENGINES, EngineInfo, MAX_ENTRIES};

/// Counts the exchanges of an uncontended operation on k words, for k = 1 … 8.
pub(super) fn exchanges(entry: &EngineInfo) -> Vec<u64> {
    let count = |entries| {
        let engine = entry.build(entries, entries);
        let change = |index| Change { index, by: 1 };
        let changes: Vec<_> = (0..entries).map(change).collect();
        // A thread's first operation also claims an id.
        engine.change(&changes);
        kcas::steps::count(|| engine.change(&changes)).1.exchanges
    };
    (1..=MAX_ENTRIES).map(count).collect()
}

pub(super) fn table() -> String {
    let counted = ENGINES.iter().filter(|entry| entry.counted);
    let counted: Vec<_> = counted.map(|of| (of.name, exchanges(of))).collect();
    let names = counted.iter().map(|(name, _)| *name);
    let header: Vec<_> = ["k", "2k + 1", "3k + 1"].into_iter().chain(names).collect();
    let line = |entries: usize| {
        let k = entries as u64;
        let counts = counted.iter().map(move |(_, counts)| counts[entries - 1]);
        [k, 2 * k + 1, 3 * k + 1].into_iter().chain(counts)
    };
    let columns = 0..header.len();
    let table = markdown(header, (1..=MAX_ENTRIES).map(line), columns);
    format!(
        "{table}\n\nCompare-and-swaps of one operation on k words that nobody disturbs, counted. One word takes one.\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_cost_2k_plus_1_exchanges_or_3k_plus_1_by_dcss() {
        for (at, entry) in ENGINES.iter().filter(|entry| entry.counted).enumerate() {
            let of_an_entry = if at == 0 { 2 } else { 3 };
            let expected: Vec<u64> = (2..=MAX_ENTRIES as u64)
                .map(|k| of_an_entry * k + 1)
                .collect();
            assert_eq!(exchanges(entry)[1..], expected, "{}", entry.name);
        }
        assert_eq!(exchanges(&ENGINES[0])[0], 1, "one word takes one exchange");
    }
}
