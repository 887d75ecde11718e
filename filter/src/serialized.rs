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
    ($filter:ty, [$($parameters:tt)*], $builder:expr) => {
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
                let loaded = $builder.unmixed_hasher(S::default()).from_bytes(&bytes);
                loaded.map_err(de::Error::custom)
            }
        }
    };
}

serialized!(
    CuckooFilter<SLOTS, BITS, S>,
    [const SLOTS: usize, const BITS: usize,],
    Builder::new(Layout::<SLOTS, BITS>)
);
serialized!(
    ExpiringCuckooFilter<SLOTS, BITS, AGE_BITS, S>,
    [const SLOTS: usize, const BITS: usize, const AGE_BITS: usize,],
    Builder::new(Ages::<SLOTS, BITS, AGE_BITS>)
);
serialized!(
    DynCuckooFilter<S>,
    [],
    CuckooFilter::builder().false_positive_rate(1.0)
);
serialized!(GrowingCuckooFilter<S>, [], GrowingCuckooFilter::builder());
