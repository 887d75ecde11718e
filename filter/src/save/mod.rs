//! Saving and loading: a filter as bytes.
//!
//! All numbers are little-endian:
//!
//! | Offset | Bytes | What |
//! |---:|---:|---|
//! | 0 | 8 | `cuckoof` and a line feed |
//! | 8 | 4 | version of this format: 2 |
//! | 12 | 2 | slots of a bucket |
//! | 14 | 2 | bits of a fingerprint |
//! | 16 | 8 | number of buckets, at least 1 |
//! | 24 | 8 | number of fingerprints in the table |
//! | 32 | 8 | a digest of the hashes of known keys, which identifies the [hasher](#hashers) |
//! | 40 | 8 | checksum of the preceding 40 bytes |
//! | 48 | 8 × buckets | the buckets' words, with all timestamps 0 ([`layout`](crate::layout)) |
//! | then | 8 | checksum of all preceding bytes except the first checksum |
//!
//! The checksums are CRC-64/XZ. They detect every single flipped bit and every error within 64
//! consecutive bits; of all other errors, all but one in 2^64. They protect against accidents, not
//! against deliberate forgery. The words are checked as well, so at worst a forged file is a filter
//! of other keys.
//!
//! Version 1 had the same fields, but hashed fewer known keys, so that it could not tell some
//! hashers apart. It is refused.
//!
//! # Hashers
//!
//! A filter knows its keys only by their hashes. So it can be loaded only with the hasher that it
//! was built with: of the same type, with the same seeds, and passed to the same function
//! ([`Builder::hasher`] or [`Builder::unmixed_hasher`]). The saved filter includes a digest of the
//! hashes of some known keys, and a hasher that gives other hashes is refused. The known keys are
//! numbers of every integer type, strings, slices of bytes and of wider numbers, a tuple and an
//! enum. A machine with pointers of another width is refused in any case.
//!
//! **What cannot be detected.** Your key type may hash differently than before, because it has a
//! new field or its `Hash` has changed; or a hasher may differ for some keys, but not for the known
//! ones. Then the filter loads, and denies keys that are in it. If your key type changes, rebuild
//! the filter.
//!
//! **Random seeds.** A filter whose hasher has seeds that nobody knows, like those of std's
//! `RandomState`, can be saved, but only a clone of that hasher can load it, in the same process.
//! If strangers choose the keys and the filter is to be loaded elsewhere, use a hasher with
//! explicit seeds, draw them at random, and keep them in a secret place.
//!
//! ```
//! use ahash::RandomState;
//! use filter::{CuckooFilter, LoadError};
//!
//! let seeds: [u64; 4] = rand::random(); // to be stored in a safe place
//! let hasher = || RandomState::with_seeds(seeds[0], seeds[1], seeds[2], seeds[3]);
//! let seen = CuckooFilter::builder().capacity(1_000).hasher(hasher()).build()?;
//! seen.insert("key")?;
//! let bytes = seen.to_bytes()?;
//!
//! let loaded = CuckooFilter::builder().hasher(hasher()).load(&bytes)?;
//! assert!(loaded.contains("key"));
//! let other = CuckooFilter::builder().hasher(RandomState::new()).load(&bytes);
//! assert!(matches!(other, Err(LoadError::Hasher)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(feature = "serde")]
mod serialized;
mod snapshot;

use std::hash::BuildHasher;
use std::io::{self, Read, Write};

use crc::{CRC_64_XZ, Crc, Digest, Table};

use crate::buckets::{BucketTable, Buckets};
use crate::builder::Builder;
use crate::filter::CuckooFilter;
use crate::hashing::MAX_BUCKETS;
use crate::layout::Layout;
use crate::length::Length;

pub use snapshot::SnapshotError;

const MAGIC: [u8; 8] = *b"cuckoof\n";
const VERSION: u32 = 2;
const HEADER_BYTES: usize = 48;
const CHECKSUM_BYTES: usize = 8;

/// Number of bytes read or written at once. A reader that claims more than it has is found out
/// after this many bytes.
const CHUNK_BYTES: usize = 1 << 14;
const CHUNK_WORDS: usize = CHUNK_BYTES / 8;

