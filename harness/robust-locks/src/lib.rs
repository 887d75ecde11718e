//! Robust mutexes in a file that processes map (Linux), and a [cuckoo filter](RobustCuckooFilter) under them.
//!
//! This crate exists for its few lines of `unsafe`, so that the harness needs none. A robust mutex outlives its owner:
//! if a process is killed while it holds one, the system passes it on.
#![cfg(target_os = "linux")]

mod cuckoo;

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use libc::{pthread_mutex_t, pthread_mutexattr_t};
use shared_memory::Mapping;

pub use cuckoo::RobustCuckooFilter;

const MUTEX_WORDS: usize = size_of::<pthread_mutex_t>().div_ceil(8);
const _: () = assert!(align_of::<pthread_mutex_t>() <= 8);

/// Words of a mutex and of its three own words: whole cache lines.
const STRIDE: usize = (MUTEX_WORDS + 3).next_multiple_of(8);

/// The first cache line says that this is such a file. Mutexes follow, and then words.
const MAGIC: u64 = u64::from_le_bytes(*b"robust 1");
const FIRST_MUTEX: usize = 8;

/// A file of this many robust mutexes, a power of two, each with three words, and of further words. It trusts whoever
/// can write it.
struct RobustFile<const MUTEXES: usize>(Mapping);

impl<const MUTEXES: usize> RobustFile<MUTEXES> {
    const FIRST_WORD: usize = FIRST_MUTEX + MUTEXES * STRIDE;

    /// Makes a file of this name, whose words are 0.
    fn create(path: &Path, words: usize) -> io::Result<()> {
        let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
        let all = Self::FIRST_WORD + words;
        let file = shared_memory::create_unnamed(folder, all, all, 0o600)?;
        let made = Self(Mapping::new(&file, all)?);
        for mutex in 0..MUTEXES {
            // SAFETY: the memory is zero, aligned, mapped, and unknown to all others, as the file has no name yet. The
            // attributes are initialized before they are used.
            let error = unsafe {
                let mut how: pthread_mutexattr_t = std::mem::zeroed();
                libc::pthread_mutexattr_init(&mut how)
                    | libc::pthread_mutexattr_setpshared(&mut how, libc::PTHREAD_PROCESS_SHARED)
                    | libc::pthread_mutexattr_setrobust(&mut how, libc::PTHREAD_MUTEX_ROBUST)
                    | libc::pthread_mutex_init(made.mutex(mutex), &how)
            };
            if error != 0 {
                return Err(io::Error::from_raw_os_error(error));
            }
        }
        // Relaxed: the name, which the system gives, publishes everything.
        made.0[0].store(MAGIC, Ordering::Relaxed);
        shared_memory::give_name(&file, path)
    }

    /// Maps a file that `create` has made.
    fn open(path: &Path) -> io::Result<Self> {
        let file = shared_memory::open(path, true)?;
        let words = file.metadata()?.len() as usize / 8;
        let mapping = Mapping::new(&file, words.max(Self::FIRST_WORD))?;
        if mapping[0].load(Ordering::Relaxed) != MAGIC {
            let message = format!("{} has no robust mutexes", path.display());
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        Ok(Self(mapping))
    }

    /// Returns the words that belong to no mutex.
    #[inline(always)]
    fn words(&self) -> &[AtomicU64] {
        &self.0[Self::FIRST_WORD..]
    }

    /// Returns the three words of a mutex.
    #[inline(always)]
    fn own_words(&self, mutex: usize) -> &[AtomicU64; 3] {
        let words = self.0[FIRST_MUTEX + mutex % MUTEXES * STRIDE + MUTEX_WORDS..].first_chunk();
        words.expect("each mutex has three")
    }

    #[inline(always)]
    fn mutex(&self, mutex: usize) -> *mut pthread_mutex_t {
        let words = &self.0[FIRST_MUTEX + mutex % MUTEXES * STRIDE..][..MUTEX_WORDS];
        words.as_ptr().cast_mut().cast()
    }

    /// Runs an action while this thread holds a mutex. If an owner was killed, the next one gets the mutex all the
    /// same: the action sees by the words what was left. Waits forever if this thread holds it already.
    #[inline]
    fn locked<R>(&self, mutex: usize, action: impl FnOnce() -> R) -> R {
        struct Guard(*mut pthread_mutex_t);
        impl Drop for Guard {
            #[inline]
            fn drop(&mut self) {
                // SAFETY: this thread holds the mutex, which stays mapped longer than `locked` runs.
                unsafe { libc::pthread_mutex_unlock(self.0) };
            }
        }
        let mutex = self.mutex(mutex);
        // SAFETY: `create` has made the mutex, which stays mapped longer than it is held. Nothing else accesses its
        // words.
        let error = match unsafe { libc::pthread_mutex_lock(mutex) } {
            // SAFETY: as above, and this thread holds the mutex now.
            libc::EOWNERDEAD => unsafe { libc::pthread_mutex_consistent(mutex) },
            other => other,
        };
        assert!(error == 0, "a robust mutex cannot be locked: error {error}");
        let _held = Guard(mutex);
        action()
    }
}
