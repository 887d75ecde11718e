//! Saving and loading: a filter as bytes.
//!
//! All numbers are little-endian:
//!
//! | Offset | Bytes | What |
//! |---:|---:|---|
//! | 0 | 8 | `cuckoof` and a line feed |
//! | 8 | 4 | version of this format: 3 |
//! | 12 | 2 | slots of a bucket, s |
//! | 14 | 2 | bits of a fingerprint, b |
//! | 16 | 8 | number of buckets, at least 1 |
//! | 24 | 8 | a digest of the hashes of known keys, which identifies the [hasher](#hashers) |
//! | 32 | 8 | checksum of the preceding 32 bytes |
//! | 40 | 8 × buckets | a number for each bucket: slot i is in bits i × b to i × b + b − 1, and 0 there says that it is empty; all bits from s × b on are 0 |
//! | then | 8 | checksum of all preceding bytes except the first checksum |
//!
//! The checksums are CRC-64/XZ. They detect every single flipped bit and every error within 64
//! consecutive bits; of all other errors, all but one in 2^64. They protect against accidents, not
//! against deliberate forgery. The buckets are checked as well, so at worst a forged file is a
//! filter of other keys.
//!
//! A filter of version 3 can be loaded by every later release, on any machine: a saved filter of
//! each version is kept with the tests, and loaded by them. Versions 1 and 2 were never released,
//! and are refused.
//!
//! # Hashers
//!
//! A filter knows its keys only by their hashes. So it can be loaded only with the hasher that it
//! was built with: of the same type, with the same seeds, and passed to the same function
//! ([`Builder::hasher`] or [`Builder::unmixed_hasher`]). The saved filter includes a digest of the
//! hashes of some known keys, and a hasher that gives other hashes is refused. The known keys are
//! numbers of every integer type, strings, slices of bytes, a tuple and an enum.
//!
//! The default hasher gives the same hashes on every machine ([`FixedState`](crate::FixedState)),
//! so a filter that was built with it can be loaded anywhere. Many others do not: ahash, for
//! example, gives others when it is compiled for a processor with AES instructions. Then the filter
//! is refused on the other machine.
//!
//! **What cannot be detected.** Your key type may hash differently than before, because it has a
//! new field or its `Hash` has changed; on another machine, because it contains a path, or a slice
//! of integers wider than a byte; or a hasher may differ for some keys, but not for the known ones.
//! Then the filter loads, and has false negatives. If your key type changes, rebuild the
//! filter.
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
//! let loaded = CuckooFilter::builder().hasher(hasher()).from_bytes(&bytes)?;
//! assert!(loaded.contains("key"));
//! let other = CuckooFilter::builder().hasher(RandomState::new()).from_bytes(&bytes);
//! assert!(matches!(other, Err(LoadError::Hasher)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub(crate) mod known_keys;
#[cfg(feature = "serde")]
mod serialized;
pub(crate) mod words;

use std::fs::{self, File};
use std::hash::BuildHasher;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use crate::buckets::Buckets;
use crate::builder::Builder;
use crate::dyn_filter::{DynBuilder, DynCuckooFilter};
use crate::filter::CuckooFilter;
use crate::growing::{GrowingBuilder, GrowingCuckooFilter};
use crate::hashing::MAX_BUCKETS;
use crate::layout::Layout;
use crate::snapshot::{Snapshot, SnapshotError};
use known_keys::digest_of_known_keys;
use words::{
    CHECKSUM_BYTES, CHUNK_WORDS, FIXED, Sum, check_table, count, digest_of, field, read_start,
    read_words, write_words,
};

const HEADER_BYTES: usize = 40;

