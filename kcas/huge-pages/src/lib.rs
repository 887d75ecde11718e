//! Transparent huge pages: fewer address translations for tables far larger than the caches.
//!
//! A random access to a table of many megabytes misses the cache, and the cache of address translations (TLB) as
//! well. A page of 2 MiB instead of 4 KiB needs one entry there instead of 512. Linux gives such pages to whoever
//! asks (`madvise`), where `/sys/kernel/mm/transparent_hugepage/enabled` says `madvise`; where it says `always`,
//! everybody has them anyway, and where it says `never`, nobody.
//!
//! This crate is there for its one line of `unsafe`, which the crates that use it do not have.

/// Size and alignment of a huge page on x86-64, and on most others.
#[cfg(target_os = "linux")]
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Asks the system to back `memory` with huge pages as it is first written, or later on if it has been
/// written. What the memory holds stays as it is.
///
/// This is advice: where the system has no huge pages, or not enough, nothing happens. Only whole huge pages
/// within `memory` are meant, so that less than 2 MiB is left as it is.
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
    // SAFETY: the range lies within `memory`, which is borrowed, so it is mapped for the duration of the call; and
    // this advice changes neither what the range holds nor who may access it.
    let advised = unsafe { madvise(first, within, Advice::LinuxHugepage) };
    // An error says that this system has no huge pages: then there is nothing to be had.
    let _ = advised;
}

/// Asks the system to back `memory` with huge pages. Does nothing on this one, which has no such advice.
#[cfg(not(target_os = "linux"))]
pub fn advise<T>(_memory: &[T]) {}
