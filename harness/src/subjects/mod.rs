//! The measured structures. Ours share hash function, bucket layout and table size,
//! so that they differ only in how they coordinate threads. Published crates are configured to come
//! as close to that as they can, and say where they differ.
//!
//! Where a structure belongs:
//!
//! | Folder | What it is for |
//! |---|---|
//! | `ours` | our filter, through each of its interfaces |
//! | `locks` | our table under locks, and whatever one lock makes a subject of, such as a `HashSet` of the standard library under its `Mutex` |
//! | `crates` | published crates that threads share as they are, or under the lock that they need |
//! | `bounds` | no filters, but the least work that an operation needs |
//! | `ablations` | our filter with one decision changed, and the published protocol |
//!
//! What is published as a paper alone is in the crate [`relatives`].

mod ablations;
mod bounds;
mod crates;
pub mod engines;
mod locks;
mod ours;
pub mod registry;

pub use ablations::variants::*;
pub(crate) use ablations::{OwnersByDcss, Words};
pub use ablations::{Reused, TwoPhase};
pub use bounds::*;
pub use crates::*;
pub use locks::*;
pub use ours::*;
pub use registry::{Registry, SubjectInfo, original};
pub use relatives::{
    BlockedBloom, Bloom, CountMin, CountingBloom, HyperLogLog, PlainCuckooMutex, ScalableBloom,
    SmartCuckooMutex, VectorQuotient,
};

use subject::Subject;

/// The subjects that are bounds, not filters: they hold no keys.
pub(crate) const BOUNDS: [&str; 4] = [
    Roofline::NAME,
    BatchedRoofline::NAME,
    UpdateRoofline::NAME,
    Null::NAME,
];

/// The subjects that can be simulated: all that they share between threads comes through the doors
/// of [`kcas::sync`] and [`subject::sync`].
#[cfg(feature = "simulation")]
pub(crate) const SIMULATED: [&str; 13] = [
    LockFree::NAME,
    LockFreeFitted::NAME,
    WordLock::NAME,
    <SegmentLock>::NAME,
    SegmentLock::<16_384>::NAME,
    StripedTimestamps::NAME,
    <Optimistic>::NAME,
    Optimistic::<16_384>::NAME,
    GlobalLock::NAME,
    TwoPhase::NAME,
    AblationDcss::NAME,
    Roofline::NAME,
    UpdateRoofline::NAME,
];

#[cfg(test)]
mod tests;
