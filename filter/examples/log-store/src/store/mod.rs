//! A key–value store: a log of all changes, and an index in memory that says whether and where to
//! read it.

pub mod disk;
pub mod index;
pub mod log;
pub mod page;

use anyhow::{Result, ensure};

use disk::Disk;
use index::Index;
use log::{Change, Live, Log, MAX_KEY, MAX_VALUE, Record, Recovered};

/// Values by their keys.
pub struct Store<D> {
    log: Log<D>,
    index: Index,
    torn: u64,
}

impl<D: Disk> Store<D> {
    /// Opens the store of this log: reads all of it, and builds the index.
    pub fn open(disk: D) -> Result<Store<D>> {
        let (log, Recovered { live, torn }) = Log::open(disk)?;
        let index = Index::of(&live)?;
        Ok(Store { log, index, torn })
    }

    /// Returns the value of a key. The log is not read if the filter denies the key.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        match self.find(key)? {
            Some(record) => self.log.value(&record),
            None => Ok(None),
        }
    }

    /// Returns the record that has the value of a key.
    pub fn find(&self, key: &[u8]) -> Result<Option<Record>> {
        if !self.index.may_have(key) {
            return Ok(None);
        }
        self.find_without_filter(key)
    }

    /// [`find`](Self::find) as it would be without a filter, for comparison.
    pub fn find_without_filter(&self, key: &[u8]) -> Result<Option<Record>> {
        for offset in self.index.places(key) {
            let record = self.log.record(offset)?;
            if record.key() == key {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }

    /// Makes these changes, in order; once this returns, they are sure to stay. After a crash
    /// during the call, either all of them are there or none.
    pub fn commit(&mut self, changes: &[Change]) -> Result<()> {
        if changes.is_empty() {
            return Ok(());
        }
        for change in changes {
            check(change)?;
        }
        let offsets = self.log.append(changes)?;
        self.torn = 0;
        for (change, offset) in changes.iter().zip(offsets) {
            let old = self.find(&change.key)?.map(|record| record.offset());
            match (old, &change.value) {
                (Some(old), Some(_)) => self.index.relocate(&change.key, old, offset),
                (Some(old), None) => self.index.remove(&change.key, old),
                (None, None) => {}
                (None, Some(_)) => {
                    if self.index.insert(&change.key, offset).is_err() {
                        // The log already has all of the batch.
                        self.index = Index::of(&self.log.live()?)?;
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    /// Reads the whole log for the place of each key that has a value.
    pub fn live(&self) -> Result<Live> {
        self.log.live()
    }

    /// Returns the number of keys that have a value.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Returns the number of bytes that a crash left at the end of the log. The next batch takes
    /// their place.
    pub fn torn(&self) -> u64 {
        self.torn
    }

    /// Returns the log.
    pub fn log(&self) -> &Log<D> {
        &self.log
    }

    /// Returns the index.
    pub fn index(&self) -> &Index {
        &self.index
    }
}

fn check(Change { key, value }: &Change) -> Result<()> {
    ensure!(
        (1..=MAX_KEY).contains(&key.len()),
        "a key of {} bytes: it must have 1 to {MAX_KEY}",
        key.len()
    );
    let length = value.as_ref().map_or(0, Vec::len);
    ensure!(
        length <= MAX_VALUE,
        "a value of {length} bytes: it must have at most {MAX_VALUE}"
    );
    Ok(())
}
