//! Lock-free multi-word compare-and-swap (K-CAS) over an array of 63-bit words.
//!
//! [`WordArray::kcas`] compares up to eight words and, if all of them match, replaces all of them atomically. Otherwise
//! it changes nothing.
//!
//! ```
//! use kcas::{Entry, WordArray};
//!
//! let words = WordArray::new(2);
//! words.kcas(&[Entry::new(0, 0, 7), Entry::new(1, 0, 8)])?; // index, expected value, new value
//! assert_eq!((words.load(0), words.load(1)), (7, 8));
//! assert!(words.kcas(&[Entry::new(0, 7, 1), Entry::new(1, 0, 1)]).is_err()); // word 1 is 8
//! assert_eq!(words.load(0), 7);
//! # Ok::<(), kcas::Error>(())
//! ```
//!
//! # Guarantees
//!
//! - **Linearizable** across words and arrays: each operation succeeds or fails at one instant.
//! - **Lock-free** ([argument](protocol#progress)). A suspended thread blocks no other thread, unless it was inside the
//!   allocator or, on glibc, the dynamic linker. Only a thread's first operation under an id uses these.
//! - **Loads** never write. A load is a single load if no operation is in progress on its word.
//! - **Nothing is allocated per operation.** Descriptors are reused: 8 KiB for every 32 ids ever held at the same time.
//! - **No `unsafe`**, except in the crates behind the optional features `huge-pages` and `shared`.
//!
//! # Limits
//!
//! - Values have 63 bits, and an operation has at most eight words.
//! - An operation of at least two words needs an id for its thread, as does a call that helps one. Loads need none.
//!   There are 4,096 ids ([`max_threads`]). A thread keeps its first id until it ends, unless 3,072 ids are held
//!   already: then it holds an id only during each call. If no id is free, a call returns [`TooManyThreads`] and
//!   changes nothing. [`register`] reserves an id.
//! - A signal handler may call [`load`](WordArray::load), but neither [`kcas`](WordArray::kcas) nor
//!   [`compare_exchange`](WordArray::compare_exchange), which may help a K-CAS: both can corrupt the interrupted call.
//! - A thread that keeps retrying an operation that must fail can delay others for as long as it retries.
//!
//! [`protocol`] explains how it works, its memory orderings, and how it is checked.
#![warn(missing_docs)]
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(
    not(any(kcas_loom, feature = "__steps")),
    allow(
        unreachable_pub,
        reason = "`internals` has them all in builds for checks"
    )
)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

mod commit;
mod descriptor;
mod entry;
#[doc = include_str!("protocol.md")]
pub mod protocol {}
#[cfg(shared_words)]
#[doc(hidden)]
pub mod shared;
#[doc(hidden)]
pub mod steps;
#[doc(hidden)]
pub mod storage;
#[doc(hidden)]
pub mod sync;
mod tagged;
#[doc(hidden)]
pub mod thread_id;
mod words;

pub use commit::CompareExchangeError;
pub use entry::Entry;
pub use thread_id::{TooManyThreads, max_threads, register};
pub use words::{Error, OutOfMemory, WordArray};

/// What other implementations of K-CAS need. (All that is hidden may change at any time.)
#[doc(hidden)]
pub mod engines {
    pub use crate::entry::Entries;
    pub use crate::words::{MISMATCH, out_of_memory, sort_entries};
}

/// The inside of the protocol, for its models and checks (`kcas/testing`).
#[cfg(any(kcas_loom, feature = "__steps"))]
#[doc(hidden)]
pub mod internals {
    use crate::WordArray;
    pub use crate::commit::{Installed, Placed, finish_own, install, place, take_over};
    pub use crate::descriptor::{
        Own, State, begin_install, begin_kcas, decide, read_entry, read_install, read_kcas, state,
    };
    use crate::storage::Storage;
    pub use crate::storage::Words;
    pub use crate::tagged::{InstallTag, KcasTag, Word, next_sequence};

    /// Makes an array of these words.
    pub fn array<W: Storage>(words: W) -> WordArray<W> {
        WordArray::from_storage(words)
    }

    /// Returns the words of an array.
    pub fn words<W: Storage>(array: &WordArray<W>) -> &W::Words {
        array.words.words()
    }
}

/// The README's example is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