static CRC: Crc<u64, Table<16>> = Crc::<u64, Table<16>>::new(&CRC_64_XZ);

/// Why a filter could not be saved.
#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    /// The filter could not be copied; nothing was written.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// The writer failed, perhaps after part of the filter was written.
    #[error("the filter cannot be written: {0}")]
    Io(#[from] io::Error),
}

/// Why bytes could not be loaded as a filter.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The first bytes are not those of a saved filter.
    #[error("this is not a saved filter: it does not begin like one")]
    NotAFilter,
    /// A version of the format that this code does not know.
    #[error(
        "the filter was saved in version {found} of the format, but only version {VERSION} is known here: \
         load it with the release that saved it, or rebuild it from the keys"
    )]
    Version {
        /// The version found.
        found: u32,
    },
    /// The saved filter has another layout than the one asked for.
    #[error(
        "the saved filter has {slots} slots of {bits} bits per bucket, not the layout asked for: load it \
         with CuckooFilter::builder().layout::<{slots}, {bits}>()"
    )]
    Layout {
        /// Slots of a bucket in the saved filter.
        slots: u16,
        /// Bits of a fingerprint in the saved filter.
        bits: u16,
    },
    /// The keys were hashed by another hasher, or by one with other seeds, or on a machine where it
    /// gives other results ([`save`](crate::save#hashers)).
    #[error(
        "the filter was saved with a hasher that gives other hashes: load it with the hasher and seeds it was \
         built with, passed to the same one of hasher() and unmixed_hasher(), on the same kind of machine; or \
         rebuild it from the keys"
    )]
    Hasher,
    /// The bytes end too early.
    #[error("the saved filter is cut off: it should be {bytes} bytes long. Copy it again")]
    Truncated {
        /// The correct length. If the header itself is cut off, the length of the shortest filter.
        bytes: u64,
    },
    /// There are more bytes than the filter has.
    #[error("{excess} bytes follow the saved filter: pass only its own bytes")]
    TooLong {
        /// Number of extra bytes.
        excess: u64,
    },
    /// A checksum does not match.
    #[error(
        "the saved filter is damaged (the checksum of its {part} is wrong): copy it or save it again"
    )]
    Corrupt {
        /// Which part: `header` or `table`.
        part: &'static str,
    },
    /// The checksums match, but no filter has this number of buckets.
    #[error("no filter has {buckets} buckets: this was not written by this crate")]
    Size {
        /// The number found.
        buckets: u64,
    },
    /// The checksums match, but a bucket's word has bits where there are no slots.
    #[error("bucket {bucket} cannot hold {word:#x}: this was not written by this crate")]
    Bucket {
        /// Its number.
        bucket: usize,
        /// Its word.
        word: u64,
    },
    /// The checksums match, but the table does not hold as many fingerprints as the header says.
    #[error(
        "the table holds {found} fingerprints, not {claimed}: this was not written by this crate"
    )]
    Length {
        /// The number in the header.
        claimed: u64,
        /// The number in the table.
        found: u64,
    },
    /// There is not enough memory for the table.
    #[error("no memory for a table of {buckets} buckets, 8 bytes each")]
    OutOfMemory {
        /// The number of buckets it has.
        buckets: usize,
    },
    /// The reader failed.
    #[error("the saved filter cannot be read: {0}")]
    Io(io::Error),
}

