//! Locks on the bytes of a file, each held by an address space until it ends.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::Pages;

/// A file on whose bytes processes take locks.
///
/// They are locks of an *open file description* (`F_OFD_SETLK`): the system releases them when the last reference to it is gone.
/// They depend on no number of a process, which could be reused or belong to another container, and on no time-out. The
/// reference is not a descriptor: a forked child would inherit it and keep the lock of its dead parent, and a library that
/// closes all descriptors would release the lock of a living process. Instead, each [`Lock`] is a page mapped from its open file
/// description, which forked children do not get (`MADV_DONTFORK`); the descriptor is closed. **The lock lives as long as
/// the address space**: until `exec`, or until all threads that could access memory have ended.
///
/// (Between the lock and the advice, some microseconds, a fork by another thread gives the child a reference. Then the lock is
/// released late, never early.)
#[derive(Debug)]
pub struct Locks {
    /// Only to open the file again. It holds no locks.
    file: File,
    path: PathBuf,
    marker: Arc<Marker>,
}

/// A lock on a byte, until it is dropped by the process that took it.
#[derive(Debug)]
pub struct Lock {
    /// `None` once a forked child has dropped it, which has no such page.
    page: Option<Pages>,
    marker: Arc<Marker>,
}

impl Drop for Lock {
    fn drop(&mut self) {
        if !self.marker.is_original() {
            std::mem::forget(self.page.take());
        }
    }
}

impl Locks {
    /// Opens the file of this name, and makes it if there is none and `create` is true.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn open(path: &Path, create: bool) -> io::Result<Locks> {
        let path = std::path::absolute(path)?;
        let mut options = OpenOptions::new();
        let file = options
            .read(true)
            .write(true)
            .create(create)
            .mode(0o600)
            .open(&path)?;
        let marker = Arc::new(Marker::new()?);
        Ok(Locks { file, path, marker })
    }

    /// Returns the number by which the file's system knows it.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn inode(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.ino())
    }

    /// Opens the same file again, with an open file description of its own: by the descriptor, wherever it has moved, or by its name, if
    /// a library has closed the descriptor or there is no `/proc`.
    fn reopened(&self) -> io::Result<File> {
        let by_descriptor = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        let identity = |file: &File| {
            let metadata = file.metadata()?;
            io::Result::Ok((metadata.dev(), metadata.ino()))
        };
        for path in [Path::new(&by_descriptor), &self.path] {
            if let Ok(file) = OpenOptions::new().read(true).write(true).open(path) {
                if identity(&file)? == identity(&self.file)? {
                    return Ok(file);
                }
            }
        }
        Err(io::ErrorKind::NotFound.into())
    }

    /// Takes the lock of this number, unless a process has it, including this one. Does not wait.
    ///
    /// # Errors
    /// When the system has no such locks, or refuses more.
    pub fn try_lock(&self, number: u32) -> io::Result<Option<Lock>> {
        let file = self.reopened()?;
        // SAFETY: all zeros are a valid `flock`.
        let mut lock: libc::flock = unsafe { std::mem::zeroed() };
        lock.l_type = libc::F_WRLCK as _;
        lock.l_whence = libc::SEEK_SET as _;
        lock.l_start = number.into();
        lock.l_len = 1;
        // SAFETY: the descriptor is open, and the pointer is to a `flock`, as this command needs.
        if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &lock) } == -1 {
            let error = io::Error::last_os_error();
            let is_held = matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES));
            return if is_held { Ok(None) } else { Err(error) };
        }
        let page = Pages::map(Some(&file), page_size(), libc::PROT_NONE)?;
        page.advise(libc::MADV_DONTFORK)?;
        let (page, marker) = (Some(page), Arc::clone(&self.marker));
        Ok(Some(Lock { page, marker }))
    }

    /// True in the process that opened the file, and false in its forked children.
    #[inline(always)]
    pub fn are_mine(&self) -> bool {
        self.marker.is_original()
    }

    /// Makes the same for a forked child.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn for_child(&self) -> io::Result<Locks> {
        let (file, path) = (self.reopened()?, self.path.clone());
        let marker = Arc::new(Marker::new()?);
        Ok(Locks { file, path, marker })
    }
}

fn page_size() -> usize {
    // SAFETY: this asks for a number.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
}

/// A page that the system wipes in a forked child.
#[derive(Debug)]
struct Marker(Pages);

impl Marker {
    /// # Errors
    /// When the system refuses (Linux before 4.14).
    fn new() -> io::Result<Marker> {
        let marker = Marker(Pages::map(
            None,
            page_size(),
            libc::PROT_READ | libc::PROT_WRITE,
        )?);
        marker.0.advise(libc::MADV_WIPEONFORK)?;
        // Relaxed, and below: other threads get it with the locks.
        marker.word().store(1, Ordering::Relaxed);
        Ok(marker)
    }

    #[inline(always)]
    fn word(&self) -> &AtomicU64 {
        // SAFETY: the page is mapped as long as `self` lives and aligned; every bit pattern is a valid `AtomicU64`.
        unsafe { &*self.0.start.cast_const().cast() }
    }

    /// True in the process that made it, and false in its forked children.
    #[inline(always)]
    fn is_original(&self) -> bool {
        self.word().load(Ordering::Relaxed) != 0
    }
}
