//! Models of the fixed-size filter, with three buckets of two slots.

use crate::small::{Caller, Operation, Small, holding, in_file, key, residents};
use crate::{Calls, all_present, calls, copy, hop, insert, insert_if_absent, look_up, race};
use crate::{race_of_three, remove};
use Operation::{Count, Insert, InsertIfAbsent, Remove, TryClone};
use filter::InsertError;
use kcas_testing::model::explore_test;

fn explore_race(
    preemptions: impl Into<Option<usize>>,
    at_least: u64,
    held: &[u64],
    mine: impl Calls<Small>,
    others: impl Calls<Small>,
) {
    crate::explore_race((preemptions, at_least), holding, held, mine, others, |_| ());
}

/// A lookup of a resident key while a chain moves it from one of its buckets to the other.
#[test]
fn lookup_of_key_moved_by_chain() {
    for moved in [key(1, 0, 3), key(0, 1, 3)] {
        let new = insert(key(0, 2, 0));
        explore_race(5, 5_800, &residents(), look_up(moved), new);
    }
}

/// A chain moves a resident key into a bucket, and then the key gets back by an insert and a remove
/// of its class, so that the bucket's slots are as they were. A lookup that read the bucket before
/// and after must notice that something was added meanwhile.
#[test]
fn shift_taken_back() {
    let (item, twin, new) = (key(0, 1, 3), key(1, 0, 3), key(0, 2, 0));
    explore_race(4, 5_300, &residents(), look_up(twin), move |writer| {
        calls([Insert(new), Remove(new)])(writer);
        hop([twin, item])(writer);
    });
}

/// A key's copy changes buckets without a chain: keys of its class are inserted into one bucket and
/// removed from the other, back and forth, while there is always at least one copy. (The counters
/// of the published protocol do not see this.)
#[test]
fn hops_by_insert_and_remove() {
    let (item, twin) = (key(0, 1, 0), key(1, 0, 0));
    for look in [twin, item].map(look_up) {
        explore_race(6, 6_000, &[item], look, hop([item, twin, item]));
    }
}

/// Two inserts that both must evict, through the same full buckets, into the one bucket with room
/// for both: both succeed and nothing is lost.
#[test]
fn two_evicting_inserts_with_overlapping_chains() {
    let movable = [key(0, 1, 0), key(0, 1, 1), key(2, 1, 0), key(2, 1, 1)];
    let [first, second] = [key(0, 2, 0), key(2, 0, 1)].map(insert);
    explore_race(3, 11_000, &movable, first, second);
}

/// Two removes of the last copy: exactly one takes it.
#[test]
fn two_removes_of_last_copy() {
    let last = key(0, 1, 0);
    let remove = move |caller: &mut Caller| _ = caller.remove(last);
    explore_race(None, 190, &[last], remove, remove);
}

/// A remove of a key while a chain moves it: the key is there throughout, so the remove finds it.
#[test]
fn remove_of_key_moved_by_chain() {
    for removed in [key(0, 1, 3), key(1, 0, 3)] {
        let new = insert(key(0, 2, 0));
        explore_race(4, 25_000, &residents(), remove(removed), new);
    }
}

/// An insert for which no chain leads to an empty slot: `Full`, and everything is as before, even
/// if a resident key is removed at the same time (then the insert may find room instead).
#[test]
fn full_leaves_everything() {
    explore_test(5, 100, || {
        let stuck = [key(0, 0, 0), key(0, 0, 1), key(1, 1, 0), key(1, 1, 1)];
        let filter = holding(&stuck);
        let new = key(0, 1, 0);
        assert_eq!(filter.insert(&new), Err(InsertError::Full));
        all_present(&*filter, &stuck);
        assert!(!filter.contains(&new));
        let insert = |caller: &mut Caller| _ = caller.insert(new);
        race(&filter, &stuck, insert, remove(stuck[2]));
    });
}

