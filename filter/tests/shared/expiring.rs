//! Expiring filters in files: their clock, which processes share, and calls of `advance_to` that are killed.

use std::collections::hash_map::DefaultHasher;
use std::hash::BuildHasherDefault;
use std::thread;
use std::time::{Duration, Instant};

use filter::{
    AdvanceError, CuckooFilter, ExpiringCuckooFilter, Filter, InsertError, SnapshotError,
    UpdateError,
};

use crate::file::File;

const MINUTE: Duration = Duration::from_secs(60);

#[test]
fn expiring_filters_in_one_file_share_clock() {
    let file = File::new("clock");
    let builder = ExpiringCuckooFilter::builder().capacity(1_000);
    let first = builder.clone().open_or_create_shared(&file.0, MINUTE);
    let first = first.unwrap();
    first.insert("old").unwrap();
    let second = builder.clone().open_shared(&file.0).unwrap();
    let look = builder.open_shared_to_read(&file.0).unwrap();
    assert_eq!(second.insert_if_absent("old"), Ok(false));
    first.advance_to(2).unwrap();
    assert_eq!(second.period(), 2);
    second.advance_to(2).unwrap();
    assert_eq!([first.period(), second.period()], [2; 2]);
    second.insert("new").unwrap();
    assert!(["old", "new"].iter().all(|key| look.contains(key)) && look.len() == 2);
    assert_eq!(second.advance(), Ok(3));
    assert!(!look.contains("old") && look.contains("new") && first.contains("new"));
    assert_eq!([first.len(), second.recount(), look.len()], [1; 3]);
}

#[test]
fn filter_of_other_kind_or_time_names_both() {
    let [fixed, expiring, missing] =
        ["fixed", "expiring", "missing"].map(|name| File::new(&format!("kind-{name}")));
    let builder = CuckooFilter::builder().capacity(100);
    drop(builder.clone().open_or_create_shared(&fixed.0).unwrap());
    let other = ExpiringCuckooFilter::builder().capacity(100);
    let open = |length| other.clone().open_or_create_shared(&expiring.0, length);
    drop(open(MINUTE).unwrap());
    let three_bits = other.clone().layout::<4, 11, 3>();
    let hasher = BuildHasherDefault::<DefaultHasher>::new();
    let errors = [
        builder.clone().open_shared(&expiring.0).map(drop),
        other.clone().open_shared_to_read(&fixed.0).map(drop),
        three_bits.open_shared(&expiring.0).map(drop),
        open(2 * MINUTE).map(drop),
        open(Duration::ZERO).map(drop),
        builder
            .hasher(hasher)
            .open_shared_to_read(&fixed.0)
            .map(drop),
        CuckooFilter::builder().open_shared(&missing.0).map(drop),
        CuckooFilter::builder()
            .open_or_create_shared(&missing.0)
            .map(drop),
    ];
    let errors = errors.map(|result| result.unwrap_err().to_string());
    let expected = [
        "the kind of the file is an expiring filter, not a filter of fixed size",
        "the kind of the file is a filter of fixed size, not an expiring filter",
        "the layout of the file is 4 slots of 12 bits, and 2 bits of age, not 4 slots of 11 bits, and 3 bits of age",
        "the length of a period of the file is 60s, not 120s",
        "a period cannot last 0ns",
        "the hasher's digest of the file is 0x",
        "No such file",
        "the size is missing",
    ];
    for (error, expected) in errors.iter().zip(expected) {
        assert!(error.starts_with(expected), "{error}");
    }
}

/// Four filters in one file follow the time.
#[test]
fn time_begins_each_period_once() {
    let file = File::new("time");
    let length = Duration::from_millis(5);
    let builder = ExpiringCuckooFilter::builder().capacity(1_000);
    let before = Instant::now();
    let made = builder.clone().open_or_create_shared(&file.0, length);
    drop(made.unwrap());
    let after = Instant::now();
    let periods = |time: Duration| (time.as_nanos() / length.as_nanos()) as u64;
    thread::scope(|threads| {
        for _ in 0..4 {
            threads.spawn(|| {
                let filter = builder.clone().open_shared(&file.0).unwrap();
                assert_eq!(filter.period_length(), length);
                while after.elapsed() < 20 * length {
                    let least = periods(after.elapsed());
                    filter.advance_to_now().unwrap();
                    let period = filter.period();
                    assert!((least..=periods(before.elapsed())).contains(&period));
                }
            });
        }
    });
}

