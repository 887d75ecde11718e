//! Files of atomic words that processes map (Linux), and locks that show which of the processes live.
//!
//! This crate exists for its few lines of `unsafe`, so that the crates that use it need none. A mapping consists of
//! atomic words: every bit pattern is valid, and what other processes write is no race with plain memory. If a process
//! truncates the file, an access past the new end raises SIGBUS, which ends the process. No library can prevent that.
#![cfg(target_os = "linux")]
#![warn(missing_docs)]

mod locks;

use std::ffi::CString;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::ops::Deref;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::ptr;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

pub use locks::{Lock, Locks};

/// Pages of memory, unmapped when dropped.
#[derive(Debug)]
struct Pages {
    start: *mut libc::c_void,
    bytes: usize,
}

// SAFETY: the pages belong to no thread, and are accessed as atomics or not at all.
unsafe impl Send for Pages {}
// SAFETY: as above.
unsafe impl Sync for Pages {}

impl Pages {
    /// Maps this many bytes: the beginning of a file, shared, or new memory.
    fn map(file: Option<&File>, bytes: usize, access: i32) -> io::Result<Pages> {
        let (kind, descriptor) = match file {
            Some(file) => (libc::MAP_SHARED, file.as_raw_fd()),
            None => (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1),
        };
        // SAFETY: this is a new mapping at an address that the system chooses.
        let start = unsafe { libc::mmap(ptr::null_mut(), bytes, access, kind, descriptor, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Pages { start, bytes })
    }

    /// Tells the system what a forked child gets instead of these pages.
    fn advise(&self, advice: i32) -> io::Result<()> {
        // SAFETY: the pages are mapped, and this advice changes nothing in this process.
        match unsafe { libc::madvise(self.start, self.bytes, advice) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: `map` has mapped these pages, and nothing that borrows from them is left.
        unsafe { libc::munmap(self.start, self.bytes) };
    }
}

/// The words at the beginning of a file, shared with all processes that map it.
#[derive(Debug)]
pub struct Mapping(Pages);

impl Mapping {
    /// Maps the first `words` words of a file, at least one, for loads and stores.
    ///
    /// # Errors
    /// [`UnexpectedEof`](io::ErrorKind::UnexpectedEof) when the file is shorter; any other when the system refuses.
    pub fn new(file: &File, words: usize) -> io::Result<Mapping> {
        Mapping::with_access(file, words, libc::PROT_READ | libc::PROT_WRITE)
    }

    /// [`new`](Self::new), for loads alone. This is for `kcas`, which forbids `unsafe`, and not part of the interface:
    /// the caller must see to it that no word is ever stored to or exchanged, not even in vain.
    ///
    /// # Errors
    /// Those of [`new`](Self::new).
    #[doc(hidden)]
    pub fn only_to_load(file: &File, words: usize) -> io::Result<Mapping> {
        Mapping::with_access(file, words, libc::PROT_READ)
    }

    fn with_access(file: &File, words: usize, access: i32) -> io::Result<Mapping> {
        let bytes = words.checked_mul(8).ok_or(io::ErrorKind::InvalidInput)?;
        if file.metadata()?.len() < bytes as u64 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Pages::map(Some(file), bytes, access).map(Mapping)
    }
}

impl Deref for Mapping {
    type Target = [AtomicU64];

    #[inline(always)]
    fn deref(&self) -> &[AtomicU64] {
        // SAFETY: the pages are mapped as long as `self` lives, begin at a page and are a whole number of words; every
        // bit pattern is a valid `AtomicU64`. Pages that can only be read are only loaded, which whoever called
        // `only_to_load` sees to. The standard library promises that of read-only memory for relaxed loads alone, while
        // these are SeqCst and Acquire, too: this relies on 64-bit targets such as x86-64 and AArch64, where they are
        // load instructions that write nothing.
        unsafe { std::slice::from_raw_parts(self.0.start.cast_const().cast(), self.0.bytes / 8) }
    }
}

/// Opens a regular file. Does not block if the path names a pipe.
///
/// # Errors
/// [`InvalidInput`](io::ErrorKind::InvalidInput) when the file is not a regular one; any other when the system refuses.
pub fn open(path: &Path, writable: bool) -> io::Result<File> {
    open_regular(OpenOptions::new().read(true).write(writable), path)
}

fn open_regular(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = options.custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        let message = "it is not a regular file";
        Err(io::Error::new(io::ErrorKind::InvalidInput, message))
    }
}

/// Makes a file of this many words, all zero, without a name. The memory of the first `reserved` words is
/// [reserved](reserve).
///
/// # Errors
/// When the system refuses, or lacks memory.
pub fn create_unnamed(folder: &Path, words: usize, reserved: usize, mode: u32) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(mode);
    let file = options.custom_flags(libc::O_TMPFILE).open(folder)?;
    file.set_len(bytes_of(words)? as u64)?;
    reserve(&file, &file.metadata()?, reserved)?;
    Ok(file)
}

