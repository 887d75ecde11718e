//! One thread against a plain array: results and contents agree after every operation.

use kcas::CompareExchangeError::Differs;
use kcas::{Entry, WordArray};
use proptest::prelude::*;

const LEN: usize = 12;

#[derive(Clone, Debug)]
enum Call {
    CompareExchange(usize, u64, u64),
    Kcas(Vec<Entry>),
}

/// Few different values, so that comparisons often succeed; the greatest value is one of them.
fn value() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0u64..2, 1 => Just(u64::MAX >> 1)]
}

fn call() -> impl Strategy<Value = Call> {
    let exchange = |(index, current, new)| Call::CompareExchange(index, current, new);
    let compare_exchange = (0..LEN, value(), value()).prop_map(exchange);
    let indices = proptest::sample::subsequence((0..LEN).collect::<Vec<_>>(), 0..=9);
    let values = proptest::collection::vec((value(), value()), 9);
    let kcas = (indices.prop_shuffle(), values).prop_map(|(indices, values)| {
        let entries = indices.into_iter().zip(values);
        let entries = entries.map(|(index, (expected, new))| Entry::new(index, expected, new));
        Call::Kcas(entries.collect())
    });
    prop_oneof![compare_exchange, kcas]
}

fn plain_kcas(plain: &mut [u64], entries: &[Entry]) -> bool {
    let differs = |entry: &Entry| plain[entry.index] != entry.expected;
    if entries.len() > WordArray::MAX_ENTRIES || entries.iter().any(differs) {
        return false;
    }
    for entry in entries {
        plain[entry.index] = entry.new;
    }
    true
}

proptest! {
    #[test]
    fn word_array_agrees_with_plain_array(calls in proptest::collection::vec(call(), 1..200)) {
        let words = WordArray::new(LEN);
        let mut plain = [0u64; LEN];
        for call in calls {
            match &call {
                &Call::CompareExchange(index, current, new) => {
                    let expected = if plain[index] == current {
                        plain[index] = new;
                        Ok(current)
                    } else {
                        Err(Differs(plain[index]))
                    };
                    prop_assert_eq!(words.compare_exchange(index, current, new), expected);
                }
                Call::Kcas(entries) => {
                    // Half of the operations are made to match, so that long ones succeed, too.
                    let fit = |entry: &Entry| Entry::new(entry.index, plain[entry.index], entry.new);
                    let fitting: Vec<Entry> = entries.iter().map(fit).collect();
                    for entries in [entries, &fitting] {
                        let is_done = words.kcas(entries).is_ok();
                        prop_assert_eq!(is_done, plain_kcas(&mut plain, entries));
                    }
                }
            }
            let contents: Vec<u64> = (0..LEN).map(|index| words.load(index)).collect();
            prop_assert_eq!(&contents[..], &plain[..], "after {:?}", call);
            // No operation is under way.
            let peeked: Vec<u64> = (0..LEN).map(|index| words.load_raw(index)).collect();
            prop_assert_eq!(peeked, contents);
        }
    }
}
