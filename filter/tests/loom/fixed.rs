//! The filter under the model checker, with three buckets of two slots. In each execution that is
//! explored, the answers that every thread got are checked against the sequential specification
//! (`small::explained`): some order of the calls that keeps the order within each thread must
//! explain all answers, and what is left in the filter. (Loom has no clock: under a weak memory
//! model it means nothing that two calls of different threads happened one after the other, unless
//! something between them synchronises. `harness check` covers real threads and a real clock.)
//!
//! Run with `scripts/loom.sh`, which prints each model's threads, its bound on preemptions, and its
//! number of executions. The bugs that each model must catch are kept under
//! `filter/tests/planted/`, and `scripts/planted.sh` shows that it does.

use std::sync::Arc;

use crate::small::{Caller, Small, explained, holding, key, residents};
use filter::InsertError;
use kcas::model::{explore, spawn};
use loom::thread::JoinHandle;

/// Spawns a thread of a model that makes calls and records them.
fn caller(
    filter: &Arc<Small>,
    number: usize,
    calls: impl FnOnce(&mut Caller) + 'static,
) -> JoinHandle<Caller> {
    let mut caller = Caller::new(filter, number);
    spawn(move || {
        calls(&mut caller);
        caller
    })
}

fn all_present(filter: &Small, keys: &[u64]) {
    for key in keys {
        assert!(filter.contains(key), "{key:#x} is lost");
    }
}

/// A lookup of a resident key while a chain moves it from one of its buckets to the other.
#[test]
fn lookup_of_a_key_that_a_chain_moves() {
    for moved in [key(1, 0, 3), key(0, 1, 3)] {
        explore("lookup_of_a_key_that_a_chain_moves", 5, 5_800, move || {
            let filter = holding(&residents());
            let new = key(0, 2, 0);
            let writer = caller(&filter, 1, move |writer| {
                assert_eq!(writer.insert(new), Ok(()));
            });
            let mut reader = Caller::new(&filter, 0);
            reader.contains(moved);
            explained(&residents(), [reader, writer.join().unwrap()]);
            all_present(&filter, &residents());
            all_present(&filter, &[new]);
        });
    }
}

/// The same for a lookup in a batch, in which the buckets of another key are loaded between its
/// own.
#[test]
fn batch_with_a_key_that_a_chain_moves() {
    for moved in [key(0, 1, 3), key(1, 0, 3)] {
        explore("batch_with_a_key_that_a_chain_moves", 4, 3_400, move || {
            let filter = holding(&residents());
            let writer = caller(&filter, 1, move |writer| {
                assert_eq!(writer.insert(key(0, 2, 0)), Ok(()));
            });
            let mut reader = Caller::new(&filter, 0);
            reader.contains_batch([moved, key(2, 1, 2)]);
            explained(&residents(), [reader, writer.join().unwrap()]);
        });
    }
}

/// A chain moves a resident key into a bucket, and then the key gets back by an insert and a remove
/// of its class, so that the bucket's slots are as they were. A lookup that read the bucket before
/// and after must notice that something was added meanwhile.
#[test]
fn a_shift_that_is_taken_back() {
    let (here, there) = (key(0, 1, 3), key(1, 0, 3));
    explore("a_shift_that_is_taken_back", 4, 5_300, move || {
        let filter = holding(&residents());
        assert_eq!(filter.class(&here), filter.class(&there));
        let writer = caller(&filter, 1, move |writer| {
            let new = key(0, 2, 0);
            assert_eq!(writer.insert(new), Ok(()));
            assert!(writer.remove(new));
            assert_eq!(writer.insert(here), Ok(()));
            assert!(writer.remove(there));
        });
        let mut reader = Caller::new(&filter, 0);
        reader.contains(there);
        explained(&residents(), [reader, writer.join().unwrap()]);
        all_present(&filter, &residents());
    });
}

