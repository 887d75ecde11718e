//! Saving and loading a growing filter.
//!
//! All numbers are little-endian. First come 32 bytes:
//!
//! | Offset | Bytes | What |
//! |---:|---:|---|
//! | 0 | 8 | `cuckoog` and a line feed |
//! | 8 | 4 | version of this format: 2 |
//! | 12 | 4 | 0 |
//! | 16 | 8 | number of buckets of a slice |
//! | 24 | 8 | a digest of the hashes of known keys, as in [`save`](crate::save) |
//!
//! Then, for each generation, the oldest first:
//!
//! | Bytes | What |
//! |---:|---|
//! | 4 | bits of a fingerprint, 12 to 25, which follow from the number of slices; 12 unless it is the newest |
//! | 4 | base-2 logarithm of the number of slices; in a newer generation greater than in an older one |
//! | 8 | checksum of all preceding bytes except checksums |
//! | 8 × buckets | a number for each bucket, as in [`save`](crate::save) |
//!
//! Then 8 bytes of 0, and a checksum of all preceding bytes except checksums.
//!
//! What no filter can have is refused even if the checksums are right: other numbers of bits and
//! slices than a filter has as it [grows](super), and fingerprints whose twelve lowest bits are 0.
//!
//! Version 1 was never released, and is refused.

use std::hash::BuildHasher;
use std::io::{self, Read, Write};

use arrayvec::ArrayVec;

use super::schedule::{MAX_GENERATIONS, PAIRING_BITS, bits_at};
use super::table::Table;
use super::tables::Tables;
use super::{Growing, GrowingCuckooFilter};
use crate::builder::Builder;
use crate::hashing::MAX_BUCKETS;
use crate::save::known_keys::digest_of_known_keys;
use crate::save::words::{
    CHECKSUM_BYTES, CHUNK_WORDS, GROWING, Sum, check, digest_of, field, read_exact, read_start,
    read_words, write_words,
};
use crate::save::{LoadError, SaveError};
use crate::snapshot::SnapshotError;

/// Number of bytes before the first generation.
const HEADER_BYTES: usize = 32;

/// Number of bytes before the buckets of a generation, and at the end.
const FORMAT_BYTES: usize = 8 + CHECKSUM_BYTES;

impl<S: BuildHasher> GrowingCuckooFilter<S> {
    /// Writes the newest table only after it was copied: for others it is as if the filter grew for as
    /// long as that takes. Once there are several generations, a key that is removed and inserted again
    /// meanwhile can be saved twice. Until the call ends it takes as much memory as the newest table,
    /// and a buffer of 16 KiB.
    pub(super) fn write_tables(&self, mut writer: impl Write) -> Result<(), SaveError> {
        let mut header = [0; HEADER_BYTES];
        header[..8].copy_from_slice(&GROWING.magic);
        header[8..12].copy_from_slice(&GROWING.version.to_le_bytes());
        header[16..24].copy_from_slice(&(self.slice as u64).to_le_bytes());
        header[24..].copy_from_slice(&digest_of_known_keys(&self.hasher).to_le_bytes());
        let mut digest = digest_of(&header);
        let mut superseded = self.superseded()?.peekable();
        // If there is no memory for a single table, nothing is written.
        if let Some(Err(error)) = superseded.peek() {
            return Err((*error).into());
        }
        writer.write_all(&header)?;
        for table in superseded {
            let table = table?;
            let format = [table.format().bits, table.slice_bits()];
            write_format(&mut writer, &mut digest, format)?;
            write_words(&mut writer, &mut digest, table.frozen_slots())?;
        }
        write_format(&mut writer, &mut digest, [0, 0])?;
        Ok(writer.flush()?)
    }

    pub(super) fn tables_to_bytes(&self) -> Result<Vec<u8>, SnapshotError> {
        let mut bytes = InMemory(Vec::new());
        match self.write_tables(&mut bytes) {
            Ok(()) => Ok(bytes.0),
            Err(SaveError::Snapshot(error)) => Err(error),
            Err(_) => {
                let buckets = self.tables().iter().map(|table| table.buckets).sum();
                Err(SnapshotError::OutOfMemory { buckets })
            }
        }
    }
}

/// Bytes in memory; an error, instead of an abort, if there is not enough of it.
struct InMemory(Vec<u8>);

impl Write for InMemory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = self.0.try_reserve(bytes.len());
        room.map_err(|_| io::ErrorKind::OutOfMemory)?;
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn write_format(writer: &mut impl Write, digest: &mut Sum, format: [u32; 2]) -> io::Result<()> {
    let mut bytes = [0; FORMAT_BYTES];
    bytes[..4].copy_from_slice(&format[0].to_le_bytes());
    bytes[4..8].copy_from_slice(&format[1].to_le_bytes());
    digest.update(&bytes[..8]);
    bytes[8..].copy_from_slice(&digest.clone().finalize().to_le_bytes());
    writer.write_all(&bytes)
}

