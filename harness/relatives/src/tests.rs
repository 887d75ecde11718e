//! Tests of several relatives. The harness tests all subjects with threads.

#[cfg(feature = "steps")]
use std::cell::Cell;
#[cfg(feature = "steps")]
use std::rc::Rc;

use subject::Subject;

use crate::*;

/// Inserts the keys of nine in ten slots, and returns how many of two million absent keys are found.
fn found<S: Subject>() -> usize {
    const KEYS: u64 = 360_000;
    let filter = S::with_buckets(100_000).unwrap();
    assert!((0..KEYS).all(|key| filter.insert(&key)), "{}", S::NAME);
    assert!((0..KEYS).all(|key| filter.contains(&key)), "{}", S::NAME);
    let absent = KEYS..KEYS + 2_000_000;
    absent.filter(|key| filter.contains(key)).count()
}

#[test]
fn false_positives_are_as_many_as_papers_predict() {
    for (found, expected) in [
        // (1 − e^(−kn/m))^k with k = 9: Bloom 1970, and Fan et al. 2000. The rows of a sketch are alike.
        (found::<Bloom>(), 1_998.0),
        (found::<CountingBloom>(), 1_998.0),
        (found::<CountMin>(), 1_998.0),
        // Σ P(i) E[(X / 64)³]²: Putze et al. 2007.
        (found::<BlockedBloom>(), 3_092.0),
        // 2 (s / b) 2^−r α: Pandey et al. 2021.
        (found::<VectorQuotient>(), 7_888.0),
    ] {
        // Five standard deviations of the smallest.
        let is_near = (found as f64 / expected - 1.0).abs() < 0.12;
        assert!(is_near, "{found}, not {expected}");
    }
    // At most ε0 / (1 − r): Almeida et al. 2007.
    let scalable = found::<ScalableBloom>();
    assert!((400..3_906).contains(&scalable), "{scalable}");
}

/// At each step of a call, another call of each kind changes the same words.
#[cfg(feature = "steps")]
fn no_step_loses_a_key<S: Subject>() {
    let happened = Rc::new(Cell::new(false));
    for at in 0.. {
        let subject = Rc::new(S::with_buckets(1).unwrap());
        let at_first = ["stays", "goes", "went"];
        assert!(at_first.iter().all(|key| subject.insert(key)));
        let (other, happens) = (Rc::clone(&subject), Rc::clone(&happened));
        let between = move |step| {
            if step == at {
                assert!(other.contains("stays") && other.insert("comes"));
                assert!(!S::OPERATIONS.remove || other.remove("goes"));
                happens.set(true);
            }
        };
        let both = || subject.insert("new") && (!S::OPERATIONS.remove || subject.remove("went"));
        assert!(kcas_testing::steps::with_hook(between, both), "{}", S::NAME);
        if !happened.replace(false) {
            assert!(at >= 4, "{} makes {at} steps", S::NAME);
            break;
        }
        for key in ["comes", "new", "stays", "goes", "went"] {
            let inside = !S::OPERATIONS.remove || !["goes", "went"].contains(&key);
            assert_eq!(subject.contains(key), inside, "{}, {at}: {key}", S::NAME);
        }
    }
}

#[cfg(feature = "steps")]
#[test]
fn stopped_relatives_without_locks_lose_no_key() {
    no_step_loses_a_key::<Bloom>();
    no_step_loses_a_key::<BlockedBloom>();
    no_step_loses_a_key::<CountingBloom>();
    no_step_loses_a_key::<ScalableBloom>();
    no_step_loses_a_key::<CountMin>();
}
