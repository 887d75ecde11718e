//! Arrays in files that processes map (Linux). Any process may be killed at any instruction: the others neither wait
//! for it nor lose what it has done.
//!
//! A file holds a header, the record of each of [`MAX_THREADS`] ids, and the words of one array. An id belongs to the
//! process that has the lock on its block of ids ([`shared_memory::Locks`]), which the system releases when the process
//! ends. Within a process it belongs to the holder of the thread id for which it was claimed, and passes to the next
//! holder.
//!
//! **A process that dies** leaves operations that others help to completion, as those of any slow thread, and ids. The
//! next process that locks the block finishes what is left (`commit::take_over`). It relies on two properties of the
//! system: at most one address space has a lock; and when a lock is granted, the last holder makes no more accesses,
//! and all that it made are visible. A process that is stopped keeps its locks, and goes on as a slow one.
//!
//! **Damage.** Whoever may write the file can destroy answers, but cannot cause an endless loop or an access outside
//! the file. Indices and lengths are checked when they are read. Each loop goes on only if another thread has made
//! progress, or if a tag has left its word; a tag that stands in a word although its record has gone on is damage. An
//! array that finds damage notes that ([`is_damaged`](WordArray::is_damaged)), and answers whatever it likes from then
//! on.

use std::fmt;
use std::io;
use std::ops::Index;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use once_cell::race::OnceBox;
pub use shared_memory::{Lock, time_since_boot};
use shared_memory::{Locks, Mapping};

use crate::commit;
use crate::descriptor::{KEPT, RECORD_WORDS, Record};
use crate::entry::Entry;
use crate::storage::{Storage, Words};
use crate::sync::{AtomicU64, Ordering, zeros};
use crate::thread_id::{self, MAX_THREADS, ThreadId, TooManyThreads};
use crate::words::WordArray;

/// "LFCFWRD", and the version of the format in the lowest byte.
const MAGIC: u64 = 0x4c46_4346_5752_4401;

/// Number of words that the user of an array keeps in its header. They never change.
pub const USER: usize = 8;

/// Places in the header: first what never changes, then two words in cache lines of their own.
const LEN: usize = 1;
const IDS: usize = 2;
const BOOT: usize = 3;
/// The device of the file, its inode, and that of the lock file, which is on the same device.
const IDENTITY: usize = 5;
const USERS: usize = 8;
const CHECKSUM: usize = USERS + USER;
/// One more than the greatest id that was ever claimed.
const IDS_USED: usize = 64;
/// Two words that the user may change, in cache lines of their own.
const EXTRA: [usize; 2] = [80, 96];

const RECORDS: usize = 512;
/// At 2 MiB, where a huge page can begin.
const TABLE: usize = 1 << 18;
/// Bytes of a file before its words.
pub const EXTRA_BYTES: usize = 8 * TABLE;
const _: () = assert!(RECORDS + MAX_THREADS * RECORD_WORDS <= TABLE);

/// Ids of one lock. Each open array locks a block for every four threads that use it.
const BLOCK: usize = 4;
const BLOCKS: usize = MAX_THREADS / BLOCK;
/// The lock that the user of an array may take.
const USERS_LOCK: u32 = BLOCKS as u32;

/// Why a file cannot be created or opened, or operations of dead processes cannot be completed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The system refused. `StorageFull`: there is not enough memory or disk for the file.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file is of another kind, or its header is damaged.
    #[error("the file is not one of shared words, or its header is damaged")]
    NotShared,
    /// The file has another version of the format.
    #[error("the file has version {version} of the format; this program uses version {}", MAGIC as u8)]
    Version {
        /// The file's version.
        version: u8,
    },
    /// The file was made on a machine of another byte order.
    #[error("the file was made on a machine of another byte order")]
    ByteOrder,
    /// The file is shorter than its header says.
    #[error("the file has been cut off: it needs {bytes} bytes")]
    TooShort {
        /// The length that the header says.
        bytes: u64,
    },
    /// The system was started again after the file was made, so the file may hold words of different moments.
    #[error("the system was restarted since the file was made: delete the file and make a new one")]
    OtherBoot,
    /// The file is a copy of a shared file, or its lock file is another one.
    #[error(
        "the file or its lock file (PATH.lock) is a copy, or the latter is missing: open the original, or delete both files and \
         create a new filter"
    )]
    Copy,
    /// The file was made with other parameters.
    #[error(
        "the {parameter} of the file is {found}, not {expected}: open it as it was made, or use another file"
    )]
    OtherParameters {
        /// What differs.
        parameter: &'static str,
        /// What the file has.
        found: String,
        /// What was asked for.
        expected: String,
    },
    /// All ids are locked by living processes.
    #[error(
        "all {BLOCKS} blocks of ids are in use, one for every {BLOCK} threads that update through one handle: close a \
         handle, or update from fewer threads"
    )]
    TooManyProcesses,
}

