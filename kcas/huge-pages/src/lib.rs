//! Transparent huge pages: fewer address translations for tables far larger than the caches.
//!
//! A random access to a table of many megabytes misses the cache, and also the cache of address
//! translations (TLB). With pages of 2 MiB instead of 4 KiB, one entry there covers what 512 did.
//! Linux gives such pages on request (`madvise`) where
//! `/sys/kernel/mm/transparent_hugepage/enabled` says `madvise`; where it says `always`, every
//! process has them anyway, and where it says `never`, none does.
//!
//! This crate exists for its one line of `unsafe`, so that the crates that use it need none.

#![warn(missing_docs)]

/// Size and alignment of a huge page on x86-64 and most other architectures.
#[cfg(target_os = "linux")]
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Asks the system to back `memory` with huge pages as it is first written, or later on if it has
/// been written. The contents of the memory do not change.
///
/// This is only advice: where the system has no huge pages, or not enough of them, nothing happens.
/// It concerns only whole huge pages within `memory`, so less than 2 MiB is left alone.
#[cfg(target_os = "linux")]
pub fn advise<T>(memory: &[T]) {
    use rustix::mm::{Advice, madvise};

    let start = memory.as_ptr().cast::<u8>();
    let before = start.align_offset(HUGE_PAGE_BYTES);
    let within = size_of_val(memory).saturating_sub(before) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
    if within == 0 {
        return;
    }
    let first = start.wrapping_add(before).cast_mut().cast();
    // SAFETY: the range lies within `memory`, which is borrowed, so it is mapped for the duration
    // of the call; and this advice changes neither what the range holds nor who may access it.
    let advised = unsafe { madvise(first, within, Advice::LinuxHugepage) };
    // An error means that this system has no huge pages, so there is nothing to gain.
    let _ = advised;
}

/// Asks the system to back `memory` with huge pages. Does nothing on this system, which has no such
/// advice.
#[cfg(not(target_os = "linux"))]
pub fn advise<T>(_memory: &[T]) {}