/// Copying and saving.
///
/// Other threads may insert and remove meanwhile. Then the copy holds, for each class
/// ([`Class`](crate::Class)), as many copies as the filter held at some moment during the call; the
/// moment may differ from class to class. So whatever was in the filter throughout is in the copy,
/// and whatever was in it at no moment is not. The module `snapshot` explains how and why.
///
/// **Time.** If nobody writes, a call makes two passes over the table. If others write, it reads
/// the buckets that changed again, and counts their keys. In all it reads at most as many buckets
/// as 32 passes do, plus 4,096, and inserts at most as many keys into the copy as there are
/// buckets. If that is not enough, the call gives up ([`SnapshotError::TooBusy`]).
///
/// **Memory.** If nobody writes, one table, for the copy. If others write, at most three in all,
/// two of which are given back at the end. A few KiB come on top: counters, and lists of small
/// tables. [`to_bytes`](Self::to_bytes) takes one more table for the bytes, once the other two have
/// been given back.
impl<const SLOTS: usize, const BITS: usize, S> CuckooFilter<SLOTS, BITS, S> {
    /// Returns a separate filter with the same contents.
    ///
    /// Progress: lock-free. The number of reads is limited as described above; the few loads of one
    /// read are repeated if others change the bucket between them. No linearization point: each
    /// class has its own.
    ///
    /// # Errors
    /// [`SnapshotError`]: when there is not enough memory; when others change the filter so quickly
    /// that the limit is reached; when it is so full that the copy has no room for keys that came
    /// and went meanwhile; or when it changed meanwhile, and more than
    /// [`MAX_THREADS`](crate::MAX_THREADS) live threads insert or remove.
    pub fn try_clone(&self) -> Result<Self, SnapshotError>
    where
        S: Clone,
    {
        let buckets = snapshot::copy(&self.buckets)?;
        Ok(CuckooFilter {
            length: Length::starting_at(buckets.occupied()),
            buckets,
            hasher: self.hasher.clone(),
        })
    }
}

impl<const SLOTS: usize, const BITS: usize, S: BuildHasher> CuckooFilter<SLOTS, BITS, S> {
    /// Saves the filter as [`to_bytes`](Self::to_bytes) does, but to a writer such as a file.
    /// `writer` needs no buffer of its own.
    ///
    /// # Errors
    /// As [`try_clone`](Self::try_clone), before anything is written; and errors of the writer.
    ///
    /// # Panics
    /// As [`to_bytes`](Self::to_bytes).
    pub fn write_to(&self, writer: impl Write) -> Result<(), SaveError> {
        let copy = snapshot::copy(&self.buckets)?;
        Ok(self.write_copy(&copy, writer)?)
    }

    /// Saves the filter as bytes, in the format described in [`save`](crate::save), for
    /// [`load`](Builder::load). Loading them requires the same [hasher](crate::save#hashers), so
    /// keep its seeds, too.
    ///
    /// # Errors
    /// As [`try_clone`](Self::try_clone).
    ///
    /// # Panics
    /// When the hasher panics: numbers, strings, slices, a tuple and an enum are hashed, so that
    /// the hasher can be recognised.
    pub fn to_bytes(&self) -> Result<Vec<u8>, SnapshotError> {
        let copy = snapshot::copy(&self.buckets)?;
        // Only now, when everything needed for copying has been freed.
        let buckets = copy.geometry().buckets();
        let mut bytes = Vec::new();
        bytes
            .try_reserve_exact(HEADER_BYTES + 8 * buckets + CHECKSUM_BYTES)
            .map_err(|_| SnapshotError::OutOfMemory { buckets })?;
        self.write_copy(&copy, &mut bytes)
            .expect("a vector takes every byte");
        Ok(bytes)
    }

    fn write_copy(&self, copy: &Buckets<SLOTS, BITS>, mut writer: impl Write) -> io::Result<()> {
        let header = Header {
            slots: SLOTS as u16,
            bits: BITS as u16,
            buckets: copy.geometry().buckets() as u64,
            length: copy.occupied() as u64,
            hasher: probe(&self.hasher),
        };
        let (bytes, mut digest) = header.to_bytes();
        writer.write_all(&bytes)?;
        let mut chunk = [0; CHUNK_BYTES];
        let mut words = (0..copy.geometry().buckets())
            .map(|bucket| Layout::<SLOTS, BITS>::slots(copy.read(bucket)))
            .peekable();
        while words.peek().is_some() {
            let mut filled = 0;
            for (place, word) in chunk.chunks_exact_mut(8).zip(&mut words) {
                place.copy_from_slice(&word.to_le_bytes());
                filled += place.len();
            }
            digest.update(&chunk[..filled]);
            writer.write_all(&chunk[..filled])?;
        }
        writer.write_all(&digest.finalize().to_le_bytes())?;
        writer.flush()
    }
}

