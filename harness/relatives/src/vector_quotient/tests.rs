use super::instructions::Portable;
use super::*;

#[test]
fn a_block_is_a_cache_line() {
    assert_eq!((size_of::<Block>(), align_of::<Block>()), (64, 64));
    let filter = VectorQuotient::with_buckets(13).unwrap();
    assert_eq!((filter.blocks.len(), filter.slots()), (2, 92));
    assert_eq!(filter.memory_bytes(), 128);
}

/// A filter of these blocks that uses these instructions.
fn filter_of(blocks: usize, processor: Processor) -> VectorQuotient {
    let buckets = blocks * SLOTS / SLOTS_PER_BUCKET;
    VectorQuotient {
        processor,
        ..VectorQuotient::with_buckets(buckets).unwrap()
    }
}

#[test]
fn the_shortcut_leaves_the_second_block_alone() {
    let filter = filter_of(2, Processor::best());
    let taken = |block: usize| filter.blocks[block].taken();
    let prefers = |key: &u64| filter.place(key).blocks == [1, 0];
    let mut keys = (0..).filter(prefers);
    for key in keys.by_ref().take(SHORTCUT) {
        assert!(filter.insert(&key));
    }
    assert_eq!((taken(0), taken(1)), (0, SHORTCUT));
    for key in keys.by_ref().take(SHORTCUT) {
        assert!(filter.insert(&key));
    }
    assert_eq!((taken(0), taken(1)), (SHORTCUT, SHORTCUT));
    for key in keys.by_ref().take(2 * (SLOTS - SHORTCUT)) {
        assert!(filter.insert(&key));
    }
    assert_eq!((taken(0), taken(1)), (SLOTS, SLOTS));
    let refused = keys.next().unwrap();
    assert!(!filter.insert(&refused));
}

#[test]
fn a_version_is_still_only_while_nobody_takes_the_block() {
    let filter = filter_of(2, Processor::best());
    let block = &filter.blocks[0];
    let before = block.now();
    assert_eq!(block.change_since(before), 0);
    let held = filter.hold(0);
    assert!(block.change_since(before) != 0);
    assert!(
        block.change_since(block.now()) != 0,
        "somebody may be writing now"
    );
    drop(held);
    assert!(block.change_since(before) != 0);
    assert_eq!(block.change_since(block.now()), 0);
}

/// What another thread does at one step of a call.
#[cfg(feature = "steps")]
mod steps {
    use std::cell::Cell;
    use std::rc::Rc;

    use subject::spin::Spin;

    use super::*;

    const WANTED: Wanted = Wanted { bucket: 9, tag: 7 };

    /// More than a lookup or a remove has.
    const STEPS: u64 = 60;

    fn insert(filter: &VectorQuotient, block: usize, wanted: Wanted) {
        assert!(filter.hold(block).insert(Portable, wanted));
    }

    fn remove(filter: &VectorQuotient, block: usize, wanted: Wanted) {
        let held = filter.hold(block);
        held.remove(&held.block().find(Portable, wanted).unwrap());
    }

    fn hop(filter: &VectorQuotient, from: usize) {
        insert(filter, 1 - from, WANTED);
        remove(filter, from, WANTED);
    }

    /// For all instructions, and each step of a call: makes a filter of two blocks, makes the call,
    /// and, before that step, `between`. Passes the filter and the answer on.
    fn at_each_step<R>(
        prepare: impl Fn(&VectorQuotient),
        call: impl Fn(&VectorQuotient) -> R,
        between: impl Fn(&VectorQuotient) + Copy + 'static,
        then: impl Fn(&VectorQuotient, R, u64),
    ) {
        for processor in Processor::available() {
            let happened = Rc::new(Cell::new(0));
            for at in 0..STEPS {
                let filter = Rc::new(filter_of(2, processor));
                prepare(&filter);
                let (other, count) = (Rc::clone(&filter), Rc::clone(&happened));
                let hook = move |step| {
                    if step == at && other.blocks.iter().all(|block| !block.is_held()) {
                        between(&other);
                        count.set(count.get() + 1);
                    }
                };
                let answer = kcas::steps::with_hook(hook, || call(&filter));
                then(&filter, answer, at);
            }
            // A lookup has ten steps or more.
            assert!(happened.get() >= 10, "{processor:?}: {}", happened.get());
        }
    }

    fn find(filter: &VectorQuotient, blocks: [usize; 2]) -> bool {
        let place = Place {
            blocks,
            wanted: WANTED,
        };
        with_instructions!(filter.processor, with => filter.has(with, place))
    }

    /// The only copy may always be in the block that the lookup is not reading.
    #[test]
    fn a_copy_that_hops_behind_a_lookup_is_found() {
        for blocks in [[0, 1], [1, 0]] {
            at_each_step(
                |filter| insert(filter, 0, WANTED),
                |filter| find(filter, blocks),
                |filter| hop(filter, 0),
                |_, found, step| assert!(found, "{blocks:?}, step {step}"),
            );
        }
    }

    /// All tags move by one slot after the lookup has learnt where its bucket is.
    #[test]
    fn tags_that_move_do_not_hide_a_copy() {
        let before = Wanted { bucket: 3, tag: 1 };
        at_each_step(
            |filter| insert(filter, 0, WANTED),
            |filter| find(filter, [0, 1]),
            move |filter| insert(filter, 0, before),
            |_, found, step| assert!(found, "step {step}"),
        );
    }

    /// The tag of another bucket moves to where the lookup expects those of its own.
    #[test]
    fn tags_that_move_are_not_taken_for_others() {
        let (before, own) = (Wanted { bucket: 3, tag: 1 }, Wanted { tag: 2, ..WANTED });
        let after = Wanted {
            bucket: 10,
            ..WANTED
        };
        at_each_step(
            |filter| {
                for other in [before, own, after] {
                    insert(filter, 0, other);
                }
            },
            |filter| find(filter, [0, 1]),
            move |filter| remove(filter, 0, before),
            |_, found, step| assert!(!found, "step {step}"),
        );
    }

    /// The copy may leave the block after the remove has seen it there.
    #[test]
    fn a_copy_that_hops_before_a_remove_is_removed() {
        let place = Place {
            blocks: [0, 1],
            wanted: WANTED,
        };
        at_each_step(
            |filter| insert(filter, 0, WANTED),
            |filter| with_instructions!(filter.processor, with => filter.remove_at(with, place)),
            |filter| {
                if find(filter, [0, 1]) {
                    hop(filter, 0);
                }
            },
            |filter, removed, step| {
                assert!(removed && !find(filter, [0, 1]), "step {step}");
            },
        );
    }

    /// What an insert took for the emptier block is full when it gets there.
    #[test]
    fn an_insert_looks_into_both_blocks_before_it_refuses() {
        let place = Place {
            blocks: [0, 1],
            wanted: WANTED,
        };
        let filter = Rc::new(filter_of(2, Processor::best()));
        let other = Rc::clone(&filter);
        let hook = move |step| {
            // It has read the runs of the first block, and not yet taken it.
            if step == 2 {
                while other.hold(0).insert(Portable, WANTED) {}
            }
        };
        let inserted = kcas::steps::with_hook(
            hook,
            || with_instructions!(filter.processor, with => filter.insert_at(with, place)),
        );
        let taken = [0, 1].map(|block: usize| filter.blocks[block].taken());
        assert_eq!((inserted, taken), (true, [SLOTS, 1]));
    }
}
