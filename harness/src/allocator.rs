//! The allocator of a build with huge pages: it asks for them for all large allocations, whoever
//! makes them. So tables of published crates have them where ours do, and so do the keys.

use std::alloc::{GlobalAlloc, Layout, System};
use std::mem::MaybeUninit;
use std::slice;

/// The system's allocator, with huge pages for whatever holds one.
pub(crate) struct HugePages;

/// Asks for huge pages within an allocation.
///
/// # Safety
///
/// At this address there is an allocation of this size, or nothing if the address is null.
unsafe fn advise(at: *mut u8, bytes: usize) {
    // Smaller ones hold no huge page.
    if !at.is_null() && bytes >= 2 << 20 {
        // SAFETY: nobody else has the allocation yet, and nothing is read of it.
        let memory = unsafe { slice::from_raw_parts(at.cast::<MaybeUninit<u8>>(), bytes) };
        huge_pages::advise(memory);
    }
}

// SAFETY: all is done by the system's allocator; the advice changes neither contents nor access.
unsafe impl GlobalAlloc for HugePages {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `System`, and `advise` gets what it returns.
        unsafe {
            let at = System.alloc(layout);
            advise(at, layout.size());
            at
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as in `alloc`.
        unsafe {
            let at = System.alloc_zeroed(layout);
            advise(at, layout.size());
            at
        }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as in `alloc`.
        unsafe {
            let at = System.realloc(at, layout, size);
            advise(at, size);
            at
        }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `System`.
        unsafe { System.dealloc(at, layout) }
    }
}
