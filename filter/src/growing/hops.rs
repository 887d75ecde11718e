//! A key's copy changes generations while a call asks for the key, which is never without: another
//! insert adds a copy to one generation, and another remove takes the one in the other. All happens
//! between two steps of the call, at whichever.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::thread;

use kcas::steps::with_hook;

use super::schedule::PAIRING_BITS;
use super::table::Table;
use super::*;

const HASH: u64 = 7;

/// A table of two buckets that cannot be split.
fn used_up() -> Table {
    Table::try_new(PAIRING_BITS, 2, 0).unwrap()
}

fn begin_generation(filter: &GrowingCuckooFilter) {
    filter.replace_tables(&pin(), |tables| Some(tables.with(used_up())));
}

/// Adds a copy to the generation with this number, counted from the oldest. An insert that takes an
/// older generation for the newest does so, and then the generation may be closed.
fn add(filter: &GrowingCuckooFilter, to: usize, closes: bool) {
    if to == filter.tables().len() {
        begin_generation(filter);
    }
    let pinned = pin();
    let tables = filter.tables.load(&pinned);
    let member = tables.iter().nth_back(to).expect("it has begun");
    assert_eq!(member.view().insert(filter.key(HASH), || true), Ok(()));
    thread_id::with(|id| member.generation.count_insert(id)).unwrap();
    if closes && to + 1 < filter.tables().len() {
        member.generation.close();
    }
}

/// Takes a copy from this generation, as a remove does that found none in newer ones before; unless
/// the call itself has taken it.
fn take(filter: &GrowingCuckooFilter, from: usize) {
    let pinned = pin();
    let tables = filter.tables.load(&pinned);
    let member = tables.iter().nth_back(from).expect("it has begun");
    if member.view().remove(filter.key(HASH), || true) == Some(true) {
        thread_id::with(|id| member.generation.count_remove(id)).unwrap();
    }
}

/// A call, and whether its answer fits a key that has a copy.
type Call = fn(&GrowingCuckooFilter) -> bool;

const CALLS: [(&str, Call); 4] = [
    ("contains", |filter| filter.contains_hash(HASH)),
    ("count", |filter| (1..=2).contains(&filter.count_hash(HASH))),
    ("remove", |filter| filter.remove_hash(HASH)),
    ("unique insert", |filter| {
        filter.insert_unique_hash(HASH) == Ok(false)
    }),
];

/// The copy takes this path, with hops before these steps of the call. Returns how many steps there
/// were.
fn steps_of(call: (&str, Call), begun: usize, path: &[usize], hops: [u64; 2], closes: bool) -> u64 {
    let filter = GrowingCuckooFilter::of(Tables::of_all([(used_up(), 0)]), 2, FixedState);
    (1..begun).for_each(|_| begin_generation(&filter));
    add(&filter, path[0], false);
    let filter = Arc::new(filter);
    let (others, pairs) = (Arc::clone(&filter), path.to_vec());
    let steps = Rc::new(Cell::new(0));
    let count = Rc::clone(&steps);
    let hook = move |step| {
        count.set(step + 1);
        for (pair, _) in pairs.windows(2).zip(hops).filter(|&(_, hop)| hop == step) {
            let (others, from, to) = (Arc::clone(&others), pair[0], pair[1]);
            // By another thread, since this one may be in the middle of a K-CAS.
            let hop = move || {
                add(&others, to, closes);
                take(&others, from);
            };
            thread::spawn(hop).join().unwrap();
        }
    };
    let (name, call) = call;
    let fits = with_hook(hook, || call(&filter));
    assert!(
        fits,
        "{name}, {begun} generations, {path:?} before {hops:?}, {closes}"
    );
    steps.get()
}

#[test]
fn a_hop_between_generations_is_missed_by_no_call() {
    let paths: [(usize, &[usize]); 14] = [
        (1, &[0, 1]),
        (2, &[0, 1]),
        (2, &[1, 0]),
        (2, &[0, 2]),
        (2, &[1, 2]),
        (3, &[0, 1]),
        (3, &[0, 2]),
        (3, &[1, 0]),
        (3, &[1, 2]),
        (3, &[2, 0]),
        (3, &[2, 1]),
        // Two hops.
        (1, &[0, 1, 2]),
        (2, &[0, 1, 2]),
        (2, &[1, 0, 1]),
    ];
    for (begun, path) in paths {
        // A unique insert seals older generations, so that nothing is added to them.
        let goes_back = path
            .windows(2)
            .any(|pair| pair[1] + 1 < begun.max(pair[0] + 1));
        let calls = if goes_back { &CALLS[..3] } else { &CALLS[..] };
        for (&call, closes) in calls.iter().flat_map(|call| [(call, false), (call, true)]) {
            for first in 0.. {
                let seconds = if path.len() > 2 { u64::MAX } else { first + 1 };
                let steps = (first..seconds)
                    .map(|second| (second, steps_of(call, begun, path, [first, second], closes)))
                    .find(|&(second, steps)| second >= steps || second + 1 == seconds)
                    .expect("a call has an end")
                    .1;
                if first >= steps {
                    break;
                }
            }
        }
    }
}

/// A key has had too many copies at no moment while a generation was the newest: an insert that
/// counted one twice, since it changed buckets, does not refuse for what was added there since.
#[test]
fn copies_in_an_older_generation_are_never_too_many() {
    let filter = GrowingCuckooFilter::of(Tables::of_all([(used_up(), 0)]), 2, FixedState);
    let has_failed = Cell::new(false);
    let attempt = |tables: &Tables, key| {
        let view = tables.newest().view();
        if has_failed.replace(true) {
            return view.insert(key, || true).map(|()| true);
        }
        begin_generation(&filter);
        // By inserts that take it for the newest.
        (0..4).for_each(|_| assert_eq!(view.insert(key, || true), Ok(())));
        Err(Refused::TooManyCopies { most: 4 })
    };
    assert_eq!(filter.add(HASH, attempt), Ok(true));
}
