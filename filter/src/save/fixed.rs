//! The format of a fixed-size filter, which the [parent](super) describes.

use std::hash::BuildHasher;
use std::io::{self, Read, Write};

use super::LoadError;
use super::known_keys::digest_of_known_keys;
use super::words::{
    CHECKSUM_BYTES, CHUNK_WORDS, FIXED, Sum, check_table, count, digest_of, field, read_start,
    read_words, write_words,
};
use crate::buckets::Buckets;
use crate::hashing::MAX_BUCKETS;
use crate::snapshot::{Snapshot, SnapshotError};

const HEADER_BYTES: usize = 40;

/// [`write`]s to memory.
pub(crate) fn to_bytes<const SLOTS: usize, const BITS: usize>(
    snapshot: Snapshot<'_, Buckets<SLOTS, BITS>>,
    hasher: &impl BuildHasher,
) -> Result<Vec<u8>, SnapshotError> {
    let buckets = snapshot.buckets();
    let mut bytes = Vec::new();
    bytes
        .try_reserve_exact(HEADER_BYTES + 8 * buckets + CHECKSUM_BYTES)
        .map_err(|_| SnapshotError::OutOfMemory { buckets })?;
    write(snapshot, hasher, &mut bytes).expect("a vector takes every byte");
    Ok(bytes)
}

/// Writes the filter of this snapshot and hasher.
pub(crate) fn write<const SLOTS: usize, const BITS: usize>(
    snapshot: Snapshot<'_, Buckets<SLOTS, BITS>>,
    hasher: &impl BuildHasher,
    mut writer: impl Write,
) -> io::Result<()> {
    let header = Header {
        slots: SLOTS as u16,
        bits: BITS as u16,
        buckets: snapshot.buckets() as u64,
        hasher: digest_of_known_keys(hasher),
    };
    let (bytes, mut digest) = header.to_bytes();
    writer.write_all(&bytes)?;
    write_words(&mut writer, &mut digest, snapshot)?;
    writer.write_all(&digest.finalize().to_le_bytes())?;
    writer.flush()
}

/// What comes before the table.
pub(crate) struct Header {
    pub(crate) slots: u16,
    pub(crate) bits: u16,
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

    /// Reads the rest of the filter with this header: its table, and the number of copies there.
    pub(crate) fn read_rest<const SLOTS: usize, const BITS: usize>(
        &self,
        reader: impl Read,
        hasher: &impl BuildHasher,
    ) -> Result<(Buckets<SLOTS, BITS>, usize), LoadError> {
        self.check::<SLOTS, BITS>(hasher)?;
        self.read_table(reader, CHUNK_WORDS)
    }

    /// [`read_rest`](Self::read_rest) of these bytes, which must be of the right length.
    pub(crate) fn read_all<const SLOTS: usize, const BITS: usize>(
        &self,
        rest: &[u8],
        hasher: &impl BuildHasher,
    ) -> Result<(Buckets<SLOTS, BITS>, usize), LoadError> {
        self.check::<SLOTS, BITS>(hasher)?;
        let table = self.bytes() - HEADER_BYTES as u64;
        match (rest.len() as u64).checked_sub(table) {
            None => Err(LoadError::Truncated {
                bytes: self.bytes(),
            }),
            Some(0) => self.read_table(rest, self.buckets as usize),
            Some(excess) => Err(LoadError::TooLong { excess }),
        }
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

    /// Reads the table that follows a checked header. `room` is the number of buckets for which
    /// memory may be requested before any have arrived.
    fn read_table<const SLOTS: usize, const BITS: usize>(
        &self,
        mut reader: impl Read,
        room: usize,
    ) -> Result<(Buckets<SLOTS, BITS>, usize), LoadError> {
        let buckets = self.buckets as usize;
        let (_, mut digest) = self.to_bytes();
        let words = read_words(&mut reader, &mut digest, buckets, room, self.bytes())?;
        check_table(&mut reader, digest, self.bytes())?;
        let copies = count::<SLOTS, BITS>(&words)?;
        Ok((Buckets::from_words(words), copies))
    }
}
