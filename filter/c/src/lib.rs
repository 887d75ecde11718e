//! A C interface to the filters, which `include/cuckoo.h` declares. No panic leaves it: each call that can
//! fail returns a code, and keeps a text for its thread.
//!
//! A pointer that may be null is an `Option` of a reference here, so little of this needs `unsafe`; what a
//! caller must see to is said in the header.

pub mod any;

use std::any::Any;
use std::cell::RefCell;
use std::error::Error;
use std::ffi::{CStr, CString, c_char};
use std::hash::{BuildHasher, Hasher};
use std::iter;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::slice;

use filter::{
    AdvanceError, BuildError, ExpiringCuckooFilter, Filter, FixedState, InsertError, LoadError,
    SaveError, SnapshotError, UpdateError,
};

use crate::any::{AnyFilter, check_period};

/// A filter of any kind. Any call except cuckoo_free may be made from several threads at once.
pub struct CuckooFilter(AnyFilter);

/// The result of a call; cuckoo_message has a text for all but CUCKOO_STATUS_OK.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CuckooStatus {
    /// It was done.
    Ok = 0,
    /// There is no room for the key, or for another copy of it. The filter holds what it held.
    Full = 1,
    /// An argument is invalid.
    Invalid = 2,
    /// There is not enough memory.
    Memory = 3,
    /// All places for threads that change filters are taken. Nothing has changed.
    Threads = 4,
    /// A file cannot be read or written.
    File = 5,
    /// A file is no saved filter, or a damaged one, or one of another layout or hasher.
    Format = 6,
    /// A defect of the library.
    Defect = 7,
}

thread_local! {
    static MESSAGE: RefCell<CString> = RefCell::default();
}

/// Makes a call, and keeps the text of its error.
fn answer(call: impl FnOnce() -> Result<(), Box<dyn Error>>) -> CuckooStatus {
    // A call may end anywhere: whatever it leaves, others find while it is under way, too.
    let (status, text) = match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(())) => return CuckooStatus::Ok,
        Ok(Err(error)) => (status_of(&*error), text_of(&*error)),
        Err(panic) => (CuckooStatus::Defect, panic_text(&*panic)),
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

/// Returns the texts of an error and of its causes.
pub fn text_of(error: &(dyn Error + 'static)) -> String {
    let causes = iter::successors(Some(error), |error| error.source());
    let texts: Vec<_> = causes.map(ToString::to_string).collect();
    texts.join(": ")
}

/// What kind of error of the filters this is, also for other languages.
pub fn status_of(error: &(dyn Error + 'static)) -> CuckooStatus {
    if let Some(error) = error.downcast_ref() {
        return match error {
            InsertError::OutOfMemory { .. } => CuckooStatus::Memory,
            InsertError::TooManyThreads => CuckooStatus::Threads,
            _ => CuckooStatus::Full,
        };
    }
    if let Some(error) = error.downcast_ref() {
        return match error {
            LoadError::Io { .. } | LoadError::File { .. } => CuckooStatus::File,
            LoadError::OutOfMemory { .. } => CuckooStatus::Memory,
            _ => CuckooStatus::Format,
        };
    }
    if let Some(error) = error.downcast_ref() {
        return match error {
            SaveError::Snapshot(SnapshotError::OutOfMemory { .. }) => CuckooStatus::Memory,
            SaveError::Snapshot(_) => CuckooStatus::Threads,
            _ => CuckooStatus::File,
        };
    }
    match error.downcast_ref() {
        Some(BuildError::OutOfMemory { .. }) => CuckooStatus::Memory,
        _ if error.is::<UpdateError>() => CuckooStatus::Threads,
        _ if matches!(error.downcast_ref(), Some(AdvanceError::Update(_))) => CuckooStatus::Threads,
        _ => CuckooStatus::Invalid,
    }
}

/// Makes a filter, and puts it where the caller wants it.
fn put(
    place: Option<&mut MaybeUninit<Option<Box<CuckooFilter>>>>,
    make: impl FnOnce() -> Result<AnyFilter, Box<dyn Error>>,
) -> CuckooStatus {
    answer(|| {
        let place = place.ok_or("the place for the filter is NULL")?.write(None);
        *place = Some(Box::new(CuckooFilter(make()?)));
        Ok(())
    })
}

/// What all kinds can do.
fn of(filter: Option<&CuckooFilter>) -> Result<&(dyn Filter + Send + Sync), &'static str> {
    Ok(filter.ok_or("the filter is NULL")?.0.filter())
}

/// What only one that forgets can do.
fn expiring(filter: Option<&CuckooFilter>) -> Result<&ExpiringCuckooFilter, &'static str> {
    let filter = filter.ok_or("the filter is NULL")?.0.that_expires();
    filter.ok_or("this filter does not forget: make it with cuckoo_new_expiring")
}

