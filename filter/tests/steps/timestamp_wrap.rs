//! Timestamps wrap. These tests show exactly how many additions to one bucket must fall within one
//! lookup to fool it: with one fewer, it is not fooled. Lookups of a growing filter are never
//! fooled.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use crate::small::{BUCKETS, Identity, key_of};
use crate::small_growing::{Growing, key};
use filter::CuckooFilter;
use filter::layout::Layout;
use kcas::steps::with_hook;

fn built<const SLOTS: usize, const BITS: usize>() -> CuckooFilter<SLOTS, BITS, Identity> {
    let builder = CuckooFilter::builder().layout::<SLOTS, BITS>();
    let builder = builder.buckets(BUCKETS).unmixed_hasher(Identity::default());
    builder.build().unwrap()
}

/// Looks up a key whose copy, always there, is first in its second bucket. Before the lookup reads
/// that bucket, the copy moves to the first one, which is one addition to it; and before the lookup
/// reads the first one again, the copy moves back, and then `more` happens.
fn found_after<const SLOTS: usize, const BITS: usize>(
    more: impl Fn(&CuckooFilter<SLOTS, BITS, Identity>) + 'static,
) -> bool {
    let key = |first, second, nth| key_of::<SLOTS, BITS>(first, second, nth);
    let (here, there) = (key(0, 1, 0), key(1, 0, 0));
    let filter = Arc::new(built::<SLOTS, BITS>());
    assert_eq!(filter.class(&here), filter.class(&there));
    filter.insert(&there).unwrap();
    let others = Arc::clone(&filter);
    let hook = move |step| match step {
        1 => {
            others.insert(&here).unwrap();
            assert!(others.remove(&there), "the copy in the second bucket");
        }
        2 => {
            others.insert(&there).unwrap();
            assert!(others.remove(&here), "the copy in the first bucket");
            more(&others);
        }
        _ => {}
    };
    with_hook(hook, || filter.contains(&here))
}

/// [`found_after`] this many additions to the first bucket in all.
fn found_after_additions<const SLOTS: usize, const BITS: usize>(additions: u64) -> bool {
    let other = key_of::<SLOTS, BITS>(0, 1, 1);
    found_after::<SLOTS, BITS>(move |filter| {
        for _ in 1..additions {
            filter.insert(&other).unwrap();
            assert!(filter.remove(&other));
        }
    })
}

/// Copies of the filter advance timestamps, too.
#[test]
fn copies_turn_a_timestamp_as_additions_do() {
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
        assert!(
            !found,
            "{SLOTS}×{BITS}: the docs say that {turns} turns fool it"
        );
    }
}

#[test]
fn a_lookup_is_fooled_by_a_whole_turn_of_the_timestamp_and_nothing_less() {
    is_fooled_by_a_whole_turn_only::<8, 7>(); // 7 bits of timestamp
    is_fooled_by_a_whole_turn_only::<2, 28>(); // 7
    is_fooled_by_a_whole_turn_only::<4, 13>(); // 11
    is_fooled_by_a_whole_turn_only::<4, 12>(); // 15
    is_fooled_by_a_whole_turn_only::<3, 16>(); // 15
    is_fooled_by_a_whole_turn_only::<2, 24>(); // 15
}

/// Returns a growing filter that began with two buckets, now in its table with fingerprints of
/// `bits` bits. The keys that made it grow are not in the slice of keys whose tail is [`TAIL`]. The
/// table has taken over either everything, or nothing in that slice.
fn grown_to(bits: u32, all_taken_over: bool) -> Arc<Growing> {
    let mut filter = crate::small_growing::holding(2, &[]);
    for nth in 100.. {
        let splits = 25 - filter.tables()[0].bits;
        if splits == 25 - bits {
            break;
        }
        // Those in slice 0 part at the next split.
        filter.insert(&key(0, nth, (nth % 2) << splits)).unwrap();
    }
    if all_taken_over {
        let alone = Arc::get_mut(&mut filter).expect("nobody else has it");
        alone.shrink_to_fit().unwrap();
    }
    // In the smallest tables, one insert takes over everything at once.
    let takes_over = !all_taken_over && bits < 19;
    assert_eq!(filter.tables()[0].takes_over, takes_over);
    filter
}

const TAIL: u64 = 0b11;

/// Like [`found_after`], but in a growing filter, and with the interruptions before any two steps
/// of the lookup; `None` if it was over before the second one.
fn found_in(filter: &Arc<Growing>, additions: u64, [away, back]: [u64; 2]) -> Option<bool> {
    // A fingerprint with two buckets, and one more in the first of them.
    let both = |&nth: &u64| filter.class(&key(0, nth, TAIL)) == filter.class(&key(1, nth, TAIL));
    let nth = (0..99).find(both).expect("half of them have");
    let (here, there, other) = (key(0, nth, TAIL), key(1, nth, TAIL), key(0, 99, TAIL));
    filter.insert(&there).unwrap();
    let others = Arc::clone(filter);
    let is_back = Rc::new(Cell::new(false));
    let was_back = Rc::clone(&is_back);
    let hook = move |step| {
        if step == away {
            others.insert(&here).unwrap();
            assert!(others.remove(&there), "the copy in the second bucket");
        }
        if step == back {
            others.insert(&there).unwrap();
            assert!(others.remove(&here), "the copy in the first bucket");
            for _ in 1..additions {
                others.insert(&other).unwrap();
                assert!(others.remove(&other));
            }
            is_back.set(true);
        }
    };
    let found = with_hook(hook, || filter.contains(&here));
    assert!(filter.remove(&there));
    was_back.get().then_some(found)
}

/// In every format whose timestamps are short enough to wrap here.
#[test]
fn a_lookup_of_a_filter_that_grows_is_not_fooled_by_a_whole_turn_either() {
    for (bits, slots) in [
        (25, 2),
        (18, 3),
        (17, 3),
        (16, 3),
        (14, 4),
        (13, 4),
        (12, 4),
    ] {
        // Two bits are flags.
        let turn = 1_u64 << (63 - 2 - slots * bits);
        // A whole turn takes one addition less, since wrapping itself is a step of it.
        for (additions, all_taken_over) in [
            (turn, true),
            (2 * turn, true),
            (turn - 1, true),
            (2 * (turn - 1), true),
            (turn - 1, false),
        ] {
            let mut filter = grown_to(bits, all_taken_over);
            let mut back_in_time = 0;
            for (away, back) in (0..10).flat_map(|back| (0..=back).map(move |away| (away, back))) {
                if !all_taken_over {
                    filter = grown_to(bits, all_taken_over);
                }
                if let Some(found) = found_in(&filter, additions, [away, back]) {
                    back_in_time += 1;
                    assert!(
                        found,
                        "{bits} bits, {additions} additions, before the steps {away} and {back}"
                    );
                }
            }
            assert!(back_in_time > 3);
        }
    }
}
