//! Relatives of the cuckoo filter, built from their papers: Bloom filters (plain, blocked, counting
//! and scalable), the vector quotient filter, SmartCuckoo, and sketches. Beside each stands what
//! the literature claims about it, as code that [measures](theory) whether the claim holds.

pub mod blocked_bloom;
pub mod bloom;
pub mod counting_bloom;
pub mod double_hashing;
pub mod scalable_bloom;
pub mod sketches;
pub mod smart_cuckoo;
pub mod theory;
pub mod vector_quotient;

pub use blocked_bloom::BlockedBloom;
pub use bloom::Bloom;
pub use counting_bloom::CountingBloom;
pub use scalable_bloom::ScalableBloom;
pub use sketches::{CountMinSet, HyperLogLogCounter};
pub use smart_cuckoo::{PlainCuckooMutex, SmartCuckooMutex};
pub use vector_quotient::VectorQuotient;
