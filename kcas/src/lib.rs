//! Lock-free multi-word compare-and-swap (K-CAS) over an array of 63-bit words.
//!
//! [`WordArray::kcas`] replaces up to eight words at one moment if each holds its expected value,
//! and replaces none otherwise. [`WordArray::load`] reads a word without ever writing. The crate
//! contains no `unsafe`, takes no lock of its own, and allocates nothing for an operation (a thread's first
//! one may allocate a chunk of records, and registers the thread's end with the system).
//!
//! # The protocol
//!
//! It follows Harris, Fraser & Pratt (*A Practical Multi-word Compare-and-Swap Operation*, DISC 2002),
//! with descriptors after Arbel-Raviv & Brown (*Reuse, don't Recycle*, DISC 2017).
//!
//! A word holds a value, or a **tag** that names an operation; bit 63 says which. A K-CAS of k
//! words has three phases:
//!
//! 1. **Install.** In index order, each word that holds its expected value gets a tag of the
//!    operation. If a word holds another value, the operation will fail. If it holds the tag of
//!    another operation, that operation is helped to completion first.
//! 2. **Decide.** One compare-and-swap turns the operation's status from *undecided* to *succeeded*
//!    (all tags are in place) or *failed*. This is the linearization point of a success; the
//!    linearization point of a failure is the load of the word that differed.
//! 3. **Release.** Each tag is replaced by the new value, or by the expected one if the operation
//!    failed.
//!
//! Any thread that meets a tag can carry its operation through all three phases, so a thread that
//! stops anywhere stops nobody else. Undisturbed, a K-CAS costs 2k + 1 compare-and-swaps. (A K-CAS of one
//! word needs none of this, and costs one; so does an operation whose first word differs, since no other
//! thread sees it.)
//!
//! **Helpers install in two steps.** A helper may be slow: by the time it installs a tag, the
//! operation may be decided and released, and the word may hold its expected value again. So it
//! installs its tag by a *double-compare-single-swap* (DCSS), conditional on "undecided": it first
//! puts a tag of its own into the word, an *installation*; then it reads the status; then it turns
//! the installation into the operation's tag, or back into what it replaced. Any thread that meets
//! an installation can finish it. Each installation has a tag that no other has (until its 49-bit
//! number wraps, which takes a thread more than a year at 10^7 a second), so finishing it late does no harm.
//!
//! **The owner installs in one.** In the protocol of Harris, Fraser & Pratt the owner installs as
//! helpers do, which costs 3k + 1 (`WordArray::kcas_by_dcss`). Here it puts an *owner tag* into
//! each word by a plain compare-and-swap. It, too, may be late: a helper may have decided already.
//! So owner tags differ from the tags that helpers install, and the status records who decided.
//! Helpers *confirm* each word: they install the confirmed tag by DCSS, over the expected value or
//! over the owner tag, and decide for success only when all words are confirmed. So a tag stands
//! for:
//!
//! | Decided | Confirmed tag | Owner tag |
//! |---|---|---|
//! | not yet | expected value | expected value |
//! | succeeded, by the owner | new value | new value: all tags were in place |
//! | succeeded, by a helper | new value | expected value: it was put there after the decision |
//! | failed | expected value | expected value |
//!
//! Before the owner moves on, it takes all its tags out of the words, and finishes any
//! installation over them that could put one back (`commit::withdraw`).
//!
//! **Descriptors are reused.** A tag is (thread, sequence number). Each thread owns one record for
//! its K-CAS and its installation, and overwrites it for the next ones. A thread that reads a
//! record checks the sequence number afterwards: if it has changed, that operation is over, and its
//! tag has left the word. Nothing is allocated or reclaimed; memory is bounded by the greatest
//! number of ids ever held at the same time.
//!
//! **A failed operation is settled before its record is reused.** It may have failed while a helper
//! was in the middle of an installation, which must not turn into the tag of an operation that no
//! longer exists. `commit::withdraw` explains how this is done, and why a plain load would not be
//! enough.
//!
//! **An entry that only compares is installed, too.** It would be cheaper to compare its word once
//! more just before the decision, and to write nothing. But readers do not help: between that
//! comparison and the decision, another thread could write the compared word and still read the
//! expected value of a word that the operation then changes. No order of the calls explains that
//! (`a_comparison_and_a_writer_that_reads`).
//!
//! **Readers do not help.** The logical value of a word that holds a tag follows from the record and the table
//! above; an installation stands for whatever the word it replaces stands for. A slow reader may have loaded an
//! owner tag before a helper confirmed it, and read the status after that helper decided. It returns the
//! expected value, as for a late tag: the word stood for it at the load.
//!
//! # Progress
//!
//! `kcas` and `compare_exchange` are lock-free: each retry is caused by another operation that
//! completed, even if only to find that a word differs. So a thread that keeps retrying an
//! operation that must fail can hold others up for as long as it keeps trying. Undecided operations
//! wait for one another only in ascending order of index, and a decided one waits for nobody, so
//! helping ends. `load` is lock-free, and is a single load when no operation is under way on its
//! word.
//!
//! # Limits
//!
//! A K-CAS of two words or more needs an id for its thread, as does a call that helps one. Loads need no id, nor do
//! exchanges of words on which no operation is under way. There are 4,096 ids ([`max_threads`]).
//!
//! - Any number of threads may take part. A thread keeps its first id until it ends, unless 3,072 ids are held already;
//!   later threads claim an id for each call and return it at the end of the call.
//! - If all 4,096 ids are held at one moment, a call returns [`TooManyThreads`] before anything changes. This takes at
//!   least 1,024 calls under way, or threads that [registered](register).
//! - A thread that registers keeps its id in any case.
//!
//! A thread has only one record, so a signal handler that runs or helps a K-CAS destroys the K-CAS that it
//! interrupted on its thread. It may call [`load`](WordArray::load).
//!
//! # Orderings
//!
//! Words and statuses are accessed with `SeqCst` unless a comment says why less is enough, fields
//! of records with `Release` and `Acquire`; a comment at each access names its partner. The
//! protocol itself needs only release and acquire, and is explored that way: the model checker
//! treats `SeqCst` exchanges as no more than that. What `SeqCst` adds is linearizability *across*
//! words and arrays: with less, two threads that each write a word and then load the other's could
//! both miss the write (store buffering), and two readers could see two writes in different orders.
//! On x86-64 it costs nothing: an exchange is a full barrier and a load is a plain load either way.
//!
//! # How it is checked
//!
//! - `kcas/testing/tests/loom` explores the protocol under
//!   [loom](https://docs.rs/loom), one hazard per model; `kcas/tests/planted` holds the bugs that
//!   each of them must catch (`scripts/planted.sh`), and `scripts/orderings.txt` says for each
//!   memory ordering which model fails without it, or why none can (`scripts/orderings.sh`).
//! - `kcas/proof` proves an inductive invariant of the protocol (without `kcas_by_dcss` and `load_helping`) for
//!   any number of words, threads and helpers, with reused records. It assumes that every access is sequentially
//!   consistent, and that a validated read of a record gives one operation (its README has the details). The code
//!   is not proven, but checked against the actions of the proof: at each write of a word, a status or an
//!   installation's number, in each model but one, and with threads that take turns in random order (`kcas/testing`).
//! - `kcas/testing/tests/steps/stalls.rs` stops a thread at every access of an operation, and two threads at
//!   every pair of accesses: the others still finish.
//!
//! The models found several bugs during development: two operations that helped each other for ever
//! because one was decided and half released (`helping_a_decided_operation`); a record that was
//! read without having acquired the tag that named it (`late_installation_and_reused_record`); and
//! executions that loom itself leaves out (`sync.rs`).
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

// The interface is what is shown. What is hidden, here and above, is for `filter` and the harness; it may change at any time.

/// What other implementations of K-CAS need.
#[doc(hidden)]
pub mod engines {
    pub use crate::entry::Entries;
    pub use crate::words::{MISMATCH, out_of_memory, sort_entries};
}

/// The inside of the protocol, for its models and checks (`kcas/testing`).
#[cfg(any(kcas_loom, feature = "__steps"))]
#[doc(hidden)]
pub mod internals {
    pub use crate::commit::{Installed, Placed, finish_own, install, place};
    pub use crate::descriptor::{
        Own, State, begin_install, begin_kcas, decide, read_entry, read_install, read_kcas, state,
    };
    pub use crate::tagged::{InstallTag, KcasTag, Word, next_sequence};

    /// Returns the words of an array.
    pub fn words(array: &crate::WordArray) -> &[crate::sync::AtomicU64] {
        &array.words.0
    }
}

/// The README's example is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
