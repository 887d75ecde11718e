//! Sketches: what a stream of keys is like, in memory that does not grow with it. Threads share them and never wait.
//!
//! All take the 64-bit hash of a key, which must be good in all of its bits, as
//! [`FixedState`](filter::FixedState)'s are: one hash of a key serves all of them.

pub mod count_min;
mod count_min_set;
pub mod hyper_log_log;
mod hyper_log_log_counter;
pub mod theory;
pub mod top_k;

pub use count_min::CountMin;
pub use count_min_set::CountMinSet;
pub use hyper_log_log::HyperLogLog;
pub use hyper_log_log_counter::HyperLogLogCounter;
pub use top_k::TopK;
