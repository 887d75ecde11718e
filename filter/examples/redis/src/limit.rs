//! How much memory a filter may take: what `maxmemory` leaves, and at most `max-filter-bytes`.

use std::cell::Cell;
use std::ffi::CStr;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use redis_module::{Context, ContextFlags, RedisError, RedisString, raw};

use crate::commands::{is, within};

/// Bytes that suffice for a filter's memory besides its buckets.
pub(crate) const BESIDES: usize = 4 << 10;

/// Less memory than this is not checked: without it, the server itself refuses commands that add.
pub(crate) const UNCHECKED: usize = 12 << 10;

/// A filter leaves one in so many bytes of `maxmemory` to other keys and to clients, so that these can still write.
const OTHERS: usize = 16;

/// The module's argument `max-filter-bytes`. Filters below `MIN_FILTER_BYTES` grow by pieces that are not checked.
static MAX_FILTER_BYTES: AtomicUsize = AtomicUsize::new(usize::MAX);
const MIN_FILTER_BYTES: u64 = 1 << 16;

/// Memory that a filter may not take, in words, and how many bytes it may take.
pub(crate) struct Excess {
    pub(crate) text: String,
    pub(crate) room: usize,
}

/// Reads the arguments of the module.
pub(crate) fn configure(args: &[RedisString]) -> Result<(), RedisError> {
    const KNOWN: RedisError = RedisError::Str("expected max-filter-bytes NUMBER");
    let (pairs, []) = args.as_chunks() else {
        return Err(KNOWN);
    };
    for [name, value] in pairs {
        if !is(name, "max-filter-bytes") {
            return Err(KNOWN);
        }
        let most = within(value, "max-filter-bytes", MIN_FILTER_BYTES, i64::MAX as u64)?;
        // Relaxed, and below: the server's main thread alone uses it.
        MAX_FILTER_BYTES.store(most as usize, Ordering::Relaxed);
    }
    Ok(())
}

/// Checks that a filter that takes `held` bytes may take `more`.
pub(crate) fn check(held: usize, more: usize) -> Result<(), Excess> {
    // A server that loads its data or has a master must keep all items that were acknowledged.
    let must_obey = ContextFlags::LOADING | ContextFlags::SLAVE;
    if more < UNCHECKED || Context::dummy().get_flags().intersects(must_obey) {
        return Ok(());
    }
    let of_filter = MAX_FILTER_BYTES
        .load(Ordering::Relaxed)
        .saturating_sub(held);
    let of_server = left_by_server(held);
    let (room, limit) = (of_filter, "max-filter-bytes").min((of_server, "maxmemory"));
    if more <= room {
        return Ok(());
    }
    let text =
        format!("the filter has {held} bytes and needs {more} more, but {limit} leaves {room}");
    Err(Excess { text, room })
}

/// Returns what `maxmemory` leaves to a filter that takes `held` bytes: what is free, or what all keys take if the
/// server may evict any of them.
fn left_by_server(held: usize) -> usize {
    // SAFETY: the server has set these functions, and this is its main thread. The strings are constants. `info` is
    // freed once, after its last use.
    unsafe {
        if raw::RedisModule_GetUsedMemoryRatio.unwrap()() == 0.0 {
            return usize::MAX;
        }
        let info = raw::RedisModule_GetServerInfo.unwrap()(ptr::null_mut(), c"memory".as_ptr());
        let number = |name: &CStr| {
            let field = raw::RedisModule_ServerInfoGetFieldUnsigned.unwrap();
            field(info, name.as_ptr(), ptr::null_mut()) as usize
        };
        let policy = c"maxmemory_policy".as_ptr();
        let policy = raw::RedisModule_ServerInfoGetFieldC.unwrap()(info, policy);
        let used = if CStr::from_ptr(policy).to_bytes().starts_with(b"allkeys") {
            number(c"used_memory_startup") + held
        } else {
            number(c"used_memory").saturating_sub(number(c"mem_not_counted_for_evict"))
        };
        let most = number(c"maxmemory");
        let left = (most - most / OTHERS).saturating_sub(used);
        raw::RedisModule_FreeServerInfo.unwrap()(ptr::null_mut(), info);
        left
    }
}

thread_local! {
    /// The bytes of the filter that may grow now.
    static GROWING: Cell<Option<usize>> = const { Cell::new(None) };
    static REFUSED: Cell<Option<Excess>> = const { Cell::new(None) };
}

/// Calls `body`, in which a filter that takes `held` bytes may grow as far as it may; also returns what it was
/// refused.
pub(crate) fn growing<T>(held: usize, body: impl FnOnce() -> T) -> (T, Option<Excess>) {
    GROWING.set(Some(held));
    let result = body();
    GROWING.set(None);
    (result, REFUSED.take())
}

/// True if the allocator may return a piece of this size: of a filter's table, if one may grow now.
pub(crate) fn may_take(size: usize) -> bool {
    let Some(held) = GROWING.get() else {
        return true;
    };
    match check(held, size + BESIDES) {
        Ok(()) => GROWING.set(Some(held + size)),
        Err(excess) => {
            REFUSED.set(Some(excess));
            return false;
        }
    }
    true
}
