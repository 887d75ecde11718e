//! Serialization with serde: a filter becomes one sequence of bytes, the same as when it is
//! [saved](crate::save); in a format for people to read, such as JSON, one string of base64.

use std::hash::BuildHasher;

use base64::Engine;
use base64::display::Base64Display;
use base64::prelude::BASE64_STANDARD;
use serde::de::{Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};
use serde::{de, ser};

use crate::builder::Builder;
use crate::dyn_filter::DynCuckooFilter;
use crate::expiring::{Ages, ExpiringCuckooFilter};
use crate::filter::CuckooFilter;
use crate::growing::GrowingCuckooFilter;
use crate::layout::Layout;
use crate::save::LoadError;

fn serialize<R: Serializer>(bytes: &[u8], serializer: R) -> Result<R::Ok, R::Error> {
    if serializer.is_human_readable() {
        serializer.collect_str(&Base64Display::new(bytes, &BASE64_STANDARD))
    } else {
        serializer.serialize_bytes(bytes)
    }
}

fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    if deserializer.is_human_readable() {
        let text = String::deserialize(deserializer)?;
        BASE64_STANDARD.decode(text).map_err(de::Error::custom)
    } else {
        serde_bytes::deserialize(deserializer)
    }
}

/// Declares how a filter is serialized and deserialized.
macro_rules! serialized {
    ($filter:ty, [$($parameters:tt)*], $load:expr) => {
        /// Requires the feature `serde`. Like `to_bytes`, also in time, memory and errors: others
        /// may insert and remove meanwhile.
        impl<$($parameters)* S: BuildHasher> Serialize for $filter {
            fn serialize<R: Serializer>(&self, serializer: R) -> Result<R::Ok, R::Error> {
                let bytes = self.to_bytes().map_err(ser::Error::custom)?;
                serialize(&bytes, serializer)
            }
        }

        /// Requires the feature `serde`. Like loading with the hasher's default value.
        impl<'de, $($parameters)* S: BuildHasher + Default> Deserialize<'de> for $filter {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let bytes = deserialize(deserializer)?;
                let load: fn(S, &[u8]) -> Result<Self, LoadError> = $load;
                load(S::default(), &bytes).map_err(de::Error::custom)
            }
        }
    };
}

serialized!(
    CuckooFilter<SLOTS, BITS, S>,
    [const SLOTS: usize, const BITS: usize,],
    |hasher, bytes| Builder::new(Layout).unmixed_hasher(hasher).from_bytes(bytes)
);
serialized!(
    ExpiringCuckooFilter<SLOTS, BITS, AGE_BITS, S>,
    [const SLOTS: usize, const BITS: usize, const AGE_BITS: usize,],
    |hasher, bytes| Builder::new(Ages).unmixed_hasher(hasher).from_bytes(bytes)
);
serialized!(DynCuckooFilter<S>, [], |hasher, bytes| {
    let builder = CuckooFilter::builder().unmixed_hasher(hasher);
    builder.false_positive_rate(1.0).from_bytes(bytes)
});
serialized!(GrowingCuckooFilter<S>, [], |hasher, bytes| {
    let builder = GrowingCuckooFilter::builder().unmixed_hasher(hasher);
    builder.from_bytes(bytes)
});