/// A key's copy changes buckets without a chain: keys of its class are inserted into one bucket and
/// removed from the other, back and forth, while there is always at least one copy. (The counters
/// of the published protocol do not see this.)
#[test]
fn hops_by_insert_and_remove() {
    let (here, there) = (key(0, 1, 0), key(1, 0, 0));
    for looked_up in [there, here] {
        explore("hops_by_insert_and_remove", 6, 6_000, move || {
            let filter = holding(&[here]);
            assert_eq!(filter.class(&here), filter.class(&there));
            let writer = caller(&filter, 1, move |writer| {
                assert_eq!(writer.insert(there), Ok(()));
                assert!(writer.remove(here));
                assert_eq!(writer.insert(here), Ok(()));
                assert!(writer.remove(there));
            });
            let mut reader = Caller::new(&filter, 0);
            reader.contains(looked_up);
            explained(&[here], [reader, writer.join().unwrap()]);
            all_present(&filter, &[here]);
        });
    }
}

/// Two inserts that both must evict, through the same full buckets, into the one bucket with room
/// for both: both succeed and nothing is lost.
#[test]
fn two_evicting_inserts_with_overlapping_chains() {
    explore(
        "two_evicting_inserts_with_overlapping_chains",
        3,
        11_000,
        || {
            let movable = [key(0, 1, 0), key(0, 1, 1), key(2, 1, 0), key(2, 1, 1)];
            let filter = holding(&movable);
            let new = [key(0, 2, 0), key(2, 0, 1)];
            let other = caller(&filter, 1, move |other| {
                assert_eq!(other.insert(new[1]), Ok(()));
            });
            let mut mine = Caller::new(&filter, 0);
            assert_eq!(mine.insert(new[0]), Ok(()));
            explained(&movable, [mine, other.join().unwrap()]);
            all_present(&filter, &movable);
            all_present(&filter, &new);
        },
    );
}

/// The same with room for one: one insert succeeds, the other gets `Full`, and nothing is lost.
#[test]
fn two_evicting_inserts_for_one_slot() {
    explore("two_evicting_inserts_for_one_slot", 3, 13_000, || {
        let held = [
            key(0, 1, 0),
            key(0, 1, 1),
            key(2, 1, 0),
            key(2, 1, 1),
            key(1, 1, 0),
        ];
        let filter = holding(&held);
        let new = [key(0, 2, 0), key(2, 0, 1)];
        let other = caller(&filter, 1, move |other| {
            let _ = other.insert(new[1]);
        });
        let mut mine = Caller::new(&filter, 0);
        let mine_done = mine.insert(new[0]).is_ok();
        explained(&held, [mine, other.join().unwrap()]);
        all_present(&filter, &held);
        assert_eq!(filter.contains(&new[0]), mine_done);
        assert_eq!(filter.contains(&new[1]), !mine_done, "there is one slot");
    });
}

/// Two removes of the last copy: exactly one takes it.
#[test]
fn two_removes_of_the_last_copy() {
    explore("two_removes_of_the_last_copy", None, 190, || {
        let last = key(0, 1, 0);
        let filter = holding(&[last]);
        let other = caller(&filter, 1, move |other| {
            let _ = other.remove(last);
        });
        let mut mine = Caller::new(&filter, 0);
        mine.remove(last);
        explained(&[last], [mine, other.join().unwrap()]);
        assert!(!filter.contains(&last));
    });
}

/// A remove of a key while a chain moves it: the key is there throughout, so the remove finds it.
#[test]
fn remove_of_a_key_that_a_chain_moves() {
    for removed in [key(0, 1, 3), key(1, 0, 3)] {
        explore("remove_of_a_key_that_a_chain_moves", 4, 25_000, move || {
            let filter = holding(&residents());
            let new = key(0, 2, 0);
            let writer = caller(&filter, 1, move |writer| {
                assert_eq!(writer.insert(new), Ok(()));
            });
            let mut mine = Caller::new(&filter, 0);
            assert!(mine.remove(removed), "a resident key looked absent");
            explained(&residents(), [mine, writer.join().unwrap()]);
            all_present(&filter, &residents()[1..]);
            all_present(&filter, &[new]);
        });
    }
}

