//! Serialization with serde: a filter becomes one sequence of bytes, the same as when it is
//! [saved](crate::save).

use std::hash::BuildHasher;

use serde::de::{Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};
use serde::{de, ser};

use crate::builder::Builder;
use crate::filter::CuckooFilter;

/// Requires the feature `serde`. Like [`to_bytes`](CuckooFilter::to_bytes), also in time, memory
/// and errors: others may insert and remove meanwhile.
impl<const SLOTS: usize, const BITS: usize, S: BuildHasher> Serialize
    for CuckooFilter<SLOTS, BITS, S>
{
    fn serialize<R: Serializer>(&self, serializer: R) -> Result<R::Ok, R::Error> {
        let bytes = self.to_bytes().map_err(ser::Error::custom)?;
        serde_bytes::serialize(&bytes, serializer)
    }
}

/// Requires the feature `serde`. Like [`load`](Builder::load).
impl<'de, const SLOTS: usize, const BITS: usize, S: BuildHasher + Default> Deserialize<'de>
    for CuckooFilter<SLOTS, BITS, S>
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bytes: Vec<u8> = serde_bytes::deserialize(deserializer)?;
        let builder = Builder::new(None, S::default());
        builder.load(&bytes).map_err(de::Error::custom)
    }
}
