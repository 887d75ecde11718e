//! Copies of a growing filter while keys move between buckets of different levels, while buckets are split, and
//! while slots without a bit left are doubled: what a copy has, and how many keys it says that it has.

use std::io::Read;
use std::rc::Rc;
use std::sync::Arc;

use filter::{Filter, GrowingCuckooFilter};

use crate::at_step::{before_step, gone, hop, pairs, steps_of, stopped};
use crate::small::Identity;
use crate::small::growing::{
    FILLING, Growing, apart, from_other_bucket, grown, holding, key, staying,
};

/// Slots of a filter that began with 48 and has grown 2^9 times.
const SLOTS: usize = 48 << 9;

/// Inserts the keys from 0 on until the filter has this many slots; returns how many keys.
fn grow_to(filter: &GrowingCuckooFilter, slots: usize) -> u64 {
    let mut keys = 0;
    while filter.slots() < slots {
        filter.insert(&keys).unwrap();
        keys += 1;
    }
    keys
}

fn remove_all(filter: &GrowingCuckooFilter, keys: u64) {
    assert!((0..keys).all(|key| filter.remove(&key).unwrap()));
}

fn loaded(bytes: &[u8]) -> Arc<GrowingCuckooFilter> {
    Arc::new(GrowingCuckooFilter::from_bytes(bytes).unwrap())
}

/// A saved filter of one key that has no bit left, and the key: its slot is doubled by the next split.
fn about_to_double() -> (Vec<u8>, u64) {
    // Others may have shifted a key away from the first bucket.
    let saved = |only: u64| {
        let filter = GrowingCuckooFilter::builder().buckets(16).build().unwrap();
        if filter.hash_one(&only) >> 6 & ((1 << 13) - 1) != 0 {
            return None;
        }
        filter.insert(&only).unwrap();
        remove_all(&filter, grow_to(&filter, SLOTS));
        assert_eq!((filter.slots(), filter.len()), (SLOTS, 1));
        let saved = filter.to_bytes().unwrap();
        grow_to(&filter, SLOTS + 1);
        let doubled = filter.to_bytes().unwrap()[24];
        (doubled == 1).then_some((saved, only))
    };
    let found = (1 << 40..1 << 41).find_map(saved);
    found.expect("one key in 2^13 begins in the first bucket")
}

/// The slot is doubled while the copy begins, or the saving: it may be in the copy divided or not, and count as doubled
/// or not.
#[test]
fn copy_begun_during_slot_doubling_counts_keys() {
    let (saved, only) = about_to_double();
    let copies: [fn(&GrowingCuckooFilter) -> GrowingCuckooFilter; 2] = [
        |filter| filter.try_clone().unwrap(),
        |filter| GrowingCuckooFilter::from_bytes(&filter.to_bytes().unwrap()).unwrap(),
    ];
    // More steps than it takes to begin.
    for (copy, at) in pairs(copies, 0..30) {
        let double = |others: &_| remove_all(others, grow_to(others, SLOTS + 1));
        let mut copy = before_step(&loaded(&saved), at, double, copy);
        assert!(copy.contains(&only), "before step {at}");
        let held = copy.len();
        copy.shrink_to_fit();
        // A copy that says that it has too few keys loses one here.
        assert!(copy.contains(&only), "before step {at}: {held} keys");
        assert!((1..=2).contains(&held), "before step {at}: {held}");
    }
}

/// At any step, the table grows by far more than a copy has places for; and then a key moves to a bucket that
/// was perhaps read before. It is in the copy.
#[test]
fn copy_outgrown_by_table_is_complete() {
    let item = key(apart(11 ^ 15, 4, 0), 11);
    let twin = from_other_bucket(item);
    // What is added to bucket 14 must also be kept in bucket 30, which is the first without a place.
    let filling = || (0..).filter(|address| !matches!(address & 15, 0 | 11 | 15));
    for at in 0..160 {
        let outgrow = move |others: &Growing| {
            let mut filling = filling();
            while others.slots() < 3 * 34 {
                let next = filling.next().expect("there is no end");
                others.insert(&staying(next)).unwrap();
            }
            others.insert(&staying(32)).unwrap();
            hop(others, twin, item);
        };
        let copy = before_step(&holding(16, &[twin]), at, outgrow, Growing::try_clone).unwrap();
        assert!(copy.contains(&item), "missing: before step {at}");
    }
}

/// A key is added to one of its buckets before a step of a copy; and another copy of it is then removed from the
/// other bucket, by a thread that began before. Of buckets 0, 1 and 2, the first two have been split, into 16 and
/// 17. The key is in the copy.
#[test]
fn copy_holds_key_moving_between_levels() {
    // Which buckets a key can have depends on its tag.
    let keys = (0..64).flat_map(|tag| [0, 1, 2, 16, 17, 18].map(|first| key(tag, first)));
    let near = |item: &u64| (from_other_bucket(*item) >> 6 & 15) < 3;
    for item in keys.filter(near) {
        let twin = from_other_bucket(item);
        for (from, at) in pairs(0.., (0..70).step_by(4)) {
            let filter = grown();
            filter.insert(&twin).unwrap();
            let removing = stopped(&filter, from, move |filter| filter.remove(&twin).unwrap());
            // It may have been removed: what follows would begin when there is none.
            let Some(removing) = removing.filter(|_| filter.contains(&item)) else {
                break;
            };
            let moves = move |others: &Growing| {
                others.insert(&item).unwrap();
                assert!(removing.thaw());
            };
            let copy = before_step(&filter, at, moves, Growing::try_clone).unwrap();
            let case = format!("{item:#x}, removed from {from} on, at {at}");
            assert_eq!(filter.count(&item), 1, "{case}");
            assert!((1..=2).contains(&copy.count(&item)), "{case}");
        }
    }
}

