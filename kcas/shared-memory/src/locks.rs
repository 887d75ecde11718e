//! Locks on the bytes of a file, each held by an address space until it ends.

use std::cell::Cell;
use std::fs::{File, Metadata, OpenOptions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::{Pages, open_regular};

/// A file on whose bytes processes take locks.
///
/// They are locks of an *open file description* (`F_OFD_SETLK`): the system releases them when the last reference to it
/// is gone. They depend on no number of a process, which could be reused or belong to another container, and on no
/// time-out. The reference is not a descriptor: a forked child would inherit it and keep the lock of its dead parent,
/// and a library that closes all descriptors would release the lock of a living process. Instead, each [`Lock`] is a
/// page mapped from its open file description, which forked children do not get (`MADV_DONTFORK`); the descriptor is
/// closed. **The lock lives as long as the address space**: until `exec`, or until all threads that could access memory
/// have ended.
///
/// A child that is forked while another thread acquires a lock would inherit a reference and keep the lock as long as
/// it lives. Therefore a fork waits until no thread is acquiring a lock, or for a second. After a second, the lock may
/// be released late, but never early.
#[derive(Debug)]
pub struct Locks {
    /// Only to open the file again. It holds no locks.
    file: File,
    path: PathBuf,
    /// The file's device and inode: a library may close the descriptor, and its number then means another file.
    identity: (u64, u64),
    marker: Arc<Marker>,
}

/// A lock on a byte. It lasts until the process that acquired it drops it, ends or calls `exec`.
#[derive(Debug)]
pub struct Lock {
    /// `None` once a forked child has dropped it, which has no such page.
    page: Option<Pages>,
    marker: Arc<Marker>,
}

impl Lock {
    /// True in the process that took it, and false in its forked children, which do not have it.
    pub fn is_mine(&self) -> bool {
        self.marker.is_original()
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if !self.is_mine() {
            std::mem::forget(self.page.take());
        }
    }
}

impl Locks {
    /// Opens the file of this name, and makes it if there is none and `create` is true.
    ///
    /// # Errors
    /// [`Unsupported`](io::ErrorKind::Unsupported) in a file system where a mapping does not keep locks, such as
    /// overlayfs; [`WouldBlock`](io::ErrorKind::WouldBlock) if another process has locked all of the file; any other
    /// when the system refuses, or the file is not a regular one.
    pub fn open(path: &Path, create: bool) -> io::Result<Locks> {
        Taking::hold_forks_back();
        let path = std::path::absolute(path)?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(create).mode(0o600);
        let file = open_regular(&mut options, &path)?;
        let identity = identity(&file.metadata()?);
        let marker = Arc::new(Marker::new()?);
        let locks = Locks {
            file,
            path,
            identity,
            marker,
        };
        locks.outlive_descriptors()?;
        Ok(locks)
    }

    /// Checks that a page keeps a lock. In some file systems it does not: overlayfs maps a file of the file system
    /// below, so the open file description that has the lock is gone when its descriptor is closed.
    fn outlive_descriptors(&self) -> io::Result<()> {
        const TRIES: usize = 16;
        for _ in 0..TRIES {
            // Any byte that is no lock, so that no other process is likely to check with the same.
            let random = RandomState::new().build_hasher().finish();
            let byte = 1 << 32 | (random >> 16) as i64;
            if let Some(page) = self.take(byte)? {
                let mut lock = write_lock(byte);
                let file = self.reopened()?;
                // SAFETY: the descriptor is open, and the pointer is to a `flock`, as this command needs.
                if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &mut lock) } == -1 {
                    return Err(io::Error::last_os_error());
                }
                drop(page);
                return if lock.l_type == libc::F_UNLCK as libc::c_short {
                    let advice = "locks do not last in this file system: put the file on tmpfs, for example in /dev/shm";
                    Err(io::Error::new(io::ErrorKind::Unsupported, advice))
                } else {
                    Ok(())
                };
            }
        }
        Err(io::ErrorKind::WouldBlock.into())
    }

    /// Returns the file's device and inode.
    pub fn identity(&self) -> (u64, u64) {
        self.identity
    }

    /// Opens the same file again, with an open file description of its own: by the descriptor, wherever it has moved,
    /// or by its name, if a library has closed the descriptor or there is no `/proc`.
    fn reopened(&self) -> io::Result<File> {
        let by_descriptor = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        for path in [Path::new(&by_descriptor), &self.path] {
            // Looked at first: to open another file may do something.
            if !std::fs::metadata(path).is_ok_and(|found| identity(&found) == self.identity) {
                continue;
            }
            let file = open_regular(OpenOptions::new().read(true).write(true), path)?;
            if identity(&file.metadata()?) == self.identity {
                return Ok(file);
            }
        }
        Err(io::ErrorKind::NotFound.into())
    }

    /// Acquires the lock of this number, unless a process has it, including this one. Does not wait for the lock, but
    /// up to a second for a fork of this process.
    ///
    /// # Errors
    /// When the system has no such locks, or refuses more.
    pub fn try_lock(&self, number: u32) -> io::Result<Option<Lock>> {
        let page = self.take(number.into())?;
        let marker = Arc::clone(&self.marker);
        Ok(page.map(|page| Lock {
            page: Some(page),
            marker,
        }))
    }

    fn take(&self, byte: i64) -> io::Result<Option<Pages>> {
        let _taking = Taking::begin();
        lock_byte(self.reopened()?, byte)
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
        let identity = self.identity;
        Ok(Locks {
            file,
            path,
            identity,
            marker,
        })
    }
}

