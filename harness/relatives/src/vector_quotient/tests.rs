//! Sizes, and the choice of a block.

#[cfg(feature = "steps")]
use std::rc::Rc;

#[cfg(feature = "steps")]
use super::instructions::Portable;
use super::*;

fn two_blocks() -> VectorQuotient {
    VectorQuotient::with_buckets(2 * SLOTS / SLOTS_PER_BUCKET).unwrap()
}

#[test]
fn block_is_one_cache_line() {
    assert_eq!((size_of::<Block>(), align_of::<Block>()), (64, 64));
    let filter = VectorQuotient::with_buckets(13).unwrap();
    assert_eq!((filter.slots(13), filter.memory_bytes()), (92, 128));
}

#[test]
fn shortcut_leaves_second_block_alone() {
    let filter = two_blocks();
    let mut keys = (0..).filter(|key: &u64| filter.place(key).blocks == [1, 0]);
    for (more, expected) in [
        (SHORTCUT, [0, SHORTCUT]),
        (SHORTCUT, [SHORTCUT; 2]),
        (2 * (SLOTS - SHORTCUT), [SLOTS; 2]),
    ] {
        assert!(keys.by_ref().take(more).all(|key| filter.insert(&key)));
        let taken = [0, 1].map(|block: usize| filter.blocks[block].taken());
        assert_eq!(taken, expected);
    }
    assert!(!filter.insert(&keys.next().unwrap()));
}

/// What an insert took for the emptier block is full when it gets there.
#[cfg(feature = "steps")]
#[test]
fn insert_checks_both_blocks_before_refusing() {
    let wanted = Query { bucket: 9, tag: 7 };
    let place = Place {
        blocks: [0, 1],
        wanted,
    };
    let filter = Rc::new(two_blocks());
    let other = Rc::clone(&filter);
    let hook = move |step| {
        // It has read the runs of the first block, and not yet taken it.
        if step == 2 {
            while Block::insert(&other.hold(0), Portable, wanted) {}
        }
    };
    let insert = || with_instructions!(filter.processor, with => filter.insert_at(with, place));
    let inserted = kcas_testing::steps::with_hook(hook, insert);
    let taken = [0, 1].map(|block: usize| filter.blocks[block].taken());
    assert_eq!((inserted, taken), (true, [SLOTS, 1]));
}