/// A split begins, by a thread that does not know of the copy, when one that knows of it has read the bucket and is
/// about to add a key whose other bucket that is: it keeps that one before the new one.
#[test]
fn copy_holds_key_split_by_unaware_thread() {
    let hopping = key(apart(16 ^ 5, 5, 0), 16);
    let hopped = from_other_bucket(hopping);
    let held = [hopping, staying(1), staying(17), staying(33)];
    let filter = holding(16, &held);
    let counted = std::thread::spawn(move || steps_of(|| filter.insert(&staying(49)).unwrap()));
    let steps = counted.join().unwrap();
    // A search comes first.
    let first = steps.saturating_sub(60);
    for step in first..steps {
        for (at, then) in pairs(2..12, 0..24) {
            let filter = holding(16, &held);
            let splitting = stopped(&filter, step, |filter| filter.insert(&staying(49)));
            let others = Arc::clone(&filter);
            let Some(splitting) = splitting else {
                assert!(step > first + 10, "{step} of {steps} steps");
                return;
            };
            let splitting = Rc::new(splitting);
            let stopped = Rc::clone(&splitting);
            let hop = move |_: &Growing| {
                let go_on = move |_: &Growing| _ = stopped.advance(1);
                before_step(&others, then, go_on, |filter| filter.insert(&hopped)).unwrap();
                assert!(others.remove(&hopping).unwrap());
            };
            let copy = before_step(&filter, at, hop, Growing::try_clone).unwrap();
            let copies = copy.count(&hopping);
            let case = format!("stopped at {step}, goes on at {then} of {at}");
            assert!((1..=2).contains(&copies), "{case}: {copies}");
            Rc::into_inner(splitting).unwrap().thaw().unwrap();
        }
    }
}

/// A thread is stopped for good at any step of an insert that moves keys and splits buckets, as a `fork` leaves it: a
/// filter read in place has all keys, and the one of that insert or not. That one is not thrown away, although it may
/// be the only one left and not counted.
#[test]
fn filter_after_thread_has_gone_keeps_all_keys() {
    let held: Vec<u64> = FILLING[..3].iter().map(|&at| staying(at)).collect();
    let last = staying(FILLING[3]);
    let (mut with, mut uncounted) = (0, 0);
    for at in 0..160 {
        let filter = holding(16, &held);
        let ended = !gone(&filter, at, move |filter| filter.insert(&last));
        let mut filter = Arc::into_inner(filter).expect("the thread has gone");
        let mut bytes = Vec::new();
        filter.saved_bytes().read_to_end(&mut bytes).unwrap();
        let builder = GrowingCuckooFilter::builder().unmixed_hasher(Identity::default());
        let loaded = builder.load_bytes(&bytes).unwrap();
        assert!(held.iter().all(|key| loaded.contains(key)), "step {at}");
        assert_eq!(loaded.contains(&last), filter.contains(&last), "step {at}");
        let inserted = usize::from(loaded.contains(&last));
        assert_eq!(loaded.len(), held.len() + inserted, "step {at}");
        with += inserted;
        uncounted += usize::from(loaded.slots() > filter.slots());
        assert!(held.iter().all(|key| filter.remove(key).unwrap()));
        filter.shrink_to_fit();
        assert_eq!(filter.contains(&last), inserted == 1, "step {at}");
        if ended {
            let case = format!("{at} steps, {with} times inserted, {uncounted} uncounted");
            assert!(at > 50 && with < at as usize && uncounted > 0, "{case}");
            return;
        }
    }
    panic!("it does not end");
}

/// Two threads have gone, each while it split a run; the second run may have been made and not the first. No key is
/// lost when the filter shrinks.
#[test]
fn shrinking_keeps_keys_in_uncounted_buckets() {
    let [first, second] = [2, 4].map(|bucket| FILLING.map(|at| staying(at + bucket)));
    let held = [&first[..3], &second[..3]].concat();
    let (mut both, mut uncounted, mut shrunk) = (0, 0, 0);
    // Six steps lie between the two changes of a run. Which ones depends on the threads' ids.
    for (at, then) in pairs((20..80).step_by(5), 0..200) {
        let filter = grown();
        held.iter().for_each(|key| filter.insert(key).unwrap());
        let [one, other] = [(at, first[3]), (then, second[3])]
            .map(|(at, key)| gone(&filter, at, move |filter| filter.insert(&key)));
        both += usize::from(one && other);
        let mut filter = Arc::into_inner(filter).expect("the threads have gone");
        uncounted += usize::from(one && !other && filter.slots() < 3 * 20);
        filter.shrink_to_fit();
        let lost = held.iter().find(|key| !filter.contains(key));
        assert_eq!(lost, None, "gone at {at} and {then}");
        // Otherwise a thread may have gone before it counted its key.
        if filter.slots() < 3 * 18 {
            let is_there = |key: &&u64| filter.contains(*key);
            let inserted = [first[3], second[3]].iter().filter(is_there).count();
            let all = held.len() + inserted;
            assert_eq!(filter.len(), all, "gone at {at} and {then}");
            shrunk += 1;
        }
        // No bucket is left whose split must end first: there may be no memory for the other half.
        assert!(held.iter().all(|key| filter.remove(key).unwrap()));
    }
    let case = format!("{both}, {uncounted}, {shrunk}");
    assert!(both > 20 && uncounted > 0 && shrunk > 20, "{case}");
}