/// An insert for which no chain leads to an empty slot: `Full`, and everything is as before, even
/// if a resident key is removed at the same time (then the insert may find room instead).
#[test]
fn full_leaves_everything() {
    explore("full_leaves_everything", 5, 100, || {
        let stuck = [key(0, 0, 0), key(0, 0, 1), key(1, 1, 0), key(1, 1, 1)];
        let filter = holding(&stuck);
        let new = key(0, 1, 0);
        assert_eq!(filter.insert(&new), Err(InsertError::Full));
        all_present(&filter, &stuck);
        assert!(!filter.contains(&new));
        let remover = caller(&filter, 1, move |remover| {
            assert!(remover.remove(stuck[2]));
        });
        let mut mine = Caller::new(&filter, 0);
        let result = mine.insert(new);
        explained(&stuck, [mine, remover.join().unwrap()]);
        all_present(&filter, &[stuck[0], stuck[1], stuck[3]]);
        assert_eq!(filter.contains(&new), result.is_ok());
    });
}

/// An insert into buckets that hold three copies of its class and another key. While that key goes,
/// a copy takes its place, and in the bucket that was read first another key takes the place of a
/// copy. Each bucket is full of copies at some moment, but never both at once: so the insert does
/// not get the error that there are too many.
#[test]
fn no_too_many_copies_while_there_are_fewer() {
    let (here, there) = (key(0, 1, 0), key(1, 0, 0));
    let (others, new) = (key(1, 1, 0), key(0, 0, 0));
    let held = [here, here, there, others];
    explore(
        "no_too_many_copies_while_there_are_fewer",
        3,
        2_000,
        move || {
            let filter = holding(&held);
            let writer = caller(&filter, 1, move |writer| {
                assert!(writer.remove(here));
                // The other insert may have taken the room.
                let _ = writer.insert(new);
                assert!(writer.remove(others));
                let _ = writer.insert(there);
            });
            let mut mine = Caller::new(&filter, 0);
            let _ = mine.insert(here);
            explained(&held, [mine, writer.join().unwrap()]);
        },
    );
}

/// Two plain inserts and a remove in one bucket: no copy is lost and none appears from nowhere.
#[test]
fn plain_inserts_and_a_remove_in_one_bucket() {
    explore(
        "plain_inserts_and_a_remove_in_one_bucket",
        None,
        3_100,
        || {
            let (resident, mine, others) = (key(0, 1, 0), key(0, 1, 1), key(0, 1, 2));
            // Neither bucket is emptier, so both inserts choose the same one.
            let held = [resident, key(1, 1, 0)];
            let filter = holding(&held);
            let other = caller(&filter, 1, move |other| {
                assert_eq!(other.insert(others), Ok(()));
                assert!(other.remove(resident));
            });
            let mut me = Caller::new(&filter, 0);
            assert_eq!(me.insert(mine), Ok(()));
            explained(&held, [me, other.join().unwrap()]);
            all_present(&filter, &[mine, others]);
        },
    );
}

/// Two unique inserts of one class that prefer different buckets, both with room: exactly one gets
/// `true`. (If they looked first and inserted afterwards, both would.)
#[test]
fn two_unique_inserts_of_one_class() {
    explore("two_unique_inserts_of_one_class", 3, 32_000, || {
        let filter = holding(&[]);
        let (here, there) = (key(0, 1, 0), key(1, 0, 0));
        let other = caller(&filter, 1, move |other| {
            assert!(other.insert_unique(there).is_ok());
        });
        let mut mine = Caller::new(&filter, 0);
        assert!(mine.insert_unique(here).is_ok());
        explained(&[], [mine, other.join().unwrap()]);
        assert_eq!(filter.count(&here), 1);
    });
}

/// A unique insert that must evict, while the only copy of its class hops between its buckets: the
/// copy is there throughout, so nothing is added.
#[test]
fn unique_insert_of_a_key_that_hops() {
    let (here, there) = (key(0, 1, 0), key(1, 0, 0));
    explore("unique_insert_of_a_key_that_hops", 5, 1_290, move || {
        let filter = holding(&[here]);
        let writer = caller(&filter, 1, move |writer| {
            assert_eq!(writer.insert(there), Ok(()));
            assert!(writer.remove(here));
        });
        let mut mine = Caller::new(&filter, 0);
        assert_eq!(mine.insert_unique(there), Ok(false));
        assert!((1..=2).contains(&mine.count(there)));
        explained(&[here], [mine, writer.join().unwrap()]);
    });
}

