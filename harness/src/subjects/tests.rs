//! One body of tests for all subjects of the registry: what is inserted is found, and comes out
//! again, in one thread and in several.

use std::ops::Range;
use std::sync::Barrier;
use std::thread;

use filter::internals::MAX_BUCKETS;
use histories::Event;
use subject::SLOTS_PER_BUCKET;
use subject::calls::Operation::{self, Contains, Insert, Remove};

use super::registry::{Registry, SubjectInfo};
use super::*;
use crate::operations::Measured;

/// Enough that eviction paths are long at [`LOAD`], few enough that threads collide.
const BUCKETS: usize = 500;
const LOAD: f64 = 0.92;
const THREADS: u64 = 4;

struct Tested {
    info: SubjectInfo,
    /// Keys that surely have room.
    keys: u64,
    /// How often threads fill and empty their part of a table.
    laps: u64,
    /// Whether several threads never miss a key.
    shared: bool,
    /// Whether a refused insert leaves all others as they are.
    refuses: bool,
}

impl Tested {
    fn all() -> Vec<Self> {
        let registry = Registry::standard();
        let tested = |info: &SubjectInfo| {
            let name = info.name;
            // One key per bucket: there is room for half of the keys.
            let halved = [SmartCuckooMutex::NAME, PlainCuckooMutex::NAME].contains(&name);
            let laps = match name {
                LockFreeCopies::NAME => 2,
                ExactSet::NAME | CountMin::NAME => 10,
                _ => 50,
            };
            Self {
                info: *info,
                keys: (LOAD * (BUCKETS * SLOTS_PER_BUCKET) as f64) as u64 * 2
                    / if halved { 5 } else { 2 },
                laps,
                shared: ![AblationOneRound::NAME, AtomicCuckooFilter::NAME].contains(&name),
                refuses: name != CuckoofilterMutex::NAME,
            }
        };
        let finds = |info: &&SubjectInfo| info.holds_keys && info.operations.lookup;
        let found = registry.entries().iter().filter(finds);
        found.map(tested).collect()
    }

    fn empty(&self) -> Box<dyn Measured> {
        (self.info.build)(BUCKETS).unwrap()
    }

    fn removes(&self) -> bool {
        self.info.operations.remove
    }

    /// Makes a call for each of these keys, all of which must answer this.
    fn each(&self, table: &dyn Measured, operation: Operation, keys: Range<u64>, expected: bool) {
        for key in keys {
            let answer = answer(table, operation, key);
            assert_eq!(answer, expected, "{}: {operation:?} {key}", self.info.name);
        }
    }

    /// Inserts keys, half of them twice over, finds them, and leaves nothing.
    fn lap(&self, table: &dyn Measured, keys: Range<u64>) {
        let half = keys.start..keys.start.midpoint(keys.end);
        let all = |operation| self.each(table, operation, keys.clone(), true);
        all(Insert);
        all(Contains);
        if self.removes() {
            self.each(table, Remove, half.clone(), true);
            self.each(table, Contains, half.end..keys.end, true);
            self.each(table, Insert, half, true);
            all(Contains);
            all(Remove);
        }
    }

    fn is_empty(&self, table: &dyn Measured) {
        if self.removes() {
            self.each(table, Contains, 0..self.keys, false);
            self.each(table, Remove, 0..self.keys, false);
        }
    }
}

fn answer(table: &dyn Measured, operation: Operation, key: u64) -> bool {
    match table.call(operation, key) {
        Event::Insert(done) => done.is_ok(),
        Event::Contains(answer) | Event::Remove(answer) => answer,
        other => panic!("{other}"),
    }
}

#[test]
fn many_lookups_at_once_answer_as_single_ones() {
    for tested in Tested::all() {
        let table = tested.empty();
        tested.each(&*table, Insert, 0..tested.keys / 2, true);
        let keys = (0..tested.keys).collect::<Vec<u64>>();
        for end in [1, 31, 32, 100, tested.keys as usize] {
            let singly = (0..end as u64).filter(|&key| answer(&*table, Contains, key));
            let found = table.count_found(&keys, 0..end);
            assert_eq!(found, singly.count(), "{}: {end}", tested.info.name);
        }
    }
}