/// Returns a file's device and inode.
fn identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

fn write_lock(byte: i64) -> libc::flock {
    // SAFETY: all zeros are a valid `flock`.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = libc::F_WRLCK as _;
    lock.l_whence = libc::SEEK_SET as _;
    lock.l_start = byte as _;
    lock.l_len = 1;
    lock
}

/// Locks a byte by a new open file description, unless it is locked. The page keeps the lock.
fn lock_byte(file: File, byte: i64) -> io::Result<Option<Pages>> {
    let lock = write_lock(byte);
    // SAFETY: the descriptor is open, and the pointer is to a `flock`, as this command needs.
    if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &lock) } == -1 {
        let error = io::Error::last_os_error();
        let is_held = matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES));
        return if is_held { Ok(None) } else { Err(error) };
    }
    let page = Pages::map(Some(&file), page_size(), libc::PROT_NONE)?;
    page.advise(libc::MADV_DONTFORK)?;
    Ok(Some(page))
}

/// Threads that take a lock, and threads that fork.
static TAKING: AtomicU32 = AtomicU32::new(0);
static FORKING: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// True while the current thread forks: what the program does then, in handlers of its own, waits for no fork.
    static FORKS: Cell<bool> = const { Cell::new(false) };
}

/// A thread takes a lock, for as long as this lives.
struct Taking;

impl Taking {
    fn begin() -> Taking {
        let may_take = || {
            // SeqCst, and in `before_fork`: of a thread that takes a lock and one that forks, one sees the other.
            TAKING.fetch_add(1, Ordering::SeqCst);
            let may = FORKS.get() || FORKING.load(Ordering::SeqCst) == 0;
            if !may {
                decrement(&TAKING);
            }
            may
        };
        if !is_soon(may_take) {
            // The next lock does not wait for the same fork.
            FORKING.store(0, Ordering::SeqCst);
            TAKING.fetch_add(1, Ordering::SeqCst);
        }
        Taking
    }

    /// Lets each fork of this process wait until no thread takes a lock.
    fn hold_forks_back() {
        extern "C" fn before_fork() {
            FORKS.set(true);
            FORKING.fetch_add(1, Ordering::SeqCst);
            if !is_soon(|| TAKING.load(Ordering::SeqCst) == 0) {
                TAKING.store(0, Ordering::SeqCst);
            }
        }
        extern "C" fn after_fork() {
            decrement(&FORKING);
            FORKS.set(false);
        }
        extern "C" fn in_child() {
            // It has one thread.
            TAKING.store(0, Ordering::SeqCst);
            FORKING.store(0, Ordering::SeqCst);
            FORKS.set(false);
        }
        // No `Once`: a child that is forked while another thread registers would wait for that thread forever. To
        // register twice does no harm.
        static REGISTERED: AtomicBool = AtomicBool::new(false);
        // Relaxed: other threads read nothing because of it.
        if !REGISTERED.load(Ordering::Relaxed) {
            // SAFETY: the functions are as long-lived as the code that they are part of, with which the system forgets
            // them.
            unsafe { libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(in_child)) };
            REGISTERED.store(true, Ordering::Relaxed);
        }
    }
}

impl Drop for Taking {
    fn drop(&mut self) {
        decrement(&TAKING);
    }
}

/// Subtracts one, unless others have set it to 0 meanwhile: whoever waited in vain, or the child of a signal handler.
fn decrement(count: &AtomicU32) {
    let less = |count: u32| count.checked_sub(1);
    let _ = count.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less);
}

/// Waits until this is so, or for a second: a thread may be suspended in between.
fn is_soon(mut is_so: impl FnMut() -> bool) -> bool {
    let begin = Instant::now();
    // If the whole process was suspended, the other thread needs time afterwards.
    for look in 0.. {
        if is_so() {
            return true;
        }
        if look > 100 && begin.elapsed() > Duration::from_secs(1) {
            break;
        }
        thread::sleep(Duration::from_micros(100));
    }
    false
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
