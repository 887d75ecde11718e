//! The allocator of a build with huge pages: it asks for them for all large allocations, whoever
//! makes them. So tables of published crates have them where ours do, and so do the keys.

use std::alloc::{GlobalAlloc, Layout, System};
use std::mem::MaybeUninit;
use std::slice;

/// The system's allocator, with huge pages for whatever holds one.
pub(crate) struct HugePages;

/// Asks for huge pages within an allocation, and returns it.
///
/// # Safety
///
/// At this address there is an allocation of this size, or nothing if the address is null.
unsafe fn advised(at: *mut u8, bytes: usize) -> *mut u8 {
    // Smaller ones hold no huge page.
    if !at.is_null() && bytes >= 2 << 20 {
        // SAFETY: nobody else has the allocation yet, and nothing is read of it.
        let memory = unsafe { slice::from_raw_parts(at.cast::<MaybeUninit<u8>>(), bytes) };
        huge_pages::advise(memory);
    }
    at
}

// SAFETY: all is done by the system's allocator; the advice changes neither contents nor access.
unsafe impl GlobalAlloc for HugePages {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `System`, and `advised` gets what it returns.
        unsafe { advised(System.alloc(layout), layout.size()) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as in `alloc`.
        unsafe { advised(System.alloc_zeroed(layout), layout.size()) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as in `alloc`.
        unsafe { advised(System.realloc(at, layout, size), size) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `System`.
        unsafe { System.dealloc(at, layout) }
    }
}