/// An insert into buckets that hold three copies of its class and another key. While that key goes,
/// a copy takes its place, and in the bucket that was read first another key takes the place of a
/// copy. Each bucket is full of copies at some moment, but never both at once: so the insert does
/// not get the error that there are too many.
#[test]
fn too_many_copies_needs_eight_copies() {
    let (item, twin) = (key(0, 1, 0), key(1, 0, 0));
    let (others, new) = (key(1, 1, 0), key(0, 0, 0));
    let held = [item, item, twin, others];
    let insert = move |mine: &mut Caller| _ = mine.insert(item);
    explore_race(3, 2_000, &held, insert, move |writer| {
        assert!(writer.remove(item));
        // The other insert may have taken the room.
        let _ = writer.insert(new);
        assert!(writer.remove(others));
        let _ = writer.insert(twin);
    });
}

/// Two plain inserts and a remove in one bucket: no copy is lost and none appears from nowhere.
#[test]
fn plain_inserts_and_remove_in_one_bucket() {
    let (resident, mine, others) = (key(0, 1, 0), key(0, 1, 1), key(0, 1, 2));
    // Neither bucket is emptier, so both inserts choose the same one.
    let held = [resident, key(1, 1, 0)];
    let others = calls([Insert(others), Remove(resident)]);
    explore_race(None, 3_100, &held, insert(mine), others);
}

/// Two unique inserts of one class that prefer different buckets, both with room: exactly one gets
/// `true`. (If they looked first and inserted afterwards, both would.)
#[test]
fn two_unique_inserts_of_one_class() {
    let [item, twin] = [key(0, 1, 0), key(1, 0, 0)].map(insert_if_absent);
    explore_race(3, 32_000, &[], item, twin);
}

/// A unique insert that shifts other keys, while another one of its class finds room made by a
/// remove, either in the bucket where the chain begins or in the one that the chain leaves alone:
/// only one of them gets `true`.
#[test]
fn unique_insert_with_chain() {
    let (item, twin) = (key(0, 2, 0), key(2, 0, 0));
    let cases = [(key(2, 2, 0), twin, 7_100), (key(0, 0, 0), item, 1_200)];
    for (removed, others, at_least) in cases {
        let others = calls([Remove(removed), InsertIfAbsent(others)]);
        explore_race(2, at_least, &residents(), insert_if_absent(item), others);
    }
}

/// A unique insert that finds no room, and then a chain into its other bucket, where a copy by
/// another unique insert of its class, and some room, have appeared meanwhile: only one gets
/// `true`.
#[test]
fn unique_insert_with_chain_into_other_bucket() {
    let (item, twin) = (key(0, 2, 0), key(2, 0, 0));
    let held = [key(0, 2, 1), key(0, 0, 0), key(2, 2, 0), key(2, 2, 1)];
    let insert = move |mine: &mut Caller| _ = mine.insert_if_absent(item);
    let others = calls([Remove(held[2]), InsertIfAbsent(twin), Remove(held[3])]);
    explore_race(3, 4_100, &held, insert, others);
}

/// A copy of a filter in which the only copy of a class hops to its other bucket and back: it is
/// there throughout, so the copied filter has it, and as often as a lookup at some moment of the
/// call would have found it.
#[test]
fn copy_of_hopping_key() {
    let (item, twin) = (key(0, 1, 0), key(1, 0, 0));
    for (item, twin) in [(item, twin), (twin, item)] {
        let writes = hop([item, twin, item]);
        explore_race(2, 23_000, &[item], copy([item], 1), writes);
    }
}

/// The same, and what makes it hop has changed the filter before: so it tries each change at once.
#[test]
fn copy_of_key_hopping_in_one_step() {
    let (item, twin) = (key(0, 1, 0), key(1, 0, 0));
    for (item, twin) in [(item, twin), (twin, item)] {
        explore_race(3, 42_000, &[item], hop([item, twin]), copy([item], 1));
    }
}

/// The same for one that hops three times, between the last two buckets.
#[test]
fn copy_of_key_hopping_twice() {
    let (item, twin) = (key(2, 1, 0), key(1, 2, 0));
    let writes = hop([item, twin, item, twin]);
    explore_race(2, 66_000, &[item], copy([item], 1), writes);
}

/// One thread adds a copy of a class to a bucket and finds two then; another one, which may have
/// begun before the filter's copy, takes the older copy of the class from the other bucket. The
/// class therefore has a copy throughout, but in either bucket only for a while.
#[test]
fn copy_of_key_others_insert_and_remove() {
    let (item, twin) = (key(1, 0, 0), key(0, 1, 0));
    explore_test(2, 25_000, move || {
        let (copy, one) = (copy([item], 0), calls([Insert(twin), Count(item)]));
        race_of_three(&holding(&[item]), &[item], remove(item), copy, one);
    });
}

