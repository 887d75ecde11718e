//! A C interface to the filters, which `include/lfcf.h` declares. No panic leaves it: each call that can
//! fail returns a code, and keeps a text for its thread.
//!
//! A pointer that may be null is an `Option` of a reference here, so little of this needs `unsafe`; what a
//! caller must see to is said in the header.

pub mod any;
pub mod texts;

use std::any::Any;
use std::cell::RefCell;
use std::error::Error;
use std::ffi::{CStr, CString, c_char, c_void};
use std::fmt;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::slice;

#[cfg(shared_words)]
use filter::shared::OpenError;
use filter::{
    AdvanceError, BuildError, FixedState, InsertError, LoadError, SaveError, SnapshotError,
    UpdateError, register_thread,
};

use crate::any::{Answer, AnyFilter, NotOpened, Refusal};

/// The version of this header; lfcf_version returns that of the library.
pub const LFCF_VERSION_MAJOR: u32 = 0;
/// See LFCF_VERSION_MAJOR.
pub const LFCF_VERSION_MINOR: u32 = 1;

/// A filter of any kind. Any call except lfcf_free may be made from several threads at once.
///
/// `const LfcfFilter *` means that threads share the filter, not that it stays as it is: lfcf_insert and lfcf_remove
/// change it.
///
/// Signal handlers: a handler may call lfcf_contains, lfcf_count and lfcf_hash_*, at any moment and for any kind of filter
/// but one that grows. It must call nothing else of this library: other calls allocate memory, or use what the interrupted
/// thread has of the filter. It must not leave an interrupted call by longjmp, and no thread must be cancelled
/// asynchronously (pthread_setcanceltype) in a call. Any call may be interrupted, and none fails with EINTR.
///
/// After a fork, the child may use all filters: it has a copy of those in memory, and those in files are shared with it.
/// If a signal handler that interrupted a call on a shared filter forks, its child must not return from the handler.
pub struct LfcfFilter(AnyFilter);

/// The result of a call; lfcf_message returns a text for each except LFCF_STATUS_OK. Later versions may add values:
/// handle unknown ones as LFCF_STATUS_OTHER.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LfcfStatus {
    /// The call succeeded.
    Ok = 0,
    /// The filter has no room for the key or for another copy of it. Its contents are unchanged.
    Full = 1,
    /// An argument is invalid.
    Invalid = 2,
    /// There is not enough memory.
    Memory = 3,
    /// All ids of threads are in use, or those of a shared filter (lfcf_open_shared). Nothing has changed, except by
    /// lfcf_clear.
    Threads = 4,
    /// A file cannot be read or written.
    File = 5,
    /// A file is neither a saved nor a shared filter, is damaged, or has another layout or hasher.
    Format = 6,
    /// A defect of the library.
    Defect = 7,
    /// An error that has no value of its own.
    Other = 8,
    /// Another process has damaged the file of a shared filter.
    Damaged = 9,
    /// Another thread or process is saving the shared filter, or a program that a process was just starting still has the
    /// lock: try again.
    Busy = 10,
}

thread_local! {
    static MESSAGE: RefCell<CString> = RefCell::default();
}

/// Makes a call, and keeps the text of its error.
fn answer(call: impl FnOnce() -> Answer<()>) -> LfcfStatus {
    // A call may end anywhere: whatever it leaves, others find while it is under way, too.
    let (status, text) = match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(())) => return LfcfStatus::Ok,
        Ok(Err(error)) => (status_of(&*error), texts::C.text_of(&*error)),
        Err(panic) => (LfcfStatus::Defect, panic_text(&*panic)),
    };
    let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
    // (A thread that is ending may have lost it.)
    let _ = MESSAGE.try_with(|message| message.replace(text));
    status
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or(panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic").to_owned()
}

/// An invalid argument of a function in C.
#[derive(Debug)]
struct InvalidArgument(String);

impl fmt::Display for InvalidArgument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for InvalidArgument {}

fn invalid(text: impl Into<String>) -> InvalidArgument {
    InvalidArgument(text.into())
}

