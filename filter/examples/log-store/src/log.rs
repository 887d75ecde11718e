//! The log: a file of batches, each synced before it is acknowledged.
//!
//! All numbers are little-endian. A batch is [`MAGIC`] (8 bytes), the length of its records (4), a
//! checksum (4: CRC-32/ISCSI of the batch's place in the file, the length and the records), and the
//! records. A record is the place of the one before it in its chain, or 0 (8), the length of its key
//! (2), the length of its value, or 2³² − 1 if the key is deleted (4), the key, and the value.
//!
//! A process that is killed, or a machine that fails, may leave a torn batch at the end, which was
//! not acknowledged: it is ignored, and the next batch takes its place. If an intact batch follows,
//! the log is damaged, and that is an error.

use std::cell::Cell;
use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use crc::{CRC_32_ISCSI, Crc, Table};
use memchr::memmem;

const MAGIC: [u8; 8] = *b"\xfbbatch\x0d\x0a";
const BATCH_HEADER: usize = 16;
const RECORD_HEADER: usize = 14;
const DELETED: u32 = u32::MAX;

static CRC: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISCSI);

/// A log. Nobody else changes the file while this value lives.
pub(crate) struct Log {
    file: File,
    /// Length of the file.
    length: u64,
    /// Where the next batch begins.
    pub(crate) end: u64,
    /// Number of records read by [`record`](Self::record).
    pub(crate) reads: Cell<u64>,
}

/// The change of one key.
pub(crate) struct Record {
    pub(crate) at: u64,
    /// Where the record before it in its chain begins.
    pub(crate) previous: u64,
    pub(crate) key: Vec<u8>,
    /// `None` if the key is deleted.
    pub(crate) value: Option<Vec<u8>>,
}

/// The message about a place that is not as it was written.
pub(crate) fn damaged(at: u64) -> String {
    format!("the log is damaged at byte {at}: restore it from a copy")
}

impl Log {
    /// Opens the file, and locks it while this value lives. Creates it if it is to be written.
    pub(crate) fn open(path: &Path, write: bool) -> Result<Log> {
        let name = path.display();
        let is_new = !path.exists();
        if is_new && !write {
            bail!("there is no store at {name}: `import` or `set` creates one");
        }
        let mut options = File::options();
        let options = options.read(true).write(write).create(write);
        let file =
            (options.truncate(false).open(path)).with_context(|| format!("cannot open {name}"))?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => {
                bail!("another process uses the store at {name}: wait until it has finished")
            }
            locked => locked.with_context(|| format!("cannot lock {name}"))?,
        }
        if is_new {
            programs::sync_directory_of(path)?;
        }
        let log = Log {
            length: file.metadata()?.len(),
            file,
            end: 0,
            reads: Cell::new(0),
        };
        let known = MAGIC.len().min(log.length as usize);
        ensure!(
            log.read(0, known)? == MAGIC[..known],
            "{name} is no store: it does not begin like one"
        );
        Ok(log)
    }

    fn read(&self, at: u64, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        let mut file = &self.file;
        file.seek(SeekFrom::Start(at))?;
        file.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// Returns the records of the batch that begins here, and where it ends, if it is intact.
    pub(crate) fn batch(&self, at: u64) -> Result<Option<(Vec<Record>, u64)>> {
        let start = at + BATCH_HEADER as u64;
        if start > self.length {
            return Ok(None);
        }
        let header = self.read(at, BATCH_HEADER)?;
        let length = u32::from_le_bytes(field(&header, 8));
        if !header.starts_with(&MAGIC) || u64::from(length) > self.length - start {
            return Ok(None);
        }
        let bytes = self.read(start, length as usize)?;
        if header != batch_header(at, &bytes) {
            return Ok(None);
        }
        let end = start + u64::from(length);
        let (mut records, mut rest) = (Vec::new(), &bytes[..]);
        while !rest.is_empty() {
            let (bytes, after) = rest.split_at(Record::length(rest));
            records.push(Record::parse(end - rest.len() as u64, bytes));
            rest = after;
        }
        Ok(Some((records, end)))
    }

    /// Returns the record that begins here, in an intact batch.
    pub(crate) fn record(&self, at: u64) -> Result<Record> {
        self.reads.set(self.reads.get() + 1);
        let length = Record::length(&self.read(at, RECORD_HEADER)?);
        ensure!(length as u64 <= self.length - at, damaged(at));
        Ok(Record::parse(at, &self.read(at, length)?))
    }

    /// Checks that no intact batch follows a torn one, which whoever writes cuts off.
    pub(crate) fn cut_off_torn_batch(&mut self, write: bool) -> Result<()> {
        let torn = self.read(self.end, (self.length - self.end) as usize)?;
        for place in memmem::find_iter(&torn, &MAGIC) {
            let intact = self.batch(self.end + place as u64)?;
            ensure!(intact.is_none(), damaged(self.end));
        }
        if write && !torn.is_empty() {
            self.file.set_len(self.end)?;
            self.file.sync_all()?;
            self.length = self.end;
        }
        Ok(())
    }

    /// Returns the place of the record after these, the first ones of the next batch.
    pub(crate) fn place_after(&self, records: &[u8]) -> u64 {
        self.end + (BATCH_HEADER + records.len()) as u64
    }

    /// Appends a batch; once this returns, it is sure to stay.
    pub(crate) fn append(&mut self, records: &[u8]) -> Result<()> {
        let fits = records.len() <= u32::MAX as usize;
        ensure!(fits, "at most 4 GiB at a time are possible");
        let batch = [&batch_header(self.end, records)[..], records].concat();
        self.file.seek(SeekFrom::Start(self.end))?;
        (self.file.write_all(&batch)).context("cannot write to the log")?;
        self.file.sync_data().context("cannot sync the log")?;
        self.end += batch.len() as u64;
        self.length = self.end;
        Ok(())
    }
}

