//! Filters as part of a larger value that is serialized.

use std::fmt::Debug;
use std::hash::RandomState;

use filter::{CuckooFilter, ExpiringCuckooFilter, Filter, GrowingCuckooFilter};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

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

/// Serializing keeps no rate: the layout that is wrong most often is loaded, too.
#[test]
fn each_filter_kind_serializes_as_its_bytes() {
    is_serialized(&CuckooFilter::with_capacity(1_000));
    for (rate, layout) in [(0.001, (4, 13)), (0.5, (8, 7))] {
        let builder = CuckooFilter::builder().capacity(1_000);
        let fitted = builder.false_positive_rate(rate).build().unwrap();
        assert_eq!((fitted.layout().slots, fitted.layout().bits), layout);
        is_serialized(&fitted);
    }
    is_serialized(&ExpiringCuckooFilter::with_capacity(1_000));
    is_serialized(&GrowingCuckooFilter::new());
    let bytes = postcard::to_stdvec(&CuckooFilter::with_capacity(1_000)).unwrap();
    assert!(postcard::from_bytes::<CuckooFilter>(&bytes).is_ok());
    assert!(postcard::from_bytes::<CuckooFilter<RandomState>>(&bytes).is_err());
}

#[derive(Deserialize, Serialize)]
struct Field {
    filter: CuckooFilter,
}

#[derive(Deserialize, Serialize)]
struct Flattened {
    #[serde(flatten)]
    field: Field,
}

#[derive(Deserialize, Serialize)]
#[serde(untagged)]
enum Untagged {
    Newtype(CuckooFilter),
}

type WriteAndRead<'a, C> = &'a dyn Fn(&C) -> anyhow::Result<C>;

/// Writes and reads the filter in a container. Serde reads some containers into a buffer first.
fn survives_each_format<C: Serialize + DeserializeOwned>(
    put: impl Fn(CuckooFilter) -> C,
    take: impl Fn(C) -> CuckooFilter,
) {
    let formats: [(&str, WriteAndRead<C>); 4] = [
        ("JSON", &|c| {
            Ok(serde_json::from_str(&serde_json::to_string(c)?)?)
        }),
        ("CBOR", &|c| {
            let mut bytes = Vec::new();
            ciborium::into_writer(c, &mut bytes)?;
            Ok(ciborium::from_reader(&bytes[..])?)
        }),
        ("JSON to MessagePack", &|c| {
            let bytes = rmp_serde::to_vec_named(&serde_json::to_value(c)?)?;
            Ok(rmp_serde::from_slice(&bytes)?)
        }),
        ("CBOR to JSON", &|c| {
            let text = serde_json::to_string(&ciborium::Value::serialized(c)?)?;
            Ok(serde_json::from_str(&text)?)
        }),
    ];
    for (name, write_and_read) in formats {
        let filter = CuckooFilter::with_capacity(1_000);
        hashes().for_each(|hash| filter.insert_hash(hash).unwrap());
        let container = write_and_read(&put(filter)).expect(name);
        assert!(holds_all(&take(container)), "{name}");
    }
}

#[test]
fn filter_in_any_container_survives_each_format() {
    survives_each_format(|filter| Field { filter }, |field| field.filter);
    survives_each_format(Untagged::Newtype, |Untagged::Newtype(filter)| filter);
    let flattened = |filter| Flattened {
        field: Field { filter },
    };
    survives_each_format(flattened, |flattened| flattened.field.filter);
}