/// What a process has of a file. A forked child has its own, at the end of the chain.
struct Process {
    locks: Locks,
    /// For each thread id of the process, 1 more than the id that it has in the file, or 0.
    ids: Box<[AtomicU64]>,
    /// One bit per id of the file that is in `ids`.
    claimed: Box<[AtomicU64]>,
    blocks: Box<[OnceBox<Lock>]>,
    child: OnceBox<Process>,
}

impl Process {
    fn new(locks: Locks) -> io::Result<Process> {
        let zeros = |len| zeros(len).ok_or(io::ErrorKind::OutOfMemory);
        Ok(Process {
            locks,
            ids: zeros(MAX_THREADS)?,
            claimed: zeros(MAX_THREADS / 64)?,
            blocks: (0..BLOCKS).map(|_| OnceBox::new()).collect(),
            child: OnceBox::new(),
        })
    }

    /// Returns what the current process has: a forked child must not use the ids of its parent.
    #[inline]
    fn current(&self) -> io::Result<&Process> {
        if self.locks.are_mine() {
            return Ok(self);
        }
        let make = || io::Result::Ok(Box::new(Process::new(self.locks.for_child()?)?));
        self.child.get_or_try_init(make)?.current()
    }

    /// Claims an id of a block that the process has locked.
    fn claim_in(&self, block: usize) -> Option<usize> {
        self.blocks[block].get()?;
        (BLOCK * block..BLOCK * (block + 1)).find(|id| {
            let bit = 1 << (id % 64);
            // Relaxed: an id is claimed once.
            self.claimed[id / 64].fetch_or(bit, Ordering::Relaxed) & bit == 0
        })
    }
}

/// Words in a file that processes map.
pub struct Shared {
    mapping: Mapping,
    len: usize,
    /// `None` if it is only read.
    process: Option<Process>,
    /// 1 once damage was found.
    damage: AtomicU64,
    path: PathBuf,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, len) = (&self.path, &self.len);
        f.debug_struct("Shared")
            .field("path", path)
            .field("len", len)
            .finish_non_exhaustive()
    }
}

/// Returns the number of this run of the system.
fn boot() -> io::Result<[u64; 2]> {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    let digits: String = id.chars().filter(char::is_ascii_hexdigit).collect();
    let number = u128::from_str_radix(&digits, 16).map_err(|_| io::ErrorKind::InvalidData)?;
    Ok([(number >> 64) as u64, number as u64])
}

fn checksum(header: &[AtomicU64]) -> u64 {
    // Relaxed, here and below: what never changes was written before the file had a name.
    let words = header[..CHECKSUM]
        .iter()
        .map(|word| word.load(Ordering::Relaxed));
    words.fold(1, |sum, word| {
        (sum ^ word)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(29)
    })
}

fn lock_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}

/// Returns the number of words of a file for an array of this length.
fn whole(len: u64) -> Option<usize> {
    let words = TABLE.checked_add(usize::try_from(len).ok()?)?;
    (words <= isize::MAX as usize / 8).then_some(words)
}