/// Why a filter could not be saved.
#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    /// The filter could not be copied. Nothing was written, unless a growing filter has several
    /// generations: then some of them may have been.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// The writer failed, perhaps after part of the filter was written.
    #[error("the filter cannot be written: {0}")]
    Io(#[from] io::Error),
    /// The file cannot be replaced; an older one is as it was.
    #[error(
        "the filter cannot be saved as {path}: {error}. Save it in a folder that exists, may be written to, and \
         has room for a second file"
    )]
    File {
        /// The file's name.
        path: String,
        /// What went wrong.
        error: io::Error,
    },
}

/// Why bytes could not be loaded as a filter.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The first bytes are not those of a saved filter.
    #[error("this is not a saved filter: it does not begin like one")]
    NotAFilter,
    /// The bytes are a saved filter of another type: a growing one, or one of a fixed size.
    #[error("this is a saved {found}: load it as a {loader}")]
    OtherType {
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
    Version {
        /// The version found.
        found: u32,
        /// The version known.
        known: u32,
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
    #[error("the saved filter is cut off: it should have at least {bytes} bytes. Copy it again")]
    Truncated {
        /// The least length that it can have, as far as it was read: that of the shortest filter, if
        /// the header itself is cut off; otherwise the correct one for a fixed-size filter.
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
    /// The checksums match, but no filter is saved like this.
    #[error("no filter is saved with {what}: this was not written by this crate")]
    Impossible {
        /// What no filter has.
        what: &'static str,
    },
    /// The checksums match, but a bucket's word has bits where there are no slots, or, in a growing
    /// filter, a fingerprint whose twelve lowest bits are 0.
    #[error("bucket {bucket} cannot hold {word:#x}: this was not written by this crate")]
    Bucket {
        /// Its number.
        bucket: usize,
        /// Its word.
        word: u64,
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
    /// There is no file of this name, or it cannot be opened.
    #[error("the saved filter {path} cannot be opened: {error}")]
    File {
        /// The file's name.
        path: String,
        /// What went wrong.
        error: io::Error,
    },
}

/// Replaces a file at one moment by what `write` writes.
pub(crate) fn save_as(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> Result<(), SaveError>,
) -> Result<(), SaveError> {
    let failed = |error| SaveError::File {
        path: path.display().to_string(),
        error,
    };
    let (partial, mut file) = create_beside(path).map_err(failed)?;
    let saved = write(&mut file).and_then(|()| {
        file.sync_all()?;
        Ok(fs::rename(&partial, path)?)
    });
    if let Err(error) = saved {
        // If it cannot be removed either, the first error says more.
        let _ = fs::remove_file(partial);
        return Err(match error {
            SaveError::Io(error) => failed(error),
            other => other,
        });
    }
    // So that the new name outlives a power cut, too. Only Unix can open a folder.
    if cfg!(unix) {
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        let folder = File::open(folder.unwrap_or(Path::new("."))).map_err(failed)?;
        folder.sync_all().map_err(failed)?;
    }
    Ok(())
}

/// Creates a file beside another one, under a name that nobody uses.
fn create_beside(path: &Path) -> io::Result<(PathBuf, File)> {
    for number in 0.. {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".partial{number}"));
        let name = PathBuf::from(name);
        match File::create_new(&name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            created => return Ok((name, created?)),
        }
    }
    unreachable!("there are not so many files")
}

/// Gives each type of filter the functions that load one with the default hasher, and each builder
/// the one that loads a file.
macro_rules! loading {
    ($(($($parameters:tt)*) $builder:ty => $filter:ty, by default $start:expr => $default:ty;)+) => {$(
        impl<$($parameters)* S: BuildHasher> $builder {
            /// [`read_from`](Self::read_from) a file, which was made by [`Filter::save`](crate::Filter::save).
            ///
            /// # Errors
            /// [`LoadError`].
            ///
            /// # Panics
            /// When the hasher panics.
            pub fn load(self, path: impl AsRef<Path>) -> Result<$filter, LoadError> {
                let path = path.as_ref();
                let file = File::open(path).map_err(|error| LoadError::File {
                    path: path.display().to_string(),
                    error,
                })?;
                self.read_from(file)
            }
        }

        /// Loading a filter with the default hasher (and, for a `CuckooFilter`, in the default
        /// layout); its builder loads others.
        impl $default {
            /// Loads the filter that was saved as these bytes.
            ///
            /// # Errors
            /// [`LoadError`].
            #[doc(alias = "deserialize")]
            pub fn from_bytes(bytes: &[u8]) -> Result<$default, LoadError> {
                $start.from_bytes(bytes)
            }

            /// Loads a filter from a reader, which needs no buffer of its own. Nothing is read past
            /// the filter's end.
            ///
            /// # Errors
            /// [`LoadError`].
            pub fn read_from(reader: impl Read) -> Result<$default, LoadError> {
                $start.read_from(reader)
            }

            /// Loads the filter that was [saved](crate::Filter::save) as this file.
            ///
            /// # Errors
            /// [`LoadError`].
            pub fn load(path: impl AsRef<Path>) -> Result<$default, LoadError> {
                $start.load(path)
            }
        }
    )+};
}

loading! {
    (const SLOTS: usize, const BITS: usize,) Builder<SLOTS, BITS, S> => CuckooFilter<SLOTS, BITS, S>,
        by default CuckooFilter::builder() => CuckooFilter;
    () DynBuilder<S> => DynCuckooFilter<S>,
        by default CuckooFilter::builder().false_positive_rate(1.0) => DynCuckooFilter;
    () GrowingBuilder<S> => GrowingCuckooFilter<S>,
        by default GrowingCuckooFilter::builder() => GrowingCuckooFilter;
}

/// Copying.
impl<const SLOTS: usize, const BITS: usize, S> CuckooFilter<SLOTS, BITS, S> {
    /// Returns a separate filter with the same contents.
    ///
    /// Other threads may insert and remove meanwhile, as quickly as they like. The copy (and so a
    /// saved filter) holds, for each class ([`Class`](crate::Class)), as many copies as the filter
    /// held at some moment during the call; the moment may differ from class to class. So whatever
    /// was in the filter throughout is in the copy, and whatever was in it at no moment is not. The
    /// source of the module `snapshot` explains how and why.
    ///
    /// **Time.** One pass over the table, with one exchange for each bucket. Lookups of others are not
    /// slowed down; an insert or a remove of another thread keeps what a bucket held before its first
    /// change, which costs two exchanges for each of its buckets.
    ///
    /// **Memory.** The table of the copy ([`to_bytes`](Self::to_bytes): the bytes;
    /// [`write_to`](Self::write_to): a buffer of 16 KiB), and 8 bytes, in whole pages, for every
    /// bucket that others change before the call gets there. That much address space is reserved from
    /// the start, and the call fails if the system refuses it.
    ///
    /// Progress: lock-free, apart from the allocator; it ends after a limited number of steps for
    /// each bucket, whatever others insert and remove (but not whatever they copy). No linearization
    /// point: each class has its own.
    ///
    /// # Errors
    /// [`SnapshotError`]: when there is not enough memory, or when more than
    /// [`MAX_THREADS`](crate::MAX_THREADS) live threads insert, remove or copy.
    pub fn try_clone(&self) -> Result<Self, SnapshotError>
    where
        S: Clone,
    {
        let snapshot = self.snapshot()?;
        let mut words = Vec::new();
        let buckets = snapshot.buckets();
        words
            .try_reserve_exact(buckets)
            .map_err(|_| SnapshotError::OutOfMemory { buckets })?;
        let mut copies = 0;
        words.extend(snapshot.inspect(|&word| copies += Layout::<SLOTS, BITS>::occupied(word)));
        Ok(CuckooFilter::of(
            Buckets::from_words(words),
            copies,
            self.hasher.clone(),
        ))
    }
}

impl<const SLOTS: usize, const BITS: usize, S: BuildHasher> CuckooFilter<SLOTS, BITS, S> {
    pub(crate) fn snapshot_to_bytes(&self) -> Result<Vec<u8>, SnapshotError> {
        let snapshot = self.snapshot()?;
        let buckets = snapshot.buckets();
        let mut bytes = Vec::new();
        bytes
            .try_reserve_exact(HEADER_BYTES + 8 * buckets + CHECKSUM_BYTES)
            .map_err(|_| SnapshotError::OutOfMemory { buckets })?;
        self.write_snapshot(snapshot, &mut bytes)
            .expect("a vector takes every byte");
        Ok(bytes)
    }

    pub(crate) fn write_snapshot(
        &self,
        snapshot: Snapshot<'_, SLOTS, BITS>,
        mut writer: impl Write,
    ) -> io::Result<()> {
        let header = Header {
            slots: SLOTS as u16,
            bits: BITS as u16,
            buckets: snapshot.buckets() as u64,
            hasher: digest_of_known_keys(&self.hasher),
        };
        let (bytes, mut digest) = header.to_bytes();
        writer.write_all(&bytes)?;
        write_words(&mut writer, &mut digest, snapshot)?;
        writer.write_all(&digest.finalize().to_le_bytes())?;
        writer.flush()
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
    /// assert!(builder.from_bytes(&bytes)?.contains("key"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`LoadError`].
    ///
    /// # Panics
    /// When the hasher panics.
    pub fn from_bytes(self, bytes: &[u8]) -> Result<CuckooFilter<SLOTS, BITS, S>, LoadError> {
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

    /// Loads a filter as [`from_bytes`](Self::from_bytes) does, but from a reader such as a file. `reader`
    /// needs no buffer of its own; nothing is read past the filter's end.
    ///
    /// Memory grows with what arrives, whatever the header claims: to at most three times as much
    /// for a moment, plus 16 KiB.
    ///
    /// # Errors
    /// [`LoadError`].
    ///
    /// # Panics
    /// As [`from_bytes`](Self::from_bytes).
    pub fn read_from(
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
    hasher: u64,
}

impl Header {
    /// Returns the header's bytes, and the checksum to continue with.
    fn to_bytes(&self) -> ([u8; HEADER_BYTES], Sum) {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&FIXED.magic);
        bytes[8..12].copy_from_slice(&FIXED.version.to_le_bytes());
        bytes[12..14].copy_from_slice(&self.slots.to_le_bytes());
        bytes[14..16].copy_from_slice(&self.bits.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.buckets.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.hasher.to_le_bytes());
        let digest = digest_of(&bytes[..32]);
        bytes[32..].copy_from_slice(&digest.clone().finalize().to_le_bytes());
        (bytes, digest)
    }

    /// Reads the header that these bytes begin with.
    pub(crate) fn of(mut reader: impl Read) -> Result<Header, LoadError> {
        let shortest = (HEADER_BYTES + 8 + CHECKSUM_BYTES) as u64;
        let bytes: [u8; HEADER_BYTES] = read_start(&mut reader, &FIXED, shortest)?;
        if digest_of(&bytes[..32]).finalize() != u64::from_le_bytes(field(&bytes, 32)) {
            return Err(LoadError::Corrupt { part: "header" });
        }
        Ok(Header {
            slots: u16::from_le_bytes(field(&bytes, 12)),
            bits: u16::from_le_bytes(field(&bytes, 14)),
            buckets: u64::from_le_bytes(field(&bytes, 16)),
            hasher: u64::from_le_bytes(field(&bytes, 24)),
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
        if self.hasher != digest_of_known_keys(hasher) {
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
        let words = read_words(&mut reader, &mut digest, buckets, room, 0, self.bytes())?;
        check_table(&mut reader, digest, self.bytes())?;
        let found = count::<SLOTS, BITS>(&words, Layout::<SLOTS, BITS>::MAX_FINGERPRINT)?;
        Ok(CuckooFilter::of(Buckets::from_words(words), found, hasher))
    }
}