fn bytes_of(words: usize) -> io::Result<i64> {
    let bytes = words.checked_mul(8).map(i64::try_from);
    Ok(bytes
        .and_then(Result::ok)
        .ok_or(io::ErrorKind::InvalidInput)?)
}

/// Reserves the memory of the first words of a file, so that no later access lacks any (which would end the process by
/// SIGBUS). `metadata` is the file's. Processes may use the words meanwhile. (`posix_fallocate` of the C library might
/// write into them.)
///
/// # Errors
/// [`UnexpectedEof`](io::ErrorKind::UnexpectedEof) when the file is shorter;
/// [`Unsupported`](io::ErrorKind::Unsupported) in a file system that reserves no memory; any other when the system
/// refuses, or lacks memory.
pub fn reserve(file: &File, metadata: &Metadata, words: usize) -> io::Result<()> {
    const MIN_PIECE: i64 = 1 << 16;
    let (mut reserved, bytes) = (0, bytes_of(words)?);
    // If it can be, all at once: otherwise, too little memory would be found when all of it is taken.
    let mut piece = bytes;
    if metadata.len() < bytes as u64 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    while reserved < bytes {
        piece = piece.min(bytes - reserved);
        let mode = libc::FALLOC_FL_KEEP_SIZE;
        // SAFETY: the descriptor is open.
        if unsafe { libc::fallocate(file.as_raw_fd(), mode, reserved, piece) } == 0 {
            reserved += piece;
            continue;
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            // A signal came, and tmpfs has given all back. Perhaps another one comes after the same time.
            Some(libc::EINTR) => piece = (piece / 2).max(MIN_PIECE),
            Some(libc::EOPNOTSUPP | libc::ENOSYS) => {
                let advice = "this file system reserves no memory: put the file on tmpfs, for example in /dev/shm";
                return Err(io::Error::new(io::ErrorKind::Unsupported, advice));
            }
            _ => return Err(error),
        }
    }
    Ok(())
}

/// Gives a file without a name this name; it appears whole or not at all.
///
/// # Errors
/// [`AlreadyExists`](io::ErrorKind::AlreadyExists) if there is a file of this name; any other when the system refuses.
pub fn give_name(file: &File, path: &Path) -> io::Result<()> {
    let from = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    let to = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: both are strings that end with a zero.
    let linked = unsafe {
        let (current, follow) = (libc::AT_FDCWD, libc::AT_SYMLINK_FOLLOW);
        libc::linkat(current, from.as_ptr(), current, to.as_ptr(), follow)
    };
    match linked {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Returns the time since the system was started, including the time for which it was suspended (`CLOCK_BOOTTIME`).
/// This clock cannot be set, and it is the same in all processes of a time namespace.
pub fn time_since_boot() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the call writes to `time` alone.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &mut time) };
    assert_eq!(result, 0, "Linux has this clock since 2.6.39");
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
