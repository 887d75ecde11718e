//! Rust's allocator, on top of the server's: what the filters take counts for `maxmemory` and
//! `INFO memory`.
//!
//! `redis_module::alloc::RedisAlloc` is not used, since it ends the server when there is no memory,
//! and ignores alignments that the server's allocator does not give. This one refuses, as Rust's
//! allocators do; so a filter that cannot grow says so.

use std::alloc::{GlobalAlloc, Layout};
use std::ptr;

use redis_module::raw;

use crate::limit;

/// What the server's allocator aligns to, whichever it is: some have a prefix of eight bytes.
const ALIGNED: usize = 8;

/// Pieces from this size on are asked for zeroed: the system has pages of zeros, that nobody writes.
const LARGE: usize = 1 << 16;

pub(crate) struct ServerMemory;

/// True if the server's allocator aligns such a piece by itself. It may align small ones less.
fn is_ordinary(layout: Layout) -> bool {
    layout.align() <= ALIGNED && layout.align() <= layout.size()
}

/// Takes `size` bytes of the server's memory; null when there are none, or before the module has
/// been initialised.
fn take(size: usize) -> *mut u8 {
    // SAFETY: the function is set once, while the module is loaded, before anything calls it.
    let take = unsafe { raw::RedisModule_TryAlloc };
    // SAFETY: it may be called from any thread, with any size.
    take.map_or(ptr::null_mut(), |take| unsafe { take(size) }.cast())
}

/// Takes a large zeroed piece.
fn take_zeroed(size: usize) -> *mut u8 {
    // SAFETY: as in `take`.
    let (try_zeroed, zeroed) = unsafe { (raw::RedisModule_TryCalloc, raw::RedisModule_Calloc) };
    if let Some(try_zeroed) = try_zeroed {
        // SAFETY: as in `take`.
        return unsafe { try_zeroed(1, size) }.cast();
    }
    // Before 7.4, servers end if they cannot zero. So ask first.
    let allocated = take(size);
    if allocated.is_null() {
        return allocated;
    }
    give_back(allocated);
    // SAFETY: as in `take`.
    zeroed.map_or(ptr::null_mut(), |zeroed| unsafe { zeroed(1, size) }.cast())
}

fn give_back(piece: *mut u8) {
    // SAFETY: as in `take`.
    if let Some(free) = unsafe { raw::RedisModule_Free } {
        // SAFETY: `take` returned it, or the server's other functions that this module uses.
        unsafe { free(piece.cast()) };
    }
}

// SAFETY: pieces come from the server's allocator, which is a correct one, and are aligned here if
// it does not align them.
unsafe impl GlobalAlloc for ServerMemory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_ordinary(layout) {
            return take(layout.size());
        }
        // Room to align it, and before it the address to give back.
        let before = size_of::<*mut u8>();
        let align = layout.align().max(before);
        let Some(size) = layout.size().checked_add(align + before) else {
            return ptr::null_mut();
        };
        let whole = take(size);
        if whole.is_null() {
            return whole;
        }
        let piece = whole.map_addr(|address| (address + before).next_multiple_of(align));
        // SAFETY: there is room for a pointer before the piece, and the piece is aligned for one.
        unsafe { piece.cast::<*mut u8>().sub(1).write(whole) };
        piece
    }

    unsafe fn dealloc(&self, piece: *mut u8, layout: Layout) {
        if is_ordinary(layout) {
            give_back(piece);
        } else {
            // SAFETY: `alloc` wrote it there.
            give_back(unsafe { piece.cast::<*mut u8>().sub(1).read() });
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !limit::may_take(layout.size()) {
            return ptr::null_mut();
        }
        if is_ordinary(layout) && layout.size() >= LARGE {
            return take_zeroed(layout.size());
        }
        // SAFETY: the caller promises what `alloc` asks.
        let piece = unsafe { self.alloc(layout) };
        if !piece.is_null() {
            // SAFETY: it has this size.
            unsafe { piece.write_bytes(0, layout.size()) };
        }
        piece
    }
}
