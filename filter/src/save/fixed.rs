//! The format of a filter whose table has a fixed size, which the [parent](super) describes.

use std::hash::BuildHasher;
use std::io::{self, Read, Write};

use super::LoadError;
use super::known_keys::digest_of_known_keys;
use super::words::{
    CHECKSUM_BYTES, CHUNK_WORDS, FIXED, Kind, Sum, check_table, digest_of, field, read_start,
    read_words, write_words,
};
use crate::hashing::MAX_BUCKETS;
use crate::layout::Layout;
use crate::snapshot::SnapshotError;

const HEADER_BYTES: usize = 40;

/// What a bucket is saved as.
pub(crate) trait Saved {
    const KIND: &'static Kind;
    /// Slots of a bucket, bits of a fingerprint, bits of an age.
    const LAYOUT: (usize, usize, usize);
    /// Number of words that follow those of the buckets.
    const MORE: usize = 0;

    /// True if a bucket can be saved as this word.
    fn is_possible(word: u64) -> bool;

    /// Returns the number of copies in a bucket.
    fn copies(word: u64) -> usize;
}

impl<const SLOTS: usize, const BITS: usize> Saved for Layout<SLOTS, BITS> {
    const KIND: &'static Kind = &FIXED;
    const LAYOUT: (usize, usize, usize) = (SLOTS, BITS, 0);

    fn is_possible(word: u64) -> bool {
        Self::slots(word) == word
    }

    fn copies(word: u64) -> usize {
        Self::occupied(word)
    }
}

/// [`write`]s to memory.
pub(crate) fn to_bytes<L: Saved>(
    buckets: usize,
    words: impl Iterator<Item = u64>,
    hasher: &impl BuildHasher,
) -> Result<Vec<u8>, SnapshotError> {
    let mut bytes = Vec::new();
    bytes
        .try_reserve_exact(Header::new::<L>(buckets, 0).bytes() as usize)
        .map_err(|_| SnapshotError::OutOfMemory { buckets })?;
    write::<L>(buckets, words, hasher, &mut bytes).expect("a vector takes every byte");
    Ok(bytes)
}

/// Writes a filter of this many buckets: their words, and those that follow.
pub(crate) fn write<L: Saved>(
    buckets: usize,
    words: impl Iterator<Item = u64>,
    hasher: &impl BuildHasher,
    mut writer: impl Write,
) -> io::Result<()> {
    let header = Header::new::<L>(buckets, digest_of_known_keys(hasher));
    let (bytes, mut digest) = header.to_bytes();
    writer.write_all(&bytes)?;
    write_words(&mut writer, &mut digest, words)?;
    writer.write_all(&digest.finalize().to_le_bytes())?;
    writer.flush()
}

/// What comes before the table.
pub(crate) struct Header {
    kind: &'static Kind,
    pub(crate) slots: u16,
    pub(crate) bits: u8,
    ages: u8,
    buckets: u64,
    hasher: u64,
    /// Number of words that follow those of the buckets.
    more: usize,
}

impl Header {
    fn new<L: Saved>(buckets: usize, hasher: u64) -> Header {
        let (slots, bits, ages) = L::LAYOUT;
        Header {
            kind: L::KIND,
            slots: slots as u16,
            bits: bits as u8,
            ages: ages as u8,
            buckets: buckets as u64,
            hasher,
            more: L::MORE,
        }
    }

    /// Returns the header's bytes, and the checksum to continue with.
    fn to_bytes(&self) -> ([u8; HEADER_BYTES], Sum) {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&self.kind.magic);
        bytes[8..12].copy_from_slice(&self.kind.version.to_le_bytes());
        bytes[12..14].copy_from_slice(&self.slots.to_le_bytes());
        bytes[14..16].copy_from_slice(&[self.bits, self.ages]);
        bytes[16..24].copy_from_slice(&self.buckets.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.hasher.to_le_bytes());
        let digest = digest_of(&bytes[..32]);
        bytes[32..].copy_from_slice(&digest.clone().finalize().to_le_bytes());
        (bytes, digest)
    }

    /// Reads the header of a filter of this kind.
    pub(crate) fn of<L: Saved>(mut reader: impl Read) -> Result<Header, LoadError> {
        let shortest = (HEADER_BYTES + 8 * (1 + L::MORE) + CHECKSUM_BYTES) as u64;
        let bytes: [u8; HEADER_BYTES] = read_start(&mut reader, L::KIND, shortest)?;
        if digest_of(&bytes[..32]).finalize() != u64::from_le_bytes(field(&bytes, 32)) {
            return Err(LoadError::Corrupt { part: "header" });
        }
        Ok(Header {
            kind: L::KIND,
            slots: u16::from_le_bytes(field(&bytes, 12)),
            bits: bytes[14],
            ages: bytes[15],
            buckets: u64::from_le_bytes(field(&bytes, 16)),
            hasher: u64::from_le_bytes(field(&bytes, 24)),
            more: L::MORE,
        })
    }

    /// Reads the rest of the filter with this header: its words, and the number of copies in its
    /// buckets.
    pub(crate) fn read_rest<L: Saved>(
        &self,
        reader: impl Read,
        hasher: &impl BuildHasher,
    ) -> Result<(Vec<u64>, usize), LoadError> {
        self.check::<L>(hasher)?;
        self.read_table::<L>(reader, CHUNK_WORDS)
    }

    /// [`read_rest`](Self::read_rest) of these bytes, which must be of the right length.
    pub(crate) fn read_all<L: Saved>(
        &self,
        rest: &[u8],
        hasher: &impl BuildHasher,
    ) -> Result<(Vec<u64>, usize), LoadError> {
        self.check::<L>(hasher)?;
        let table = self.bytes() - HEADER_BYTES as u64;
        match (rest.len() as u64).checked_sub(table) {
            None => Err(LoadError::Truncated {
                bytes: self.bytes(),
            }),
            Some(0) => self.read_table::<L>(rest, self.words()),
            Some(excess) => Err(LoadError::TooLong { excess }),
        }
    }

    /// Checks that it can be loaded as this type, with this hasher.
    fn check<L: Saved>(&self, hasher: &impl BuildHasher) -> Result<(), LoadError> {
        let &Header {
            slots,
            bits,
            ages,
            buckets,
            ..
        } = self;
        if (slots.into(), bits.into(), ages.into()) != L::LAYOUT {
            return Err(LoadError::Layout { slots, bits, ages });
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
        (HEADER_BYTES + CHECKSUM_BYTES + 8 * self.more) as u64 + 8 * self.buckets
    }

    /// Returns the number of words, if the number of buckets has been checked.
    fn words(&self) -> usize {
        self.buckets as usize + self.more
    }

    /// Reads the table that follows a checked header. `room` is the number of words for which
    /// memory may be requested before any have arrived.
    fn read_table<L: Saved>(
        &self,
        mut reader: impl Read,
        room: usize,
    ) -> Result<(Vec<u64>, usize), LoadError> {
        let (_, mut digest) = self.to_bytes();
        let words = read_words(&mut reader, &mut digest, self.words(), room, self.bytes())?;
        check_table(&mut reader, digest, self.bytes())?;
        let copies = count::<L>(&words[..self.buckets as usize])?;
        Ok((words, copies))
    }
}

/// Returns the number of copies in these words, if a bucket can be saved as each of them.
fn count<L: Saved>(words: &[u64]) -> Result<usize, LoadError> {
    let mut found = 0;
    for (bucket, &word) in words.iter().enumerate() {
        if !L::is_possible(word) {
            return Err(LoadError::Bucket { bucket, word });
        }
        found += L::copies(word);
    }
    Ok(found)
}
