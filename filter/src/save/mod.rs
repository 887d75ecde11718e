//! Saving and loading.
//!
//! [`save`](crate::Filter::save) replaces a file atomically, and [`load`](crate::CuckooFilter::load) reads it.
//! [`to_bytes`](crate::Filter::to_bytes) and [`write_to`](crate::Filter::write_to) save elsewhere;
//! [`from_bytes`](crate::CuckooFilter::from_bytes) and [`read_from`](crate::CuckooFilter::read_from) load from there.
//! [`load_any`](crate::load_any) loads a filter of unknown type with the default hasher. A [`Builder`](crate::Builder)
//! loads a filter with another layout or hasher. With the feature `serde`, filters are serialized as the same
//! [bytes](mod@format).
//!
//! - **While others write.** A key present throughout the call is saved, and a key absent throughout the call is not
//!   ([exceptions](crate::limits)). A save makes one pass, and fails if there is no [memory](crate::guide#memory) or
//!   thread id.
//! - **Refused**: accidental damage, another layout, another hasher, another type of filter ([`LoadError`]).
//! - **Other machines and releases.** Every later release can load [version 3](mod@format) of the format, on any
//!   machine where the hasher gives the same hashes.
//!
//! # Hashers
//!
//! A filter can be loaded only with the hasher that it was built with: the same type and seeds, passed to the same
//! function ([`hasher`](crate::Builder::hasher) or [`unmixed_hasher`](crate::Builder::unmixed_hasher)). A saved filter
//! includes a digest of the hashes of known keys of many types. A hasher that gives these keys other hashes is refused.
//!
//! The default hasher gives the same hashes on every machine, for [nearly all keys](crate::FixedState). Many others do
//! not: the hashes of ahash depend on whether the program was built for a processor with AES instructions
//! (`target-cpu`).
//!
//! **Not detected.** A key type may hash differently because its fields or its `Hash` have changed, or because it is of
//! a [kind](crate::FixedState) that hashes differently on another machine. A hasher may differ for other keys only.
//! Then the filter loads and has false negatives. If your key type changes, rebuild the filter.
//!
//! **Random seeds.** std's `RandomState` does not reveal its seeds: only a clone of it can load the filter, in the same
//! process. If untrusted users choose the keys, use a hasher with explicit random seeds. Keep them secret:
//!
//! ```
//! use ahash::RandomState;
//! use filter::{CuckooFilter, LoadError};
//!
//! let seeds: [u64; 4] = rand::random();
//! let hasher = || RandomState::with_seeds(seeds[0], seeds[1], seeds[2], seeds[3]);
//! let seen = CuckooFilter::builder().capacity(1_000).hasher(hasher()).build()?;
//! seen.insert("key")?;
//! let bytes = seen.to_bytes()?;
//!
//! let loaded = CuckooFilter::builder().hasher(hasher()).load_bytes(&bytes)?;
//! assert!(loaded.contains("key"));
//! let other = CuckooFilter::builder().hasher(RandomState::new()).load_bytes(&bytes);
//! assert!(matches!(other, Err(LoadError::Hasher)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub(crate) mod any;
pub(crate) mod file;
pub(crate) mod fixed;
#[doc = include_str!("../links.md")]
#[doc = include_str!("format.md")]
pub mod format {}
pub(crate) mod known_keys;
pub(crate) mod words;

use std::io::{self, ErrorKind};
use std::path::PathBuf;

use crate::snapshot::SnapshotError;

/// Why a filter could not be saved.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SaveError {
    /// The filter could not be copied. Nothing was written, except before [`SnapshotError::Damaged`].
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// The writer failed, perhaps after part of the filter was written.
    #[error("the filter cannot be written")]
    #[non_exhaustive]
    Io {
        /// What went wrong.
        #[from]
        source: io::Error,
    },
    /// The file cannot be replaced. An older one is unchanged.
    #[error("the filter cannot be saved as {}{}", path.display(), advice(source))]
    #[non_exhaustive]
    File {
        /// The file's name.
        path: PathBuf,
        /// What went wrong.
        source: io::Error,
    },
    /// The file was replaced, but its folder could not be synced.
    #[error("the filter is saved as {}, but may be lost when the power fails", path.display())]
    #[non_exhaustive]
    NotSynced {
        /// The file's name.
        path: PathBuf,
        /// What went wrong.
        source: io::Error,
    },
}

