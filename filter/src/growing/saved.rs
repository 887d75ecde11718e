//! Saving and loading a growing filter.
//!
//! All numbers are little-endian:
//!
//! | Offset | Bytes | What |
//! |---:|---:|---|
//! | 0 | 8 | `cuckoog` and a line feed |
//! | 8 | 4 | version of this format: 1 |
//! | 12 | 4 | number of generations, g: 1 to 4 |
//! | 16 | 8 | number of buckets of a slice |
//! | 24 | 8 | a digest of the hashes of known keys, as in [`save`](crate::save) |
//! | 32 | 4 | bits of a fingerprint in the newest generation, 12 to 25 |
//! | 36 | 4 | base-2 logarithm of its number of slices |
//! | 40 | 8 × (g − 1) | the same for each older generation |
//! | then | 8 | checksum of the preceding bytes |
//! | then | 8 × buckets | a number for each bucket of the newest generation, as in [`save`](crate::save); then of each older one |
//! | then | 8 | checksum of all preceding bytes except the first checksum |

use std::hash::BuildHasher;
use std::io::{self, Read, Write};

use arrayvec::ArrayVec;
use epoch_cell::EpochCell;
use kcas::sync::AtomicU64;

use super::schedule::{LONGEST, MAX_GENERATIONS, PAIRING_BITS};
use super::table::Table;
use super::tables::{Member, Tables};
use super::{GrowingBuilder, GrowingCuckooFilter};
use crate::hashing::MAX_BUCKETS;
use crate::save::LoadError;
use crate::save::known_keys::digest_of_known_keys;
use crate::save::words::{
    CHECKSUM_BYTES, CHUNK_WORDS, Sum, check_table, digest_of, field, read_exact, read_start,
    read_words, write_words,
};

const MAGIC: [u8; 8] = *b"cuckoog\n";
const VERSION: u32 = 1;

/// Number of bytes before the first generation.
const FIXED: usize = 32;

impl<S: BuildHasher> GrowingCuckooFilter<S> {
    /// Saves the filter to a writer such as a file, for [`GrowingBuilder::load_from`].
    ///
    /// Unlike a fixed-size filter, it must have nobody else at work: `&mut` is exclusive
    /// ([`Arc::get_mut`](std::sync::Arc::get_mut), or a lock around the filter that is shared for
    /// every other call). The [hasher](crate::save#hashers) must be kept, as always.
    ///
    /// If a table is being taken over, that is finished first, in memory that it has already.
    /// Needs a buffer of 16 KiB; `writer` needs none.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write_to(&mut self, mut writer: impl Write) -> io::Result<()> {
        self.finish_growing();
        let tables = self.tables.get_mut();
        let generations: ArrayVec<&Table, MAX_GENERATIONS> =
            tables.iter().map(Member::table).collect();
        let mut header = Vec::with_capacity(FIXED + 8 * MAX_GENERATIONS);
        header.extend(MAGIC);
        header.extend(VERSION.to_le_bytes());
        header.extend((generations.len() as u32).to_le_bytes());
        header.extend((self.slice as u64).to_le_bytes());
        header.extend(digest_of_known_keys(&self.hasher).to_le_bytes());
        for table in &generations {
            header.extend(table.format().bits.to_le_bytes());
            header.extend(table.slice_bits().to_le_bytes());
        }
        let mut digest = digest_of(&header);
        writer.write_all(&header)?;
        writer.write_all(&digest.clone().finalize().to_le_bytes())?;
        write_words(
            &mut writer,
            &mut digest,
            generations.into_iter().flat_map(Table::slots),
        )?;
        writer.write_all(&digest.finalize().to_le_bytes())?;
        writer.flush()
    }
}