/// Returns the status for an error of the filters, also for other languages.
pub fn status_of(error: &(dyn Error + 'static)) -> LfcfStatus {
    if let Some(error) = error.downcast_ref() {
        return match error {
            InsertError::Full
            | InsertError::TooManyCopies { .. }
            | InsertError::Crowded
            | InsertError::TooLarge { .. }
            | InsertError::TooManyFalsePositives { .. } => LfcfStatus::Full,
            InsertError::OutOfMemory { .. } => LfcfStatus::Memory,
            InsertError::TooManyThreads => LfcfStatus::Threads,
            InsertError::Damaged => LfcfStatus::Damaged,
            _ => LfcfStatus::Other,
        };
    }
    if let Some(error) = error.downcast_ref() {
        return match error {
            LoadError::Io { .. } | LoadError::File { .. } => LfcfStatus::File,
            LoadError::OutOfMemory { .. } => LfcfStatus::Memory,
            _ => LfcfStatus::Format,
        };
    }
    if let Some(error) = error.downcast_ref() {
        return match error {
            SaveError::Snapshot(error) => status_of(error),
            SaveError::Io { .. } | SaveError::File { .. } | SaveError::NotSynced { .. } => {
                LfcfStatus::File
            }
            _ => LfcfStatus::Other,
        };
    }
    if let Some(error) = error.downcast_ref() {
        return match error {
            SnapshotError::OutOfMemory { .. } => LfcfStatus::Memory,
            SnapshotError::TooManyThreads => LfcfStatus::Threads,
            SnapshotError::Busy => LfcfStatus::Busy,
            SnapshotError::Damaged => LfcfStatus::Damaged,
            SnapshotError::Refused { .. } => LfcfStatus::File,
            _ => LfcfStatus::Other,
        };
    }
    if let Some(error) = error.downcast_ref() {
        return match error {
            BuildError::OutOfMemory { .. } => LfcfStatus::Memory,
            _ => LfcfStatus::Invalid,
        };
    }
    if let Some(error) = error.downcast_ref() {
        return match error {
            AdvanceError::NoSuchPeriod { .. } => LfcfStatus::Invalid,
            AdvanceError::Update(error) => status_of(error),
            _ => LfcfStatus::Other,
        };
    }
    #[cfg(shared_words)]
    if let Some(error) = error.downcast_ref() {
        return match error {
            OpenError::Io(error) => status_of(error),
            OpenError::TooManyProcesses => LfcfStatus::Threads,
            _ => LfcfStatus::Format,
        };
    }
    if let Some(error) = error.downcast_ref::<io::Error>() {
        return match error.kind() {
            // A size.
            io::ErrorKind::InvalidInput if error.raw_os_error().is_none() => LfcfStatus::Invalid,
            io::ErrorKind::OutOfMemory => LfcfStatus::Memory,
            _ => LfcfStatus::File,
        };
    }
    if let Some(error) = error.downcast_ref::<NotOpened>() {
        return error.source().map_or(LfcfStatus::Other, status_of);
    }
    if error.is::<InvalidArgument>() || error.is::<Refusal>() {
        return LfcfStatus::Invalid;
    }
    match error.downcast_ref() {
        Some(UpdateError::TooManyThreads) => LfcfStatus::Threads,
        Some(UpdateError::Damaged) => LfcfStatus::Damaged,
        _ => LfcfStatus::Other,
    }
}

/// Makes a filter, and puts it where the caller wants it.
fn put(
    place: Option<&mut MaybeUninit<Option<Box<LfcfFilter>>>>,
    make: impl FnOnce() -> Answer<AnyFilter>,
) -> LfcfStatus {
    answer(|| {
        let place = place.ok_or_else(|| invalid("the place for the filter is NULL"))?;
        let place = place.write(None);
        *place = Some(Box::new(LfcfFilter(make()?)));
        Ok(())
    })
}

/// Returns a filter that is not NULL.
fn present(filter: Option<&LfcfFilter>) -> Result<&AnyFilter, InvalidArgument> {
    let filter = filter.ok_or_else(|| invalid("the filter is NULL"))?;
    Ok(&filter.0)
}

/// Returns the version of the library, such as "0.1.0".
#[unsafe(no_mangle)]
pub extern "C" fn lfcf_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Makes a filter of fixed size with room for `capacity` keys and a false positive rate of at most `rate`:
/// 0.002 for the layout of CuckooFilter::with_capacity in Rust.
///
/// Like the other calls that make or load a filter, it writes a filter to `*filter` that the caller must end with
/// lfcf_free, or NULL and returns an error; whatever was in `*filter` is not read.
#[unsafe(no_mangle)]
pub extern "C" fn lfcf_new_fixed(
    capacity: usize,
    rate: f64,
    filter: Option<&mut MaybeUninit<Option<Box<LfcfFilter>>>>,
) -> LfcfStatus {
    put(filter, || Ok(AnyFilter::fixed(capacity, rate)?))
}

/// Makes a filter that grows. It begins to grow at 0.37 to 1.2 times `capacity`; a small one at some 1,900 keys.
///
/// `reserved_bytes` sets how many bytes the filter allocates at once for its table, so that the table grows in one piece
/// up to that size. NULL sets the default: a table that begins with at least 128 KiB (65,536 slots) reserves four times
/// its first size, but at most 64 MiB, and a smaller one reserves nothing. 0 takes the least memory. Where the system
/// supplies memory when a page is first written, as Linux does, what is reserved is address space and no memory. It is
/// real memory after mlockall, in systems that do not overcommit, and after 65,536 large blocks in a process with glibc.
/// So pass a pointer to 0 if a program has thousands of such filters or calls mlockall.
#[unsafe(no_mangle)]
pub extern "C" fn lfcf_new_growing(
    capacity: usize,
    reserved_bytes: Option<&usize>,
    filter: Option<&mut MaybeUninit<Option<Box<LfcfFilter>>>>,
) -> LfcfStatus {
    let reserved = reserved_bytes.copied();
    put(filter, || Ok(AnyFilter::growing(capacity, reserved)?))
}

/// Makes a filter that forgets keys two to three periods after they last came (lfcf_advance_to), with room for
/// `capacity` keys in three periods. Make room for the keys of one more period if keys are inserted while the oldest ones
/// are forgotten.
#[unsafe(no_mangle)]
pub extern "C" fn lfcf_new_expiring(
    capacity: usize,
    filter: Option<&mut MaybeUninit<Option<Box<LfcfFilter>>>>,
) -> LfcfStatus {
    put(filter, || Ok(AnyFilter::expiring(capacity)?))
}

/// Loads a filter of any kind that was saved from any language, with the default hasher of Rust. A filter
/// that grows gets these `reserved_bytes`, as in lfcf_new_growing.
///
/// # Safety
/// `path` is NULL, or UTF-8 that ends with a 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lfcf_load(
    path: *const c_char,
    reserved_bytes: Option<&usize>,
    filter: Option<&mut MaybeUninit<Option<Box<LfcfFilter>>>>,
) -> LfcfStatus {
    // SAFETY: the caller's.
    let path = unsafe { text_at(path) };
    let reserved = reserved_bytes.copied();
    put(filter, || Ok(AnyFilter::load(path?.as_ref(), reserved)?))
}

