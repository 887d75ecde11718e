//! An allocator that counts what a test's own thread asks for and what the process holds, and refuses what the test
//! wants refused.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The system's allocator, except for requests that are too large for the current thread.
struct Limited;

#[global_allocator]
static ALLOCATOR: Limited = Limited;

static HELD: AtomicUsize = AtomicUsize::new(0);

std::thread_local! {
    /// Larger requests are refused,
    static MAX_BYTES: Cell<usize> = const { Cell::new(usize::MAX) };
    /// after this many were granted.
    static GRANTED: Cell<usize> = const { Cell::new(0) };
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// Counts what the current thread allocates during `action`.
pub(crate) fn allocations(action: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    action();
    ALLOCATIONS.get() - before
}

/// Bytes that the process has allocated and not freed.
pub(crate) fn held() -> usize {
    HELD.load(Ordering::Relaxed)
}

impl Limited {
    /// Allocates, if that is allowed; returns a null pointer otherwise.
    fn granted(&self, layout: Layout, allocate: impl FnOnce() -> *mut u8) -> *mut u8 {
        // A test that fails needs memory to say so.
        let allowed = layout.size() <= MAX_BYTES.get() || std::thread::panicking() || {
            let granted = GRANTED.get();
            GRANTED.set(granted.saturating_sub(1));
            granted > 0
        };
        ALLOCATIONS.set(ALLOCATIONS.get() + u64::from(allowed));
        HELD.fetch_add(usize::from(allowed) * layout.size(), Ordering::Relaxed);
        allowed.then(allocate).unwrap_or(std::ptr::null_mut())
    }
}

// SAFETY: every request is passed to the system's allocator, or refused with a null pointer, which
// is always allowed.
unsafe impl GlobalAlloc for Limited {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `System`.
        self.granted(layout, || unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `System`.
        self.granted(layout, || unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: it came from the system's allocator.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Runs `action` while every request for more than `most` bytes is refused.
pub(crate) fn with_most<R>(most: usize, action: impl FnOnce() -> R) -> R {
    with_granted(most, 0, action)
}

/// Runs `action` while only the first `times` requests for more than `most` bytes are granted.
pub(crate) fn with_granted<R>(most: usize, times: usize, action: impl FnOnce() -> R) -> R {
    GRANTED.set(times);
    let before = MAX_BYTES.replace(most);
    let result = catch_unwind(AssertUnwindSafe(action));
    MAX_BYTES.set(before);
    result.unwrap_or_else(|panic| resume_unwind(panic))
}