/// Why bytes could not be loaded as a filter.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The first bytes are not those of a saved filter.
    #[error("this is not a saved filter: it does not begin like one")]
    NotAFilter,
    /// The bytes are a saved filter of another type: fixed-size, growing or expiring.
    #[error("this is a saved {found}: load it as a {loader}")]
    #[non_exhaustive]
    Kind {
        /// What the saved filter is called.
        found: &'static str,
        /// Its type and builder.
        loader: &'static str,
    },
    /// A version of the format that this code does not know.
    #[error(
        "the filter was saved in version {found} of the format, but only version {known} is known here: \
         load it with the release that saved it, or rebuild it from the keys"
    )]
    #[non_exhaustive]
    Version {
        /// The version found.
        found: u32,
        /// The version known.
        known: u32,
    },
    /// The saved filter has a different layout from the one asked for.
    #[error(
        "the saved filter has {slots} slots of {bits} bits per bucket{}, not the layout asked for: load it \
         with {}",
        match ages { 0 => String::new(), _ => format!(", and ages of {ages} bits") },
        match ages {
            0 => format!("CuckooFilter::builder().layout::<{slots}, {bits}>()"),
            _ => format!("ExpiringCuckooFilter::builder().layout::<{slots}, {bits}, {ages}>()"),
        }
    )]
    #[non_exhaustive]
    Layout {
        /// Slots of a bucket in the saved filter.
        slots: u16,
        /// Bits of a fingerprint in the saved filter.
        bits: u8,
        /// Bits of an age there, or 0 if it has none.
        ages: u8,
    },
    /// The keys were hashed by another hasher, with other seeds, or on a machine where the hasher gives other hashes
    /// ([`save`](crate::save#hashers)).
    #[error(
        "the filter was saved with a hasher that gives other hashes: load it with the hasher and seeds it was \
         built with, passed to the same one of hasher() and unmixed_hasher(), on the same kind of machine; or \
         rebuild it from the keys"
    )]
    Hasher,
    /// The bytes end too early.
    #[error("the saved filter is cut off: it should have at least {bytes} bytes. Copy it again")]
    #[non_exhaustive]
    Truncated {
        /// The minimum length of the bytes: the correct length, or that of the shortest filter if the header itself is
        /// cut off.
        bytes: u64,
    },
    /// There are more bytes than the filter has.
    #[error("{excess} bytes follow the saved filter: pass only its own bytes")]
    #[non_exhaustive]
    TooLong {
        /// Number of extra bytes, or 1 for a pipe.
        excess: u64,
    },
    /// A checksum does not match.
    #[error(
        "the saved filter is damaged (the checksum of its {part} is wrong): copy it or save it again"
    )]
    #[non_exhaustive]
    Corrupt {
        /// Which part: `header` or `table`.
        part: &'static str,
    },
    /// The checksums match, but no filter has this number of buckets.
    #[error("no filter has {buckets} buckets: this was not written by this crate")]
    #[non_exhaustive]
    Size {
        /// The number found.
        buckets: u64,
    },
    /// The checksums match, but no filter is saved like this.
    #[error("no filter is saved with {what}: this was not written by this crate")]
    #[non_exhaustive]
    Impossible {
        /// The property that no filter has.
        what: &'static str,
    },
    /// The checksums match, but this bucket can never hold this word.
    #[error("bucket {bucket} cannot hold {word:#x}: this was not written by this crate")]
    #[non_exhaustive]
    Bucket {
        /// Its number.
        bucket: usize,
        /// Its word.
        word: u64,
    },
    /// There is not enough memory for the table.
    #[error("no memory for a table of {buckets} buckets, 8 bytes each")]
    #[non_exhaustive]
    OutOfMemory {
        /// The number of buckets. The clock of an expiring filter counts as one. For a growing filter, it is the number
        /// that it [reserves](crate::Builder::reserved_bytes) if that is greater.
        buckets: usize,
    },
    /// The reader failed.
    #[error("the saved filter cannot be read")]
    #[non_exhaustive]
    Io {
        /// What went wrong.
        #[from]
        source: io::Error,
    },
    /// There is no file of this name, or it cannot be opened.
    #[error("the saved filter {} cannot be opened", path.display())]
    #[non_exhaustive]
    File {
        /// The file's name.
        path: PathBuf,
        /// What went wrong.
        source: io::Error,
    },
}

/// Returns what helps against an error of saving, if that is known.
fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::NotFound
        | ErrorKind::NotADirectory
        | ErrorKind::PermissionDenied
        | ErrorKind::ReadOnlyFilesystem => {
            " (save it in a folder that exists and may be read and written to)"
        }
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            " (save it in a folder that has room for a second file)"
        }
        ErrorKind::InvalidInput | ErrorKind::IsADirectory => " (save it under another name)",
        _ => "",
    }
}