/// Opens the filter in this file, which processes share (64-bit Linux), or creates the file with room for `capacity` keys.
/// An existing file keeps its size. With a capacity of 0, no file is created: if there is none, it returns
/// LFCF_STATUS_FILE.
///
/// Any process may be killed at any instruction. The others never wait and lose no key; a call that was killed took effect
/// wholly or not at all, except lfcf_clear, which may have removed some of the keys. Put the file on tmpfs, for example in
/// /dev/shm: it does not survive a restart of the system. Locks are in a second file, `path`.lock. At most 1,024 filters that
/// are open in all processes, with up to four updating threads each, can change it. A process that truncates the file kills
/// the others (SIGBUS). To delete the filter, remove `path`.lock first, then `path`.
/// A forked child may use the filter that its parent opened. Programs in Rust and Python open the same file.
///
/// # Safety
/// See lfcf_load.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lfcf_open_shared(
    path: *const c_char,
    capacity: usize,
    filter: Option<&mut MaybeUninit<Option<Box<LfcfFilter>>>>,
) -> LfcfStatus {
    // SAFETY: the caller's.
    let path = unsafe { text_at(path) };
    let capacity = (capacity > 0).then_some(capacity);
    put(filter, || {
        Ok(AnyFilter::open_shared(path?.as_ref(), capacity)?)
    })
}

