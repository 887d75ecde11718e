//! Saving and loading a growing filter. [`save`](crate::save) describes the format.

use std::hash::BuildHasher;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};

use super::address::parent;
use super::table::{MIN_BUCKETS, Table, has_level};
use super::word;
use super::{Growing, GrowingCuckooFilter};
use crate::builder::Loadable;
use crate::geometry::MAX_BUCKETS;
use crate::save::LoadError;
use crate::save::known_keys::digest_of_known_keys;
use crate::save::words::{
    CHECKSUM_BYTES, GROWING, Sum, field, header_of, read_header, read_table, write_saved,
    write_words,
};
use crate::snapshot::{Snapshot, SnapshotError, Table as _, with_room};

const HEADER_BYTES: usize = 48;

/// A snapshot of a table: the contents of each bucket, and 0 for a bucket that was made after its parent was
/// kept, since the parent was kept whole.
pub(super) struct TableSnapshot<'a> {
    snapshot: Snapshot<'a, Table>,
    /// Number of slots that were counted as doubled before it began. All of these are in the snapshot, so its length is
    /// never too small.
    doubled: u64,
    next: usize,
    /// For each bucket that was not made when the snapshot began: whether its parent was kept after making it.
    since: Vec<bool>,
}

impl<'a> TableSnapshot<'a> {
    pub(super) fn begin(table: &'a Table) -> Result<Self, SnapshotError> {
        let doubled = table.doubled();
        let snapshot = Snapshot::begin(table, table.snapshots())?;
        let not_made = snapshot.buckets - snapshot.made;
        let mut since = with_room(not_made, snapshot.buckets)?;
        since.resize(not_made, false);
        Ok(TableSnapshot {
            snapshot,
            doubled,
            next: 0,
            since,
        })
    }

    /// Makes a table of it.
    pub(super) fn copy(self, kind: Growing) -> Result<Table, SnapshotError> {
        let (base, buckets) = (self.snapshot.table.base(), self.snapshot.buckets);
        let doubled = self.doubled as usize;
        let mut words = with_room(buckets, buckets)?;
        words.extend(self);
        let more = complete(base, &mut words).expect("a table can be completed");
        Table::from_words(base, &words, doubled + more, kind).map_err(|error| {
            SnapshotError::OutOfMemory {
                buckets: error.words(),
            }
        })
    }

    /// [`write`](Self::write)s to memory.
    pub(super) fn into_bytes(self, hasher: &impl BuildHasher) -> Result<Vec<u8>, SnapshotError> {
        let buckets = self.snapshot.buckets;
        let mut bytes = with_room(HEADER_BYTES + 8 * buckets + CHECKSUM_BYTES, buckets)?;
        let written = self.write(hasher, &mut bytes);
        written.expect("a vector takes every byte");
        Ok(bytes)
    }

    /// Writes the filter of this table and hasher.
    pub(super) fn write(self, hasher: &impl BuildHasher, writer: impl Write) -> io::Result<()> {
        let (table, buckets) = (self.snapshot.table, self.snapshot.buckets);
        write_saved(header(table, buckets, self.doubled, hasher), self, writer)
    }
}

impl Iterator for TableSnapshot<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let (bucket, made) = (self.next, self.snapshot.made);
        let contents = self.snapshot.next()?;
        self.next += 1;
        if bucket >= made && !self.since[bucket - made] {
            return Some(0);
        }
        // Those that it had been split into.
        let base = self.snapshot.table.base();
        for level in base..base + word::level(contents) {
            let upper = bucket + (1 << level);
            if bucket < 1 << level && upper >= made {
                self.since[upper - made] = true;
            }
        }
        Some(contents)
    }
}

/// Returns the bytes before the words, and the checksum to continue with.
fn header(
    table: &Table,
    buckets: usize,
    doubled: u64,
    hasher: &impl BuildHasher,
) -> ([u8; HEADER_BYTES], Sum) {
    let numbers = [buckets as u64, doubled, digest_of_known_keys(hasher)];
    header_of(&GROWING, table.base().to_le_bytes(), &numbers)
}

/// A reader of the bytes of a saved filter, which reads the table in place ([`GrowingCuckooFilter::saved_bytes`]).
///
/// A read takes time in proportion to what it returns. The last eight bytes, a checksum, take one more pass over
/// the table, unless the bytes before them were read in order and in multiples of eight.
pub struct SavedBytes<'a> {
    table: &'a Table,
    buckets: usize,
    header: [u8; HEADER_BYTES],
    position: u64,
    /// The checksum of the header and of this many buckets.
    digest: (Sum, usize),
}

impl<'a> SavedBytes<'a> {
    pub(super) fn new<S: BuildHasher>(filter: &'a mut GrowingCuckooFilter<S>) -> Self {
        let table = &filter.table;
        let buckets = table.begun();
        let (header, digest) = header(table, buckets, table.doubled(), &filter.hasher);
        SavedBytes {
            table,
            buckets,
            header,
            position: 0,
            digest: (digest, 0),
        }
    }

    /// Returns the total number of bytes, including those already read.
    #[expect(clippy::len_without_is_empty)] // It never is.
    pub fn len(&self) -> u64 {
        (HEADER_BYTES + 8 * self.buckets + CHECKSUM_BYTES) as u64
    }

