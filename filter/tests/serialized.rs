//! A filter as part of a larger value that is serialized.

use filter::CuckooFilter;
use std::hash::RandomState;

#[test]
fn a_filter_among_other_things() {
    let filter = CuckooFilter::with_capacity(1_000);
    for key in 0..1_000 {
        filter.insert(&key).unwrap();
    }
    let bytes = postcard::to_stdvec(&("before", &filter, "after")).unwrap();
    let saved = filter.to_bytes().unwrap();
    assert!(bytes.windows(saved.len()).any(|window| window == saved));
    assert!(bytes.len() < saved.len() + 20, "bytes are written as such");

    let (before, loaded, after): (&str, CuckooFilter, &str) = postcard::from_bytes(&bytes).unwrap();
    assert_eq!((before, after), ("before", "after"));
    assert_eq!(loaded.len(), 1_000);
    assert!((0..1_000).all(|key| loaded.contains(&key)));

    let mut damaged = bytes.clone();
    damaged[500] ^= 1;
    assert!(postcard::from_bytes::<(&str, CuckooFilter, &str)>(&damaged).is_err());
    let other_hasher =
        postcard::from_bytes::<(&str, CuckooFilter<4, 12, RandomState>, &str)>(&bytes);
    assert!(other_hasher.is_err());
}
