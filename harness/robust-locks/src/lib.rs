//! Robust mutexes in a file that processes map (Linux), and a [cuckoo filter](RobustCuckooFilter) under them.
//!
//! This crate exists for its few lines of `unsafe`, so that the harness needs none. A robust mutex outlives its owner: if a
//! process is killed while it holds one, the system passes the mutex on.
#![cfg(target_os = "linux")]

mod cuckoo;

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use libc::{pthread_mutex_t, pthread_mutexattr_t};
use shared_memory::Mapping;

pub use cuckoo::RobustCuckooFilter;

const MUTEX_WORDS: usize = size_of::<pthread_mutex_t>().div_ceil(8);
const _: () = assert!(align_of::<pthread_mutex_t>() <= 8);

/// Words next to each mutex, for what it protects.
pub const NEXT_TO: usize = 3;

/// Words of a mutex with those next to it: whole cache lines.
const STRIDE: usize = (MUTEX_WORDS + NEXT_TO).next_multiple_of(8);

/// The header: what the file is, the number of mutexes, and the number of further words. It has a cache line.
const HEADER: usize = 8;
const MAGIC: u64 = u64::from_le_bytes(*b"robust 1");

/// A file of words, and of robust mutexes with [`NEXT_TO`] words each. It trusts all who can write it.
#[derive(Debug)]
pub struct RobustFile {
    mapping: Mapping,
    words: usize,
    mutexes: usize,
    /// The place of the first mutex.
    first: usize,
}

fn first_mutex(words: usize) -> usize {
    HEADER + words.next_multiple_of(8)
}

impl RobustFile {
    /// Makes a file of this name, whose words are 0.
    ///
    /// # Errors
    /// If there is a file of this name, the system refuses, or lacks memory.
    pub fn create(path: &Path, mutexes: usize, words: usize) -> io::Result<()> {
        let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
        let all = first_mutex(words) + mutexes * STRIDE;
        let file = shared_memory::create_unnamed(folder, all, 0o600)?;
        let made = RobustFile::map(&file, words, mutexes)?;
        for mutex in 0..mutexes {
            // SAFETY: the memory is zeroed, aligned, inside the mapping, and unknown to all others: the file has no name yet. The
            // attributes are initialized before they are used.
            let made = unsafe {
                let mut attributes: pthread_mutexattr_t = std::mem::zeroed();
                libc::pthread_mutexattr_init(&mut attributes)
                    | libc::pthread_mutexattr_setpshared(
                        &mut attributes,
                        libc::PTHREAD_PROCESS_SHARED,
                    )
                    | libc::pthread_mutexattr_setrobust(&mut attributes, libc::PTHREAD_MUTEX_ROBUST)
                    | libc::pthread_mutex_init(made.mutex(mutex), &attributes)
            };
            if made != 0 {
                return Err(io::Error::from_raw_os_error(made));
            }
        }
        let header = [MAGIC, words as u64, mutexes as u64];
        for (word, value) in made.mapping.iter().zip(header) {
            // Relaxed: the name, which the system gives, publishes all words.
            word.store(value, Ordering::Relaxed);
        }
        shared_memory::give_name(&file, path)
    }

    /// Maps a file that [`create`](Self::create) has made.
    ///
    /// # Errors
    /// [`InvalidData`](io::ErrorKind::InvalidData) if it is another file; any other if the system refuses.
    pub fn open(path: &Path) -> io::Result<RobustFile> {
        let file = shared_memory::open(path, true)?;
        let header = Mapping::new(&file, HEADER)?;
        let [magic, words, mutexes] = [0, 1, 2].map(|at| header[at].load(Ordering::Relaxed));
        if magic != MAGIC {
            return Err(io::ErrorKind::InvalidData.into());
        }
        RobustFile::map(&file, words as usize, mutexes as usize)
    }

    fn map(file: &File, words: usize, mutexes: usize) -> io::Result<RobustFile> {
        let first = first_mutex(words);
        Ok(RobustFile {
            mapping: Mapping::new(file, first + mutexes * STRIDE)?,
            words,
            mutexes,
            first,
        })
    }

    /// Returns the number of mutexes.
    #[inline]
    pub fn mutexes(&self) -> usize {
        self.mutexes
    }

    /// Returns the words that belong to no mutex.
    pub fn words(&self) -> &[AtomicU64] {
        &self.mapping[HEADER..][..self.words]
    }

    /// Returns one of these words.
    #[inline(always)]
    pub fn word(&self, index: usize) -> &AtomicU64 {
        assert!(index < self.words, "there is no word {index}");
        &self.mapping[HEADER + index]
    }

    #[inline]
    fn line(&self, mutex: usize) -> &[AtomicU64] {
        assert!(mutex < self.mutexes, "there is no mutex {mutex}");
        &self.mapping[self.first + mutex * STRIDE..][..STRIDE]
    }

    /// Returns the words next to a mutex.
    #[inline]
    pub fn next_to(&self, mutex: usize) -> &[AtomicU64; NEXT_TO] {
        let (_, words) = self.line(mutex).split_at(STRIDE - NEXT_TO);
        words.first_chunk().expect("there are as many")
    }

    #[inline]
    fn mutex(&self, mutex: usize) -> *mut pthread_mutex_t {
        self.line(mutex).as_ptr().cast_mut().cast()
    }

    /// Runs an action while this thread holds a mutex. If an owner was killed, the next one gets the mutex as it is: the
    /// action finds out by the words that it protects. Waits for ever if this thread holds the mutex already.
    #[inline]
    pub fn locked<R>(&self, mutex: usize, action: impl FnOnce() -> R) -> R {
        struct Held(*mut pthread_mutex_t);
        impl Drop for Held {
            #[inline]
            fn drop(&mut self) {
                // SAFETY: this thread holds the mutex, in a file that stays mapped longer than `locked` runs.
                unsafe { libc::pthread_mutex_unlock(self.0) };
            }
        }
        let mutex = self.mutex(mutex);
        // SAFETY: `create` has made the mutex, in a place that stays mapped longer than it is held. No reference to its words
        // leaves this crate.
        let refused = match unsafe { libc::pthread_mutex_lock(mutex) } {
            0 => 0,
            // SAFETY: as above; this thread holds the mutex now.
            libc::EOWNERDEAD => unsafe { libc::pthread_mutex_consistent(mutex) },
            error => error,
        };
        assert!(
            refused == 0,
            "a robust mutex: {}",
            io::Error::from_raw_os_error(refused)
        );
        let _held = Held(mutex);
        action()
    }
}