/// Loading in the default layout and with the default hasher; use a [`Builder`] for others.
impl CuckooFilter {
    /// [`Builder::load`] for a filter built in the default layout and with the default hasher.
    ///
    /// # Errors
    /// [`LoadError`].
    ///
    /// ```
    /// use filter::{CuckooFilter, LoadError};
    ///
    /// let seen = CuckooFilter::with_capacity(1_000);
    /// seen.insert("https://example.org/a")?;
    /// let mut bytes = seen.to_bytes()?;
    ///
    /// let loaded = CuckooFilter::from_bytes(&bytes)?;
    /// assert!(loaded.contains("https://example.org/a"));
    ///
    /// bytes[100] ^= 1;
    /// let damaged = CuckooFilter::from_bytes(&bytes);
    /// assert!(matches!(damaged, Err(LoadError::Corrupt { .. })));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_bytes(bytes: &[u8]) -> Result<CuckooFilter, LoadError> {
        CuckooFilter::builder().load(bytes)
    }

    /// [`Builder::load_from`] for a filter built in the default layout and with the default hasher.
    ///
    /// # Errors
    /// [`LoadError`].
    pub fn read_from(reader: impl Read) -> Result<CuckooFilter, LoadError> {
        CuckooFilter::builder().load_from(reader)
    }
}

/// Loading with the layout and the hasher of this builder, which must be those the filter was built
/// with. The filter has the size it was saved with, whatever this builder says.
impl<const SLOTS: usize, const BITS: usize, S: BuildHasher> Builder<SLOTS, BITS, S> {
    /// Loads the filter that was saved as these bytes.
    ///
    /// Returns exactly the filter that was saved, or an error: damage, another layout and another
    /// [hasher](crate::save#hashers) are all detected. Allocates nothing before the length of
    /// `bytes` is known to be right, and then no more than that length, apart from a few KiB that
    /// every filter has.
    ///
    /// ```
    /// use filter::CuckooFilter;
    ///
    /// let builder = CuckooFilter::builder().layout::<6, 8>();
    /// let seen = builder.capacity(1_000).build()?;
    /// seen.insert("key")?;
    /// let bytes = seen.to_bytes()?;
    /// assert!(builder.load(&bytes)?.contains("key"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`LoadError`].
    ///
    /// # Panics
    /// When the hasher panics: as [`to_bytes`](CuckooFilter::to_bytes).
    pub fn load(self, bytes: &[u8]) -> Result<CuckooFilter<SLOTS, BITS, S>, LoadError> {
        let mut rest = bytes;
        let header = Header::of(&mut rest)?;
        header.check::<SLOTS, BITS>(&self.hasher)?;
        let table = header.bytes() - HEADER_BYTES as u64;
        match (rest.len() as u64).checked_sub(table) {
            None => Err(header.truncated()),
            Some(0) => header.read_table(rest, header.buckets as usize, self.hasher),
            Some(excess) => Err(LoadError::TooLong { excess }),
        }
    }

    /// Loads a filter as [`load`](Self::load) does, but from a reader such as a file. `reader`
    /// needs no buffer of its own; nothing is read past the filter's end.
    ///
    /// Memory grows with what arrives, whatever the header claims: to at most three times as much
    /// for a moment, plus 16 KiB.
    ///
    /// # Errors
    /// [`LoadError`].
    ///
    /// # Panics
    /// As [`load`](Self::load).
    pub fn load_from(
        self,
        mut reader: impl Read,
    ) -> Result<CuckooFilter<SLOTS, BITS, S>, LoadError> {
        Header::of(&mut reader)?.read_rest(reader, self.hasher)
    }
}

/// What comes before the table.
pub(crate) struct Header {
    slots: u16,
    bits: u16,
    buckets: u64,
    length: u64,
    hasher: u64,
}

type Sum = Digest<'static, u64, Table<16>>;

