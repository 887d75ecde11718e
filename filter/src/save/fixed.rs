//! The format of a filter whose table has a fixed size, which the [parent](super) describes.

use std::hash::BuildHasher;
use std::io::{self, Read, Write};

use super::LoadError;
use super::known_keys::digest_of_known_keys;
use super::words::{
    CHECKSUM_BYTES, CHUNK_WORDS, FIXED, Kind, Sum, check, check_table, digest_of, field,
    read_start, read_words, write_words,
};
use crate::buckets::Buckets;
use crate::filter::CuckooFilter;
use crate::hashing::MAX_BUCKETS;
use crate::layout::Layout;
use crate::snapshot::{SnapshotError, with_room};

const HEADER_BYTES: usize = 40;

/// How the buckets of a filter are saved.
pub(crate) trait Saved {
    const KIND: &'static Kind;
    /// Slots of a bucket, bits of a fingerprint, bits of an age.
    const LAYOUT: (usize, usize, usize);
    /// Number of words that follow those of the buckets.
    const MORE: usize = 0;
    /// What is loaded.
    type Filter<S>;

    /// True if a bucket can be saved as this word.
    fn is_possible(word: u64) -> bool;

    /// Returns the number of copies in a bucket.
    fn copies(word: u64) -> usize;

    /// Makes a filter of these words, which hold this many copies.
    fn filter<S>(words: Vec<u64>, copies: usize, hasher: S) -> Result<Self::Filter<S>, LoadError>;
}

impl<const SLOTS: usize, const BITS: usize> Saved for Layout<SLOTS, BITS> {
    const KIND: &'static Kind = &FIXED;
    const LAYOUT: (usize, usize, usize) = (SLOTS, BITS, 0);
    type Filter<S> = CuckooFilter<SLOTS, BITS, S>;

    fn is_possible(word: u64) -> bool {
        Self::slots(word) == word
    }

    fn copies(word: u64) -> usize {
        Self::occupied(word)
    }

    fn filter<S>(words: Vec<u64>, copies: usize, hasher: S) -> Result<Self::Filter<S>, LoadError> {
        Ok(CuckooFilter::of(Buckets::from_words(words), copies, hasher))
    }
}

/// [`write`]s to memory.
pub(crate) fn to_bytes<L: Saved>(
    buckets: usize,
    words: impl Iterator<Item = u64>,
    hasher: &impl BuildHasher,
) -> Result<Vec<u8>, SnapshotError> {
    let mut bytes = with_room(Header::new::<L>(buckets, 0).bytes() as usize, buckets)?;
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

/// Loads a filter of this kind, whose length, if it is known, must be right.
pub(crate) fn load<L: Saved, S: BuildHasher>(
    mut reader: impl Read,
    length: Option<u64>,
    hasher: S,
) -> Result<L::Filter<S>, LoadError> {
    let header = Header::of::<L>(&mut reader)?;
    header.load::<L, S>(reader, length, hasher)
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
        check(&digest_of(&bytes[..32]), &bytes[32..], "header")?;
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

    /// Loads the rest of the filter with this header. If the whole length is known, it must be right.
    pub(crate) fn load<L: Saved, S: BuildHasher>(
        &self,
        mut reader: impl Read,
        length: Option<u64>,
        hasher: S,
    ) -> Result<L::Filter<S>, LoadError> {
        let (slots, bits, ages, buckets) = (self.slots, self.bits, self.ages, self.buckets);
        if (slots.into(), bits.into(), ages.into()) != L::LAYOUT {
            return Err(LoadError::Layout { slots, bits, ages });
        }
        if self.hasher != digest_of_known_keys(&hasher) {
            return Err(LoadError::Hasher);
        }
        if !(1..=MAX_BUCKETS as u64).contains(&buckets) {
            return Err(LoadError::Size { buckets });
        }
        let (whole, all) = (self.bytes(), words::<usize>(buckets, self.more)?);
        // The number of words for which memory may be requested before any have arrived.
        let room = match length.map(|length| length.checked_sub(whole)) {
            None => CHUNK_WORDS,
            Some(Some(0)) => all,
            Some(Some(excess)) => return Err(LoadError::TooLong { excess }),
            Some(None) => return Err(LoadError::Truncated { bytes: whole }),
        };
        let (_, mut digest) = self.to_bytes();
        let words = read_words(&mut reader, &mut digest, all, room, whole)?;
        check_table(&mut reader, digest, whole)?;
        let copies = count::<L>(&words[..buckets as usize])?;
        L::filter(words, copies, hasher)
    }

    /// Returns the length of the saved filter.
    fn bytes(&self) -> u64 {
        (HEADER_BYTES + CHECKSUM_BYTES + 8 * self.more) as u64 + 8 * self.buckets
    }
}

/// Returns the number of words: one for each bucket, and `more`. (A 32-bit machine has no number for some of these.)
fn words<N: TryFrom<u64>>(buckets: u64, more: usize) -> Result<N, LoadError> {
    N::try_from(buckets + more as u64).map_err(|_| LoadError::Size { buckets })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_words_than_can_be_numbered_are_an_error() {
        let most = u64::from(u32::MAX);
        assert_eq!(words::<u32>(most - 1, 1).unwrap(), u32::MAX);
        let error = words::<u32>(most, 1).unwrap_err();
        assert!(matches!(error, LoadError::Size { buckets } if buckets == most));
        assert_eq!(words::<u64>(most, 1).unwrap(), most + 1);
    }
}
