//! Lock-free multi-word compare-and-swap (K-CAS) over an array of 63-bit words.
//!
//! [`WordArray::kcas`] replaces up to eight words at one moment if each holds its expected value, and
//! none otherwise. [`WordArray::load`] reads a word without ever writing; the crate contains no `unsafe`,
//! allocates nothing for an operation (a thread's first one may make a chunk of records), and takes no lock.
//!
//! # The protocol
//!
//! After Harris, Fraser & Pratt (*A Practical Multi-word Compare-and-Swap Operation*, DISC 2002), with
//! descriptors after Arbel-Raviv & Brown (*Reuse, don't Recycle*, DISC 2017).
//!
//! A word holds a value, or a **tag** that names an operation (bit 63 tells them apart). A K-CAS of k words
//! goes through three phases:
//!
//! 1. **Install.** In the order of the indices, each word that holds its expected value is made to hold a tag of
//!    the operation. If a word holds another value, the operation is going to fail. If it holds the
//!    tag of another operation, that one is helped to its end first.
//! 2. **Decide.** One compare-and-swap turns the operation's status from *undecided* to *succeeded* (all
//!    tags are in place) or *failed*. This is the linearization point of a success; that of a failure is the
//!    load of the word that differed.
//! 3. **Release.** Each tag is replaced by the new value, or by the expected one if the operation failed.
//!
//! Anyone who meets a tag can carry its operation through all three phases; so a thread that stops
//! anywhere stops nobody. Undisturbed it costs 2k + 1 compare-and-swaps. (One word needs none of this, and costs one; and
//! so does an operation whose first word differs, of which nobody knows.)
//!
//! **Helpers install in two steps.** A helper may be slow: by the time it installs a tag, the operation
//! may be decided and released, and the word may hold its expected value again. So its tag goes in by a
//! *double-compare-single-swap* (DCSS) that is conditional on "undecided": the helper first puts a tag of
//! its own into the word, an *installation*; then it reads the status; then it turns the installation into
//! the operation's tag, or back into what it replaced. Every thread that meets an installation can finish it. Each
//! installation has a tag that no other has (until its number of 49 bits wraps, which takes a thread more than a year), so
//! finishing it late does no harm.
//!
//! **The owner installs in one.** Harris' owner installs as helpers do, which makes 3k + 1
//! ([`WordArray::kcas_by_dcss`]). Here it puts an *owner tag* into each word by a plain compare-and-swap. It, too, may be late:
//! a helper may have decided before. So owner tags and the tags that helpers install are different, and the
//! status keeps who decided. Helpers *confirm* each word: over its expected value or over the owner tag, they install the
//! confirmed tag by DCSS, and decide for success only when all words are confirmed. What a tag stands for follows:
//!
//! | Decided | Confirmed tag | Owner tag |
//! |---|---|---|
//! | not yet | expected value | expected value |
//! | succeeded, by the owner | new value | new value: all tags were in place |
//! | succeeded, by a helper | new value | expected value: it was put there after the decision |
//! | failed | expected value | expected value |
//!
//! Before the owner goes on, it takes all its tags out of the words, and ends the installations over them that may put one
//! back (`commit::leave`).
//!
//! **Descriptors are reused.** A tag is (thread, sequence number). Each thread owns one record for its
//! K-CAS and its installation, and overwrites it with the next ones. A thread that reads a record checks the
//! sequence number afterwards: if it has moved on, that operation is over, and its tag has left the word.
//! Nothing is allocated or reclaimed; memory is bounded by the greatest number of threads that ever lived
//! at the same time.
//!
//! **A failed operation is settled before its record is reused.** It may have failed while a helper was in
//! the middle of an installation, which must not turn into the tag of an operation that no longer exists.
//! `commit::leave` tells how, and why a plain load would not be enough.
//!
//! **Readers do not help.** The logical value of a word that holds a tag follows from the record and the
//! table above; for an installation, it is what the word stands for that it replaces.
//!
//! # Progress
//!
//! `kcas` and `compare_exchange` are lock-free: each repetition is caused by another operation that came to its end, if
//! only to find that a word differs: a thread that repeats an operation which must fail can hold others up for as long as it does. Undecided operations wait for one another only in ascending order of indices, and a decided one
//! waits for nobody, so helping ends. `load` is lock-free, and one load when no operation is under way on
//! its word.
//!
//! # Limits
//!
//! At most [`MAX_THREADS`](thread_id::MAX_THREADS) live threads may take part: a thread does from its first K-CAS of two
//! words or more, or the first time that it has to help one, until it ends. One more is told
//! [`Error::TooManyThreads`], or panics where a function has no such error; [`thread_id::register`] asks beforehand.
//! Loads and exchanges of words on which nothing is under way need no id.
//!
//! A thread has one record: a signal handler that runs a K-CAS, or helps one, on a thread that it interrupted in one
//! destroys the interrupted one. [`load`](WordArray::load) and [`peek`](WordArray::peek) may be called there.
//!
//! # Orderings
//!
//! Words and statuses are accessed with `SeqCst`, fields of records with `Release` and `Acquire`; each access names its partner in the
//! code. The protocol itself needs only release and acquire, and the model checker, which takes `SeqCst`
//! exchanges for no more than that, explores it so. What `SeqCst` adds is linearizability *across* words and
//! arrays: with less, two threads that each write a word and then load the other's could both miss the
//! write (store buffering), and two readers could see two writes in different orders. On x86-64 it costs
//! nothing: an exchange is a full barrier and a load is a plain load either way.
//!
//! # How it is checked
//!
//! - `kcas/tests/loom.rs` and the modules `*_models` explore the protocol under
//!   [loom](https://docs.rs/loom), one model a hazard; `kcas/tests/planted` holds the mistakes that each of
//!   them must catch (`scripts/planted.sh`), and `scripts/orderings.txt` tells for each memory ordering which
//!   model fails without it, or why none can (`scripts/orderings.sh`).
//! - `kcas/tests/stalls.rs` stops a thread at every access of an operation, and two at every pair
//!   ([`steps`]): the others finish.
//!
//! What the models found while this was written: two operations that helped each other for ever, because one
//! was decided and half released (`helping_a_decided_operation`); a record that was read without having
//! acquired the tag that named it (`late_installation_and_reused_record`); and executions that loom itself
//! leaves out ([`sync`]).
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

mod commit;
#[cfg(all(test, kcas_loom))]
mod commit_models;
mod descriptor;
#[cfg(all(test, kcas_loom))]
mod descriptor_models;
#[cfg(kcas_loom)]
pub mod model;
mod op;
pub mod steps;
pub mod sync;
mod tagged;
pub mod thread_id;
#[cfg(all(test, kcas_loom))]
mod thread_id_models;
mod words;

pub use op::{Op, Ops};
pub use words::{Error, OutOfMemory, WordArray, ascending};
