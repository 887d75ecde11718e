//! Filters as part of a larger value that is serialized.

use std::fmt::Debug;
use std::hash::RandomState;

use filter::{CuckooFilter, ExpiringCuckooFilter, Filter, GrowingCuckooFilter};
use serde::Serialize;
use serde::de::DeserializeOwned;

fn hashes() -> impl Iterator<Item = u64> {
    (0..1_000u64).map(|nth| nth.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

fn holds_all(filter: &impl Filter) -> bool {
    filter.len() == 1_000 && hashes().all(|hash| filter.contains_hash(hash))
}

/// Serializes the filter, between other things, as the bytes that it is saved as.
fn is_serialized<F>(filter: &F)
where
    F: Filter + Serialize + DeserializeOwned + Debug,
{
    hashes().for_each(|hash| filter.insert_hash(hash).unwrap());
    let saved = filter.to_bytes().unwrap();

    let bytes = postcard::to_stdvec(&("before", filter, "after")).unwrap();
    assert!(bytes.windows(saved.len()).any(|window| window == saved));
    assert!(bytes.len() < saved.len() + 20, "bytes are written as such");
    let (before, loaded, after): (&str, F, &str) = postcard::from_bytes(&bytes).unwrap();
    assert_eq!((before, after), ("before", "after"));
    assert!(holds_all(&loaded));

    let mut damaged = bytes.clone();
    damaged[500] ^= 1;
    assert!(postcard::from_bytes::<(&str, F, &str)>(&damaged).is_err());

    let text = serde_json::to_string(&("before", filter)).unwrap();
    assert!(text.len() < saved.len() / 3 * 4 + 30, "in base64");
    let (_, loaded): (&str, F) = serde_json::from_str(&text).unwrap();
    assert!(holds_all(&loaded));
    let error = serde_json::from_str::<(&str, F)>(&text.replace("Y3Vja", "????")).unwrap_err();
    assert!(error.to_string().contains("line 1"), "{error}");
}

#[test]
fn a_filter_among_other_things() {
    is_serialized(&CuckooFilter::with_capacity(1_000));
    let builder = CuckooFilter::builder().capacity(1_000);
    is_serialized(&builder.false_positive_rate(0.001).build().unwrap());
    is_serialized(&ExpiringCuckooFilter::with_capacity(1_000));
    is_serialized(&GrowingCuckooFilter::new());
}

#[test]
fn another_hasher_is_an_error() {
    let bytes = postcard::to_stdvec(&CuckooFilter::with_capacity(1_000)).unwrap();
    assert!(postcard::from_bytes::<CuckooFilter>(&bytes).is_ok());
    assert!(postcard::from_bytes::<CuckooFilter<4, 12, RandomState>>(&bytes).is_err());
}
