//! Timestamps of a growing filter that wrap: how many additions it takes to mislead a copy, a lookup
//! or a remove.

use std::sync::Arc;

use crate::at_step::{add, before_step, hop, hopping, pairs, stopped, stopped_before_exchange};
use crate::small::growing::{
    FILLING, Growing, apart, from_other_bucket, grown, holding, key, staying,
};

/// What is in the filter throughout is in the copy, although an insert and a remove that began before the
/// copy end only after this many additions to the first bucket.
fn is_copied_after(before: u64, additions: u64) -> bool {
    let item = key(apart(1, 4, 0), 0);
    let twin = from_other_bucket(item);
    let other = key(apart(0, 4, 0), 0);
    (0..60).all(|at| {
        let filter = holding(16, &[twin]);
        add(&*filter, other, before);
        let inserts = move |filter: &Growing| filter.insert(&item).unwrap();
        let removes = move |filter: &Growing| assert!(filter.remove(&twin).unwrap());
        let inserting = stopped_before_exchange(&filter, 0, inserts).unwrap();
        let removing = stopped_before_exchange(&filter, 0, removes).unwrap();
        let add_and_go_on = move |others: &Growing| {
            add(others, other, additions);
            inserting.thaw();
            removing.thaw();
        };
        let copy = before_step(&filter, at, add_and_go_on, Growing::try_clone).unwrap();
        assert_eq!(filter.count(&item), 1);
        copy.count(&item) == 1
    })
}

/// Also if the bucket has never been changed.
#[test]
fn copy_is_not_misled_by_earlier_calls() {
    assert!((0..3).all(|before| is_copied_after(before, 0)));
}

/// Additions and the copy's own advance, or two of them, are 63 together, or twice as many.
#[test]
fn copy_is_misled_only_by_whole_wrap() {
    let misled: Vec<u64> = (0..=140)
        .filter(|&additions| !is_copied_after(1, additions))
        .collect();
    assert_eq!(misled, [61, 62, 124, 125]);
}

/// A filter of 16 buckets, whose first bucket's timestamp has advanced this many times.
fn advanced(other: u64, times: u64) -> Arc<Growing> {
    let filter = holding(16, &[]);
    add(&*filter, other, times);
    filter
}

/// Each bucket has the counter that lookups of its keys look at. At first, the copy is in the first bucket while a lookup
/// reads the second one. Then a whole turn of 63 additions, some of them before the copy moves and the others after, meets
/// whatever a lookup has read by then, of the bucket and of the counter.
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

/// Whether a key is lost if a remove of another key is delayed: meanwhile a second remove takes the copy that the first
/// has found, there are this many additions to the bucket, and both keys are inserted.
fn is_lost_after(additions: u64) -> bool {
    // They differ in a bit that only slots of their other bucket know, which has been split.
    let [removed, other] = [0, 1 << 13].map(|bit| key(apart(2, 5, 0), 2 | bit));
    let filler = staying(2);
    let filter = grown();
    filter.insert(&removed).unwrap();
    let removes = move |filter: &Growing| assert!(filter.remove(&removed).unwrap());
    let removing = stopped_before_exchange(&filter, 0, removes).unwrap();
    assert!(filter.remove(&removed).unwrap());
    add(&*filter, filler, additions);
    filter.insert(&other).unwrap();
    filter.insert(&removed).unwrap();
    removing.thaw();
    !filter.contains(&other)
}

/// The limit that the docs state: with the insert, the additions are 63, or twice as many.
#[test]
fn overlapping_remove_is_misled_only_by_whole_wrap() {
    let lost: Vec<u64> = (0..=140).filter(|&more| is_lost_after(more)).collect();
    assert_eq!(lost, [62, 125]);
}

/// Whether a key is lost although no timestamp wraps: a remove of another key is stopped before this step. Meanwhile a
/// second remove takes the slot of the key that will be lost, which stands for both; the bucket of that slot is split; and
/// the removed key comes back there, and knows a bit more.
fn is_lost_without_wrap(step: u64) -> bool {
    let twin = key(apart(2, 5, 0), 2);
    let removed = from_other_bucket(twin);
    // They differ in the first bit that a slot does not know before its bucket is split.
    let other = removed ^ 1 << (13 + 6);
    let filter = holding(16, &[twin]);
    assert_eq!(filter.slots(), 48);
    let Some(removing) = stopped(&filter, step, move |filter| {
        filter.remove(&removed).unwrap()
    }) else {
        return false;
    };
    filter.insert(&other).unwrap();
    let is_removed = filter.remove(&removed).unwrap();
    let filling = FILLING.map(staying);
    filling.iter().for_each(|key| filter.insert(key).unwrap());
    assert!(filling.iter().all(|key| filter.remove(key).unwrap()));
    filter.insert(&removed).unwrap();
    is_removed && removing.thaw() && !filter.contains(&other)
}

/// The limit that the docs state.
#[test]
fn overlapping_remove_is_misled_by_split() {
    assert!((0..40).any(is_lost_without_wrap));
}
