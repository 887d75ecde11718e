//! Bad sizes are clear errors; a filter that is built can be used from many threads.

use std::panic::catch_unwind;

use filter::{BuildError, CuckooFilter};

#[test]
fn bad_sizes_are_errors() {
    let build = || CuckooFilter::builder();
    let error = |builder: filter::Builder| builder.build().unwrap_err();
    assert_eq!(error(build()), BuildError::NoSize);
    assert_eq!(error(build().buckets(0)), BuildError::ZeroSize);
    for absurd in [usize::MAX, 1 << 50, (1 << 32) + 1] {
        let TooLarge { buckets } = error(build().buckets(absurd)) else {
            panic!("{absurd} buckets")
        };
        assert_eq!(buckets, absurd);
    }
    for absurd in [usize::MAX, 1 << 60] {
        assert!(matches!(error(build().capacity(absurd)), TooLarge { .. }));
        assert!(catch_unwind(|| CuckooFilter::with_capacity(absurd)).is_err());
    }
    use BuildError::TooLarge;
}

#[test]
fn the_last_size_wins() {
    let filter = CuckooFilter::builder()
        .capacity(1_000_000)
        .buckets(3)
        .build();
    assert_eq!(filter.unwrap().capacity(), 12);
    let filter = CuckooFilter::builder().buckets(3).capacity(1_000).build();
    assert!(filter.unwrap().capacity() >= 1_000);
}

#[test]
fn errors_say_what_to_do() {
    assert_eq!(
        CuckooFilter::builder().build().unwrap_err().to_string(),
        "the size is missing: call capacity(keys) or buckets(number)"
    );
    let one = CuckooFilter::builder().buckets(1).build().unwrap();
    let full = (0..5).find_map(|key| one.insert(&key).err()).unwrap();
    assert_eq!(
        full.to_string(),
        "the filter is full: build it with a larger capacity, remove keys first, or insert each key once \
         (insert_unique) if keys repeat"
    );
    let nearly_empty = CuckooFilter::with_capacity(1_000);
    let too_many = (0..9).find_map(|_| nearly_empty.insert("key").err());
    assert_eq!(
        too_many.unwrap().to_string(),
        "the filter holds 8 copies of this key, and even a larger one has room for no more: insert the key \
         once (insert_unique), or remove copies"
    );
}
