//! What a growing filter gives back when a call ends, if no other thread is at work.

use filter::growing::GrowingCuckooFilter;

/// Number of keys, in tables of 1 MiB or more.
const KEYS: u64 = 200_000;

/// More than the lists and counters of a filter, and its first table, take.
const SMALL: i64 = 64 << 10;

/// Returns how many bytes more are allocated after `action` than before.
fn more(action: impl FnOnce()) -> i64 {
    crate::limited::measure(action).bytes_current
}

fn filled() -> GrowingCuckooFilter {
    let filter = GrowingCuckooFilter::new();
    (0..KEYS).for_each(|key| filter.insert(&key).unwrap());
    // Lets go of all tables that were split.
    filter.shrink();
    filter
}

#[test]
fn nothing_is_kept_once_a_call_has_ended() {
    let _turn = crate::turn();
    let mut kept = Vec::new();
    let filter = filled();
    let table = filter.memory_bytes() as i64;
    assert!(table > 8 * SMALL);
    let saved = more(|| filter.write_to(std::io::sink()).unwrap());
    kept.push(("saving", saved));
    // The copy is dropped.
    let copied = more(|| drop(filter.try_clone().unwrap()));
    kept.push(("copying", copied));
    filter.shrink();
    let cleared = more(|| filter.remove_all().unwrap());
    kept.push(("clearing", table + cleared));
    let mut filter = filled();
    (0..KEYS).for_each(|key| assert!(filter.remove(&key)));
    let shrunk = more(|| filter.shrink_to_fit().unwrap());
    kept.push(("shrinking to fit", table + shrunk));
    println!("{kept:?}, of {table}");
    for (what, bytes) in kept {
        assert!(bytes < SMALL, "{what} keeps {bytes} bytes of {table}");
    }
}
