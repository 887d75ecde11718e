//! The format of a filter whose table has a fixed size, which the [parent](super) describes.

use std::hash::BuildHasher;
use std::io::{self, Read, Write};

use super::LoadError;
use super::known_keys::digest_of_known_keys;
use super::words::{
    CHECKSUM_BYTES, FIXED, Kind, Sum, field, header_of, read_header, read_table, write_saved,
};
use crate::buckets::Buckets;
use crate::builder::Loadable;
use crate::filter::CuckooFilter;
use crate::geometry::MAX_BUCKETS;
use crate::layout::Layout;
use crate::snapshot::{SnapshotError, with_room};

const HEADER_BYTES: usize = 40;

/// How the buckets of a filter are saved.
pub trait Saved: Sized {
    /// The filter, with this hasher.
    type Filter<S>;

    const KIND: &'static Kind;
    /// Slots of a bucket, bits of a fingerprint, bits of an age.
    const LAYOUT: (usize, usize, usize);
    /// Number of words that follow those of the buckets.
    const MORE: usize = 0;

    /// Returns the number of copies in a bucket that is saved as this word, if one can be.
    fn copies(word: u64) -> Option<usize>;

    /// Makes a filter of these words, which hold this many copies.
    fn filter<S>(words: Vec<u64>, copies: usize, hasher: S) -> Result<Self::Filter<S>, LoadError>;
}

impl<L: Saved> Loadable for L {
    type Filter<S> = <L as Saved>::Filter<S>;

    fn load<S: BuildHasher>(
        self,
        mut reader: impl Read,
        length: Option<u64>,
        hasher: S,
    ) -> Result<<L as Saved>::Filter<S>, LoadError> {
        Header::read::<L>(&mut reader)?.load::<L, S>(reader, length, hasher)
    }
}

impl<const SLOTS: usize, const BITS: usize> Saved for Layout<SLOTS, BITS> {
    const KIND: &'static Kind = &FIXED;
    const LAYOUT: (usize, usize, usize) = (SLOTS, BITS, 0);
    type Filter<S> = CuckooFilter<S, SLOTS, BITS>;

    fn copies(word: u64) -> Option<usize> {
        (Self::slots(word) == word).then(|| Self::occupied(word))
    }

    fn filter<S>(words: Vec<u64>, copies: usize, hasher: S) -> Result<Self::Filter<S>, LoadError> {
        Ok(CuckooFilter::wrap(
            Buckets::from_words(words),
            copies,
            hasher,
        ))
    }
}

/// [`write`]s to memory.
pub(crate) fn to_bytes<L: Saved>(
    buckets: usize,
    words: impl Iterator<Item = u64>,
    hasher: &impl BuildHasher,
) -> Result<Vec<u8>, SnapshotError> {
    let mut bytes = with_room(bytes_of::<L>(buckets as u64) as usize, buckets)?;
    write::<L>(buckets, words, hasher, &mut bytes).expect("a vector takes every byte");
    Ok(bytes)
}

/// Writes a filter of this many buckets: their words, and those that follow.
pub(crate) fn write<L: Saved>(
    buckets: usize,
    words: impl Iterator<Item = u64>,
    hasher: &impl BuildHasher,
    writer: impl Write,
) -> io::Result<()> {
    let (slots, bits, ages) = L::LAYOUT;
    let [low, high] = (slots as u16).to_le_bytes();
    let numbers = [buckets as u64, digest_of_known_keys(hasher)];
    let header = header_of::<HEADER_BYTES>(L::KIND, [low, high, bits as u8, ages as u8], &numbers);
    write_saved(header, words, writer)
}

/// Returns the length of a saved filter.
fn bytes_of<L: Saved>(buckets: u64) -> u64 {
    (HEADER_BYTES + CHECKSUM_BYTES + 8 * L::MORE) as u64 + 8 * buckets
}

/// The bytes before the table.
pub(crate) struct Header {
    pub(crate) slots: u16,
    pub(crate) bits: u8,
    ages: u8,
    buckets: u64,
    hasher: u64,
    /// The checksum to continue with.
    digest: Sum,
}

impl Header {
    /// Reads the header of a filter of this kind.
    pub(crate) fn read<L: Saved>(reader: &mut impl Read) -> Result<Header, LoadError> {
        let (bytes, digest) = read_header::<HEADER_BYTES>(reader, L::KIND, bytes_of::<L>(1))?;
        Ok(Header {
            slots: u16::from_le_bytes(field(&bytes, 12)),
            bits: bytes[14],
            ages: bytes[15],
            buckets: u64::from_le_bytes(field(&bytes, 16)),
            hasher: u64::from_le_bytes(field(&bytes, 24)),
            digest,
        })
    }

    /// Loads the rest of the filter with this header. If the whole length is known, it must be right.
    pub(crate) fn load<L: Saved, S: BuildHasher>(
        self,
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
        let (whole, all) = (bytes_of::<L>(buckets), words::<usize>(buckets, L::MORE)?);
        let words = read_table(&mut reader, self.digest, all, whole, length)?;
        let copies = |(bucket, &word): (usize, &u64)| {
            L::copies(word).ok_or(LoadError::Bucket { bucket, word })
        };
        let buckets = words[..buckets as usize].iter().enumerate();
        let copies = buckets.map(copies).sum::<Result<usize, _>>()?;
        L::filter(words, copies, hasher)
    }
}

/// Returns the number of words: one for each bucket, and `more`. (A 32-bit machine has no number for some of these.)
fn words<N: TryFrom<u64>>(buckets: u64, more: usize) -> Result<N, LoadError> {
    N::try_from(buckets + more as u64).map_err(|_| LoadError::Size { buckets })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_words_are_error() {
        let most = u64::from(u32::MAX);
        assert_eq!(words::<u32>(most - 1, 1).unwrap(), u32::MAX);
        let error = words::<u32>(most, 1).unwrap_err();
        assert!(matches!(error, LoadError::Size { buckets } if buckets == most));
        assert_eq!(words::<u64>(most, 1).unwrap(), most + 1);
    }
}