/// Opens the filter in this file, which processes share, for lookups alone: it needs only the right to read the file, and
/// does not count among the filters that change it. Calls that change the filter return LFCF_STATUS_INVALID.
///
/// # Safety
/// See lfcf_load.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lfcf_open_lookup(
    path: *const c_char,
    filter: Option<&mut MaybeUninit<Option<Box<LfcfFilter>>>>,
) -> LfcfStatus {
    // SAFETY: the caller's.
    let path = unsafe { text_at(path) };
    put(filter, || Ok(AnyFilter::open_lookup(path?.as_ref())?))
}

/// Decides all calls of killed processes on a shared filter: afterwards, each has taken effect or never will. Opening the
/// file does this, too. Other kinds are LFCF_STATUS_INVALID.
#[unsafe(no_mangle)]
pub extern "C" fn lfcf_take_over_all(filter: Option<&LfcfFilter>) -> LfcfStatus {
    answer(|| present(filter)?.take_over_all())
}

/// Counts the copies in a shared filter, and corrects lfcf_length, which may be wrong by one for each thread that was killed
/// in a call (by up to four in lfcf_clear). The count is exact if lfcf_take_over_all was called before and no thread changes
/// the filter at the same time. Other kinds are LFCF_STATUS_INVALID.
#[unsafe(no_mangle)]
pub extern "C" fn lfcf_recount(
    filter: Option<&LfcfFilter>,
    copies: Option<&mut MaybeUninit<usize>>,
) -> LfcfStatus {
    answer(|| write_answer(copies, present(filter)?.recount()?))
}

/// Removes all keys of a shared filter, bucket by bucket: keys that others insert at the same time may stay. Other kinds are
/// LFCF_STATUS_INVALID: make a new one.
#[unsafe(no_mangle)]
pub extern "C" fn lfcf_clear(filter: Option<&LfcfFilter>) -> LfcfStatus {
    answer(|| present(filter)?.clear())
}

/// True once a call of this process has found that another process has damaged the file of a shared filter. From then on
/// lfcf_contains returns true, and calls that change the filter return LFCF_STATUS_DAMAGED.
#[unsafe(no_mangle)]
pub extern "C" fn lfcf_is_damaged(filter: Option<&LfcfFilter>) -> bool {
    present(filter).is_ok_and(AnyFilter::is_damaged)
}

/// Saves the filter as a file, which it replaces at one moment. Other threads may go on, but only one at a time may
/// save under this name: of two calls that overlap, the file of the one that ends last stays, even if that one read the
/// filter first. After an error, an older file is as it was, unless lfcf_message says that the filter is saved, but may
/// be lost when the power fails. A shared filter
/// is saved while other processes change it, by one of them at a time: LFCF_STATUS_BUSY.
///
/// # Safety
/// See lfcf_load.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lfcf_save(filter: Option<&LfcfFilter>, path: *const c_char) -> LfcfStatus {
    // SAFETY: the caller's.
    let path = unsafe { text_at(path) };
    answer(|| Ok(present(filter)?.filter()?.save_dyn(path?.as_ref())?))
}

/// # Safety
/// See lfcf_load.
unsafe fn text_at<'a>(text: *const c_char) -> Result<&'a str, InvalidArgument> {
    if text.is_null() {
        return Err(invalid("the path is NULL"));
    }
    // SAFETY: the caller's.
    let text = unsafe { CStr::from_ptr(text) };
    (text.to_str()).map_err(|error| invalid(format!("the path is not UTF-8: {error}")))
}

/// Ends a filter, which may be NULL and which no thread may use any more.
#[unsafe(no_mangle)]
pub extern "C" fn lfcf_free(filter: Option<Box<LfcfFilter>>) {
    drop(filter);
}

