use super::*;

/// A filter of these blocks that uses these instructions.
fn filter_of(blocks: usize, processor: Processor) -> VectorQuotient {
    let buckets = blocks * SLOTS / SLOTS_PER_BUCKET;
    VectorQuotient {
        processor,
        ..VectorQuotient::with_buckets(buckets).unwrap()
    }
}

#[test]
fn a_block_is_a_cache_line() {
    assert_eq!((size_of::<Block>(), align_of::<Block>()), (64, 64));
    let filter = VectorQuotient::with_buckets(13).unwrap();
    assert_eq!((filter.slots(13), filter.memory_bytes()), (92, 128));
}

#[test]
fn the_shortcut_leaves_the_second_block_alone() {
    let filter = filter_of(2, Processor::best());
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

/// What another thread does at one step of a call.
#[cfg(feature = "steps")]
mod steps {
    use std::cell::Cell;
    use std::rc::Rc;

    use subject::spin::Spin;

    use super::super::instructions::Portable;
    use super::*;

    /// More steps than a lookup or a remove has.
    const STEPS: u64 = 60;

    const fn tag(bucket: usize, tag: u8) -> Wanted {
        Wanted { bucket, tag }
    }

    const WANTED: Wanted = tag(9, 7);

    const fn at(blocks: [usize; 2]) -> Place {
        let wanted = WANTED;
        Place { blocks, wanted }
    }

    fn insert(filter: &VectorQuotient, wanted: Wanted) {
        assert!(Block::insert(&filter.hold(0), Portable, wanted));
    }

    fn remove(filter: &VectorQuotient, wanted: Wanted) {
        let held = filter.hold(0);
        Block::remove(&held, &held.0.find(Portable, wanted).unwrap());
    }

    fn hop(filter: &VectorQuotient) {
        assert!(Block::insert(&filter.hold(1), Portable, WANTED));
        remove(filter, WANTED);
    }

    fn find(filter: &VectorQuotient, blocks: [usize; 2]) -> bool {
        with_instructions!(filter.processor, with => filter.has(with, at(blocks)))
    }

    /// For all instructions, and each step of a call: makes a filter of two blocks whose first has
    /// these tags, makes the call, and, before that step, `between`. All calls must answer this.
    fn at_each_step(
        tags: &[Wanted],
        call: impl Fn(&VectorQuotient) -> bool,
        between: impl Fn(&VectorQuotient) + Copy + 'static,
        expected: bool,
    ) {
        for processor in Processor::available() {
            let happened = Rc::new(Cell::new(0));
            for at in 0..STEPS {
                let filter = Rc::new(filter_of(2, processor));
                tags.iter().for_each(|&tag| insert(&filter, tag));
                let (other, count) = (Rc::clone(&filter), Rc::clone(&happened));
                let hook = move |step| {
                    if step == at && other.blocks.iter().all(|block| !block.is_held()) {
                        between(&other);
                        count.set(count.get() + 1);
                    }
                };
                let answer = kcas_testing::steps::with_hook(hook, || call(&filter));
                assert_eq!(answer, expected, "{processor:?}, step {at}");
            }
            // A lookup has ten steps or more.
            assert!(happened.get() >= 10, "{processor:?}: {}", happened.get());
        }
    }

    /// The only copy may always be in the block that the lookup is not reading.
    #[test]
    fn a_copy_that_hops_behind_a_lookup_is_found() {
        for blocks in [[0, 1], [1, 0]] {
            at_each_step(&[WANTED], |filter| find(filter, blocks), hop, true);
        }
    }

    /// All tags move by one slot after the lookup has learnt where its bucket is: they do not hide a
    /// copy, and the tag of another bucket is not taken for one.
    #[test]
    fn tags_that_move_mislead_no_lookup() {
        let (first, look) = (tag(3, 1), |filter: &VectorQuotient| find(filter, [0, 1]));
        at_each_step(&[WANTED], look, move |filter| insert(filter, first), true);
        let others = [first, tag(9, 2), tag(10, 7)];
        at_each_step(&others, look, move |filter| remove(filter, first), false);
    }

    /// The copy may leave the block after the remove has seen it there.
    #[test]
    fn a_copy_that_hops_before_a_remove_is_removed() {
        let remove = |filter: &VectorQuotient| {
            let place = at([0, 1]);
            with_instructions!(filter.processor, with => filter.remove_at(with, place))
                && !find(filter, [0, 1])
        };
        let hop_if_there = |filter: &VectorQuotient| {
            if find(filter, [0, 1]) {
                hop(filter);
            }
        };
        at_each_step(&[WANTED], remove, hop_if_there, true);
    }

    /// What an insert took for the emptier block is full when it gets there.
    #[test]
    fn an_insert_looks_into_both_blocks_before_it_refuses() {
        let filter = Rc::new(filter_of(2, Processor::best()));
        let other = Rc::clone(&filter);
        let hook = move |step| {
            // It has read the runs of the first block, and not yet taken it.
            if step == 2 {
                while Block::insert(&other.hold(0), Portable, WANTED) {}
            }
        };
        let insert =
            || with_instructions!(filter.processor, with => filter.insert_at(with, at([0, 1])));
        let inserted = kcas_testing::steps::with_hook(hook, insert);
        let taken = [0, 1].map(|block: usize| filter.blocks[block].taken());
        assert_eq!((inserted, taken), (true, [SLOTS, 1]));
    }
}
