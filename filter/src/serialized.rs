//! Serialization with serde: a filter becomes one sequence of bytes, the same as when it is
//! [saved](crate::save); in a format for people to read, such as JSON, one string of base64.

use std::fmt;
use std::hash::BuildHasher;
use std::iter;

use base64::Engine;
use base64::display::Base64Display;
use base64::prelude::BASE64_STANDARD;
use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};
use serde::{de, ser};

use crate::builder::Builder;
use crate::dyn_filter::DynCuckooFilter;
use crate::expiring::{AgedLayout, ExpiringCuckooFilter};
use crate::filter::CuckooFilter;
use crate::growing::GrowingCuckooFilter;
use crate::layout::Layout;

fn serialize<R: Serializer>(bytes: &[u8], serializer: R) -> Result<R::Ok, R::Error> {
    if serializer.is_human_readable() {
        serializer.collect_str(&Base64Display::new(bytes, &BASE64_STANDARD))
    } else {
        serializer.serialize_bytes(bytes)
    }
}

fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    if deserializer.is_human_readable() {
        // Buffers of serde call themselves readable, and contain whatever the format contained.
        deserializer.deserialize_any(Bytes)
    } else {
        // Some of these formats do not say what follows.
        deserializer.deserialize_byte_buf(Bytes)
    }
}

/// Returns the bytes of a saved filter, whatever they are written as.
struct Bytes;

impl<'de> Visitor<'de> for Bytes {
    type Value = Vec<u8>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a saved filter as bytes, base64 or a sequence of numbers")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Vec<u8>, E> {
        BASE64_STANDARD.decode(text).map_err(E::custom)
    }

    fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
        Ok(bytes.to_vec())
    }

    fn visit_byte_buf<E: de::Error>(self, bytes: Vec<u8>) -> Result<Vec<u8>, E> {
        Ok(bytes)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut numbers: A) -> Result<Vec<u8>, A::Error> {
        iter::from_fn(|| numbers.next_element().transpose()).collect()
    }
}

/// Declares how a filter is serialized and deserialized.
macro_rules! serialized {
    ($filter:ty, [$($parameters:tt)*], $builder:expr) => {
        /// Requires the feature `serde`. Like `to_bytes`, also in time, memory and errors: others
        /// may insert and remove meanwhile.
        impl<$($parameters)* S: BuildHasher + Send + Sync> Serialize for $filter {
            fn serialize<R: Serializer>(&self, serializer: R) -> Result<R::Ok, R::Error> {
                let bytes = self.to_bytes().map_err(ser::Error::custom)?;
                serialize(&bytes, serializer)
            }
        }

        /// Requires the feature `serde`. Like loading with the hasher's default value. Reads bytes, base64 and a
        /// sequence of numbers, because a conversion from another format may contain any of them. A binary format
        /// may refuse base64 itself, as `ciborium` does outside enums with tags, untagged enums and flattened
        /// fields.
        impl<'de, $($parameters)* S: BuildHasher + Default> Deserialize<'de> for $filter {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let bytes = deserialize(deserializer)?;
                let loaded = $builder.unmixed_hasher(S::default()).load_bytes(&bytes);
                loaded.map_err(de::Error::custom)
            }
        }
    };
}

serialized!(
    CuckooFilter<S, SLOTS, BITS>,
    [const SLOTS: usize, const BITS: usize,],
    Builder::new(Layout::<SLOTS, BITS>(()))
);
serialized!(
    ExpiringCuckooFilter<S, SLOTS, BITS, AGE_BITS>,
    [const SLOTS: usize, const BITS: usize, const AGE_BITS: usize,],
    Builder::new(AgedLayout::<SLOTS, BITS, AGE_BITS>(()))
);
serialized!(
    DynCuckooFilter<S>,
    [],
    CuckooFilter::builder().false_positive_rate(1.0)
);
serialized!(GrowingCuckooFilter<S>, [], GrowingCuckooFilter::builder());
