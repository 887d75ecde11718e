//! Relatives of the cuckoo filter: Bloom filters (plain, blocked, counting and scalable), the vector
//! quotient filter, SmartCuckoo, and sketches. HyperLogLog is a published crate; the others are built
//! from their papers.

pub mod blocked_bloom;
pub mod bloom;
pub mod count_min;
pub mod double_hashing;
pub mod hyper_log_log;
pub mod scalable_bloom;
pub mod smart_cuckoo;
#[cfg(test)]
mod tests;
pub mod vector_quotient;

pub use blocked_bloom::BlockedBloom;
pub use bloom::{Bloom, CountingBloom};
pub use count_min::CountMin;
pub use hyper_log_log::HyperLogLog;
pub use scalable_bloom::ScalableBloom;
pub use smart_cuckoo::{PlainCuckooMutex, SmartCuckooMutex};
pub use vector_quotient::VectorQuotient;
