//! A log-structured key–value store whose filter knows, without reading the file, that a key is
//! absent.
//!
//! All changes are appended to one file, in pages with checksums (`store/page.rs`), and in batches
//! that are synced before they are acknowledged (`store/log.rs`). In memory there is a cuckoo
//! filter with one copy for each key, and next to it the place of each key in the file
//! (`store/index.rs`); the keys themselves are only in the file. A deleted key leaves the filter,
//! which a Bloom filter cannot do: with one, a store that deletes and inserts would fill up with
//! keys that it no longer has.
//!
//! The filter has room for twice the number of keys that there were when it was made. When it is
//! full, the log is read and a larger one is made, as happens when the store is opened.
//!
//! ```sh
//! cargo run --release -p log-store -- import /tmp/store access.log
//! cargo run --release -p log-store -- get /tmp/store 17
//! cargo run --release -p log-store -- compare /tmp/store
//! ```

// Only what its program and its tests use.
#![allow(clippy::len_without_is_empty)]

pub mod compare;
pub mod lines;
pub mod log_file;
pub mod store;
