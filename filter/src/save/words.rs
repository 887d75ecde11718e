//! What all formats have in common: words, checksums, and the errors of reading them.

use std::io::{self, Read, Write};

use crc::{CRC_64_XZ, Crc, Digest, Table};

use super::LoadError;

pub(crate) const CHECKSUM_BYTES: usize = 8;

/// Number of bytes read or written at once. A reader that claims more than it has is found out
/// after this many bytes.
const CHUNK_BYTES: usize = 1 << 14;
pub(crate) const CHUNK_WORDS: usize = CHUNK_BYTES / 8;

static CRC: Crc<u64, Table<16>> = Crc::<u64, Table<16>>::new(&CRC_64_XZ);

pub(crate) type Sum = Digest<'static, u64, Table<16>>;

/// A kind of saved filter.
#[derive(Debug)]
pub(crate) struct Kind {
    /// What it begins with.
    pub(crate) magic: [u8; 8],
    /// The version of its format.
    pub(crate) version: u32,
    /// What it is called, and how it is loaded.
    described: [&'static str; 2],
}

pub(crate) const FIXED: Kind = Kind {
    magic: *b"cuckoof\n",
    version: 3,
    described: [
        "filter of a fixed size",
        "CuckooFilter, with CuckooFilter::builder(), or as a DynCuckooFilter",
    ],
};

pub(crate) const EXPIRING: Kind = Kind {
    magic: *b"cuckoox\n",
    version: 3,
    described: [
        "filter that forgets",
        "ExpiringCuckooFilter, with ExpiringCuckooFilter::builder()",
    ],
};

pub(crate) const GROWING: Kind = Kind {
    magic: *b"cuckoog\n",
    version: 3,
    described: [
        "growing filter",
        "GrowingCuckooFilter, with GrowingCuckooFilter::builder()",
    ],
};

/// Reads the first `N` bytes of a saved filter, and checks its kind and the version of its format. A filter
/// of this kind has at least `shortest` bytes.
pub(crate) fn read_start<const N: usize>(
    reader: &mut impl Read,
    kind: &Kind,
    shortest: u64,
) -> Result<[u8; N], LoadError> {
    let mut bytes = [0; N];
    // Byte by byte: whatever begins differently is not a filter, even if it ends at once.
    for end in 1..=8 {
        read_exact(reader, &mut bytes[end - 1..end], shortest)?;
        let begins = |kind: &&Kind| kind.magic.starts_with(&bytes[..end]);
        let Some(found) = [&FIXED, &EXPIRING, &GROWING].into_iter().find(begins) else {
            return Err(LoadError::NotAFilter);
        };
        if end == 8 && found.magic != kind.magic {
            let [found, loader] = found.described;
            return Err(LoadError::OtherType { found, loader });
        }
    }
    // Other versions may continue differently.
    read_exact(reader, &mut bytes[8..12], shortest)?;
    let (found, known) = (u32::from_le_bytes(field(&bytes, 8)), kind.version);
    if found != known {
        return Err(LoadError::Version { found, known });
    }
    read_exact(reader, &mut bytes[12..], shortest)?;
    Ok(bytes)
}

/// Writes words, and adds them to the checksum.
pub(crate) fn write_words(
    writer: &mut impl Write,
    digest: &mut Sum,
    mut words: impl Iterator<Item = u64>,
) -> io::Result<()> {
    let mut chunk = [0; CHUNK_BYTES];
    loop {
        let mut filled = 0;
        for (place, word) in chunk.chunks_exact_mut(8).zip(&mut words) {
            place.copy_from_slice(&word.to_le_bytes());
            filled += place.len();
        }
        if filled == 0 {
            return Ok(());
        }
        digest.update(&chunk[..filled]);
        writer.write_all(&chunk[..filled])?;
    }
}

/// Reads this many words of a saved filter that is `whole` bytes long, and adds them to the
/// checksum. `room` is the number of words for which memory may be requested before any have
/// arrived.
pub(crate) fn read_words(
    reader: &mut impl Read,
    digest: &mut Sum,
    number: usize,
    room: usize,
    whole: u64,
) -> Result<Vec<u64>, LoadError> {
    let mut words: Vec<u64> = Vec::new();
    let mut chunk = [0; CHUNK_BYTES];
    while words.len() < number {
        let missing = number - words.len();
        if words.len() == words.capacity() {
            // As much again as has arrived.
            let next = words.len().max(room);
            words
                .try_reserve_exact(next.min(missing))
                .map_err(|_| LoadError::OutOfMemory { buckets: number })?;
        }
        let arriving = missing.min(words.capacity() - words.len());
        let chunk = &mut chunk[..8 * arriving.min(CHUNK_WORDS)];
        read_exact(reader, chunk, whole)?;
        digest.update(chunk);
        let arrived = chunk.chunks_exact(8);
        words.extend(arrived.map(|bytes| u64::from_le_bytes(field(bytes, 0))));
    }
    Ok(words)
}

/// Reads the checksum at the end of a saved filter that is `whole` bytes long.
pub(crate) fn check_table(
    reader: &mut impl Read,
    digest: Sum,
    whole: u64,
) -> Result<(), LoadError> {
    let mut checksum = [0; CHECKSUM_BYTES];
    read_exact(reader, &mut checksum, whole)?;
    check(&digest, &checksum, "table")
}

/// Compares a checksum with what was read before it.
pub(crate) fn check(digest: &Sum, checksum: &[u8], part: &'static str) -> Result<(), LoadError> {
    if digest.clone().finalize() != u64::from_le_bytes(field(checksum, 0)) {
        return Err(LoadError::Corrupt { part });
    }
    Ok(())
}

pub(crate) fn digest_of(bytes: &[u8]) -> Sum {
    let mut digest = CRC.digest();
    digest.update(bytes);
    digest
}

/// Returns the bytes of a number that begins at `offset`.
pub(crate) fn field<const N: usize>(bytes: &[u8], offset: usize) -> [u8; N] {
    let bytes = bytes[offset..].first_chunk();
    *bytes.expect("the fields lie within the header, and words within a chunk")
}

/// Fills `bytes` from a saved filter that is `whole` bytes long.
pub(crate) fn read_exact(
    reader: &mut impl Read,
    bytes: &mut [u8],
    whole: u64,
) -> Result<(), LoadError> {
    reader
        .read_exact(bytes)
        .map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => LoadError::Truncated { bytes: whole },
            _ => LoadError::Io(error),
        })
}
