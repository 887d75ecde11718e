//! Bad sizes are clear errors, and errors say what to do.

use filter::BuildError::{NoSize, TooManyFalsePositives, ZeroSize};
use filter::{CuckooFilter, GrowingCuckooFilter};

#[test]
fn bad_sizes_are_errors() {
    let (fixed, growing) = (CuckooFilter::builder(), GrowingCuckooFilter::builder());
    let fitted = fixed.false_positive_rate(0.01);
    assert_eq!(fixed.build().unwrap_err(), NoSize);
    assert_eq!(fitted.build().unwrap_err(), NoSize.into());
    assert_eq!(fixed.buckets(0).build().unwrap_err(), ZeroSize);
    assert_eq!(fitted.buckets(0).build().unwrap_err(), ZeroSize.into());
    assert_eq!(growing.buckets(0).build().unwrap_err(), ZeroSize);
    // With 32 bits, no number of buckets is too large, but for memory.
    #[cfg(target_pointer_width = "64")]
    for buckets in [usize::MAX, 1 << 50, (1 << 32) + 1] {
        let too_large = filter::BuildError::TooLarge { buckets };
        assert_eq!(fixed.buckets(buckets).build().unwrap_err(), too_large);
        assert_eq!(growing.buckets(buckets).build().unwrap_err(), too_large);
    }
    // The rate of an empty filter is 6 / 2^15.
    for (rate, error) in [
        (1.0 / 5_461.0, None),
        (1.0 / 5_462.0, Some(TooManyFalsePositives)),
        (f64::NAN, Some(TooManyFalsePositives)),
    ] {
        assert_eq!(growing.max_false_positive_rate(rate).build().err(), error);
    }
    #[cfg(target_pointer_width = "64")]
    for absurd in [usize::MAX, 1 << 60] {
        let is_so = |error| matches!(error, Some(filter::BuildError::TooLarge { .. }));
        assert!(is_so(fixed.capacity(absurd).build().err()));
        assert!(is_so(growing.capacity(absurd).build().err()));
        assert!(std::panic::catch_unwind(|| CuckooFilter::with_capacity(absurd)).is_err());
    }
}

#[test]
fn the_last_size_wins() {
    let builder = CuckooFilter::builder().capacity(1_000_000);
    assert_eq!(builder.buckets(3).build().unwrap().capacity(), 12);
    let filter = CuckooFilter::builder().buckets(3).capacity(1_000).build();
    assert!(filter.unwrap().capacity() >= 1_000);
}

#[test]
fn errors_say_what_to_do() {
    let no_size = CuckooFilter::builder().build().unwrap_err().to_string();
    let says = "the size is missing: call capacity(keys) or buckets(number)";
    assert_eq!(no_size, says);
    let one = CuckooFilter::builder().buckets(1).build().unwrap();
    let full = (0..5).find_map(|key| one.insert(&key).err()).unwrap();
    let says = "the filter is full: build it with a larger capacity, remove keys first, or insert each key once \
                (insert_unique) if keys repeat";
    assert_eq!(full.to_string(), says);
    let nearly_empty = CuckooFilter::with_capacity(1_000);
    let too_many = (0..9).find_map(|_| nearly_empty.insert("key").err());
    let says = "the filter holds 8 copies of this key, and even a larger one has room for no more: insert the key \
                once (insert_unique), or remove copies";
    assert_eq!(too_many.unwrap().to_string(), says);
}