/// A unique insert that shifts other keys, while another one of its class finds room made by a
/// remove, either in the bucket where the chain begins or in the one that the chain leaves alone:
/// only one of them gets `true`.
#[test]
fn unique_insert_with_a_chain() {
    let (here, there) = (key(0, 2, 0), key(2, 0, 0));
    let cases = [(key(2, 2, 0), there, 7_100), (key(0, 0, 0), here, 1_200)];
    for (removed, others, at_least) in cases {
        explore("unique_insert_with_a_chain", 2, at_least, move || {
            let filter = holding(&residents());
            let other = caller(&filter, 1, move |other| {
                assert!(other.remove(removed));
                assert!(other.insert_unique(others).is_ok());
            });
            let mut mine = Caller::new(&filter, 0);
            assert!(mine.insert_unique(here).is_ok());
            explained(&residents(), [mine, other.join().unwrap()]);
            assert_eq!(filter.count(&here), 1);
        });
    }
}

/// A unique insert that finds no room, and then a chain into its other bucket, where a copy by
/// another unique insert of its class, and some room, have appeared meanwhile: only one gets
/// `true`.
#[test]
fn unique_insert_with_a_chain_into_its_other_bucket() {
    explore(
        "unique_insert_with_a_chain_into_its_other_bucket",
        3,
        4_100,
        || {
            let (here, there) = (key(0, 2, 0), key(2, 0, 0));
            let held = [key(0, 2, 1), key(0, 0, 0), key(2, 2, 0), key(2, 2, 1)];
            let filter = holding(&held);
            let other = caller(&filter, 1, move |other| {
                assert!(other.remove(held[2]));
                assert!(other.insert_unique(there).is_ok());
                assert!(other.remove(held[3]));
            });
            let mut mine = Caller::new(&filter, 0);
            let _ = mine.insert_unique(here);
            explained(&held, [mine, other.join().unwrap()]);
            assert_eq!(filter.count(&here), 1);
        },
    );
}

/// A copy of a filter in which the only copy of a class hops to its other bucket and back: it is
/// there throughout, so the copied filter has it, and as often as a lookup at some moment of the
/// call would have found it.
#[test]
fn copy_of_a_key_that_hops() {
    let (here, there) = (key(0, 1, 0), key(1, 0, 0));
    for (here, there) in [(here, there), (there, here)] {
        explore("copy_of_a_key_that_hops", 2, 23_000, move || {
            let filter = holding(&[here]);
            let writer = caller(&filter, 1, move |writer| {
                assert_eq!(writer.insert(there), Ok(()));
                assert!(writer.remove(here));
                assert_eq!(writer.insert(here), Ok(()));
                assert!(writer.remove(there));
            });
            let mut mine = Caller::new(&filter, 0);
            let copy = mine.try_clone(&[here]);
            all_present(&copy, &[here]);
            explained(&[here], [mine, writer.join().unwrap()]);
        });
    }
}

/// The same for one that hops three times, between the last two buckets.
#[test]
fn copy_of_a_key_that_hops_on() {
    let (here, there) = (key(2, 1, 0), key(1, 2, 0));
    explore("copy_of_a_key_that_hops_on", 2, 66_000, move || {
        let filter = holding(&[here]);
        let writer = caller(&filter, 1, move |writer| {
            for (from, to) in [(here, there), (there, here), (here, there)] {
                assert_eq!(writer.insert(to), Ok(()));
                assert!(writer.remove(from));
            }
        });
        let mut mine = Caller::new(&filter, 0);
        let copy = mine.try_clone(&[here]);
        all_present(&copy, &[here]);
        explained(&[here], [mine, writer.join().unwrap()]);
    });
}