#[test]
fn saved_expiring_filter_continues_in_file() {
    const PERIOD: u64 = 1_000_000_000;
    let (file, other) = (File::new("expiring-saved"), File::new("expiring-loaded"));
    let memory = ExpiringCuckooFilter::with_capacity(1_000);
    memory.advance_to(PERIOD).unwrap();
    memory.insert("old").unwrap();
    let shared = memory.into_shared(&file.0, MINUTE).unwrap();
    shared.advance_to(PERIOD + 1).unwrap();
    shared.insert("new").unwrap();
    let bytes = thread::scope(|threads| {
        let advance = threads.spawn(|| shared.advance());
        let bytes = shared.to_bytes();
        assert_eq!(advance.join().unwrap(), Ok(PERIOD + 2));
        bytes.unwrap()
    });
    let loaded = ExpiringCuckooFilter::from_bytes(&bytes).unwrap();
    assert_eq!(loaded.len(), 2);
    // More than ten such periods go by.
    let loaded = loaded.into_shared(&other.0, Duration::from_nanos(100));
    let loaded = loaded.unwrap();
    assert!(loaded.period() - PERIOD <= 2 && loaded.contains("new"));
    loaded.advance_to_now().unwrap();
    assert!(loaded.period() > PERIOD + 10 && loaded.is_empty());
    assert_eq!(shared.try_clone().unwrap().len(), 2);
}

#[test]
fn impossible_period_is_damage() {
    let file = File::new("clock-damaged");
    let builder = ExpiringCuckooFilter::builder().buckets(100);
    let filter = builder.open_or_create_shared(&file.0, MINUTE).unwrap();
    file.write(96, &[u64::MAX]);
    assert_eq!(filter.insert_if_absent("key"), Ok(true));
    let damaged = AdvanceError::from(UpdateError::Damaged);
    // The period seems to have begun long ago.
    assert_eq!(filter.advance_to_now(), Err(damaged.clone()));
    assert!(filter.is_damaged() && filter.contains("absent"));
    file.write(96, &[0]);
    assert_eq!(filter.advance(), Err(damaged));
    assert_eq!(filter.insert("key"), Err(InsertError::Damaged));
    assert_eq!(filter.to_bytes().unwrap_err(), SnapshotError::Damaged);
}

/// A worker is killed at each instruction of a call that begins a period. Nothing that has not expired is lost, no
/// thread waits, and whoever begins this period or the next one finishes the sweep.
#[cfg(target_arch = "x86_64")]
#[test]
fn advance_killed_at_any_instruction_is_resumed() {
    use crate::any::AnyFilter;
    use crate::single::{Call, Kind, RECORDS, Table, can_trace};
    use crate::storm::has_tags;

    let table = Table::create("single-expiring", 60, true);
    if !can_trace(&table) {
        return;
    }
    // Those of period 0 are due in period 3.
    table.filter.advance_to(2);
    let (due, rest) = table.keys.split_at(60);
    let (staying, new) = (&rest[..40], &rest[40..60]);
    let insert = |key: &u64| table.filter.insert(key).unwrap();
    staying.iter().for_each(insert);
    let worker = table.start(Call(Kind::AdvanceTo, 3));
    let (mut left, _) = table.finish(&worker);
    drop(worker);
    left.dedup();
    println!("killed at {} places", left.len());
    let copies = |key: &u64| table.filter.count(key);
    let count = |keys: &[u64]| keys.iter().map(copies).sum::<usize>();
    let mut last = due.len();
    for (nth, left) in left.iter().enumerate() {
        for next in [3, 4] {
            table.put_back(left);
            let filter = &table.filter;
            let found = count(due);
            assert!(found <= last, "at {nth}: {found} keys of {last}");
            last = found;
            let has_begun = filter.period() == 3;
            assert!(has_begun || found == due.len(), "at {nth}");
            // Others renew keys that are due, and insert new ones.
            due[..20].iter().chain(new).for_each(insert);
            assert_eq!(count(staying), staying.len(), "at {nth}");
            let heir = AnyFilter::open(&table.file.0).unwrap();
            heir.advance_to(next);
            // If the period had not begun, they have the age of the one before.
            let renewed = count(&due[..20]) + count(new);
            assert_eq!(renewed, 40, "at {nth}");
            assert_eq!(count(staying), staying.len(), "at {nth}");
            assert_eq!(count(&due[20..]), 0, "at {nth}");
            assert_eq!((filter.period(), filter.recount()), (next, 80), "at {nth}");
            heir.advance_to(next + 2);
            let kept = if next == 3 && has_begun { 40 } else { 0 };
            assert_eq!((filter.recount(), filter.len()), (kept, kept), "at {nth}");
            assert!(!has_tags(&table.read()[RECORDS..]), "at {nth}");
        }
    }
    assert_eq!(last, 0);
}
