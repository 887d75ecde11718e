//! Timestamps wrap. These tests show exactly how many additions to one bucket must fall within one
//! lookup to fool it: with one fewer, it is not fooled.

use std::sync::Arc;

use crate::at_step::{ONCE, add, hop, hopping};
use crate::small::{BUCKETS, Identity, key_of};
use filter::CuckooFilter;
use filter::layout::Layout;

/// Whether a key is found after its copy has been [`hopping`], with this many additions to its first bucket in all: the
/// first hop is one.
fn found_after<const SLOTS: usize, const BITS: usize>(additions: u64) -> bool {
    let key = |first, second, nth| key_of::<SLOTS, BITS>(first, second, nth);
    let keys = [key(0, 1, 0), key(1, 0, 0)];
    let builder = CuckooFilter::builder().layout::<SLOTS, BITS>();
    let builder = builder.buckets(BUCKETS).unmixed_hasher(Identity::default());
    let filter = Arc::new(builder.build().unwrap());
    let other = key(0, 1, 1);
    let more = move |filter: &Arc<CuckooFilter<_, _, _>>, _| add(&**filter, other, additions - 1);
    hopping(&filter, keys, hop, ONCE, CuckooFilter::contains, more)
}

fn is_fooled_by_a_whole_turn_only<const SLOTS: usize, const BITS: usize>() {
    let turn = 1 << Layout::<SLOTS, BITS>::TIMESTAMP_BITS;
    for additions in [1, 2, turn / 2, turn - 1, turn + 1, 2 * turn - 1] {
        let found = found_after::<SLOTS, BITS>(additions);
        assert!(found, "{SLOTS}×{BITS}: fooled by {additions} additions");
    }
    for turns in [1, 2] {
        let found = found_after::<SLOTS, BITS>(turns * turn);
        let case = "the docs say that it is fooled by turns:";
        assert!(!found, "{SLOTS}×{BITS}: {case} {turns}");
    }
}

#[test]
fn lookup_is_misled_only_by_whole_timestamp_wrap() {
    is_fooled_by_a_whole_turn_only::<8, 7>(); // 7 bits of timestamp
    is_fooled_by_a_whole_turn_only::<4, 13>(); // 11
    is_fooled_by_a_whole_turn_only::<4, 12>(); // 15
}
