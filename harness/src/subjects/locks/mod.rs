//! Our table under various locks. Any other structure behind one lock belongs here, too:
//! [`subject::one_lock`] makes a subject of it.

pub(super) mod chain;
mod lookups;
mod striped;
#[cfg(all(test, feature = "steps"))]
mod tests;
pub(super) mod victim_cuckoo;
mod word_lock;

pub use lookups::{Optimistic, SegmentLock, StripedTimestamps};
pub use striped::Striped;
pub use victim_cuckoo::{GlobalLock, RwLock, VictimCuckoo};
pub use word_lock::WordLock;
