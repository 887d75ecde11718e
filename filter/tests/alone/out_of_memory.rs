//! Whenever the allocator refuses what a filter needs to grow, or to be copied, that is an error: nothing is
//! lost, and the filter grows once there is memory again.

use crate::at_once::meanwhile;
use crate::limited::{held, with_granted, with_most};
use filter::growing::GrowingCuckooFilter;
use filter::{CuckooFilter, InsertError, LoadError, SaveError, SnapshotError};

/// A filter that asks for the memory of its table piece by piece.
fn of_buckets(buckets: usize) -> GrowingCuckooFilter {
    let builder = GrowingCuckooFilter::builder().reserved_bytes(0);
    builder.buckets(buckets).build().unwrap()
}

/// Inserts keys from `from` on until one is refused; returns that key, and why.
fn fill(filter: &GrowingCuckooFilter, from: u64) -> (u64, InsertError) {
    (from..)
        .find_map(|key| filter.insert(&key).err().map(|error| (key, error)))
        .expect("memory is limited")
}

fn holds_just(filter: &GrowingCuckooFilter, keys: u64) {
    assert_eq!(filter.len() as u64, keys);
    assert!((0..keys).all(|key| filter.contains(&key)));
}

/// The memory is refused at the first growth, and at later ones.
#[test]
fn growth_without_memory_loses_nothing() {
    crate::turn();
    // Number of buckets at first, and of the largest piece that is granted: four double the table.
    for (first, piece) in [(1_024, 64), (1_024, 1_024), (16, 1_024)] {
        let filter = of_buckets(first);
        // What the thread needs besides.
        filter.insert(&0).unwrap();
        assert!(filter.remove(&0).unwrap());
        let most = piece * size_of::<u64>();
        let (key, error) = with_most(most, || {
            let (key, error) = fill(&filter, 0);
            // Again, by each kind of insert, and while other keys are looked up and removed.
            assert_eq!(filter.insert(&key), Err(error.clone()));
            assert_eq!(filter.insert_if_absent(&key), Err(error.clone()));
            assert_eq!(filter.insert_if_absent(&0), Ok(false));
            holds_just(&filter, key);
            assert!(!filter.contains(&key) && filter.remove(&0).unwrap());
            assert_eq!(filter.insert(&0), Ok(()));
            holds_just(&filter, key);
            (key, error)
        });
        assert!(matches!(error, InsertError::OutOfMemory { .. }));
        let refused_at = filter.slots();
        assert_eq!(refused_at > 3 * first, piece > 64, "{refused_at}");
        // Now there is memory again.
        (key..2 * key).for_each(|key| filter.insert(&key).unwrap());
        holds_just(&filter, 2 * key);
        assert!(filter.slots() > refused_at);
        (0..2 * key).for_each(|key| assert!(filter.remove(&key).unwrap()));
        assert!(filter.is_empty());
    }
}

/// There is room for the key, by way of full buckets. A copy that is begun meanwhile changes all words, and none of
/// their slots.
#[test]
#[cfg(feature = "__steps")]
fn losing_allocation_race_is_not_out_of_memory() {
    use kcas_testing::steps::{count, with_hook};
    use std::sync::Arc;

    crate::turn();
    // The least that it asks for to grow.
    let most = 256 * size_of::<u64>() - 1;
    let filter = of_buckets(1_024);
    // What the thread needs besides.
    assert!(filter.insert_if_absent(&0).unwrap() && filter.remove(&0).unwrap());
    filter.try_clone().unwrap();
    let (key, _) = with_most(most, || fill(&filter, 0));
    let mut steps = 0;
    for room in (0..key).step_by(25) {
        // Not always the same one: a few add up how full the table is.
        let key = key + room;
        assert!(filter.remove(&room).unwrap());
        let bytes = filter.to_bytes().unwrap();
        filter.insert(&room).unwrap();
        let builder = GrowingCuckooFilter::builder().reserved_bytes(0);
        let load = || {
            let filter = builder.clone().load_bytes(&bytes).unwrap();
            // The thread's counter.
            assert!(!filter.remove(&key).unwrap());
            Arc::new(filter)
        };
        let alone = load();
        let (inserted, made) = with_most(most, || count(|| alone.insert(&key)));
        if inserted.is_err() {
            continue;
        }
        let made = made.loads + made.stores + made.exchanges + made.others;
        // When it has found the way.
        for at in made.saturating_sub(50)..made {
            let filter = load();
            let copied = Arc::clone(&filter);
            let hook = move |step| {
                if step == at {
                    // For places and words: the copy looks at all buckets, and then has no table.
                    let copy = with_granted(most, 2, || copied.try_clone());
                    assert!(copy.is_err());
                }
            };
            let inserted = with_most(most, || with_hook(hook, || filter.insert(&key)));
            assert_eq!(inserted, Ok(()), "room for {room}, before step {at}");
            steps += 1;
        }
    }
    assert!(steps > 1_000, "{steps}");
}

/// There is none for the words that are joined, or for the smaller table.
#[test]
fn without_memory_to_shrink_it_keeps_its_size() {
    crate::turn();
    let mut filter = of_buckets(16);
    (0..20_000_u64).for_each(|key| filter.insert(&key).unwrap());
    (1_000..20_000_u64).for_each(|key| assert!(filter.remove(&key).unwrap()));
    let grown = filter.slots();
    for granted in [0, 1] {
        // (Less is for its counters.)
        with_granted(2_048, granted, || filter.shrink_to_fit());
        assert!(filter.slots() >= grown);
        holds_just(&filter, 1_000);
    }
    filter.shrink_to_fit();
    assert!(filter.slots() < grown);
    holds_just(&filter, 1_000);
}

