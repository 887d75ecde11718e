//! Timestamps wrap. These tests show exactly how many additions to one bucket must fall within one
//! lookup to fool it: with one fewer, it is not fooled. (`growing_wraps.rs` shows what
//! fools a growing filter.)

use std::sync::Arc;

use crate::at_step::{ONCE, add, hop, hopping};
use crate::small::{BUCKETS, Identity, key_of};
use filter::CuckooFilter;
use filter::layout::Layout;

/// Whether a key is found after its copy has been [`hopping`]: the first hop is one addition to its first bucket.
fn found_after<const SLOTS: usize, const BITS: usize>(
    more: impl Fn(&Arc<CuckooFilter<Identity, SLOTS, BITS>>) + 'static,
) -> bool {
    let key = |first, second, nth| key_of::<SLOTS, BITS>(first, second, nth);
    let keys = [key(0, 1, 0), key(1, 0, 0)];
    let builder = CuckooFilter::builder().layout::<SLOTS, BITS>();
    let builder = builder.buckets(BUCKETS).unmixed_hasher(Identity::default());
    let filter = Arc::new(builder.build().unwrap());
    assert_eq!(filter.class(&keys[0]), filter.class(&keys[1]));
    let more = move |others: &_, _| more(others);
    hopping(&filter, keys, hop, ONCE, CuckooFilter::contains, more)
}

/// [`found_after`] this many additions to the first bucket in all.
fn found_after_additions<const SLOTS: usize, const BITS: usize>(additions: u64) -> bool {
    let other = key_of::<SLOTS, BITS>(0, 1, 1);
    found_after::<SLOTS, BITS>(move |filter| add(&**filter, other, additions - 1))
}

/// Copies of the filter advance timestamps, too.
#[test]
fn copies_advance_timestamp_like_additions() {
    let turn = 1 << Layout::<8, 7>::TIMESTAMP_BITS;
    for copies in [0, 1, turn - 2, turn - 1, turn] {
        let found = found_after::<8, 7>(move |filter| {
            (0..copies).for_each(|_| drop(filter.try_clone().unwrap()));
        });
        assert_eq!(found, copies != turn - 1, "{copies} copies");
    }
}

fn is_fooled_by_a_whole_turn_only<const SLOTS: usize, const BITS: usize>() {
    let turn = 1 << Layout::<SLOTS, BITS>::TIMESTAMP_BITS;
    for additions in [1, 2, turn / 2, turn - 1, turn + 1, 2 * turn - 1] {
        let found = found_after_additions::<SLOTS, BITS>(additions);
        assert!(found, "{SLOTS}×{BITS}: fooled by {additions} additions");
    }
    for turns in [1, 2] {
        let found = found_after_additions::<SLOTS, BITS>(turns * turn);
        let case = "the docs say that it is fooled by turns:";
        assert!(!found, "{SLOTS}×{BITS}: {case} {turns}");
    }
}

#[test]
fn lookup_is_misled_only_by_whole_timestamp_wrap() {
    is_fooled_by_a_whole_turn_only::<8, 7>(); // 7 bits of timestamp
    is_fooled_by_a_whole_turn_only::<2, 28>(); // 7
    is_fooled_by_a_whole_turn_only::<4, 13>(); // 11
    is_fooled_by_a_whole_turn_only::<4, 12>(); // 15
    is_fooled_by_a_whole_turn_only::<3, 16>(); // 15
    is_fooled_by_a_whole_turn_only::<2, 24>(); // 15
}
