//! [`InsertError`] of a growing filter.

use kcas::thread_id::TooManyThreads;

/// Why nothing was inserted. The filter is exactly as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InsertError {
    /// The key, together with those that cannot be told from it, has as many copies as a bucket has
    /// slots: 2 while fingerprints have 19 bits or more, 3 down to 15, then 4 ([`TableInfo`](super::TableInfo)).
    /// Another copy is accepted only if the first of the key's buckets has room. Finding this out
    /// costs two loads. The filter does not grow for copies: room for more copies of many keys
    /// would take ever more memory per copy.
    #[error(
        "the filter holds as many copies of this key as it can (2 at first, 4 in the end): insert the \
         key once (insert_unique), or remove copies"
    )]
    TooManyCopies,
    /// There is no room for the key, although the table is nearly empty: many of the inserted keys
    /// have part of their hashes in common. A larger table would soon be as crowded there, and so
    /// on until memory is used up. (Tables of up to 1 MiB grow nevertheless.)
    #[error(
        "there is no room for this key though the table is nearly empty: use a hasher that tells keys \
         apart (with random seeds, if strangers choose the keys)"
    )]
    Crowded,
    /// The allocator refused the next table, and the filter has not grown otherwise. Either no
    /// other thread was asking for that memory, or others were, and none of them had made the
    /// filter grow while this one looked a thousand times. (Of threads that grow a filter at the
    /// same time, each asks for a table, and one table is used.)
    #[error("no memory for the next table, of {buckets} buckets, 8 bytes each")]
    OutOfMemory {
        /// How many buckets the table would have.
        buckets: usize,
    },
    /// The next table would have more than [`MAX_BUCKETS`](crate::hashing::MAX_BUCKETS) buckets.
    #[error("the next table would have {buckets} buckets: at most 2^32 are possible")]
    TooLarge {
        /// How many buckets the table would have (saturating).
        buckets: usize,
    },
    /// More than [`MAX_THREADS`](crate::MAX_THREADS) live threads insert or remove.
    #[error(transparent)]
    TooManyThreads(#[from] TooManyThreads),
}
