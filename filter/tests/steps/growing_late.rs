//! Threads of a growing filter that look at buckets of different moments, or at more than one round of splits, or at
//! a run of splits that another thread has begun and will not end.

use std::sync::{Arc, Mutex};

use filter::{GrowingCuckooFilter, internals};
use kcas_testing::steps::{with_hook, within};

use crate::at_step::{before_step, pairs, stopped, stops};
use crate::growing_stalls::{buckets_after, state};
use crate::small::Identity;
use crate::small::Operation::Insert;
use crate::small::growing::{
    FILLING, Growing, apart, from_other_bucket, grown, holding, key, staying,
};

/// Returns a key that should be there, and is not.
fn lost(filter: &Growing, held: &[u64]) -> Option<u64> {
    let mut held = held.iter().copied();
    held.find(|key| !filter.contains(key))
}

/// A thread stops within a run of splits that it has begun: the others make that run, and the rounds after it.
#[test]
fn growth_does_not_wait_for_stopped_thread() {
    let filling = FILLING.map(staying);
    let keys: Vec<u64> = (1..=150).map(filter::mix).collect();
    let split = move |filter: &Growing| filter.insert(&filling[3]);
    for (step, filter, splitting) in stops(50, || holding(16, &filling[..3]), split) {
        for key in &keys {
            within(10_000, || filter.insert(key)).unwrap();
        }
        assert!(filter.slots() > 3 * 32, "stopped at {step}");
        splitting.thaw().unwrap();
        let left = (lost(&filter, &[&filling[..], &keys].concat()), filter.len());
        assert_eq!(left, (None, 4 + keys.len()), "stopped at {step}");
    }
}

/// A thread stops within the last run but one of a round: another one makes the last, and a third finds no run to make
/// but that of the stopped one. Then a chain leads to the bucket that the next round would split first.
#[test]
fn round_begins_only_after_previous_round() {
    let splitting = |from: u64| FILLING.map(|address| staying(address + from));
    let moves = key(apart(5 ^ 32, 6, 0), 5);
    let held = [moves, staying(5), staying(37)];
    let [one, two] = [12, 14].map(splitting);
    let first = [&held[..], &one[..3]].concat();
    let make = || {
        let filter = holding(16, &[]);
        for keys in (0..6).map(|run| splitting(2 * run)) {
            keys.iter().for_each(|key| filter.insert(key).unwrap());
            assert!(keys.iter().all(|key| filter.remove(key).unwrap()));
        }
        assert_eq!(filter.slots(), 3 * 28);
        first.iter().for_each(|key| filter.insert(key).unwrap());
        filter
    };
    let split = move |filter: &Growing| filter.insert(&one[3]);
    for (step, filter, stopped) in stops(50, make, split) {
        let others = [&two[..], &[1, 33, 65, 97].map(staying)].concat();
        for key in &others {
            within(3_000, || filter.insert(key)).unwrap();
        }
        within(3_000, || filter.insert(&staying(69))).unwrap();
        stopped.thaw().unwrap();
        let lost = lost(&filter, &[&first[..], &others].concat());
        assert_eq!(lost, None, "stopped at {step}");
    }
}

/// One thread stops within a run of splits, and another one after later runs, which are not counted yet. The half of
/// a bucket of the next run is where a chain leads, or that of the last bucket that may be split.
#[test]
fn chain_reaches_uncounted_bucket() {
    let [first, second] = [0, 8].map(|from| FILLING.map(|address| staying(address + from)));
    let mut uncounted = [0; 2];
    // Six steps lie between the two changes of a run. Which ones depends on the thread's id.
    for (step, then) in pairs((20..80).step_by(5), 0..200) {
        for (nth, (from, to)) in [(5, 18), (10, 23)].into_iter().enumerate() {
            let moves = key(apart(from ^ to, 5, 0), from);
            let others = [moves, staying(from), staying(from + 16)];
            let held = [&others, &first[..3], &second[..3]].concat();
            let filter = holding(16, &held);
            let split = |at, key: u64| stopped(&filter, at, move |filter| filter.insert(&key));
            let Some(splitting) = split(step, first[3]) else {
                continue;
            };
            if let Some(other) = split(then, second[3]) {
                within(3_000, || filter.insert(&staying(from + 32))).unwrap();
                other.thaw().unwrap();
                // Later runs are made, and the first one is not, or all would be counted.
                uncounted[nth] += u32::from(filter.slots() < 3 * 18);
            }
            splitting.thaw().unwrap();
            let lost = lost(&filter, &held);
            assert_eq!(lost, None, "to {to}, stopped at {step} and {then}");
        }
    }
    assert!(uncounted.iter().all(|&times| times > 100), "{uncounted:?}");
}

