//! Panics end here.

use std::panic::{self, AssertUnwindSafe};

/// Calls `body`, and if that panics, `otherwise`: a panic must not reach the server.
pub(crate) fn caught<T>(body: impl FnOnce() -> T, otherwise: impl FnOnce() -> T) -> T {
    panic::catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| otherwise())
}
