//! [`InsertError`], of all filters, and [`InsertAllError`].

use crate::snapshot::SnapshotError;
use crate::update_error::UpdateError;

/// Why a key was not inserted. Except after `Damaged`, the contents are unchanged, although a growing filter may have
/// grown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InsertError {
    /// Both buckets of the key are full, and no eviction path to an empty slot was found. A growing filter never
    /// returns this.
    ///
    /// Both were full at one moment. The search looks at one bucket after another: if others move
    /// fingerprints meanwhile, it may miss a path that was there.
    #[error(
        "the filter is full: build it with a larger capacity, remove keys first, or insert each key once \
         (insert_if_absent) if keys repeat"
    )]
    Full,
    /// The key's class ([`Class`](crate::Class)) has as many copies as fit: in the default layout almost always copies
    /// of the key itself, otherwise also of keys that the filter cannot tell from it. A larger filter may tell such
    /// keys apart, but has no more room for copies of one key, unless the key's two buckets were the same one.
    #[error(
        "the filter holds {most} copies of this key, or of keys that it cannot tell from it, and has room for no \
         more: insert the key once (insert_if_absent), or remove copies"
    )]
    #[non_exhaustive]
    TooManyCopies {
        /// Number of copies in the class: 2 × `SLOTS`, or `SLOTS` if both buckets are the same one. In a growing
        /// filter, six, or three if both buckets are the same one; at least three if it has grown and is less than
        /// half full.
        most: u8,
    },
    /// A growing filter has no room for the key although less than an eighth of its slots are occupied: many inserted
    /// keys have part of their hashes in common, or hundreds of thousands have three copies. A larger table would soon
    /// be as crowded there, and so on until memory is used up. (Tables smaller than 1 MiB grow anyway.)
    #[error(
        "there is no room for this key though the table is nearly empty: use a hasher that tells keys \
         apart (with random seeds, for untrusted keys), and insert each key once (insert_if_absent)"
    )]
    Crowded,
    /// A growing filter is full, and the allocator refused the memory for more buckets. A later insert
    /// asks again.
    #[error("no memory for a table of {buckets} buckets, 8 bytes each")]
    #[non_exhaustive]
    OutOfMemory {
        /// How many buckets the table would have.
        buckets: usize,
    },
    /// A growing filter is full, and has 2^32 buckets.
    #[error("the table would have {buckets} buckets: at most 2^32 are possible")]
    #[non_exhaustive]
    TooLarge {
        /// How many buckets the table would have.
        buckets: usize,
    },
    /// A growing filter is full, and would be wrong more often than it [may
    /// be](crate::Builder::max_false_positive_rate) if it grew.
    #[error(
        "a table of {buckets} buckets would be wrong more often than max_false_positive_rate allows: begin with a \
         larger capacity, remove keys first, or allow more"
    )]
    #[non_exhaustive]
    TooManyFalsePositives {
        /// How many buckets the table would have.
        buckets: usize,
    },
    /// No id is free: see [`UpdateError::TooManyThreads`](crate::UpdateError::TooManyThreads).
    #[error("{}", UpdateError::TooManyThreads)]
    TooManyThreads,
    /// The file of a shared filter has words that no operation writes: another process damaged it. Its contents are
    /// unreliable. Only shared filters return this.
    #[error("{}", UpdateError::Damaged)]
    Damaged,
}

impl From<UpdateError> for InsertError {
    fn from(error: UpdateError) -> InsertError {
        match error {
            UpdateError::TooManyThreads => InsertError::TooManyThreads,
            UpdateError::Damaged => InsertError::Damaged,
        }
    }
}

/// Why not all copies of a filter were [inserted into another one](crate::CuckooFilter::insert_all_from). Copies that
/// were added before the error remain.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InsertAllError {
    /// The filters differ in size. Nothing was added.
    #[error(
        "the source has {source_buckets} buckets and this filter {buckets}: build both with the same number of buckets"
    )]
    #[non_exhaustive]
    OtherSize {
        /// Number of buckets of the source.
        source_buckets: usize,
        /// Number of buckets of this filter.
        buckets: usize,
    },
    /// The filters hash keys differently. Nothing was added.
    #[error(
        "the source and this filter hash keys differently: build both with the same hasher and seeds"
    )]
    OtherHasher,
    /// The source could not be read. Nothing was added, except before `Damaged`.
    #[error("the source cannot be read")]
    Source(#[from] SnapshotError),
    /// This filter refused a copy. The other copies of the source were not tried.
    #[error("this filter refused a copy of the source after {added} were added")]
    #[non_exhaustive]
    Insert {
        /// Number of copies that were added.
        added: usize,
        /// Why the next copy was refused.
        #[source]
        error: InsertError,
    },
}
