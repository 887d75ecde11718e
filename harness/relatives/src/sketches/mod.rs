//! Sketches: summaries of a stream of keys, in memory that does not grow with it. Threads share
//! them and never wait.
//!
//! All take the 64-bit hash of a key, all of whose bits must be good, as those of
//! [`FixedState`](filter::FixedState) are. So one hash of a key serves all of them.

pub mod count_min;
mod count_min_set;
pub mod hyper_log_log;
mod hyper_log_log_counter;
pub mod theory;

pub use count_min::CountMin;
pub use count_min_set::CountMinSet;
pub use hyper_log_log::HyperLogLog;
pub use hyper_log_log_counter::HyperLogLogCounter;