/// Returns the hash of a whole number, as Rust hashes integers of any type up to 64 bits (except the u8 255): negative
/// ones as their int64_t.
#[unsafe(no_mangle)]
pub extern "C" fn lfcf_hash_number(number: u64) -> u64 {
    FixedState.hash_one(number)
}

/// Returns the hash of bytes, as Rust hashes a [u8].
///
/// # Safety
/// `length` bytes can be read at `bytes`, which may be NULL if there are none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lfcf_hash_bytes(bytes: *const c_void, length: usize) -> u64 {
    // SAFETY: the caller's.
    FixedState.hash_one(unsafe { bytes_at(bytes, length) })
}

/// Returns the hash of a text in UTF-8, as Rust hashes a str.
///
/// # Safety
/// See lfcf_hash_bytes; no terminating 0 is needed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lfcf_hash_text(text: *const c_char, length: usize) -> u64 {
    let mut hasher = FixedState.build_hasher();
    // SAFETY: the caller's.
    hasher.write(unsafe { bytes_at(text.cast(), length) });
    hasher.write_u8(u8::MAX);
    hasher.finish()
}

/// # Safety
/// See lfcf_hash_bytes.
unsafe fn bytes_at<'a>(bytes: *const c_void, length: usize) -> &'a [u8] {
    if bytes.is_null() || length == 0 {
        return &[];
    }
    // SAFETY: the caller's.
    unsafe { slice::from_raw_parts(bytes.cast(), length) }
}

/// Adds a copy of the key with this hash; in a filter that forgets, adds or renews it. Like all calls that change a
/// filter, it returns LFCF_STATUS_INVALID for one that lfcf_open_lookup has opened.
#[unsafe(no_mangle)]
pub extern "C" fn lfcf_insert(filter: Option<&LfcfFilter>, hash: u64) -> LfcfStatus {
    answer(|| Ok(present(filter)?.filter()?.insert_hash(hash)?))
}

/// Adds the key with this hash unless it is there (a filter that forgets does not renew it then) and reports whether it
/// was added. Of several threads that add one key, at most one gets true, unless the key is removed or forgotten in
/// between. None does if the filter has no room or mistakes the key for another. Even if only keys that were added are
/// removed, a key that was mistaken for a removed one is missing afterwards.
#[unsafe(no_mangle)]
pub extern "C" fn lfcf_insert_if_absent(
    filter: Option<&LfcfFilter>,
    hash: u64,
    added: Option<&mut MaybeUninit<bool>>,
) -> LfcfStatus {
    answer(|| {
        let filter = present(filter)?.filter()?;
        write_answer(added, filter.insert_if_absent_hash(hash)?)
    })
}

/// Adds the key with this hash to a filter that forgets, or renews it, and reports whether it was added. For other kinds
/// it returns LFCF_STATUS_INVALID.
#[unsafe(no_mangle)]
pub extern "C" fn lfcf_insert_or_renew(
    filter: Option<&LfcfFilter>,
    hash: u64,
    added: Option<&mut MaybeUninit<bool>>,
) -> LfcfStatus {
    answer(|| {
        let filter = present(filter)?.that_expires()?;
        write_answer(added, filter.insert_or_renew_hash(hash)?)
    })
}

/// Takes a copy of the key with this hash; says whether there was one. Remove only what was inserted.
#[unsafe(no_mangle)]
pub extern "C" fn lfcf_remove(
    filter: Option<&LfcfFilter>,
    hash: u64,
    removed: Option<&mut MaybeUninit<bool>>,
) -> LfcfStatus {
    answer(|| write_answer(removed, present(filter)?.filter()?.remove_hash(hash)?))
}

/// Begins a period of a filter that forgets, and forgets what came, or was renewed, three periods ago; says
/// which period it is. Each call begins one: threads that read a clock call lfcf_advance_to. Other kinds
/// are LFCF_STATUS_INVALID.
#[unsafe(no_mangle)]
pub extern "C" fn lfcf_advance(
    filter: Option<&LfcfFilter>,
    period: Option<&mut MaybeUninit<u64>>,
) -> LfcfStatus {
    answer(|| {
        let filter = present(filter)?.that_expires()?;
        write_answer(period, filter.advance()?)
    })
}

