//! The parts that all formats share: words, checksums, and the errors of reading them.

use std::io::{self, Read, Write};

use crc::{CRC_64_XZ, Crc, Digest, Table};

use super::LoadError;

pub(crate) const CHECKSUM_BYTES: usize = 8;

/// Number of bytes read or written at once. A reader that claims more than it has is found out
/// after this many bytes.
const CHUNK_BYTES: usize = 1 << 14;
const CHUNK_WORDS: usize = CHUNK_BYTES / 8;

static CRC: Crc<u64, Table<16>> = Crc::<u64, Table<16>>::new(&CRC_64_XZ);

pub(crate) type Sum = Digest<'static, u64, Table<16>>;

/// A kind of saved filter.
#[derive(Debug)]
pub struct Kind {
    /// The first bytes of its files.
    pub(super) magic: [u8; 8],
    /// The version of its format.
    version: u32,
    /// Its name, and the type that loads it.
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

/// Returns the header of a saved filter of this kind, in which four bytes and some numbers follow the version, and
/// the checksum to continue with.
pub(crate) fn header_of<const BYTES: usize>(
    kind: &Kind,
    four: [u8; 4],
    numbers: &[u64],
) -> ([u8; BYTES], Sum) {
    let (mut bytes, end) = ([0; BYTES], BYTES - CHECKSUM_BYTES);
    bytes[..8].copy_from_slice(&kind.magic);
    bytes[8..12].copy_from_slice(&kind.version.to_le_bytes());
    bytes[12..16].copy_from_slice(&four);
    for (place, number) in bytes[16..end].chunks_exact_mut(8).zip(numbers) {
        place.copy_from_slice(&number.to_le_bytes());
    }
    let digest = digest_of(&bytes[..end]);
    bytes[end..].copy_from_slice(&digest.clone().finalize().to_le_bytes());
    (bytes, digest)
}

/// Reads and checks the header of a saved filter of this kind, which has at least `shortest` bytes; returns it, and
/// the checksum to continue with.
pub(crate) fn read_header<const BYTES: usize>(
    reader: &mut impl Read,
    kind: &Kind,
    shortest: u64,
) -> Result<([u8; BYTES], Sum), LoadError> {
    let mut bytes = [0; BYTES];
    // Byte by byte: whatever begins differently is not a filter, even if it ends at once.
    for end in 1..=8 {
        read_exact(reader, &mut bytes[end - 1..end], shortest)?;
        let begins = |kind: &&Kind| kind.magic.starts_with(&bytes[..end]);
        let Some(found) = [&FIXED, &EXPIRING, &GROWING].into_iter().find(begins) else {
            return Err(LoadError::NotAFilter);
        };
        if end == 8 && found.magic != kind.magic {
            let [found, loader] = found.described;
            return Err(LoadError::Kind { found, loader });
        }
    }
    // Other versions may continue differently.
    read_exact(reader, &mut bytes[8..12], shortest)?;
    let (found, known) = (u32::from_le_bytes(field(&bytes, 8)), kind.version);
    if found != known {
        return Err(LoadError::Version { found, known });
    }
    read_exact(reader, &mut bytes[12..], shortest)?;
    let (before, checksum) = bytes.split_at(BYTES - CHECKSUM_BYTES);
    let digest = digest_of(before);
    check(&digest, checksum, "header")?;
    Ok((bytes, digest))
}

/// Writes a saved filter: its header, these words, and the checksum.
pub(crate) fn write_saved<const BYTES: usize>(
    (header, mut digest): ([u8; BYTES], Sum),
    words: impl Iterator<Item = u64>,
    mut writer: impl Write,
) -> io::Result<()> {
    writer.write_all(&header)?;
    write_words(&mut writer, &mut digest, words)?;
    writer.write_all(&digest.finalize().to_le_bytes())?;
    writer.flush()
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

/// Reads this many words of a saved filter that is `whole` bytes long, and the checksum after them. A known
/// `length` of the filter must be right; if it is unknown, memory is requested as words arrive.
pub(crate) fn read_table(
    reader: &mut impl Read,
    mut digest: Sum,
    number: usize,
    whole: u64,
    length: Option<u64>,
) -> Result<Vec<u64>, LoadError> {
    // The number of words for which memory may be requested before any have arrived.
    let room = match length.map(|length| length.checked_sub(whole)) {
        None => CHUNK_WORDS,
        Some(Some(0)) => number,
        Some(Some(excess)) => return Err(LoadError::TooLong { excess }),
        Some(None) => return Err(LoadError::Truncated { bytes: whole }),
    };
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
    let mut checksum = [0; CHECKSUM_BYTES];
    read_exact(reader, &mut checksum, whole)?;
    check(&digest, &checksum, "table")?;
    Ok(words)
}

/// Compares a checksum with what was read before it.
fn check(digest: &Sum, checksum: &[u8], part: &'static str) -> Result<(), LoadError> {
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
fn read_exact(reader: &mut impl Read, bytes: &mut [u8], whole: u64) -> Result<(), LoadError> {
    reader
        .read_exact(bytes)
        .map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => LoadError::Truncated { bytes: whole },
            _ => error.into(),
        })
}