/// Loading with the hasher of this builder, which must be the one that the filter was built with.
/// The filter has the size it was saved with, whatever this builder says.
impl<S: BuildHasher> Builder<Growing, S> {
    /// As [`Builder::from_bytes`](crate::Builder::from_bytes).
    ///
    /// # Errors
    /// [`LoadError`].
    ///
    /// # Panics
    /// When the hasher panics.
    pub fn from_bytes(self, mut bytes: &[u8]) -> Result<GrowingCuckooFilter<S>, LoadError> {
        let filter = self.read_from(&mut bytes)?;
        match bytes.len() as u64 {
            0 => Ok(filter),
            excess => Err(LoadError::TooLong { excess }),
        }
    }

    /// As [`Builder::read_from`](crate::Builder::read_from).
    ///
    /// # Errors
    /// [`LoadError`].
    ///
    /// # Panics
    /// When the hasher panics.
    pub fn read_from(self, reader: impl Read) -> Result<GrowingCuckooFilter<S>, LoadError> {
        let mut saved = Saved::begin(reader)?;
        let mut words = ArrayVec::<_, MAX_GENERATIONS>::new();
        while let Some(format) = saved.next_format()? {
            // Not before a checksum was right.
            if saved.zeros != 0 {
                let what = "bytes 12 to 15 that are not 0";
                return Err(LoadError::Impossible { what });
            }
            if saved.hasher != digest_of_known_keys(&self.hasher) {
                return Err(LoadError::Hasher);
            }
            words.push(saved.read_words(format)?);
        }
        if words.is_empty() {
            return Err(LoadError::Size { buckets: 0 });
        }
        // All checksums were right.
        let slice = saved.slice as usize;
        let formats = saved.formats.into_iter().zip(words);
        let tables: Result<Vec<_>, _> = formats
            .map(|([bits, slice_bits], words)| Table::from_words(bits, slice, slice_bits, words))
            .collect();
        Ok(GrowingCuckooFilter::of(
            Tables::of_all(tables?),
            slice,
            self.hasher,
        ))
    }
}

/// A saved filter that is being read.
struct Saved<R> {
    reader: R,
    /// Bytes 12 to 15, which must be 0.
    zeros: u32,
    slice: u64,
    /// The digest of known keys' hashes.
    hasher: u64,
    /// The checksum to continue with.
    digest: Sum,
    /// The least number of bytes it can have, from what is known.
    bytes: u64,
    /// The generations whose formats were read: bits of a fingerprint, and the logarithm of the
    /// number of slices.
    formats: ArrayVec<[u32; 2], MAX_GENERATIONS>,
}

impl<R: Read> Saved<R> {
    /// Reads what comes before the generations.
    fn begin(mut reader: R) -> Result<Saved<R>, LoadError> {
        let bytes = (HEADER_BYTES + 2 * FORMAT_BYTES) as u64;
        let header: [u8; HEADER_BYTES] = read_start(&mut reader, &GROWING, bytes)?;
        Ok(Saved {
            reader,
            zeros: u32::from_le_bytes(field(&header, 12)),
            slice: u64::from_le_bytes(field(&header, 16)),
            hasher: u64::from_le_bytes(field(&header, 24)),
            digest: digest_of(&header),
            bytes,
            formats: ArrayVec::new(),
        })
    }

    /// Reads the format of the next generation; `None` at the end.
    fn next_format(&mut self) -> Result<Option<[u32; 2]>, LoadError> {
        let mut format = [0; FORMAT_BYTES];
        read_exact(&mut self.reader, &mut format, self.bytes)?;
        self.digest.update(&format[..8]);
        let part = match self.formats.len() {
            0 => "header",
            _ => "table",
        };
        check(&self.digest, &format[8..], part)?;
        let format = [field(&format, 0), field(&format, 4)].map(u32::from_le_bytes);
        Ok((format != [0, 0]).then_some(format))
    }

    /// Reads the buckets of a generation.
    fn read_words(&mut self, [bits, slice_bits]: [u32; 2]) -> Result<Vec<u64>, LoadError> {
        let slices = 1_u64.checked_shl(slice_bits);
        let buckets = slices.and_then(|slices| self.slice.checked_mul(slices));
        let buckets = buckets.unwrap_or(u64::MAX);
        if !(1..=MAX_BUCKETS as u64).contains(&buckets) {
            return Err(LoadError::Size { buckets });
        }
        if !self.can_follow(bits, slice_bits) {
            let what = "tables that do not grow from one another";
            return Err(LoadError::Impossible { what });
        }
        if !self.formats.is_empty() {
            self.bytes += FORMAT_BYTES as u64;
        }
        self.bytes += 8 * buckets;
        self.formats.push([bits, slice_bits]);
        let buckets = buckets as usize;
        let Saved { reader, digest, .. } = self;
        // One word more counts timestamp wraps.
        read_words(reader, digest, buckets, CHUNK_WORDS, 1, self.bytes)
    }

    /// True if the filter has such a table once it has grown to this size, in a later generation
    /// than the one before, which has ended. Only then does it distinguish whatever that one does,
    /// and there are at most [`MAX_GENERATIONS`].
    fn can_follow(&self, bits: u32, slice_bits: u32) -> bool {
        let (expected, begins) = bits_at(self.slice as usize, slice_bits);
        let has_ended =
            |&[bits, slice_bits]: &[u32; 2]| bits == PAIRING_BITS && slice_bits < begins;
        bits == expected && self.formats.last().is_none_or(has_ended)
    }
}