    /// Returns the eight bytes from `8 * number` on.
    fn eight(&mut self, number: usize) -> [u8; 8] {
        if number < HEADER_BYTES / 8 {
            return field(&self.header, 8 * number);
        }
        let bucket = number - HEADER_BYTES / 8;
        if bucket < self.buckets {
            return self.table.contents(bucket).to_le_bytes();
        }
        let (digest, summed) = &mut self.digest;
        let rest = (*summed..self.buckets).map(|bucket| self.table.contents(bucket));
        write_words(&mut io::sink(), digest, rest).expect("a sink takes every byte");
        *summed = self.buckets;
        digest.clone().finalize().to_le_bytes()
    }
}

/// Reads as much as there is room for, up to the end.
impl Read for SavedBytes<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut read = 0;
        while read < out.len() && self.position < self.len() {
            let number = (self.position / 8) as usize;
            let from = (self.position % 8) as usize;
            let bucket = number.wrapping_sub(HEADER_BYTES / 8);
            let out = &mut out[read..];
            let words = (out.len() / 8).min(self.buckets.saturating_sub(bucket));
            let some = if from == 0 && words > 0 {
                let out = &mut out[..8 * words];
                for (nth, bytes) in out.chunks_exact_mut(8).enumerate() {
                    bytes.copy_from_slice(&self.table.contents(bucket + nth).to_le_bytes());
                }
                if self.digest.1 == bucket {
                    self.digest.0.update(out);
                    self.digest.1 += words;
                }
                out.len()
            } else {
                let bytes = self.eight(number);
                let some = (8 - from).min(out.len());
                out[..some].copy_from_slice(&bytes[from..from + some]);
                some
            };
            self.position += some as u64;
            read += some;
        }
        Ok(read)
    }
}

impl Seek for SavedBytes<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let position = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::Current(by) => self.position.checked_add_signed(by),
            SeekFrom::End(by) => self.len().checked_add_signed(by),
        };
        self.position = position.ok_or(ErrorKind::InvalidInput)?;
        Ok(self.position)
    }
}

impl Loadable for Growing {
    type Filter<S> = GrowingCuckooFilter<S>;

    fn load<S: BuildHasher>(
        self,
        mut reader: impl Read,
        length: Option<u64>,
        hasher: S,
    ) -> Result<GrowingCuckooFilter<S>, LoadError> {
        let shortest = (HEADER_BYTES + 8 + CHECKSUM_BYTES) as u64;
        let (header, digest) = read_header::<HEADER_BYTES>(&mut reader, &GROWING, shortest)?;
        let base = u32::from_le_bytes(field(&header, 12));
        let [buckets, doubled, known_keys] =
            [16, 24, 32].map(|offset| u64::from_le_bytes(field(&header, offset)));
        if known_keys != digest_of_known_keys(&hasher) {
            return Err(LoadError::Hasher);
        }
        if !(1..=MAX_BUCKETS as u64).contains(&buckets) {
            return Err(LoadError::Size { buckets });
        }
        if base < MIN_BUCKETS.ilog2() {
            let what = "fewer than 16 buckets at first";
            return Err(LoadError::Impossible { what });
        }
        if buckets.checked_shr(base).unwrap_or(0) == 0 {
            let what = "fewer buckets than it began with";
            return Err(LoadError::Impossible { what });
        }
        let whole = (HEADER_BYTES + CHECKSUM_BYTES) as u64 + 8 * buckets;
        let buckets = buckets as usize;
        let mut words = read_table(&mut reader, digest, buckets, whole, length)?;
        let more = complete(base, &mut words)?;
        let doubled = usize::try_from(doubled).unwrap_or(usize::MAX);
        let table = Table::from_words(base, &words, doubled.saturating_add(more), self).map_err(
            |error| LoadError::OutOfMemory {
                buckets: error.words(),
            },
        )?;
        Ok(GrowingCuckooFilter {
            table,
            kind: self,
            hasher,
        })
    }
}

/// Checks the words of a table, drops buckets at its end that had not been made, and makes the others that had not
/// been by splitting their parents. Returns how many slots that doubles.
fn complete(base: u32, words: &mut Vec<u64>) -> Result<usize, LoadError> {
    let error = |bucket: usize, word: u64| LoadError::Bucket { bucket, word };
    // A snapshot includes buckets that other threads may have begun to make. Mostly, there are none.
    while words.len() > 1 << base && words.last() == Some(&0) {
        words.pop();
    }
    let mut doubled = 0;
    for bucket in 0..words.len() {
        let word = words[bucket];
        if !word::is_possible(word) {
            return Err(error(bucket, word));
        }
        if word == 0 && bucket >= 1 << base {
            let lower = parent(bucket);
            let held = words[lower.bucket];
            if word::level(held) + base != lower.level {
                return Err(error(bucket, word));
            }
            doubled += word::doubled(held);
            [words[lower.bucket], words[bucket]] = word::halves(held);
        }
    }
    for (bucket, &word) in words.iter().enumerate() {
        if !has_level(bucket, words.len(), base, word) {
            return Err(error(bucket, word));
        }
    }
    Ok(doubled)
}
