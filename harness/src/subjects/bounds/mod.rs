//! Bounds, which are no filters and hold no keys.

mod batched_roofline;
mod null;
mod roofline;
mod update_roofline;

pub use batched_roofline::BatchedRoofline;
pub use null::Null;
pub use roofline::Roofline;
pub use update_roofline::UpdateRoofline;