impl Shared {
    /// Maps a file once its header has been found to be right.
    fn open(path: &Path, writable: bool) -> Result<Shared, OpenError> {
        let file = shared_memory::open(path, writable)?;
        let header = Mapping::only_to_load(&file, RECORDS).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => OpenError::NotShared,
            _ => error.into(),
        })?;
        let word = |place: usize| header[place].load(Ordering::Relaxed);
        match word(0) {
            MAGIC => {}
            other if other.swap_bytes() >> 8 == MAGIC >> 8 || other.swap_bytes() == MAGIC => {
                return Err(OpenError::ByteOrder);
            }
            other if other >> 8 == MAGIC >> 8 => {
                return Err(OpenError::Version {
                    version: other as u8,
                });
            }
            _ => return Err(OpenError::NotShared),
        }
        if word(CHECKSUM) != checksum(&header) || word(IDS) != MAX_THREADS as u64 {
            return Err(OpenError::NotShared);
        }
        if [word(BOOT), word(BOOT + 1)] != boot()? {
            return Err(OpenError::OtherBoot);
        }
        let bytes = word(LEN).saturating_add(TABLE as u64).saturating_mul(8);
        let too_short = || OpenError::TooShort { bytes };
        let words = whole(word(LEN)).ok_or_else(too_short)?;
        let map = if writable {
            Mapping::new
        } else {
            Mapping::only_to_load
        };
        let mapping = map(&file, words).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => too_short(),
            _ => error.into(),
        })?;
        let metadata = file.metadata()?;
        let mut identity = [metadata.dev(), metadata.ino(), word(IDENTITY + 2)];
        let mut process = None;
        if writable {
            let locks =
                Locks::open(&lock_path(path), false).map_err(|error| match error.kind() {
                    io::ErrorKind::NotFound => OpenError::Copy,
                    _ => error.into(),
                })?;
            let (device, inode) = locks.identity();
            if device != metadata.dev() {
                return Err(OpenError::Copy);
            }
            identity[2] = inode;
            process = Some(Process::new(locks)?);
        }
        if [0, 1, 2].map(|nth| word(IDENTITY + nth)) != identity {
            return Err(OpenError::Copy);
        }
        Ok(Shared {
            mapping,
            len: words - TABLE,
            process,
            damage: AtomicU64::new(0),
            path: std::path::absolute(path)?,
        })
    }

    /// # Errors
    /// When the array is only read, or a forked child cannot make its part.
    fn process(&self) -> io::Result<&Process> {
        let process = self.process.as_ref();
        process.ok_or(io::ErrorKind::PermissionDenied)?.current()
    }

    fn ids_used(&self) -> usize {
        // Relaxed: an id that is not seen yet has just been claimed for the first time.
        (self.mapping[IDS_USED].load(Ordering::Relaxed) as usize).min(MAX_THREADS)
    }

    /// Returns the words of an id's record, in which the last two are not the protocol's.
    fn words_of(&self, id: usize) -> &[AtomicU64; RECORD_WORDS] {
        let start = RECORDS + id % MAX_THREADS * RECORD_WORDS;
        let words = self.mapping[start..].first_chunk();
        words.expect("each id has a record")
    }

    /// Locks a block of ids, unless a living process has it, and finishes what its last holder has left.
    fn lock(&self, process: &Process, block: usize) -> io::Result<Option<Lock>> {
        let Some(lock) = process.locks.try_lock(block as u32)? else {
            return Ok(None);
        };
        let ids = BLOCK * block..BLOCK * (block + 1);
        // Relaxed: before any use of the ids. Whoever takes them over synchronises with this process by the lock.
        self.mapping[IDS_USED].fetch_max(ids.end as u64, Ordering::Relaxed);
        ids.for_each(|id| commit::take_over(self, &ThreadId::new(id)));
        Ok(Some(lock))
    }

    /// Claims an id for the thread that holds this thread id.
    #[cold]
    fn claim(&self, process: &Process, thread: &ThreadId) -> Result<usize, OpenError> {
        let mut id = (0..BLOCKS).find_map(|block| process.claim_in(block));
        for block in 0..BLOCKS {
            if id.is_none() && process.blocks[block].get().is_none() {
                if let Some(lock) = self.lock(process, block)? {
                    // It is kept until the array is dropped or the process ends.
                    let _ = process.blocks[block].set(Box::new(lock));
                    id = process.claim_in(block);
                }
            }
        }
        let id = id.ok_or(OpenError::TooManyProcesses)?;
        // Relaxed: only the holder of the thread id accesses it.
        process.ids[thread.index()].store(id as u64 + 1, Ordering::Relaxed);
        Ok(id)
    }

    /// Returns the id that the holder of a thread id has in the file, if it has one.
    #[inline]
    fn held(process: &Process, thread: &ThreadId) -> Option<usize> {
        // Relaxed: as in `claim`.
        (process.ids[thread.index()].load(Ordering::Relaxed) as usize).checked_sub(1)
    }
}

impl Index<usize> for Shared {
    type Output = AtomicU64;

    #[inline(always)]
    fn index(&self, index: usize) -> &AtomicU64 {
        &self.mapping[TABLE..][index]
    }
}

impl Words for Shared {
    const SHARED: bool = true;

