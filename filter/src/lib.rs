//! A lock-free, linearizable cuckoo filter: a concurrent approximate set with deletion.
//!
//! [`CuckooFilter`] answers "is this key in the set?" for many threads at once, without locks. If the key is in the
//! set, the answer is yes ([exceptions](limits)). With the default layout, at most one absent key in
//! 512 also gets yes (a false positive). A full filter uses 17 bits per key.
//!
//! ```
//! use filter::CuckooFilter;
//!
//! let seen = CuckooFilter::with_capacity(1_000_000);
//! std::thread::scope(|scope| {
//!     scope.spawn(|| seen.insert("https://example.org/a").unwrap());
//!     scope.spawn(|| seen.insert("https://example.org/b").unwrap());
//! });
//! assert!(seen.contains("https://example.org/a"));
//! assert_eq!(seen.remove("https://example.org/a"), Ok(true));
//! assert_eq!(seen.len(), 1);
//!
//! // If several threads insert the same new key, at most one gets `true`.
//! assert_eq!(seen.insert_if_absent("https://example.org/c"), Ok(true));
//! ```
//!
//! | Type | Use it if |
//! |---|---|
//! | [`CuckooFilter`] | you know the maximum number of keys |
//! | [`GrowingCuckooFilter`] | you do not know it: it grows in place and blocks no thread |
//! | [`ExpiringCuckooFilter`] | keys should disappear some time after their last insert |
//! | [`DynCuckooFilter`] | you want the smallest layout for an error rate that is chosen at run time |
//! | `SharedCuckooFilter`, `SharedExpiringCuckooFilter` (feature `shared`, 64-bit Linux) | several processes share one set |
//!
//! All of them implement [`Filter`], for generic code and `Box<dyn Filter>`.
//!
//! # Guarantees
//!
//! [`limits`] lists the exceptions to each.
//!
//! - **No false negatives.** A key that was inserted, and neither removed nor expired, is found, even while other
//!   threads move it.
//! - **Linearizable.** Each insert, remove, lookup and count takes effect at one instant between its start and its end,
//!   which its docs name. A batch is not atomic: each key is a separate call. `len`, clones and saves do not show one
//!   instant of the whole filter.
//! - **Lock-free.** A suspended thread blocks no other thread, unless it was inside the allocator. On glibc,
//!   registering a thread may also take the dynamic linker's lock. Usually a thread is registered by its first insert,
//!   remove, clone, save or `advance`, or by [`register_thread`]. With the feature `shared`, a thread that forks can
//!   delay others [for a second](crate::limits).
//! - **Lookups** write nothing and allocate nothing.
//! - **One winner.** If several threads call `insert_if_absent` with the same key, at most one gets `true` until the
//!   key is removed or expires. Exactly one gets `true` if there is room and no key of its [class](Class) is present.
//! - **A refused insert leaves the contents unchanged.** A full filter returns an error. It never drops a key.
//! - **No `unsafe`**, here or in `kcas`. The optional features `huge-pages` and `shared` use crates that have some.
//!
//! # Limits
//!
//! - Remove only keys that you inserted, once for each insert that returned `Ok(())` or `Ok(true)`. From an expiring
//!   filter, which keeps one copy, remove a key once, before it expires. Any other remove can delete another key.
//! - A full fixed-size filter refuses inserts. In the default layout, it refuses a ninth copy of any key.
//! - The default hasher has a fixed seed. If untrusted users choose the keys, [set a seeded hasher](Builder::hasher).
//! - Look up a key as the type that you inserted: `"abc"` and its bytes are different keys.
//! - Filters do not store keys, so there is no `iter`, `get` or `retain`.
//!
//! # Saving and loading
//!
//! [`save`](Filter::save) replaces a file atomically while other threads write, and [`load`](CuckooFilter::load) reads
//! it:
//!
//! ```
//! use filter::CuckooFilter;
//!
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("seen.filter");
//! let seen = CuckooFilter::with_capacity(1_000);
//! seen.insert("key")?;
//! seen.save(&path)?;
//! assert!(CuckooFilter::load(&path)?.contains("key"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Pages
//!
//! - [`guide`]: when to use a filter, error rates, layouts, memory, threads, signals, fork
//! - [`limits`]: each promise with its exceptions
//! - [`recipes`]: short programs
//! - [`from_other_filters`]: the calls of other filters, and their names here
//! - [`save`]: what a save contains, hashers, the file format
//! - [`how_it_works`]: the protocol, why it is lock-free, how it is checked
//! - [`glossary`]: the words of this project
//! - `shared` (feature `shared`, 64-bit Linux): filters in files that processes share
//!
//! The design follows *Lock-free Concurrent Cuckoo Filter* (Wang et al., Journal of Software 36(7), 2025), with another
//! lookup and another way to move fingerprints along an eviction path.
#![warn(missing_docs)]
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

