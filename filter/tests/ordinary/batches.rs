//! Batched calls do for each key what the single call does.

use std::panic::{AssertUnwindSafe, catch_unwind};

use filter::{CuckooFilter, InsertError};
use proptest::prelude::*;

/// More keys than a group, and keys that occur several times; a table that becomes full.
fn keys() -> impl Strategy<Value = Vec<u16>> {
    prop::collection::vec(0..300_u16, 0..200)
}

fn filter() -> CuckooFilter<2, 12> {
    let builder = CuckooFilter::builder().layout::<2, 12>().buckets(70);
    builder.build().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_batch_does_what_single_calls_do(
        inserted in keys(), unique in keys(), asked in keys(), removed in keys(),
    ) {
        let (batched, single) = (filter(), filter());

        let mut results = vec![Err(InsertError::Full); inserted.len()];
        batched.insert_batch(&inserted, &mut results);
        let expected: Vec<_> = inserted.iter().map(|key| single.insert(key)).collect();
        prop_assert_eq!(results, expected);

        let mut results = vec![Err(InsertError::Full); unique.len()];
        batched.insert_unique_batch(&unique, &mut results);
        let expected: Vec<_> = unique.iter().map(|key| single.insert_unique(key)).collect();
        prop_assert_eq!(results, expected);

        let contains = |asked: &[u16]| {
            let mut found = vec![false; asked.len()];
            batched.contains_batch(asked, &mut found);
            let hashes: Vec<u64> = asked.iter().map(|key| batched.hash(key)).collect();
            let mut found_by_hash = vec![false; asked.len()];
            batched.contains_hash_batch(&hashes, &mut found_by_hash);
            assert_eq!(found_by_hash, found);
            let expected: Vec<_> = asked.iter().map(|key| single.contains(key)).collect();
            (found, expected)
        };
        let (found, expected) = contains(&asked);
        prop_assert_eq!(found, expected);

        let mut taken = vec![false; removed.len()];
        batched.remove_batch(&removed, &mut taken);
        let expected: Vec<_> = removed.iter().map(|key| single.remove(key)).collect();
        prop_assert_eq!(taken, expected);

        prop_assert_eq!(batched.len(), single.len());
        let all: Vec<u16> = (0..300).collect();
        let (found, expected) = contains(&all);
        prop_assert_eq!(found, expected);
    }
}

#[test]
fn a_full_filter_refuses_some_and_goes_on_with_the_others() {
    let filter = filter();
    let mut results = vec![Ok(()); 300];
    filter.insert_batch(&Vec::from_iter(0..300_u16), &mut results);
    let inserted = results.iter().filter(|result| result.is_ok()).count();
    assert_eq!(inserted, filter.len());
    assert!(inserted > 120 && inserted <= filter.capacity());
    let first_refused = results.iter().position(Result::is_err).unwrap();
    assert!(results[first_refused..].iter().any(Result::is_ok));
}

#[test]
fn results_of_another_length_change_nothing() {
    let filter = filter();
    let refused = |call: fn(&CuckooFilter<2, 12>)| {
        let call = AssertUnwindSafe(|| call(&filter));
        catch_unwind(call).is_err()
    };
    assert!(refused(|filter| filter.insert_batch(&[1, 2], &mut [Ok(())])));
    assert!(refused(
        |filter| filter.insert_unique_batch(&[1, 2], &mut [Ok(true)])
    ));
    assert!(filter.is_empty());
    filter.insert(&1).unwrap();
    assert!(refused(|filter| filter.remove_batch(&[1], &mut [])));
    assert!(refused(
        |filter| filter.contains_batch(&[1], &mut [true, true])
    ));
    assert!(refused(
        |filter| filter.contains_hash_batch(&[1], &mut [true, true])
    ));
    assert_eq!(filter.len(), 1);
}