impl Header {
    /// Returns the header's bytes, and the checksum to continue with.
    fn to_bytes(&self) -> ([u8; HEADER_BYTES], Sum) {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..14].copy_from_slice(&self.slots.to_le_bytes());
        bytes[14..16].copy_from_slice(&self.bits.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.buckets.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.length.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.hasher.to_le_bytes());
        let digest = digest_of(&bytes[..40]);
        bytes[40..].copy_from_slice(&digest.clone().finalize().to_le_bytes());
        (bytes, digest)
    }

    /// Reads the header that these bytes begin with.
    pub(crate) fn of(mut reader: impl Read) -> Result<Header, LoadError> {
        let shortest = (HEADER_BYTES + 8 + CHECKSUM_BYTES) as u64;
        // The fields that identify a filter and its version come first: other versions may continue
        // differently.
        let mut bytes = [0; HEADER_BYTES];
        // Byte by byte: whatever begins differently is not a filter, even if it ends at once.
        for (byte, expected) in bytes.iter_mut().zip(MAGIC) {
            read_exact(&mut reader, std::slice::from_mut(byte), shortest)?;
            if *byte != expected {
                return Err(LoadError::NotAFilter);
            }
        }
        read_exact(&mut reader, &mut bytes[8..12], shortest)?;
        let version = u32::from_le_bytes(field(&bytes, 8));
        if version != VERSION {
            return Err(LoadError::Version { found: version });
        }
        read_exact(&mut reader, &mut bytes[12..], shortest)?;
        if digest_of(&bytes[..40]).finalize() != u64::from_le_bytes(field(&bytes, 40)) {
            return Err(LoadError::Corrupt { part: "header" });
        }
        Ok(Header {
            slots: u16::from_le_bytes(field(&bytes, 12)),
            bits: u16::from_le_bytes(field(&bytes, 14)),
            buckets: u64::from_le_bytes(field(&bytes, 16)),
            length: u64::from_le_bytes(field(&bytes, 24)),
            hasher: u64::from_le_bytes(field(&bytes, 32)),
        })
    }

    /// Returns the slots of a bucket, and the bits of a fingerprint.
    pub(crate) fn layout(&self) -> (u16, u16) {
        (self.slots, self.bits)
    }

    /// Reads the rest of the filter with this header.
    pub(crate) fn read_rest<const SLOTS: usize, const BITS: usize, S: BuildHasher>(
        &self,
        reader: impl Read,
        hasher: S,
    ) -> Result<CuckooFilter<SLOTS, BITS, S>, LoadError> {
        self.check::<SLOTS, BITS>(&hasher)?;
        self.read_table(reader, CHUNK_WORDS, hasher)
    }

    /// Checks that it can be loaded as this type, with this hasher.
    fn check<const SLOTS: usize, const BITS: usize>(
        &self,
        hasher: &impl BuildHasher,
    ) -> Result<(), LoadError> {
        let &Header {
            slots,
            bits,
            buckets,
            ..
        } = self;
        if (usize::from(slots), usize::from(bits)) != (SLOTS, BITS) {
            return Err(LoadError::Layout { slots, bits });
        }
        if self.hasher != probe(hasher) {
            return Err(LoadError::Hasher);
        }
        if !(1..=MAX_BUCKETS as u64).contains(&buckets) {
            return Err(LoadError::Size { buckets });
        }
        Ok(())
    }

    /// Returns the length of the saved filter.
    fn bytes(&self) -> u64 {
        (HEADER_BYTES + CHECKSUM_BYTES) as u64 + 8 * self.buckets
    }

    fn truncated(&self) -> LoadError {
        LoadError::Truncated {
            bytes: self.bytes(),
        }
    }

    /// Reads the table that follows a checked header. `room` is the number of buckets for which
    /// memory may be requested before any have arrived.
    fn read_table<const SLOTS: usize, const BITS: usize, S>(
        &self,
        mut reader: impl Read,
        room: usize,
        hasher: S,
    ) -> Result<CuckooFilter<SLOTS, BITS, S>, LoadError> {
        let buckets = self.buckets as usize;
        let (_, mut digest) = self.to_bytes();
        let mut words: Vec<u64> = Vec::new();
        let mut chunk = [0; CHUNK_BYTES];
        while words.len() < buckets {
            let missing = buckets - words.len();
            if words.len() == words.capacity() {
                // As much again as has arrived.
                words
                    .try_reserve_exact(words.len().max(room).min(missing))
                    .map_err(|_| LoadError::OutOfMemory { buckets })?;
            }
            let arriving = missing.min(words.capacity() - words.len());
            let chunk = &mut chunk[..8 * arriving.min(CHUNK_WORDS)];
            read_exact(&mut reader, chunk, self.bytes())?;
            digest.update(chunk);
            let arrived = chunk.chunks_exact(8);
            words.extend(arrived.map(|bytes| u64::from_le_bytes(field(bytes, 0))));
        }
        let mut checksum = [0; CHECKSUM_BYTES];
        read_exact(&mut reader, &mut checksum, self.bytes())?;
        if digest.finalize() != u64::from_le_bytes(checksum) {
            return Err(LoadError::Corrupt { part: "table" });
        }
        let mut found = 0;
        for (bucket, &word) in words.iter().enumerate() {
            if Layout::<SLOTS, BITS>::slots(word) != word {
                return Err(LoadError::Bucket { bucket, word });
            }
            found += Layout::<SLOTS, BITS>::occupied(word);
        }
        if found as u64 != self.length {
            return Err(LoadError::Length {
                claimed: self.length,
                found: found as u64,
            });
        }
        Ok(CuckooFilter {
            buckets: Buckets::from_words(words),
            length: Length::starting_at(found),
            hasher,
        })
    }
}