/// Begins periods of a filter that forgets until the present one has this number, which is below 2^42; none
/// if it has this number or a greater one. So any number of threads may call it before each call, with the
/// time divided by the length of a period. A number that is too great cannot be taken back: until the clock reaches it,
/// nothing is forgotten. If a clock may be wrong, compare with lfcf_period first. Other kinds are
/// LFCF_STATUS_INVALID.
#[unsafe(no_mangle)]
pub extern "C" fn lfcf_advance_to(filter: Option<&LfcfFilter>, period: u64) -> LfcfStatus {
    answer(|| Ok(present(filter)?.that_expires()?.advance_to(period)?))
}

/// Returns the number of the present period of a filter that forgets: 0 before the first lfcf_advance or
/// lfcf_advance_to. Also 0 if `filter` is NULL or of another kind, for which lfcf_advance returns LFCF_STATUS_INVALID.
#[unsafe(no_mangle)]
pub extern "C" fn lfcf_period(filter: Option<&LfcfFilter>) -> u64 {
    let filter = filter.and_then(|filter| filter.0.that_expires().ok());
    filter.map_or(0, |filter| filter.period())
}

/// Writes an answer to the place that the caller names, if any.
fn write_answer<T>(place: Option<&mut MaybeUninit<T>>, answer: T) -> Answer<()> {
    place.map(|place| place.write(answer));
    Ok(())
}

/// True if the key with this hash is there, or by chance; false without a filter.
#[unsafe(no_mangle)]
pub extern "C" fn lfcf_contains(filter: Option<&LfcfFilter>, hash: u64) -> bool {
    present(filter).is_ok_and(|filter| filter.lookups().contains_hash(hash))
}

/// Returns the number of copies of the key with this hash, as far as the filter can tell; 0 if `filter` is NULL.
#[unsafe(no_mangle)]
pub extern "C" fn lfcf_count(filter: Option<&LfcfFilter>, hash: u64) -> usize {
    present(filter).map_or(0, |filter| filter.lookups().count_hash(hash))
}

/// Returns the number of copies of all keys; 0 if `filter` is NULL.
#[unsafe(no_mangle)]
pub extern "C" fn lfcf_length(filter: Option<&LfcfFilter>) -> usize {
    present(filter).map_or(0, |filter| filter.lookups().len())
}

/// Returns the number of slots: a filter of fixed size begins to refuse keys somewhat below it. 0 if `filter` is NULL.
#[unsafe(no_mangle)]
pub extern "C" fn lfcf_slots(filter: Option<&LfcfFilter>) -> usize {
    present(filter).map_or(0, |filter| filter.lookups().slots())
}

/// Returns the memory that the filter uses, in bytes; 0 if `filter` is NULL.
#[unsafe(no_mangle)]
pub extern "C" fn lfcf_memory_bytes(filter: Option<&LfcfFilter>) -> usize {
    present(filter).map_or(0, |filter| filter.memory_bytes())
}

/// Reserves one of the 4,096 ids of threads that change filters for the calling thread, until it ends; LFCF_STATUS_THREADS
/// if all are taken. Without this call, a thread gets an id when it first changes or saves a filter, and keeps it unless 3,072
/// are kept already: then it has one during each call only. It reserves no id in a shared file, where the first change of a
/// thread may return LFCF_STATUS_THREADS.
#[unsafe(no_mangle)]
pub extern "C" fn lfcf_register_thread() -> LfcfStatus {
    answer(|| Ok(register_thread()?))
}

/// Returns what was wrong with the last call of this thread that failed; valid until the next call that fails, or until the
/// thread ends.
#[unsafe(no_mangle)]
pub extern "C" fn lfcf_message() -> *const c_char {
    let kept = MESSAGE.try_with(|message| message.borrow().as_ptr());
    kept.unwrap_or(c"".as_ptr())
}