/// One thread adds a copy of a class to a bucket and finds two then; another one, which may have
/// begun before the filter's copy, takes the older copy of the class from the other bucket. So the
/// class has a copy throughout, but in either bucket only for a while.
#[test]
fn copy_of_a_key_that_others_insert_and_remove() {
    let (here, there) = (key(1, 0, 0), key(0, 1, 0));
    explore(
        "copy_of_a_key_that_others_insert_and_remove",
        2,
        28_000,
        move || {
            let filter = holding(&[here]);
            let copier = caller(&filter, 0, move |copier| {
                copier.try_clone(&[here]);
            });
            let one = caller(&filter, 1, move |one| {
                assert_eq!(one.insert(there), Ok(()));
                one.count(here);
            });
            let mut mine = Caller::new(&filter, 2);
            assert!(mine.remove(here));
            explained(&[here], [mine, copier.join().unwrap(), one.join().unwrap()]);
        },
    );
}

/// A key hops into a bucket from which another thread takes another key.
#[test]
fn copy_of_a_bucket_that_two_change() {
    let (here, there, another_key) = (key(1, 0, 0), key(0, 1, 0), key(0, 0, 0));
    explore("copy_of_a_bucket_that_two_change", 2, 200_000, move || {
        let filter = holding(&[here, another_key]);
        let one = caller(&filter, 1, move |one| {
            assert_eq!(one.insert(there), Ok(()));
            assert!(one.remove(here));
        });
        let another = caller(&filter, 2, move |another| {
            assert!(another.remove(another_key));
        });
        let mut mine = Caller::new(&filter, 0);
        all_present(&mine.try_clone(&[here, another_key]), &[here]);
        let [one, another] = [one, another].map(|caller| caller.join().unwrap());
        explained(&[here, another_key], [mine, one, another]);
    });
}

/// Two copies at the same time; then, while perhaps one of them is still under way, a key hops.
#[test]
fn two_copies_of_a_key_that_hops() {
    let (here, there) = (key(1, 0, 0), key(0, 1, 0));
    explore("two_copies_of_a_key_that_hops", 2, 10_700, move || {
        let filter = holding(&[here]);
        let writer = caller(&filter, 1, move |writer| {
            all_present(&writer.try_clone(&[here]), &[here]);
            assert_eq!(writer.insert(there), Ok(()));
            assert!(writer.remove(here));
        });
        let mut mine = Caller::new(&filter, 0);
        all_present(&mine.try_clone(&[here]), &[here]);
        explained(&[here], [mine, writer.join().unwrap()]);
    });
}

/// Two copies one after the other: a thread that found the first one announced may keep a bucket for
/// the second one, before it is announced itself; then a key hops into that bucket.
#[test]
fn copies_in_succession() {
    let (here, there, another_key) = (key(1, 0, 0), key(0, 1, 0), key(0, 0, 0));
    explore("copies_in_succession", 2, 27_000, move || {
        let filter = holding(&[here, another_key]);
        let writer = caller(&filter, 1, move |writer| {
            assert!(writer.remove(another_key));
            assert_eq!(writer.insert(there), Ok(()));
            assert!(writer.remove(here));
        });
        let mut mine = Caller::new(&filter, 0);
        for _ in 0..2 {
            all_present(&mine.try_clone(&[here, another_key]), &[here]);
        }
        explained(&[here, another_key], [mine, writer.join().unwrap()]);
    });
}

/// A copy of a filter in which a chain moves a key out of a bucket from which another thread takes
/// another key: no key that stays is missing, and none is there twice.
#[test]
fn copy_of_a_key_that_a_chain_moves() {
    explore("copy_of_a_key_that_a_chain_moves", 1, 2_500, move || {
        let filter = holding(&residents());
        let [moved, another_key, third, fourth] = residents();
        let new = key(0, 2, 0);
        let one = caller(&filter, 1, move |one| {
            assert_eq!(one.insert(new), Ok(()));
        });
        let another = caller(&filter, 2, move |another| {
            assert!(another.remove(another_key));
        });
        let mut mine = Caller::new(&filter, 0);
        let copy = mine.try_clone(&[moved, another_key, third, fourth, new]);
        all_present(&copy, &[moved, third, fourth]);
        let [one, another] = [one, another].map(|caller| caller.join().unwrap());
        explained(&residents(), [mine, one, another]);
    });
}