fn batch_header(at: u64, records: &[u8]) -> [u8; BATCH_HEADER] {
    let length = (records.len() as u32).to_le_bytes();
    let mut digest = CRC.digest();
    digest.update(&at.to_le_bytes());
    digest.update(&length);
    digest.update(records);
    let mut header = [0; BATCH_HEADER];
    header[..8].copy_from_slice(&MAGIC);
    header[8..12].copy_from_slice(&length);
    header[12..].copy_from_slice(&digest.finalize().to_le_bytes());
    header
}

impl Record {
    /// Appends a record to those of a batch.
    pub(crate) fn write(records: &mut Vec<u8>, previous: u64, key: &[u8], value: Option<&[u8]>) {
        records.extend(previous.to_le_bytes());
        records.extend((key.len() as u16).to_le_bytes());
        let length = value.map_or(DELETED, |value| value.len() as u32);
        records.extend(length.to_le_bytes());
        records.extend(key);
        records.extend(value.unwrap_or_default());
    }

    /// Returns the length of the record with this header.
    fn length(header: &[u8]) -> usize {
        let value = match u32::from_le_bytes(field(header, 10)) {
            DELETED => 0,
            length => length as usize,
        };
        RECORD_HEADER + usize::from(u16::from_le_bytes(field(header, 8))) + value
    }

    fn parse(at: u64, bytes: &[u8]) -> Record {
        let key_length = u16::from_le_bytes(field(bytes, 8));
        let (key, value) = bytes[RECORD_HEADER..].split_at(key_length.into());
        let is_deleted = u32::from_le_bytes(field(bytes, 10)) == DELETED;
        Record {
            at,
            previous: u64::from_le_bytes(field(bytes, 0)),
            key: key.to_vec(),
            value: (!is_deleted).then(|| value.to_vec()),
        }
    }
}

/// Returns the bytes of a header's field.
fn field<const LENGTH: usize>(header: &[u8], offset: usize) -> [u8; LENGTH] {
    *header[offset..].first_chunk().expect("a header is whole")
}
