//! Published crates, configured to be as close to our size as they allow.

mod atomic_cuckoo_filter;
mod cuckoofilter;
mod exact_set;
mod fastbloom;

pub use atomic_cuckoo_filter::AtomicCuckooFilter;
pub use cuckoofilter::CuckoofilterMutex;
pub use exact_set::ExactSet;
pub use fastbloom::{Fastbloom, Fastbloom4};