#[test]
fn key_inserted_twice_needs_two_removes() {
    for tested in Tested::all().iter().filter(|tested| tested.removes()) {
        let table = tested.empty();
        let answers = [Insert, Insert, Remove, Contains, Remove, Contains, Remove]
            .map(|operation| answer(&*table, operation, 7));
        let expected = [true, true, true, true, true, false, false];
        assert_eq!(answers, expected, "{}", tested.info.name);
    }
}

/// A full filter refuses keys and keeps all that it accepted, if it is not one that loses another.
#[test]
fn refused_insert_loses_no_key() {
    for tested in Tested::all() {
        let (name, table) = (tested.info.name, tested.empty());
        let (mut accepted, mut refused) = (Vec::new(), 0);
        for key in 0..table.slots(BUCKETS) as u64 * 2 {
            if answer(&*table, Insert, key) {
                accepted.push(key);
            } else if refused < 10 {
                refused += 1;
            } else {
                break;
            }
        }
        let lost = |&&key: &&u64| !answer(&*table, Contains, key);
        let lost = accepted.iter().filter(lost).count();
        assert_eq!(lost == 0, tested.refuses, "{name} loses {lost}");
        if tested.removes() && tested.refuses {
            let removed = |&key: &u64| answer(&*table, Remove, key);
            assert!(accepted.iter().all(removed), "{name}");
            tested.is_empty(&*table);
            tested.lap(&*table, 0..tested.keys);
        }
    }
}

/// No thread ever misses a key of its own while the eviction paths of all of them move it around, in
/// a table and in one so small that threads meet in every word. (Where several
/// may, one is alone.)
#[test]
fn threads_never_miss_their_keys() {
    for tested in Tested::all() {
        let threads = if tested.shared { THREADS } else { 1 };
        for (table, keys, laps) in [
            (tested.empty(), tested.keys / threads, tested.laps),
            ((tested.info.build)(8).unwrap(), 2, 10 * tested.laps),
        ] {
            let (tested, table) = (&tested, &*table);
            let barrier = &Barrier::new(threads as usize);
            let laps = if tested.removes() { laps } else { 1 };
            thread::scope(|scope| {
                for thread in 0..threads {
                    scope.spawn(move || {
                        barrier.wait();
                        for _ in 0..laps {
                            tested.lap(table, thread * keys..(thread + 1) * keys);
                        }
                    });
                }
            });
            tested.is_empty(table);
        }
    }
}

#[test]
fn concurrent_removes_of_one_copy_succeed_once() {
    // (Both may take the last count of a sketch.)
    let is_exact = |tested: &Tested| tested.info.name != CountMin::NAME;
    let removes = |tested: &Tested| tested.shared && tested.removes() && is_exact(tested);
    for tested in Tested::all().into_iter().filter(removes) {
        let table = &*(tested.info.build)(4).unwrap();
        for key in 0..3 * tested.laps {
            tested.each(table, Insert, key..key + 1, true);
            let barrier = Barrier::new(2);
            let remove = || {
                barrier.wait();
                answer(table, Remove, key)
            };
            let removed = thread::scope(|scope| {
                let threads = [scope.spawn(remove), scope.spawn(remove)];
                threads.map(|thread| thread.join().unwrap())
            });
            assert_ne!(removed[0], removed[1], "{}", tested.info.name);
            tested.each(table, Contains, key..key + 1, false);
        }
    }
}

#[test]
fn impossible_number_of_buckets_is_error() {
    for entry in Registry::standard().entries() {
        for buckets in [0, MAX_BUCKETS + 1] {
            assert!((entry.build)(buckets).is_err(), "{}: {buckets}", entry.name);
        }
    }
}

#[test]
fn bounds_are_subjects_that_hold_no_keys() {
    let registry = Registry::standard();
    let without_keys =
        (registry.entries().iter().filter(|entry| !entry.holds_keys)).map(|entry| entry.name);
    assert!(without_keys.eq(BOUNDS));
}

#[test]
fn tables_have_requested_slots() {
    let registry = Registry::standard();
    let others = registry.entries().iter().filter(|entry| {
        let slots = (entry.build)(BUCKETS).unwrap().slots(BUCKETS);
        slots != BUCKETS * SLOTS_PER_BUCKET
    });
    // Their sizes go by powers of two or by blocks.
    let others: Vec<&str> = others.map(|entry| entry.name).collect();
    let by_powers = [AtomicCuckooFilter::NAME, CuckoofilterMutex::NAME];
    assert_eq!(others, [&[VectorQuotient::NAME], &by_powers[..]].concat());
}