fn digest_of(bytes: &[u8]) -> Sum {
    let mut digest = CRC.digest();
    digest.update(bytes);
    digest
}

/// Returns the bytes of a number that begins at `offset`.
fn field<const N: usize>(bytes: &[u8], offset: usize) -> [u8; N] {
    let bytes = bytes[offset..].first_chunk();
    *bytes.expect("the fields lie within the header, and words within a chunk")
}

/// Fills `bytes` from a saved filter that is `whole` bytes long.
fn read_exact(reader: &mut impl Read, bytes: &mut [u8], whole: u64) -> Result<(), LoadError> {
    reader
        .read_exact(bytes)
        .map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => LoadError::Truncated { bytes: whole },
            _ => LoadError::Io(error),
        })
}

/// Condenses what a hasher makes of known keys: the number differs for other hashers, other seeds,
/// and machines on which the hasher gives other hashes.
fn probe(hasher: &impl BuildHasher) -> u64 {
    let mut digest = CRC.digest();
    let mut note = |hash: u64| digest.update(&hash.to_le_bytes());
    // The keys' own `Hash` may depend on it, as that of paths does.
    note(size_of::<usize>() as u64);
    for number in [0, 1, 0x0123_4567_89ab_cdef, u64::MAX] {
        note(hasher.hash_one(number));
    }
    // Each type reaches a hasher through a different function of `Hasher`.
    macro_rules! note_as {
        ($($type:ty)+) => {
            $(note(hasher.hash_one(0x0123_4567_89ab_cdef_1032_5476_98ba_dcfe_u128 as $type));)+
        };
    }
    note_as!(u8 u16 u32 u128 usize i8 i16 i32 i64 i128 isize);
    // Hashers treat short and long strings differently, and strings differently from bytes, which
    // are preceded by their length.
    let long = "the quick brown fox jumps over the lazy dog, and then the dog jumps over the quick brown fox";
    for length in [0, 3, 7, 15, 31, 63, 90] {
        note(hasher.hash_one(&long[..length]));
        note(hasher.hash_one(&long.as_bytes()[..length]));
    }
    // Hashed as bytes in memory, in whatever order they have there.
    note(hasher.hash_one([1_u32, 2, 3].as_slice()));
    note(hasher.hash_one((1_u16, "two", 3_u64)));
    // Before a variant's value, its number is hashed.
    note(hasher.hash_one(Some(1_u32)));
    note(hasher.hash_one(None::<u32>));
    digest.finalize()
}
