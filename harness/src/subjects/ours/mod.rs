//! Our filter, through each of its interfaces.

mod growing;
mod lock_free;
mod lock_free_batch;
mod lock_free_copies;
mod lock_free_fitted;

pub use growing::{Growing, GrowingReader};
pub use lock_free::LockFree;
pub use lock_free_batch::LockFreeBatch;
pub use lock_free_copies::LockFreeCopies;
pub use lock_free_fitted::LockFreeFitted;