    #[inline]
    fn record(&self, id: usize) -> Record<'_> {
        Record::new(self.words_of(id))
    }

    #[inline]
    fn with_id<R>(&self, action: impl FnOnce(&ThreadId) -> R) -> Result<R, TooManyThreads> {
        thread_id::with(|thread| {
            let process = self.process().map_err(|_| TooManyThreads)?;
            let held = Shared::held(process, thread);
            let id = held.or_else(|| self.claim(process, thread).ok());
            Ok(action(&ThreadId::new(id.ok_or(TooManyThreads)?)))
        })?
    }

    fn has_word(&self, index: usize) -> bool {
        index < self.len
    }

    #[inline]
    fn is_damaged(&self) -> bool {
        // Relaxed: a thread that does not see it yet will find the damage itself, or none.
        self.damage.load(Ordering::Relaxed) != 0
    }

    #[cold]
    fn note_damage(&self) {
        self.damage.store(1, Ordering::Relaxed);
    }
}

impl Storage for Shared {
    type Words = Shared;

    #[inline]
    fn words(&self) -> &Shared {
        self
    }

    #[inline]
    fn number(&self) -> usize {
        self.len
    }

    #[inline]
    fn has(&self, index: usize) -> bool {
        index < self.len
    }

    #[inline]
    fn has_all(&self, entries: &[Entry]) -> bool {
        entries.last().is_none_or(|last| last.index < self.len)
    }

    fn each_piece(&self, mut each: impl FnMut(&[AtomicU64])) {
        each(&self.mapping[TABLE..]);
    }
}

/// What a new file holds.
#[derive(Debug, Default)]
pub struct Contents {
    /// Number of words for which memory is reserved. No other may be accessed before [`reserve`](WordArray::reserve).
    pub reserved: usize,
    /// The first words, none of them wider than 63 bits.
    pub words: Vec<u64>,
    /// The [`extra`](WordArray::extra) words.
    pub extra: [u64; 2],
}

impl WordArray<Shared> {
    /// Makes a file of this name with an array of `len` words, all zero, and a lock file, `PATH.lock`. The file appears
    /// whole or not at all.
    ///
    /// # Errors
    /// [`OpenError::Io`], with the kind `AlreadyExists` if there is a file of this name.
    pub fn create(path: &Path, len: usize, user: [u64; USER]) -> Result<Self, OpenError> {
        let contents = Contents {
            reserved: len,
            ..Contents::default()
        };
        Self::create_with(path, len, user, contents)
    }

    /// [`create`](Self::create) with these contents.
    ///
    /// # Errors
    /// Those of [`create`](Self::create).
    pub fn create_with(
        path: &Path,
        len: usize,
        user: [u64; USER],
        contents: Contents,
    ) -> Result<Self, OpenError> {
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        let too_large = || io::Error::from(io::ErrorKind::InvalidInput);
        let words = whole(len as u64).ok_or_else(too_large)?;
        let folder = folder.unwrap_or(Path::new("."));
        let file = shared_memory::create_unnamed(folder, words, TABLE + contents.reserved, 0o600)?;
        let locks = Locks::open(&lock_path(path), true)?;
        let header = Mapping::new(&file, words)?;
        let [first, second] = boot()?;
        let metadata = file.metadata()?;
        let (device, lock_inode) = locks.identity();
        if device != metadata.dev() {
            return Err(OpenError::Copy);
        }
        let fixed = [
            MAGIC,
            len as u64,
            MAX_THREADS as u64,
            first,
            second,
            metadata.dev(),
            metadata.ino(),
            lock_inode,
        ];
        for (word, value) in header.iter().zip(fixed.into_iter().chain(user)) {
            word.store(value, Ordering::Relaxed);
        }
        header[CHECKSUM].store(checksum(&header), Ordering::Relaxed);
        for (place, value) in EXTRA.into_iter().zip(contents.extra) {
            header[place].store(value, Ordering::Relaxed);
        }
        for (word, value) in header[TABLE..].iter().zip(contents.words) {
            word.store(value, Ordering::Relaxed);
        }
        shared_memory::give_name(&file, path)?;
        Self::open(path)
    }

