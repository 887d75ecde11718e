//! A text file as a store: each line is a value, and its number is the key.

use std::io::{BufRead, Read, Write};
use std::num::NonZeroU64;

use anyhow::{Context, Result, ensure};

use crate::store::Store;
use crate::store::disk::Disk;
use crate::store::log::{Change, MAX_VALUE};

/// A batch is committed when it has this many bytes, however few lines they are, since all of it is
/// in memory.
const BATCH_BYTES: usize = 1 << 20;

/// Outcome of an import.
#[derive(Debug, PartialEq, Eq)]
pub struct Imported {
    /// Number of lines read.
    pub lines: u64,
    /// Number of lines that were not in the store already.
    pub written: u64,
    /// Number of keys that were deleted because there is no such line.
    pub deleted: u64,
}

/// Makes the store hold exactly these lines: the bytes of each, with the line ending. Lines that it
/// holds already are not written again, so an import continues where an earlier one was
/// interrupted.
///
/// Commits batches of `batch_lines` lines, and passes to `acknowledge` the number of the line up to
/// which all will stay.
pub fn import<D: Disk>(
    store: &mut Store<D>,
    mut lines: impl BufRead,
    batch_lines: NonZeroU64,
    mut acknowledge: impl FnMut(u64) -> Result<()>,
) -> Result<Imported> {
    let mut batch = Batch::new(store);
    let mut number = 0;
    let mut acknowledged = 0;
    while let Some(line) = next_line(&mut lines, number + 1)? {
        number += 1;
        let key = number.to_string().into_bytes();
        if batch.store.get(&key)?.as_ref() != Some(&line) {
            batch.push(key, Some(line));
        }
        if number % batch_lines == 0 || batch.bytes >= BATCH_BYTES {
            batch.commit()?;
            acknowledge(number)?;
            acknowledged = number;
        }
    }
    batch.commit()?;
    let written = batch.changes;
    if batch.store.len() as u64 > number {
        for key in batch.store.live()?.into_keys() {
            if !is_line_number(&key, number) {
                batch.push(key, None);
                if batch.bytes >= BATCH_BYTES {
                    batch.commit()?;
                }
            }
        }
        batch.commit()?;
    }
    if acknowledged < number {
        acknowledge(number)?;
    }
    Ok(Imported {
        lines: number,
        written,
        deleted: batch.changes - written,
    })
}

/// Reads the next line with its ending, which the last line of a file may lack.
fn next_line(lines: &mut impl BufRead, number: u64) -> Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let mut most = lines.take(MAX_VALUE as u64 + 1);
    (most.read_until(b'\n', &mut line)).with_context(|| format!("cannot read line {number}"))?;
    ensure!(
        line.len() <= MAX_VALUE,
        "line {number} is longer than {MAX_VALUE} bytes, the maximum length of a value"
    );
    Ok((!line.is_empty()).then_some(line))
}

/// True if the key is the number of one of this many lines.
fn is_line_number(key: &[u8], lines: u64) -> bool {
    let number = str::from_utf8(key).ok().and_then(|key| key.parse().ok());
    number.is_some_and(|number: u64| {
        (1..=lines).contains(&number) && number.to_string().as_bytes() == key
    })
}

/// Changes still to be committed.
struct Batch<'a, D> {
    store: &'a mut Store<D>,
    pending: Vec<Change>,
    bytes: usize,
    /// Number of changes in all batches.
    changes: u64,
}

impl<'a, D: Disk> Batch<'a, D> {
    fn new(store: &'a mut Store<D>) -> Self {
        Batch {
            store,
            pending: Vec::new(),
            bytes: 0,
            changes: 0,
        }
    }

    fn push(&mut self, key: Vec<u8>, value: Option<Vec<u8>>) {
        self.bytes += key.len() + value.as_ref().map_or(0, Vec::len);
        self.changes += 1;
        self.pending.push(Change { key, value });
    }

    fn commit(&mut self) -> Result<()> {
        self.store.commit(&self.pending)?;
        self.pending.clear();
        self.bytes = 0;
        Ok(())
    }
}

/// Writes all values, in the [`order`] of their keys.
pub fn export<D: Disk>(store: &Store<D>, mut out: impl Write) -> Result<()> {
    let mut keys: Vec<Vec<u8>> = store.live()?.into_keys().collect();
    keys.sort_unstable_by(|one, other| order(one).cmp(&order(other)));
    for key in keys {
        let value = store.get(&key)?;
        let value = value.with_context(|| format!("{} is not in the index", key.escape_ascii()))?;
        out.write_all(&value)?;
    }
    Ok(out.flush()?)
}

/// Returns the sort key of a key: shorter keys come first, so numbers are in numerical order.
pub fn order(key: &[u8]) -> (usize, &[u8]) {
    (key.len(), key)
}
