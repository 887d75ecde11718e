//! Copying a filter while keys move at chosen steps of the copying: at any of them, and at the
//! worst ones.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use crate::at_step::{add, before_step, hop, pairs};
use crate::small::{Small, holding, key};
use filter::CuckooFilter;
use kcas_testing::steps::with_hook;

/// All ordered pairs of buckets.
const PAIRS: [(usize, usize); 6] = [(0, 1), (1, 0), (1, 2), (2, 1), (0, 2), (2, 0)];

/// A second copy begins at any step of the first, and at any step of the second the key hops: both
/// copies have it once.
#[test]
fn key_hopping_during_two_copies_is_copied_once() {
    // More than a copy takes alone.
    const STEPS: u64 = 40;
    for (source, target) in PAIRS {
        let [key, hopped] = [key(source, target, 0), key(target, source, 0)];
        for (begins, hops) in pairs(0..STEPS, 0..STEPS) {
            let filter = holding(&[key]);
            let second = Rc::new(RefCell::new(None));
            let (others, result) = (Arc::clone(&filter), Rc::clone(&second));
            let hop = move |others: &Small| hop(others, key, hopped);
            let copy_too = move |_: &Small| {
                let copy = before_step(&others, hops, hop, Small::try_clone);
                result.replace(Some(copy.unwrap()));
            };
            let first = before_step(&filter, begins, copy_too, Small::try_clone);
            for copy in second.take().into_iter().chain([first.unwrap()]) {
                assert_eq!(copy.count(&key), 1, "begins at {begins}, hops at {hops}");
                assert_eq!(copy.len(), 1);
            }
        }
    }
}

/// A key hops in the source before any step of `insert_all_from`: it is inserted once.
#[test]
fn key_hopping_in_source_is_inserted_once() {
    const STEPS: u64 = 80;
    for (source, target) in PAIRS {
        let [key, hopped] = [key(source, target, 0), key(target, source, 0)];
        for hops in 0..STEPS {
            let (filter, union) = (holding(&[key]), holding(&[]));
            let hop = move |others: &Small| hop(others, key, hopped);
            let added = before_step(&filter, hops, hop, |filter| union.insert_all_from(filter));
            assert_eq!((added, union.count(&key)), (Ok(1), 1), "hops at {hops}");
        }
    }
}

fn filter_of(buckets: usize) -> Arc<CuckooFilter> {
    Arc::new(CuckooFilter::builder().buckets(buckets).build().unwrap())
}

/// Buckets change all over the table before each step: the copy is finished all the same, after a
/// limited number of steps.
#[test]
fn copy_ends_whatever_others_do() {
    for buckets in [30, 1_000] {
        let filter = filter_of(buckets);
        let others = Arc::clone(&filter);
        // A few loads and one exchange for each bucket; and a dozen to begin and to end.
        let most = 12 * buckets as u64 + 60;
        let hook = move |step| {
            assert!(step < most, "it goes on after {most} steps");
            (16 * step..16 * (step + 1)).for_each(|key| add(&*others, key, 1));
        };
        let copy = with_hook(hook, || filter.try_clone()).unwrap();
        assert!(copy.len() <= 1, "{} of {buckets} buckets", copy.len());
    }
}

/// All keys are replaced before the copy, in its midst and at its end: it takes no more than two
/// tables, and holds what was there at its beginning.
#[test]
fn copy_of_changing_table_uses_two_tables() {
    const BUCKETS: u64 = 1 << 14;
    const KEYS: u64 = 2 * BUCKETS;
    for (begin, times, kept) in [(0, 1, 1), (100, 3, 0), (BUCKETS, 3, 0)] {
        let filter = filter_of(BUCKETS as usize);
        (0..KEYS).for_each(|key| filter.insert(&(0_u64, key)).unwrap());
        let others = Arc::clone(&filter);
        let mut replaced = 0;
        let hook = move |step| {
            if step >= begin && replaced < times {
                for key in 0..KEYS {
                    assert!(others.remove(&(replaced, key)).unwrap());
                    others.insert(&(replaced + 1, key)).unwrap();
                }
                replaced += 1;
            }
        };
        let mut copy = None;
        let measured = allocation_counter::measure(|| {
            copy = Some(with_hook(hook, || filter.try_clone()));
        });
        let tables = measured.bytes_max as f64 / (8 * BUCKETS) as f64;
        println!("replaced {times} times: {tables:.2} tables");
        assert!(tables < 2.2, "{measured:?}");
        let copy = copy.unwrap().unwrap();
        assert_eq!(copy.len() as u64, KEYS);
        assert!((0..KEYS).all(|key| copy.contains(&(kept, key))));
    }
}
