//! Our table under various locks, and with the published protocol. Any other structure behind one
//! lock belongs here, too: [`subject::one_lock`] and [`subject::under_mutex`] make a subject of it.

pub(super) mod chain;
mod global_lock;
mod optimistic;
mod rwlock;
mod segment_lock;
mod striped;
mod striped_timestamps;
mod two_phase;
pub(super) mod victim_cuckoo;
mod word_lock;

pub use global_lock::GlobalLock;
pub use optimistic::Optimistic;
pub use rwlock::RwLock;
pub use segment_lock::SegmentLock;
pub use striped_timestamps::StripedTimestamps;
pub use two_phase::TwoPhase;
pub use victim_cuckoo::VictimCuckoo;
pub use word_lock::WordLock;
