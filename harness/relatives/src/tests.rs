//! One body of tests for all relatives without locks. The harness tests all subjects with threads.

use std::cell::Cell;
use std::rc::Rc;

use subject::Subject;

use crate::*;

/// At each step of a call, another call of each kind changes the same words.
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

#[test]
fn stopped_relatives_without_locks_lose_no_key() {
    no_step_loses_a_key::<Bloom>();
    no_step_loses_a_key::<BlockedBloom>();
    no_step_loses_a_key::<CountingBloom>();
    no_step_loses_a_key::<ScalableBloom>();
    no_step_loses_a_key::<CountMin>();
}