/// Makes a filter of fixed size with room for `capacity` keys and a false positive rate of at most `rate`:
/// 0.002 for the layout of CuckooFilter::with_capacity in Rust.
#[unsafe(no_mangle)]
pub extern "C" fn cuckoo_new_fixed(
    capacity: usize,
    rate: f64,
    filter: Option<&mut MaybeUninit<Option<Box<CuckooFilter>>>>,
) -> CuckooStatus {
    put(filter, || Ok(AnyFilter::fixed(capacity, rate)?))
}

/// Makes a filter that grows. It begins to grow at 0.37 to 1.2 times `capacity`; a small one at some 1,900 keys.
///
/// `reserved_bytes` sets how many bytes the filter allocates at once for its table, so that the table grows in one piece
/// up to that size: NULL sets the default of Rust, and 0 the least memory. reserved_bytes in Rust lists where the
/// reserved bytes are real memory.
#[unsafe(no_mangle)]
pub extern "C" fn cuckoo_new_growing(
    capacity: usize,
    reserved_bytes: Option<&usize>,
    filter: Option<&mut MaybeUninit<Option<Box<CuckooFilter>>>>,
) -> CuckooStatus {
    let reserved = reserved_bytes.copied();
    put(filter, || Ok(AnyFilter::growing(capacity, reserved)?))
}

/// Makes a filter that forgets keys two to three periods after they last came (cuckoo_advance_to), with room for
/// `capacity` keys in three periods. Make room for the keys of one more period if keys are inserted while the oldest ones
/// are forgotten.
#[unsafe(no_mangle)]
pub extern "C" fn cuckoo_new_expiring(
    capacity: usize,
    filter: Option<&mut MaybeUninit<Option<Box<CuckooFilter>>>>,
) -> CuckooStatus {
    put(filter, || Ok(AnyFilter::expiring(capacity)?))
}

/// Loads a filter of any kind that was saved from any language, with the default hasher of Rust. A filter
/// that grows gets these `reserved_bytes`, as in cuckoo_new_growing.
///
/// # Safety
/// `path` is NULL, or UTF-8 that ends with a 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuckoo_load(
    path: *const c_char,
    reserved_bytes: Option<&usize>,
    filter: Option<&mut MaybeUninit<Option<Box<CuckooFilter>>>>,
) -> CuckooStatus {
    // SAFETY: the caller's.
    let path = unsafe { text_at(path) };
    let reserved = reserved_bytes.copied();
    put(filter, || Ok(AnyFilter::load(path?.as_ref(), reserved)?))
}

/// Saves the filter as a file, which it replaces at one moment. Other threads may go on, but only one at a time may
/// save under this name: of two calls that overlap, the file of the one that ends last stays, even if that one read the
/// filter first. After an error, an older file is as it was, unless cuckoo_message says that the filter is saved, but may
/// be lost when the power fails.
///
/// # Safety
/// As cuckoo_load.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuckoo_save(
    filter: Option<&CuckooFilter>,
    path: *const c_char,
) -> CuckooStatus {
    // SAFETY: the caller's.
    let path = unsafe { text_at(path) };
    answer(|| Ok(of(filter)?.save_dyn(path?.as_ref())?))
}

/// # Safety
/// As cuckoo_load.
unsafe fn text_at<'a>(text: *const c_char) -> Result<&'a str, Box<dyn Error>> {
    if text.is_null() {
        return Err("the path is NULL".into());
    }
    // SAFETY: the caller's.
    Ok(unsafe { CStr::from_ptr(text) }.to_str()?)
}

/// Ends a filter, which may be NULL and which no thread may use any more.
#[unsafe(no_mangle)]
pub extern "C" fn cuckoo_free(filter: Option<Box<CuckooFilter>>) {
    drop(filter);
}

/// Returns the hash of a whole number, as Rust hashes integers of any type up to 64 bits (but for the u8 255): negative
/// ones as their int64_t.
#[unsafe(no_mangle)]
pub extern "C" fn cuckoo_hash_number(number: u64) -> u64 {
    FixedState.hash_one(number)
}

/// Returns the hash of bytes, as Rust hashes a [u8].
///
/// # Safety
/// `length` bytes can be read at `bytes`, which may be NULL if there are none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuckoo_hash_bytes(bytes: *const u8, length: usize) -> u64 {
    // SAFETY: the caller's.
    FixedState.hash_one(unsafe { bytes_at(bytes, length) })
}

