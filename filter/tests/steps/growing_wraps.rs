//! Timestamps of a growing filter that wrap, and keys that move, while a lookup or a remove reads buckets.

use std::sync::Arc;

use crate::at_step::{add, before_step, hop, hopping, pairs};
use crate::small::growing::{FILLING, Growing, apart, from_other_bucket, holding, key, staying};

/// A filter of 16 buckets, whose first bucket's timestamp has advanced this many times.
fn advanced(other: u64, times: u64) -> Arc<Growing> {
    let filter = holding(16, &[]);
    add(&*filter, other, times);
    filter
}

/// Each bucket has the counter that lookups of its keys look at. At first, the copy is in the first bucket while a
/// lookup reads the second one. Then a whole turn of 63 additions, some of them before the copy moves and the others
/// after, meets whatever a lookup has read by then, of the bucket and of the counter.
#[test]
fn key_is_found_during_timestamp_wrap() {
    let is_found = |bucket, at, before, additions: [u64; 2]| {
        let [item, other] = [1, 0].map(|bits| key(apart(bits, 4, 0), bucket));
        let keys = [item, from_other_bucket(item)];
        let look = |look: fn(&Growing, &u64) -> usize| {
            let more = move |others: &Arc<Growing>, is_back| {
                add(&**others, other, additions[usize::from(is_back)]);
            };
            hopping(&advanced(other, before), keys, hop, at, look, more)
        };
        let counted = look(|filter, key| filter.contains(key).into()) * look(Growing::count);
        let case = format!("bucket {bucket}, {at:?}: {additions:?} after {before}");
        assert!((1..=2).contains(&counted), "{case}: {counted}");
    };
    for (bucket, additions) in pairs(0..16, 0..130) {
        // A timestamp of 0 does not come again.
        is_found(bucket, [u64::MAX, 3, 4], 1, [0, additions]);
    }
    let steps = pairs(pairs(0..8, 0..8), 0..8);
    for ((first, to), back) in steps.filter(|((first, to), back)| first <= to && to <= back) {
        for (before, additions) in [(1, 0), (2, 62), (30, 40), (62, 2), (62, 60)] {
            is_found(0, [first, to, back], before, [additions, 62 - additions]);
        }
    }
}

/// A key's own slot moves to its first bucket, which a remove has read, from its second, which it has not; there
/// stays one of another key, which knows a bit less and stands for both. The remove must not take that one.
#[test]
fn remove_takes_longest_match_although_moving() {
    let tag = apart(1, 5, 0);
    // They differ in the first bit that a key does not know that came before its bucket was split.
    let [older, newer] = [0, 1 << 13].map(|bit| from_other_bucket(key(tag, bit)));
    // They have one bucket, and fill it, so that it is split.
    let others = FILLING.map(staying);
    for at in 0..20 {
        let filter = holding(16, &[]);
        filter.insert(&older).unwrap();
        others.iter().for_each(|key| filter.insert(key).unwrap());
        others
            .iter()
            .for_each(|key| assert!(filter.remove(key).unwrap()));
        assert!(filter.slots() > 48);
        // To where the older one is, since the other bucket is as full when it comes again.
        (0..2).for_each(|_| filter.insert(&newer).unwrap());
        assert!(filter.remove(&from_other_bucket(newer)).unwrap());
        assert_eq!([older, newer].map(|key| filter.count(&key)), [1, 2]);
        let twin = from_other_bucket(newer);
        let moves = move |others: &Growing| hop(others, newer, twin);
        let removed = before_step(&filter, at, moves, |filter| filter.remove(&twin).unwrap());
        let is_kept = removed && filter.contains(&older);
        assert!(is_kept, "lost before step {at}");
    }
}
