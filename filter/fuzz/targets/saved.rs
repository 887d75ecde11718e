//! Any bytes are loaded as a filter that works like any other and is saved as the same bytes, or refused with
//! an error.

#![no_main]

use filter::{
    CuckooFilter, DynCuckooFilter, ExpiringCuckooFilter, Filter, GrowingCuckooFilter, LoadError,
};
use libfuzzer_sys::fuzz_target;

#[path = "../../tests/common/forged.rs"]
mod forged;

use forged::with_right_checksums;

fuzz_target!(|bytes: &[u8]| {
    any_kind(bytes);
    // Few bytes have the right checksums by chance.
    let is_growing = bytes.starts_with(b"cuckoog\n");
    let header = if is_growing { 40 } else { 32 };
    if bytes.len() >= header + 16 {
        any_kind(&with_right_checksums(bytes.to_vec(), header));
    }
});

fn any_kind(bytes: &[u8]) {
    let growing = GrowingCuckooFilter::builder().reserved_bytes(0);
    check(bytes, CuckooFilter::from_bytes, |b| {
        CuckooFilter::read_from(b)
    });
    check(bytes, DynCuckooFilter::from_bytes, |b| {
        DynCuckooFilter::read_from(b)
    });
    let growing = || growing.clone();
    check(bytes, |b| growing().load_bytes(b), |b| growing().load_from(b));
    check(bytes, ExpiringCuckooFilter::from_bytes, |b| {
        ExpiringCuckooFilter::read_from(b)
    });
    if let Ok(filter) = ExpiringCuckooFilter::from_bytes(bytes)
        && filter.period() < 1 << 40
    {
        for _ in 0..4 {
            filter.advance().unwrap();
        }
        assert!(filter.is_empty());
    }
}

fn check<F: Filter>(
    bytes: &[u8],
    from_bytes: impl Fn(&[u8]) -> Result<F, LoadError>,
    read_from: impl Fn(&[u8]) -> Result<F, LoadError>,
) {
    let (filter, read) = match (from_bytes(bytes), read_from(bytes)) {
        (Ok(filter), read) => (filter, read.unwrap()),
        // A reader may go on after the filter.
        (Err(LoadError::TooLong { .. }), Ok(_)) | (Err(_), Err(_)) => return,
        (Err(error), Ok(_)) => panic!("{error}"),
    };
    let again = filter.to_bytes().unwrap();
    assert!(read.to_bytes().unwrap() == again);
    // A growing filter finishes what it was about to do when it was saved.
    let is_growing = bytes.starts_with(b"cuckoog");
    assert!(is_growing || again == bytes);
    assert!(from_bytes(&again).unwrap().to_bytes().unwrap() == again);
    // It is a filter like any other: it can be full, but it forgets nothing.
    let held = filter.len();
    let is_new = |key: &u64| filter.insert_if_absent(key) == Ok(true);
    let inserted: Vec<u64> = (0..64).filter(is_new).collect();
    // In a filter that forgets, a key may take the place of one whose time is over.
    let replaced = held + inserted.len() - filter.len();
    assert!(replaced == 0 || bytes.starts_with(b"cuckoox"));
    assert!(inserted.iter().all(|key| filter.contains(key)));
    assert!(inserted.iter().all(|key| filter.remove(key).unwrap()));
    assert_eq!(filter.len() + replaced, held);
}