/// Returns the hash of a text in UTF-8, as Rust hashes a str.
///
/// # Safety
/// As cuckoo_hash_bytes; no terminating 0 is needed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuckoo_hash_text(text: *const c_char, length: usize) -> u64 {
    let mut hasher = FixedState.build_hasher();
    // SAFETY: the caller's.
    hasher.write(unsafe { bytes_at(text.cast(), length) });
    hasher.write_u8(u8::MAX);
    hasher.finish()
}

/// # Safety
/// As cuckoo_hash_bytes.
unsafe fn bytes_at<'a>(bytes: *const u8, length: usize) -> &'a [u8] {
    if bytes.is_null() || length == 0 {
        return &[];
    }
    // SAFETY: the caller's.
    unsafe { slice::from_raw_parts(bytes, length) }
}

/// Adds a copy of the key with this hash; in a filter that forgets, adds or renews it.
#[unsafe(no_mangle)]
pub extern "C" fn cuckoo_insert(filter: Option<&CuckooFilter>, hash: u64) -> CuckooStatus {
    answer(|| Ok(of(filter)?.insert_hash(hash)?))
}

/// Adds the key with this hash unless it is there (in a filter that forgets, it is renewed then); says
/// whether it was added. Of several threads that add one key, at most one gets true, unless the key is
/// removed or forgotten meanwhile; none is if there is no room, or if the key is mistaken for another.
#[unsafe(no_mangle)]
pub extern "C" fn cuckoo_insert_unique(
    filter: Option<&CuckooFilter>,
    hash: u64,
    added: Option<&mut MaybeUninit<bool>>,
) -> CuckooStatus {
    answer(|| tell(added, of(filter)?.insert_if_absent_hash(hash)?))
}

/// Takes a copy of the key with this hash; says whether there was one. Remove only what was inserted.
#[unsafe(no_mangle)]
pub extern "C" fn cuckoo_remove(
    filter: Option<&CuckooFilter>,
    hash: u64,
    removed: Option<&mut MaybeUninit<bool>>,
) -> CuckooStatus {
    answer(|| tell(removed, of(filter)?.remove_hash(hash)?))
}

/// Begins a period of a filter that forgets, and forgets what came, or was renewed, three periods ago; says
/// which period it is. Each call begins one: threads that read a clock call cuckoo_advance_to. Other kinds
/// are CUCKOO_STATUS_INVALID.
#[unsafe(no_mangle)]
pub extern "C" fn cuckoo_advance(
    filter: Option<&CuckooFilter>,
    period: Option<&mut MaybeUninit<u64>>,
) -> CuckooStatus {
    answer(|| {
        let filter = expiring(filter)?;
        check_period(filter.period() + 1)?;
        tell(period, filter.advance()?)
    })
}

/// Begins periods of a filter that forgets until the present one has this number, which is below 2^42; none
/// if it has this number or a greater one. So any number of threads may call it before each call, with the
/// time divided by the length of a period. A number that is too great cannot be taken back: until the clock reaches it,
/// nothing is forgotten. If a clock may be wrong, compare with cuckoo_period first. Other kinds are
/// CUCKOO_STATUS_INVALID.
#[unsafe(no_mangle)]
pub extern "C" fn cuckoo_advance_to(filter: Option<&CuckooFilter>, period: u64) -> CuckooStatus {
    answer(|| {
        let filter = expiring(filter)?;
        check_period(period)?;
        Ok(filter.advance_to(period)?)
    })
}

/// Returns the number of the present period, 0 at first; 0 without a filter that forgets.
#[unsafe(no_mangle)]
pub extern "C" fn cuckoo_period(filter: Option<&CuckooFilter>) -> u64 {
    expiring(filter).map_or(0, ExpiringCuckooFilter::period)
}

/// Puts an answer where the caller wants it, if anywhere.
fn tell<T>(place: Option<&mut MaybeUninit<T>>, answer: T) -> Result<(), Box<dyn Error>> {
    place.map(|place| place.write(answer));
    Ok(())
}

/// True if the key with this hash is there, or by chance; false without a filter.
#[unsafe(no_mangle)]
pub extern "C" fn cuckoo_contains(filter: Option<&CuckooFilter>, hash: u64) -> bool {
    of(filter).is_ok_and(|filter| filter.contains_hash(hash))
}

/// Returns the number of copies held; 0 without a filter.
#[unsafe(no_mangle)]
pub extern "C" fn cuckoo_length(filter: Option<&CuckooFilter>) -> usize {
    of(filter).map_or(0, |filter| filter.len())
}

/// Returns what was wrong with the last call of this thread that failed; valid until the next that fails.
#[unsafe(no_mangle)]
pub extern "C" fn cuckoo_message() -> *const c_char {
    let kept = MESSAGE.try_with(|message| message.borrow().as_ptr());
    kept.unwrap_or(c"".as_ptr())
}