/// Loading with the hasher of this builder, which must be the one that the filter was built with.
/// The filter has the size it was saved with, whatever this builder says.
impl<S: BuildHasher> GrowingBuilder<S> {
    /// Loads a filter that was saved by [`GrowingCuckooFilter::write_to`], from a reader such as a
    /// file, which needs no buffer of its own. Nothing is read past the filter's end.
    ///
    /// Memory grows with what arrives, whatever the header claims: to at most three times as much
    /// for a moment, plus 16 KiB.
    ///
    /// ```
    /// use filter::growing::GrowingCuckooFilter;
    ///
    /// let mut seen = GrowingCuckooFilter::new();
    /// seen.insert("https://example.org/a")?;
    /// let mut bytes = Vec::new();
    /// seen.write_to(&mut bytes)?;
    ///
    /// let loaded = GrowingCuckooFilter::builder().load_from(&bytes[..])?;
    /// assert!(loaded.contains("https://example.org/a"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`LoadError`].
    pub fn load_from(self, mut reader: impl Read) -> Result<GrowingCuckooFilter<S>, LoadError> {
        let header = Header::of(&mut reader)?;
        if header.hasher != digest_of_known_keys(&self.hasher) {
            return Err(LoadError::Hasher);
        }
        let sizes = header.sizes()?;
        let before = FIXED + 8 * header.formats.len() + CHECKSUM_BYTES;
        let whole = (before + CHECKSUM_BYTES) as u64 + 8 * sizes.iter().sum::<u64>();
        let mut digest = header.digest;
        let mut tables = ArrayVec::<Vec<u64>, MAX_GENERATIONS>::new();
        for &buckets in &sizes {
            let buckets = buckets as usize;
            let words = read_words(&mut reader, &mut digest, buckets, CHUNK_WORDS, whole)?;
            tables.push(words);
        }
        check_table(&mut reader, digest, whole)?;
        let slice = header.slice as usize;
        let mut members = ArrayVec::new();
        for ([bits, slice_bits], words) in header.formats.into_iter().zip(tables) {
            let (table, copies) = Table::from_words(bits, slice, slice_bits, words)?;
            members.push(Member::holding(table, copies));
        }
        Ok(GrowingCuckooFilter {
            tables: EpochCell::new(Tables::of_all(members)),
            slice,
            asking: AtomicU64::new(0),
            hasher: self.hasher,
        })
    }
}

/// What comes before the tables.
struct Header {
    slice: u64,
    hasher: u64,
    /// Bits of a fingerprint, and the logarithm of the number of slices, of each generation.
    formats: ArrayVec<[u32; 2], MAX_GENERATIONS>,
    /// The checksum to continue with.
    digest: Sum,
}

impl Header {
    fn of(mut reader: impl Read) -> Result<Header, LoadError> {
        let shortest = (FIXED + 8 + CHECKSUM_BYTES + 8 + CHECKSUM_BYTES) as u64;
        let fixed: [u8; FIXED] = read_start(&mut reader, MAGIC, VERSION, shortest)?;
        let mut digest = digest_of(&fixed);
        let generations = u32::from_le_bytes(field(&fixed, 12)) as usize;
        let mut formats = ArrayVec::new();
        for _ in 0..generations.min(MAX_GENERATIONS) {
            let mut format = [0; 8];
            read_exact(&mut reader, &mut format, shortest)?;
            digest.update(&format);
            formats.push([field(&format, 0), field(&format, 4)].map(u32::from_le_bytes));
        }
        let mut checksum = [0; CHECKSUM_BYTES];
        read_exact(&mut reader, &mut checksum, shortest)?;
        // With more generations than there can be, this is not where the checksum is.
        if generations != formats.len() || digest.clone().finalize() != u64::from_le_bytes(checksum)
        {
            return Err(LoadError::Corrupt { part: "header" });
        }
        Ok(Header {
            slice: u64::from_le_bytes(field(&fixed, 16)),
            hasher: u64::from_le_bytes(field(&fixed, 24)),
            formats,
            digest,
        })
    }

    /// Returns the number of buckets of each generation, if there can be such a filter.
    fn sizes(&self) -> Result<ArrayVec<u64, MAX_GENERATIONS>, LoadError> {
        if self.formats.is_empty() {
            return Err(LoadError::Size { buckets: 0 });
        }
        let size = |&[bits, slice_bits]: &[u32; 2]| {
            let slices = 1_u64.checked_shl(slice_bits);
            let buckets = slices.and_then(|slices| self.slice.checked_mul(slices));
            let buckets = buckets.unwrap_or(u64::MAX);
            let possible = (1..=MAX_BUCKETS as u64).contains(&buckets)
                && (PAIRING_BITS..=LONGEST).contains(&bits);
            possible
                .then_some(buckets)
                .ok_or(LoadError::Size { buckets })
        };
        self.formats.iter().map(size).collect()
    }
}
