//! The K-CAS of the crate [`kcas`] with descriptors on the heap that epochs reclaim, for comparison
//! with its reuse of descriptors.
//!
//! The protocol is the same (Harris, Fraser & Pratt 2002; install, decide, release; see [`kcas`]),
//! and so are its interface, its progress guarantees and its tests. The difference is where an
//! operation is described:
//!
//! | | `kcas` | here |
//! |---|---|---|
//! | a K-CAS | the thread's one record, overwritten by the next | a new object on the heap |
//! | an installation | the same record | a part of that object, or a helper's new object |
//! | a tag is | (thread, sequence number) | the address of the object |
//! | a thread that follows a tag | reads the record, then checks the sequence number | has pinned the epoch, and just reads |
//! | memory | bounded by the number of threads | unbounded while one thread stops inside an operation |
//! | threads | at most 4,096 | any number |
//! | compare-and-swaps | 2k + 1: its owner installs by plain ones | 3k + 1, as published, and those of the epochs and the allocator |
//!
//! A thread pins the epoch for a K-CAS, and for a load or an exchange that meets a tag. Words that
//! hold values are loaded and exchanged without pinning.
//!
//! # When a descriptor is freed
//!
//! Epochs ([`crossbeam_epoch`]) keep an object for the threads that were pinned before it was
//! retired, so it must be out of reach by then.
//!
//! - *An installation* is: its tag was put into a word once, by its maker. A helper retires its own when it has left;
//!   an owner's, one for each entry, is part of the operation. It is not used a second time, since an owner that was
//!   blocked goes on with the entry that blocked it.
//! - *A K-CAS* is out of the words when its owner retires it, for the reasons that `kcas` gives for
//!   reusing a record; a failed one is settled first, as there. But a slow helper, pinned before, may
//!   start an installation for it even now, and a thread that finishes that one may have pinned only
//!   now. An installation by a helper therefore counts as a reference, and the operation is freed with the
//!   last of them. Without helpers, nothing is counted.
//!
//! The unsafe lines are in one module, `word`. The tests of `kcas` run on it unchanged: one thread
//! against a plain array, real threads, misuse, and threads that are stopped at every step. Loom does
//! not explore it.

#[cfg(not(target_pointer_width = "64"))]
compile_error!("a word holds a value or an address: addresses must have 64 bits");

mod commit;
mod word;
mod words;

pub use kcas::{CompareExchangeError, Entry, Error, OutOfMemory};
pub use words::WordArray;
