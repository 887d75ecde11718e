//! A lock-free, linearizable cuckoo filter: a shared approximate set with deletion.
//!
//! [`CuckooFilter`] answers "was this key inserted?" for many threads at once, without a lock anywhere:
//! never wrong about a key that is in it, wrong about one absent key in some hundreds, at about 17 bits a
//! key. After *Lock-free Concurrent Cuckoo Filter* (Wang et al., Journal of Software 36(7), 2025), with
//! another lookup and another way to shift.
//!
//! # How it works
//!
//! A key's hash gives a **fingerprint** and two **buckets** where it may live ([`hashing`]). A bucket is one
//! word: its slots, and a **timestamp** that counts what was added to it ([`layout`]).
//!
//! - **Lookups** read the first bucket, the second, and the first again: three loads, no write. The module
//!   `lookup` tells why an unchanged timestamp proves that the key was absent.
//! - **Inserts** into a bucket with an empty slot are one compare-and-swap. Otherwise a breadth-first
//!   search ([`path`]) finds the shortest chain of fingerprints to shift, and *the whole chain is committed
//!   by one K-CAS* ([`kcas`]): every shifted fingerprint and the new one change places at one moment, so no
//!   key is ever in no bucket, or in two.
//! - **Removes** are one compare-and-swap.
//!
//! # Guarantees
//!
//! - Linearizable, lock-free: a thread that stops anywhere stops nobody else. No operation allocates, but
//!   for first uses: a thread's first insert into a filter may make a chunk of counters, and its first chain
//!   of shifts a chunk of K-CAS records.
//! - A key that was inserted and not removed is always found, also while other keys shift it about.
//! - [`Full`] leaves the filter exactly as it was. Nothing is dropped to make room.
//!
//! # How often it is wrong
//!
//! A lookup compares with `2 × SLOTS` slots, and each holds the key's fingerprint by chance once in
//! 2^`BITS`: about `2 × SLOTS / 2^BITS` when full, less in a filter that is less full. In the default layout, four
//! slots of twelve bits, that is 1 in 512; 1 in 523 was measured in a filter of a million keys
//! (`filter/tests/capacity.rs`).
//!
//! # Limits
//!
//! - **Copies.** The filter holds a key as often as it was inserted, up to `2 × SLOTS` times for all
//!   keys of a class ([`Class`]) together; then it says [`Full`].
//! - **Removing what was never inserted** may take a copy of another key of its class, which is then
//!   denied. Remove only what you inserted.
//! - **Size is fixed.** Beyond [`WORKABLE_LOAD`](layout::Layout::WORKABLE_LOAD) inserts begin to fail.
//! - **Known seeds.** [`FixedState`] makes runs repeat. Where strangers choose the keys, use a hasher with
//!   random seeds.
//! - **A timestamp wraps**, in the default layout after 2^15 additions to one bucket: a lookup, or a remove
//!   that finds nothing, could be misled if a multiple of so many fell between two of its loads
//!   ([`layout`](layout#when-a-timestamp-wraps)).
//! - **Threads.** At most [`MAX_THREADS`](kcas::thread_id::MAX_THREADS) live threads may insert or remove;
//!   one more panics, before anything changes.
//! - **Signal handlers** must not insert or remove: they may have interrupted an operation of their thread.
//!
//! # Example
//!
//! Which lines of a log occur for the first time:
//!
//! ```
//! use filter::CuckooFilter;
//!
//! let log = ["GET /", "GET /about", "GET /", "POST /login", "GET /about"];
//! let seen = CuckooFilter::with_capacity(log.len());
//! let mut fresh = Vec::new();
//! for line in log {
//!     if !seen.contains(line) {
//!         seen.insert(line)?;
//!         fresh.push(line);
//!     }
//! }
//! assert_eq!(fresh, ["GET /", "GET /about", "POST /login"]);
//! # Ok::<(), filter::Full>(())
//! ```
#![forbid(unsafe_code)]

mod buckets;
mod cuckoo;
mod fitted;
pub mod hashing;
pub mod history;
pub mod layout;
pub mod layouts;
mod length;
mod lookup;
pub mod path;
pub mod specification;
mod update;

pub use cuckoo::{BuildError, Builder, Class, CuckooFilter};
pub use fitted::{FitError, FittedBuilder, FittedFilter};
pub use hashing::FixedState;
pub use update::Full;

/// The README's example is a test.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
