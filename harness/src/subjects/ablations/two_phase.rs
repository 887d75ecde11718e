//! The published protocol (Wang et al., *Lock-free Concurrent Cuckoo Filter*, Journal of Software
//! 36(7), 2025), on the K-CAS and the layout of the lock-free filter: a rival to measure, and a
//! demonstration of the sequence of steps that it does not handle.
//!
//! - **A lookup** reads both buckets twice, and compares *relocation counters*: see [`TwoRounds`].
//! - **An insert** into a bucket with an empty slot is one compare-and-swap, and advances no
//!   counter. Otherwise it carries out an eviction path one hop at a time ([`HopByHop`]), and starts
//!   again.
//! - **A remove** finds its key in the same way, and clears the slot by one compare-and-swap, which
//!   advances no counter.
//!
//! **What it does not handle.** A key can also change buckets without being relocated: a key of the
//! same class (same fingerprint, same two buckets) is inserted into one bucket, and then a copy is
//! removed from the other. No counter moves. With the only copy in B at first:
//!
//! ```text
//! lookup                        others
//! reads A: no match
//!                               insert the class into A, remove it from B
//! reads B: no match
//!                               insert the class into B, remove it from A
//! reads A: no match
//!                               insert the class into A, remove it from B
//! reads B: no match
//! no counter rose: "absent"
//! ```
//!
//! There was a copy at every moment. `harness/tests/counterexample.rs` runs exactly these steps.

use super::{Ablation, BreadthFirst, HopByHop, Reused, TwoRounds, Variant};

pub type TwoPhase = Ablation<TwoRounds, HopByHop, BreadthFirst, Reused, false>;

impl Variant for TwoPhase {
    const NAME: &'static str = "two-phase";
    const DESCRIPTION: &'static str = "the published protocol on the same K-CAS: lookups in two rounds, chains shifted hop by hop";
    const GUARANTEES: &'static str = "not linearizable: a lookup may miss a key that is present throughout, when others insert and \
         remove keys of its class; each hop is lock-free, but two inserts may take each other's room forever";
}

#[cfg(test)]
mod tests {
    use filter::internals::Location;
    use subject::Subject;
    use subject::layout::{Layout, locate};

    use super::super::lookup::rise;
    use super::super::words::Words;
    use super::*;

    #[test]
    fn only_relocations_advance_both_counters() {
        let filter = TwoPhase::with_buckets(48).unwrap();
        let values = || -> Vec<u64> { (0..48).map(|bucket| filter.words.load(bucket)).collect() };
        let risen = |before: &[u64]| -> u64 {
            let pairs = before.iter().zip(values());
            pairs.map(|(&before, after)| rise(before, after)).sum()
        };
        let mut relocations = 0;
        for key in 0..180_u64 {
            let before = values();
            let Location { first, second, .. } = locate(&filter.geometry, &key);
            let has_room = |&bucket: &usize| Layout::find_empty(before[bucket]).is_some();
            assert!(filter.insert(&key));
            let risen = risen(&before);
            assert_eq!(risen == 0, [first, second].iter().any(has_room), "{key}");
            assert_eq!(risen % 2, 0, "{key}");
            relocations += risen / 2;
        }
        assert!(relocations > 10, "{relocations}");
        let before = values();
        assert!((0..180_u64).all(|key| filter.remove(&key)));
        assert_eq!(risen(&before), 0);
    }
}