    /// Opens a file and finishes what dead processes have left in it.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let array = WordArray::from_storage(Shared::open(path, true)?);
        array.take_over_all()?;
        Ok(array)
    }

    /// Opens a file for [loads](Self::load) alone, which need no id and cannot change it. No function that may change a
    /// word must be called: the mapping relies on that (`Mapping::only_to_load`).
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open_to_read(path: &Path) -> Result<Self, OpenError> {
        Ok(WordArray::from_storage(Shared::open(path, false)?))
    }

    /// Returns what the user keeps in the header.
    pub fn user(&self) -> [u64; USER] {
        std::array::from_fn(|nth| self.words.mapping[USERS + nth].load(Ordering::Relaxed))
    }

    /// Finishes what dead processes have left unfinished. Operations of dead processes are helped by any thread that
    /// meets them: this is for those that no thread meets, and for a program that wants to know which calls took
    /// effect. Left out are ids that another process is just taking over, or whose lock something else still holds.
    ///
    /// Progress: lock-free, except that it waits for forks of the process, up to a second for each lock that it tries.
    ///
    /// # Errors
    /// [`OpenError::TooManyProcesses`] when the thread has no id in the file and none is left; [`OpenError::Io`] when
    /// the system refuses, or no thread id is left.
    pub fn take_over_all(&self) -> Result<(), OpenError> {
        let process = self.words.process()?;
        let claimed = thread_id::with(|thread| match Shared::held(process, thread) {
            Some(_) => Ok(()),
            None => self.words.claim(process, thread).map(drop),
        });
        claimed.map_err(io::Error::other)??;
        for block in 0..self.words.ids_used().div_ceil(BLOCK) {
            if process.blocks[block].get().is_none() {
                drop(self.words.lock(process, block)?);
            }
        }
        Ok(())
    }

    /// Returns the number of ids that processes have claimed at the same time, rounded up to a multiple of four.
    pub fn ids_used(&self) -> usize {
        self.words.ids_used()
    }

    /// Reserves memory for all words. Words that have some keep it, whatever others do with them meanwhile.
    ///
    /// # Errors
    /// When the system refuses or lacks memory, or the file has lost its name or was cut off.
    pub fn reserve(&self) -> io::Result<()> {
        let Shared { path, mapping, .. } = &self.words;
        let file = shared_memory::open(path, true)?;
        let metadata = file.metadata()?;
        let found = [metadata.dev(), metadata.ino()];
        if found != [0, 1].map(|nth| mapping[IDENTITY + nth].load(Ordering::Relaxed)) {
            return Err(io::ErrorKind::NotFound.into());
        }
        shared_memory::reserve(&file, &metadata, mapping.len())
    }

    /// Takes a lock that at most one thread of all processes has, until it is dropped or its process ends; `None` if
    /// one has it.
    ///
    /// # Errors
    /// When the system refuses, or the array is only read.
    pub fn try_lock(&self) -> io::Result<Option<Lock>> {
        self.words.process()?.locks.try_lock(USERS_LOCK)
    }

    /// Runs `action` with a word that belongs to the current thread's id. Only the holder of an id writes its word.
    ///
    /// # Errors
    /// When no id is left.
    #[inline]
    pub fn with_counter<R>(
        &self,
        action: impl FnOnce(&AtomicU64) -> R,
    ) -> Result<R, TooManyThreads> {
        let words = &self.words;
        words.with_id(|me| action(&words.words_of(me.index())[KEPT]))
    }

    /// [`with_counter`](Self::with_counter), if this thread has an id already and no damage was found; otherwise
    /// returns `None`.
    #[inline]
    pub fn with_held_counter<R>(&self, action: impl FnOnce(&AtomicU64) -> R) -> Option<R> {
        let words = &self.words;
        if words.is_damaged() {
            return None;
        }
        let id = thread_id::with_held(|me| {
            let mut process = words.process.as_ref()?;
            while !process.locks.are_mine() {
                process = process.child.get()?;
            }
            Shared::held(process, me)
        })??;
        Some(action(&words.words_of(id)[KEPT]))
    }

    /// Returns these words of all ids that were ever claimed.
    pub fn counters(&self) -> impl Iterator<Item = &AtomicU64> {
        (0..self.words.ids_used()).map(|id| &self.words.words_of(id)[KEPT])
    }

    /// Returns one of two words of the header that any thread may change.
    ///
    /// # Panics
    /// When `nth` is neither 0 nor 1.
    #[inline]
    pub fn extra(&self, nth: usize) -> &AtomicU64 {
        &self.words.mapping[EXTRA[nth]]
    }
}