/// A copy of a class is removed from the bucket that the filter's copy reads first; then another one
/// is added to the bucket that it reads next, perhaps by a thread that knows nothing of the copy. The
/// class never has two.
#[test]
fn copy_of_key_removed_and_reinserted() {
    let (item, twin) = (key(0, 1, 0), key(1, 0, 0));
    explore_test(2, 30_000, move || {
        // The count shows whether the other one has been added.
        let remove = calls([Remove(item), Count(item)]);
        let copy = copy([item], 0);
        race_of_three(&holding(&[item]), &[item], remove, insert(twin), copy);
    });
}

/// A key hops into a bucket from which another thread takes another key.
#[test]
fn copy_of_bucket_two_threads_change() {
    let (item, twin, another) = (key(1, 0, 0), key(0, 1, 0), key(0, 0, 0));
    explore_test(2, 200_000, move || {
        let held = [item, another];
        let (copy, hop) = (copy(held, 1), hop([item, twin]));
        race_of_three(&holding(&held), &held, copy, hop, remove(another));
    });
}

/// Two copies at the same time; then, while perhaps one of them is still under way, a key hops.
#[test]
fn two_copies_of_hopping_key() {
    let (item, twin) = (key(1, 0, 0), key(0, 1, 0));
    explore_race(2, 10_700, &[item], copy([item], 1), move |writer| {
        copy([item], 1)(writer);
        hop([item, twin])(writer);
    });
}

/// Two copies one after the other: a thread that found the first one announced may keep a bucket for
/// the second one, before it is announced itself; then a key hops into that bucket.
#[test]
fn copies_in_succession() {
    let (item, twin, another) = (key(1, 0, 0), key(0, 1, 0), key(0, 0, 0));
    let held = [item, another];
    let twice = move |mine: &mut Caller| (0..2).for_each(|_| copy(held, 1)(mine));
    let writes = calls([Remove(another), Insert(twin), Remove(item)]);
    explore_race(2, 27_000, &held, twice, writes);
}

/// A copy of a filter in which a chain moves a key from each of two buckets to the next: the last bucket and the first
/// have no key in common.
#[test]
fn copy_of_chain_over_three_buckets() {
    let held = [key(0, 1, 0), key(0, 0, 0), key(1, 2, 0), key(1, 1, 0)];
    let new = key(0, 0, 1);
    let [moved, first, last, second] = held;
    let copy = copy([moved, first, last, second, new], 4);
    explore_race(1, 150, &held, copy, insert(new));
}

/// A copy of a filter in which a chain moves a key out of a bucket from which another thread takes
/// another key: no key that stays is missing, and none is there twice.
#[test]
fn copy_of_key_moved_by_chain() {
    explore_test(1, 2_500, move || {
        let [moved, another, third, fourth] = residents();
        let new = key(0, 2, 0);
        let copy = copy([moved, third, fourth, another, new], 3);
        let filter = holding(&residents());
        race_of_three(&filter, &residents(), copy, insert(new), remove(another));
    });
}

/// A copy of a filter in words that processes share, in which the only copy of a class hops to its other bucket.
#[test]
fn copy_in_file_during_hop() {
    let (item, twin) = (key(0, 1, 0), key(1, 0, 0));
    for (item, twin) in [(item, twin), (twin, item)] {
        let (mine, others) = (copy([item], 1), hop([item, twin]));
        crate::explore_race((2, 4_500), in_file::holding, &[item], mine, others, |_| ());
    }
}

/// Two copies there, between which a key is inserted. Another thread may begin to keep a bucket for the first one and
/// go on during the second one.
#[test]
fn copies_in_file_in_succession() {
    let (new, another) = (key(0, 1, 0), key(0, 0, 0));
    let mine = calls([TryClone(another), Insert(new), TryClone(new)]);
    crate::explore_race(
        (2, 2_100),
        in_file::holding,
        &[another],
        mine,
        remove(another),
        |_| (),
    );
}