/// A table is loaded if there is memory for it and nothing more; otherwise that is an error, as for building, and for
/// writing, which then writes nothing.
#[test]
fn loading_needs_memory_for_table_only() {
    crate::turn();
    let filter = of_buckets(8_192);
    (0..1_000_u64).for_each(|key| filter.insert(&key).unwrap());
    let bytes = filter.to_bytes().unwrap();
    // What is saved has room for buckets that others begin to make.
    let table = bytes.len() - 56;
    let builder = GrowingCuckooFilter::builder().reserved_bytes(0);
    let load = |most| with_most(most, || builder.clone().load_from(&bytes[..]));
    holds_just(&load(table).unwrap(), 1_000);
    for most in [table - 1, table / 2] {
        assert!(matches!(load(most), Err(LoadError::OutOfMemory { .. })));
    }
    assert!(with_most(4_096, || builder.buckets(8_192).build()).is_err());
    let mut written = Vec::new();
    let refused = with_most(4_096, || filter.write_to(&mut written));
    assert!(matches!(refused, Err(SaveError::Snapshot(_))) && written.is_empty());
}

/// Copies, and saves, while two threads change the filter all over: each allocation of a copy is refused
/// now and then.
#[test]
fn copy_without_memory_is_error() {
    crate::turn();
    const BUCKETS: usize = 20_000;
    // Every filter has a few KiB of counters besides its table.
    const SMALL: usize = 4 << 10;
    let refused = |error: &SnapshotError| {
        matches!(
            error,
            SnapshotError::OutOfMemory {
                buckets: BUCKETS,
                ..
            }
        )
    };
    let filter = CuckooFilter::builder().buckets(BUCKETS).build().unwrap();
    let copy = |times| with_granted(SMALL, times, || filter.try_clone().map(drop));
    let save = |times| with_granted(SMALL, times, || filter.to_bytes().map(drop));
    let change = |thread: u64| {
        let keys = || (0..BUCKETS as u64).map(|key| (thread, key));
        keys().for_each(|key| filter.insert(&key).unwrap());
        keys().for_each(|key| assert!(filter.remove(&key).unwrap()));
    };
    meanwhile([0, 1].map(|thread| move || change(thread)), || {
        for times in (0..12).cycle().take(60) {
            for result in [copy(times), save(times)] {
                let is_right = result.as_ref().map_or_else(refused, |()| times > 0);
                assert!(is_right, "{result:?}");
            }
        }
    });
    // Before anything is written: one for what others might change, and one for the copy or the
    // bytes.
    for granted in 0..3 {
        for result in [copy(granted), save(granted)] {
            let is_right = result.as_ref().map_or_else(refused, |()| granted == 2);
            assert!(
                is_right && (granted < 2 || result.is_ok()),
                "{granted}: {result:?}"
            );
        }
    }
    // Only the former to write to a file.
    let written = with_granted(SMALL, 0, || filter.write_to(std::io::sink()));
    assert!(matches!(written, Err(SaveError::Snapshot(error)) if refused(&error)));
    assert!(with_granted(SMALL, 1, || filter.write_to(std::io::sink())).is_ok());
}

/// However a filter came to be, and as it grows: a small one, or one that reserves nothing, allocates a quarter more
/// than `memory_bytes` says at most, and a large one four times as much. (A process with a filter for each of its users
/// may have a hundred thousand.)
#[test]
fn growing_filter_memory_is_in_proportion() {
    crate::turn();
    let fill = |filter: GrowingCuckooFilter, keys: u64| {
        (0..keys).for_each(|key| filter.insert(&key).unwrap());
        filter
    };
    let filled = |keys| fill(GrowingCuckooFilter::new(), keys);
    let emptied = |keys, empty: fn(&mut GrowingCuckooFilter)| {
        let mut filter = filled(keys);
        (9..keys).for_each(|key| assert!(filter.remove(&key).unwrap()));
        empty(&mut filter);
        filter
    };
    let load = |bytes: &[u8]| GrowingCuckooFilter::from_bytes(bytes).unwrap();
    type Make<'a> = &'a dyn Fn(u64) -> GrowingCuckooFilter;
    let made: [(&str, Make); 7] = [
        ("reserving nothing", &|keys| fill(of_buckets(1_024), keys)),
        ("of a capacity", &|keys| {
            GrowingCuckooFilter::with_capacity(keys as usize)
        }),
        ("filled", &filled),
        ("copied", &|keys| filled(keys).try_clone().unwrap()),
        ("loaded", &|keys| load(&filled(keys).to_bytes().unwrap())),
        ("cleared", &|keys| emptied(keys, GrowingCuckooFilter::clear)),
        ("shrunk", &|keys| {
            emptied(keys, GrowingCuckooFilter::shrink_to_fit)
        }),
    ];
    // Counters of a thread, and the list of pieces.
    const BESIDES: usize = 8 << 10;
    for keys in [1, 5_000, 20_000, 300_000] {
        for (case, make) in made {
            drop(make(10));
            let before = held();
            let filter = make(keys);
            let (allocated, stated) = (held() - before, filter.memory_bytes());
            println!("{case}, {keys} keys: {allocated} bytes allocated, {stated} stated");
            let most = match (case, stated) {
                (_, ..131_072) | ("reserving nothing", _) => stated * 5 / 4,
                _ => stated * 4,
            };
            assert!(allocated <= most + BESIDES, "{case}: {allocated}, {stated}");
        }
    }
}
