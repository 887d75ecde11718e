//! Bounds: subjects that are not filters and hold no keys, but do the least work that an operation
//! needs.

mod batched_roofline;
mod null;
mod roofline;
mod update_roofline;

pub use batched_roofline::BatchedRoofline;
pub use null::Null;
pub use roofline::Roofline;
pub use update_roofline::UpdateRoofline;