/// While a thread looks for a key, the table grows by more than a doubling: the key's first bucket has been split
/// twice, and the one that was made of it at first has been split once.
#[test]
fn lookup_follows_successive_splits() {
    for address in [0, 16, 32, 48] {
        let looked_up = key(apart(3, 5, 0), address);
        for at in 0..8 {
            let filter = holding(16, &[looked_up]);
            let grows = Arc::clone(&filter);
            let hook = move |step| {
                assert!(step < 200, "it has no end");
                let mut keys = (1..).map(filter::mix);
                while step == at && grows.slots() < 3 * 34 {
                    grows.insert(&keys.next().unwrap()).unwrap();
                }
            };
            let found = with_hook(hook, || filter.count(&looked_up) > 0);
            assert!(found, "{address}, before step {at}");
        }
    }
}

/// A chain is to move a key into a bucket that is split after the chain's thread has read how many there are: the key
/// must go to the half where it is looked for.
#[test]
fn chain_moves_no_key_to_wrong_half() {
    // From bucket 2 to bucket 0, which will be 16; or from 14 to 12, which is split only after six runs, and will be
    // 28.
    for (from, to) in [(2, 0), (14, 12)] {
        let moves = key(apart(18, 5, 0), from);
        let [filling @ .., split] = FILLING.map(|address| staying(address + to + 1));
        let held = [&[moves, staying(from), staying(from + 16)], &filling[..]].concat();
        let chain = ("insert, with a chain", Insert(staying(from + 32)));
        let state = state("before a split", held, Vec::new());
        assert!(buckets_after(&state, split) > 16);
        state.stopped_at_every_step(&[chain], &[Insert(split)]);
    }
}

/// While an insert looks for a chain, the table grows by two doublings, and then another thread stops within a run: the
/// insert knows too few bits of where a key of its bucket may move, and looks at a bucket of that run.
#[test]
fn chain_from_bucket_two_rounds_old_fails() {
    // Fills this bucket, so that the last key splits the run that it is in.
    let filling = |bucket: u64, round: u64| {
        let alone = apart(0, 6, 0);
        (0..4).map(move |nth| key(alone, bucket + nth * round))
    };
    // From an odd bucket to 96 of 128, which is 0 if bit 5 is not known, and bit 6 is not either.
    let tag = apart(0b0_0011, 6, 0);
    let moves = key(tag, 96 ^ internals::apart(tag));
    let bucket = (96 ^ internals::apart(tag)) % 16;
    assert!(bucket % 2 == 1);
    let held = [moves, staying(bucket), staying(bucket + 16)];
    let mut met = 0;
    for (at, then) in pairs(0..60, (40..160).step_by(3)) {
        let filter = holding(16, &held);
        let (others, stopped_there) = (Arc::clone(&filter), Arc::default());
        let kept: Arc<Mutex<Vec<_>>> = Arc::clone(&stopped_there);
        let hook = move |step| {
            if step != at {
                return;
            }
            for round in [16, 32] {
                for from in (0..round).step_by(2) {
                    filling(from, round).for_each(|key| others.insert(&key).unwrap());
                    assert!(filling(from, round).all(|key| others.remove(&key).unwrap()));
                }
            }
            assert_eq!(others.slots(), 3 * 64);
            let mut keys: Vec<u64> = filling(0, 64).collect();
            let last = keys.pop().unwrap();
            keys.iter().for_each(|key| others.insert(key).unwrap());
            let stopped = stopped(&others, then, move |filter| filter.insert(&last));
            kept.lock().unwrap().extend(stopped);
        };
        let new = staying(bucket + 32);
        with_hook(hook, || filter.insert(&new)).unwrap();
        for stopped in stopped_there.lock().unwrap().drain(..) {
            met += 1;
            stopped.thaw().unwrap();
        }
        let lost = lost(&filter, &[&held[..], &[new]].concat());
        assert_eq!(lost, None, "before step {at}, stopped at {then}");
    }
    assert!(met > 300, "{met}");
}

/// An insert finds both buckets full, and before one of its steps another thread splits the one or the other, with
/// which the table has grown as far as it may: the key's half has had room ever since.
#[test]
fn insert_with_bucket_just_split_is_not_refused() {
    let rate = grown().false_positive_rate();
    let builder = GrowingCuckooFilter::builder().buckets(16);
    let builder = builder.max_false_positive_rate(rate);
    let first_not_split = key(apart(3 ^ 16, 5, 0), 3);
    let first_split = from_other_bucket(first_not_split);
    for (at, new) in pairs(0..60, [first_not_split, first_split]) {
        for insert in [Growing::insert_if_absent, |filter: &Growing, key: &u64| {
            filter.insert(key).map(|()| true)
        }] {
            let hasher = Identity::default();
            let builder = builder.clone().unmixed_hasher(hasher);
            let filter: Arc<Growing> = Arc::new(builder.build().unwrap());
            let held = [0, 32, 64, 3, 35, 67].map(staying);
            held.iter().for_each(|key| filter.insert(key).unwrap());
            assert_eq!(filter.slots(), 3 * 16);
            let split = |filter: &Growing| filter.insert(&staying(16)).unwrap();
            let inserted = before_step(&filter, at, split, |filter| insert(filter, &new));
            assert_eq!(inserted, Ok(true), "{new:#x}, before step {at}");
            assert_eq!(filter.slots(), 3 * 18);
            assert_eq!(lost(&filter, &held), None);
        }
    }
}