#[cfg(kcas_loom)]
#[allow(
    clippy::disallowed_types,
    reason = "in a model, one thread runs at a time"
)]
mod arc_swap_in_models;
mod batch;
mod buckets;
mod builder;
mod dyn_filter;
pub mod expiring;
mod filter;
#[doc = include_str!("links.md")]
#[doc = include_str!("from_other_filters.md")]
pub mod from_other_filters {}
mod geometry;
#[doc = include_str!("glossary.md")]
pub mod glossary {}
pub mod growing;
#[doc = include_str!("links.md")]
#[doc = include_str!("guide.md")]
pub mod guide {}
pub mod hashing;
#[doc = include_str!("links.md")]
#[doc = include_str!("how_it_works.md")]
pub mod how_it_works {}
mod insert_error;
pub mod layout;
mod length;
#[doc = include_str!("links.md")]
#[doc = include_str!("limits.md")]
pub mod limits {}
mod lookup;
mod memory;
mod methods;
mod path;
#[doc = include_str!("links.md")]
#[doc = include_str!("recipes.md")]
pub mod recipes {}
pub mod save;
#[cfg(feature = "serde")]
mod serialized;
#[cfg(shared_words)]
pub mod shared;
mod snapshot;
mod traits;
mod update;
mod update_error;

pub use builder::{BuildError, Builder};
pub use dyn_filter::{DynBuilder, DynCuckooFilter, LayoutInfo, Rate};
pub use expiring::ExpiringCuckooFilter;
pub use filter::CuckooFilter;
pub use growing::{GrowingCuckooFilter, SavedBytes};
pub use hashing::{FixedState, Mixed, mix};
pub use insert_error::{InsertAllError, InsertError};
pub use save::any::load_any;
pub use save::{LoadError, SaveError};
pub use snapshot::SnapshotError;
pub use traits::{Class, Filter};
pub use update_error::{AdvanceError, UpdateError, max_threads, register_thread};

/// What the other crates of this workspace share with the filter. No promise is made about
/// it.
#[doc(hidden)]
pub mod internals {
    pub use crate::builder::Loadable;
    pub use crate::geometry::{Geometry, Location, MAX_BUCKETS, reduce};
    pub use crate::growing::address::apart;
    pub use crate::save::any::{SavedKind, load_by_kind};
    #[cfg(shared_words)]
    pub use crate::shared::lookups_of;
    pub use crate::traits::Sealed;
    /// Filters in words of a test's own, with the snapshots of those in files.
    #[cfg(any(kcas_loom, feature = "__steps"))]
    pub mod in_file {
        use kcas::WordArray;

        pub use crate::memory::Memory;
        pub use crate::snapshot::in_file::{InFile, Right};
        pub use crate::snapshot::{Announced, Backup};

        use crate::CuckooFilter;
        use crate::buckets::Buckets;

        /// Makes a filter in these words.
        pub fn filter<S, const SLOTS: usize, const BITS: usize, W: Memory>(
            words: WordArray<W>,
            buckets: usize,
            beside: W::Beside,
            hasher: S,
        ) -> CuckooFilter<S, SLOTS, BITS, W> {
            CuckooFilter::in_memory(Buckets::from_array(words, buckets), beside, hasher)
        }

        /// Returns the words of a filter.
        pub fn words<S, const SLOTS: usize, const BITS: usize, W: Memory>(
            filter: &CuckooFilter<S, SLOTS, BITS, W>,
        ) -> &WordArray<W> {
            filter.buckets.words()
        }
    }
    /// The number of copies held.
    pub mod length {
        pub use crate::length::*;
    }
    /// The search for a chain of shifts.
    pub mod path {
        pub use crate::path::*;
    }
}

/// The README's example is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
