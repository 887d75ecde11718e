//! A lock-free, linearizable cuckoo filter: a shared approximate set with deletion.
//!
//! [`CuckooFilter`] answers "was this key inserted?" for many threads at once, without any lock. It
//! is never wrong about a key that is in it, is wrong about at most one absent key in 512, and
//! takes 17 bits per key. It follows *Lock-free Concurrent Cuckoo Filter* (Wang et al., Journal of
//! Software 36(7), 2025), with a different lookup and a different way to shift keys.
//!
//! # When to use it
//!
//! Use it when several threads share one set that may sometimes be wrong about what is *not* in it,
//! and one of these holds:
//!
//! - **Keys leave again**: for example, those of cached items, open connections, requests in flight, or visitors of
//!   the last hour.
//! - **Exactly one thread must act** on a new key: [`insert_if_absent`](CuckooFilter::insert_if_absent)
//!   looks and inserts in one atomic step.
//! - **Nobody may wait**: neither for a thread that was preempted, nor for a table that grows.
//!
//! Use something else when:
//!
//! - The set is built once and then only read: a Bloom filter or a static filter (xor, ribbon) has
//!   a lower error rate for the same memory.
//! - The number of keys is not known in advance: [`GrowingCuckooFilter`] grows without stopping
//!   anyone, at some cost in the time of lookups, in filling it, and in memory ([`growing`]).
//! - One thread fills it, and speed is what counts: a blocked Bloom filter fills faster, if no key ever
//!   leaves. This filter is built for lookups, and for changes by threads that get in each other's way.
//! - Wrong answers are unacceptable: use a hash set.
//!
//! # Sizes and error rates
//!
//! A bucket is one word of 64 bits, so a key costs 64 / (`SLOTS` × load) bits. A lookup compares the key's
//! fingerprint with 2 × `SLOTS` slots, each of which matches by chance once in 2^`BITS`.
//! So it is wrong about 2 × `SLOTS` / 2^`BITS` of the absent keys when every slot is taken, and
//! proportionally fewer otherwise ([`FALSE_POSITIVE_RATE`](layout::Layout::FALSE_POSITIVE_RATE)).
//! In the default layout, four slots of 12 bits, that is one absent key in 512, at 16.8 bits per key;
//! the [others](layout#layouts) range from one in 8 at 8.2 bits to one in 67 million at 38.6.
//!
//! [`Builder::layout`] sets a layout, and [`Builder::false_positive_rate`] finds the smallest for
//! an error rate. Shorter fingerprints do not make a filter smaller, but more slots do: the bits of
//! a word not used for slots go to the bucket's timestamp
//! ([`layout`](layout#when-a-timestamp-wraps)).
//!
//! # Guarantees
//!
//! They hold within the [limits](#limits).
//!
//! - **No false negatives**: a key that was inserted and not removed (nor forgotten, by an
//!   [`ExpiringCuckooFilter`]) is found, even while other keys shift it around. (An [`ExpiringCuckooFilter`] keeps one
//!   copy for all keys of a class: removing one of them loses the others.)
//! - **Linearizable**: each insert, remove, lookup and count takes effect at one moment between its
//!   start and its end; its docs say which. (A batch is not one call but many; `len` and a copy do
//!   not reflect one moment of the whole filter.)
//! - **Lock-free**, apart from the allocator and, on glibc, the dynamic linker's lock, which a thread's first
//!   insert, remove, copy or `advance` (or [`register_thread`]) may take: a thread that stops anywhere else stops
//!   nobody. Lookups write nothing.
//! - **One `true`**: of any number of threads that insert the same key with `insert_if_absent`, at
//!   most one gets `true`, unless the key is removed or forgotten in between; and exactly one does if there is
//!   room and no key of its class is there already.
//! - **A refused insert leaves the contents exactly as they were** ([`InsertError`]). Nothing is
//!   dropped to make room.
//! - **Lookups never allocate.** Inserts and removes of a fixed-size filter allocate in four cases. At a thread's
//!   first one in any filter (even a remove that finds nothing), glibc allocates to note the thread's end. A thread's
//!   first one in a filter may make a chunk of counters. A thread's first K-CAS (for a chain or an `insert_if_absent`, or
//!   to help one) may make a chunk of K-CAS records, one for every 32 threads alive at the same time. While a
//!   copy is being taken, a thread's first one may make a record of some 200 bytes, and any may free what was
//!   kept for a copy that has ended. Building, copying and saving allocate, and so does a growing filter when it
//!   grows.
//! - **No `unsafe`**, here or in `kcas`. The crate `huge-pages`, used only with the feature of that
//!   name, has some.
//!
//! # Limits
//!
//! - **Copies.** The filter holds a key as often as it was inserted, up to `2 × SLOTS` times for
//!   all keys of a class ([`Class`]) together (half that for the few classes whose two buckets are the
//!   same one); after that, inserts return [`TooManyCopies`](InsertError::TooManyCopies). Long before that,
//!   many keys with many copies crowd out others, which get [`Full`](InsertError::Full) from
//!   a filter that is nearly empty. If keys may come more than once, use `insert_if_absent`.
//! - **Removing what was never inserted** may take a copy of another key of the same class, and that key is
//!   then missing. Remove only what you inserted. A key for which `insert_if_absent` returned `true`
//!   may be removed once; if it returned `false`, it added nothing that could be removed, and the key is missing once
//!   the one that it was mistaken for is removed ([`insert_if_absent`](Filter::insert_if_absent) has numbers).
//! - **The size is fixed** (except for [`GrowingCuckooFilter`]). Beyond
//!   [`WORKABLE_LOAD`](layout::Layout::WORKABLE_LOAD), inserts begin to fail.
//! - **Keys chosen by strangers.** The default hasher, [`FixedState`], makes runs repeatable:
//!   anyone who knows it can choose keys that are wrongly found, or that fill two buckets. If
//!   strangers choose the keys, give [`Builder::hasher`] a hasher with random seeds, and keep the
//!   seeds if the filter is to be saved: without them it cannot be loaded
//!   ([`save`](save#hashers)). What a hasher must be good at: [`hashing`].
//! - **A timestamp wraps**, in the default layout after 2^15 additions to one bucket or copies of
//!   the filter: a lookup or a remove that finds nothing, a count, a refused insert and a copy
//!   could be misled if a multiple of that number fell between two of their loads
//!   ([`layout`](layout#when-a-timestamp-wraps)). A [`GrowingCuckooFilter`]
//!   [counts](growing#when-a-timestamp-wraps) the wraps: there only a copy could be misled, after 63; and one
//!   of [two removes of a key's only copy](growing#two-removes-of-one-copy) could take another key.
//!   An [`ExpiringCuckooFilter`] has 7 bits, and there inserts, renewals and `advance` could be misled as well.
//! - **Threads.** At most 4,096 live threads ([`max_threads`]) may insert, remove, copy or advance, in all filters
//!   of the process together: a thread that has done so counts until it ends. With one thread too
//!   many, these calls return [`TooManyThreads`](UpdateError::TooManyThreads) before anything changes.
//!   [`register_thread`] reserves a place beforehand. Lookups do not
//!   count. (With glibc, a thread whose first such call comes from a destructor of a `pthread_key_t` counts
//!   for ever: let it call `register_thread` earlier.)
//! - **Types of keys.** Look up a key as the type that you inserted: `"abc"` and its bytes are
//!   different keys.
//! - **Signal handlers** may look up keys (`contains`, `count`, `len`), even when they have interrupted
//!   an insert or a remove of their own thread, provided that hashing a key is safe there. They must not call
//!   anything else: an insert or a remove destroys the operation that it has interrupted.
//!
//! # Traits of collections
//!
//! No filter has `Extend`, `FromIterator` or `Clone`, because these traits cannot report an error: a
//! fixed-size filter may be full, and a growing one may refuse a key that is inserted for the fourth time or
//! later, or any key where very many have three copies. (Adding each key only once would not help: a new key that is mistaken for another is not added, and
//! must not be removed later, but nobody would learn which keys those are.)
//! [`insert_all`](CuckooFilter::insert_all) inserts the keys of an iterator and stops at the first error.
//! [`try_clone`](CuckooFilter::try_clone) copies a filter while others write. A filter does not store its keys: it cannot
//! have `iter`, `get`, `take`, `drain`, `retain`, `union` or `PartialEq`. `clear` takes `&mut`: to empty a filter that
//! threads share, give them another one.
//!
//! ```
//! use filter::GrowingCuckooFilter;
//!
//! let seen = GrowingCuckooFilter::new();
//! assert_eq!(seen.insert_all(["a", "b", "c"])?, 3);
//! # Ok::<(), filter::InsertError>(())
//! ```
//!
//! # Recipes
//!
//! [`recipes`] has short programs, which are compiled and run as tests. [`from_other_filters`] says what the calls of
//! other filters are called here.
//!
//! # Saving and loading
//!
//! [`save`](Filter::save) replaces a file at one moment, and [`load`](CuckooFilter::load) reads it:
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
//! [`to_bytes`](Filter::to_bytes) and [`write_to`](Filter::write_to) save elsewhere, and
//! [`from_bytes`](CuckooFilter::from_bytes) and [`read_from`](CuckooFilter::read_from) load from there.
//! [`load_bytes`](Builder::load_bytes) and [`load_from`](Builder::load_from) of a [`Builder`] load a filter with another
//! layout or hasher. [`load_any`] loads a file of any kind. With the
//! feature `serde`, filters are serialized as the same bytes ([`save`] describes them). A filter that
//! is damaged, or was built with another layout or hasher, is refused with an error that says so
//! ([`LoadError`]). The default hasher gives the same hashes on every machine and in every build,
//! as long as the key's `Hash` writes the same there (some [arrays, addresses and paths](FixedState) do not), so
//! a filter that uses it can be loaded anywhere, by this release and by every later one. A filter whose seeds nobody
//! kept, such as those of std's `RandomState`, cannot be loaded in another process.
//!
//! Others may go on inserting and removing: whatever was in the filter throughout the call is saved,
//! and whatever was in it at no moment of the call is not. Saving makes one pass, and does not fail however much
//! others change meanwhile. It needs a buffer, and memory for the buckets that others change before it
//! gets to them: at most another table.
//!
//! # Memory
//!
//! A table takes 8 bytes per bucket. It gets each page of memory from the system when a key first comes
//! to that page, or all of them when the filter is first copied or saved. (With glibc, a table of up to 32 MiB may
//! lie in memory that the program has freed, and then takes all of its pages at once.) Tables of many megabytes benefit
//! from huge pages: the feature `huge-pages` asks Linux for them (a loaded table gets them
//! gradually, since it is written before it can ask).
//!
//! A filter also has a counter for each thread that changes it, of 128 bytes on x86-64. Counters are made in chunks that
//! double in size: a thread that first changes a filter while many others do gets a large chunk. So each filter has at
//! most 256 bytes of counters for each of the most such threads that have been alive at once, even if few of them have
//! changed this filter: 8 KiB for 32 threads, and 512 KiB for 4,096.
//!
//! # How it works
//!
//! A key's hash gives a **fingerprint** and two **buckets** where it may be ([`hashing`]). A bucket
//! is one word: its slots, and a **timestamp** that counts the additions to it ([`layout`]).
//!
//! - **Lookups** read the first bucket, the second, and the first again: three loads, no write. If neither
//!   has the key, an unchanged timestamp proves that nothing was added to the first bucket meanwhile, so the
//!   key was in neither when the second was read.
//! - **Inserts** into a bucket with an empty slot are one compare-and-swap. Otherwise a
//!   breadth-first search (`path.rs`) finds the shortest chain of fingerprints to shift, and *the
//!   whole chain is committed by one K-CAS* ([`kcas`]): every shifted fingerprint and the new one
//!   change places at one moment, so at no moment is a key in neither bucket, or in both.
//! - **`insert_if_absent`** uses a K-CAS even when a bucket has room: it changes one bucket, or a chain,
//!   and compares the other bucket, where a copy could have been added meanwhile.
//! - **Removes** are one compare-and-swap.
//!
//! **Why it is lock-free.** A call tries again only if one of its words has changed, or the table has
//! grown. Most changes complete a call. Those that do not are limited: each thread that takes part changes
//! a bucket at most a few times for a copy, and once for a period of an expiring filter; a split of a
//! growing one makes three changes, and its timestamps are turned over once for every 63 additions or
//! copies. So if calls try again for ever, others complete. A K-CAS that fails has met such a change
//! ([`kcas`] has the argument), and an update that meets an undecided one helps it.
//!
//! # How it is checked
//!
//! - Models explore each hazard under a model checker, memory orderings included (`filter/tests/loom`). In them,
//!   memory that is made once, such as a chunk of counters, is there from the start, and a simple list replaces
//!   `arc-swap`. Threads are stopped before every atomic access of every operation (`filter/tests/steps`; there, each
//!   use of such memory or of `arc-swap` counts as a single access). Both compare every answer with a sequential specification
//!   (`filter/histories`).
//! - A proof covers lookups and `insert_if_absent` of a fixed-size filter, with K-CAS as one step (`filter/proof`).
//! - Random calls are compared with a multiset (`filter/tests/ordinary/model.rs`).
//! - Planted bugs are small changes that break the filter, each with the check that must catch it
//!   (`filter/tests/planted`).
//!
//! `scripts/README.md` has a command for each.
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
#[doc = include_str!("from_other_filters.md")]
pub mod from_other_filters {}
mod geometry;
pub mod growing;
pub mod hashing;
mod insert_error;
pub mod layout;
mod length;
mod lookup;
mod methods;
mod path;
#[doc = include_str!("recipes.md")]
pub mod recipes {}
pub mod save;
#[cfg(feature = "serde")]
mod serialized;
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
pub use insert_error::InsertError;
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
    pub use crate::traits::Sealed;
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
