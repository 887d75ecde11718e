//! A log-structured key–value store whose filter knows, without reading the file, that a key is
//! absent.
//!
//! All changes are appended to one file (`log.rs`). A table in memory has, for some keys together,
//! the place of the newest record of any of them, and each record has the place of the one before
//! it: a lookup follows this chain. So the keys are only in the file, but a lookup of an absent key
//! would read a whole chain. In front of it there is a cuckoo filter with one copy of each key that
//! has a value: what it denies is absent, and nothing is read. A deleted key leaves the filter,
//! which a Bloom filter cannot do.

mod log;

use std::collections::{BTreeMap, BTreeSet};
use std::hash::BuildHasher;
use std::mem;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use filter::{FixedState, GrowingCuckooFilter};

use log::{Log, Record};

/// Keys with their new values; `None` deletes a key.
pub type Changes = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

/// Maximum length of a key.
const MAX_KEY: usize = 1 << 10;

/// Values by their keys.
pub struct Store {
    log: Log,
    /// Where the newest record of each chain is; 0 if there is none. Their number is a power of two.
    newest: Vec<u64>,
    /// Number of records in all of them.
    records: usize,
    filter: GrowingCuckooFilter,
    /// A commit failed, so memory and file may differ.
    failed: bool,
}

impl Store {
    /// Opens the store in this file, of which it reads everything; nobody else can meanwhile. A store
    /// to write is created if it does not exist.
    pub fn open(path: &Path, write: bool) -> Result<Store> {
        let mut store = Store {
            log: Log::open(path, write)?,
            newest: vec![0; 1024],
            records: 0,
            filter: GrowingCuckooFilter::new(),
            failed: false,
        };
        while let Some((records, end)) = store.log.batch(store.log.end)? {
            for record in records {
                // The filter denies most keys that come for the first time: few are read.
                let had_value = store.get(&record.key)?.is_some();
                let previous = store.push(&record.key, record.at);
                ensure!(previous == record.previous, log::damaged(record.at));
                store.note(&record.key, had_value, record.value.is_some())?;
            }
            store.log.end = end;
        }
        store.log.cut_off_torn_batch(write)?;
        Ok(store)
    }

    /// Returns the value of a key. Nothing is read if the filter denies the key.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        if self.filter.contains(key) {
            self.get_without_filter(key)
        } else {
            Ok(None)
        }
    }

    /// [`get`](Self::get) as it would be without a filter, for comparison.
    pub fn get_without_filter(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let mut at = self.newest[self.chain(key)];
        while at > 0 {
            let record = self.log.record(at)?;
            if record.key == key {
                return Ok(record.value);
            }
            // Chains lead backwards, unless the file was damaged since it was opened.
            ensure!(record.previous < at, log::damaged(at));
            at = record.previous;
        }
        Ok(None)
    }

    /// Makes all of these changes; once this returns, they are sure to stay. After a crash during
    /// the call, either all of them are there or none. After an error, open the store again.
    pub fn commit(&mut self, changes: &Changes) -> Result<()> {
        ensure!(!self.failed, "a commit failed: open the store again");
        let had_value = |key: &Vec<u8>| {
            let length = key.len();
            let why = || format!("a key of {length} bytes: it must have 1 to {MAX_KEY}");
            ensure!((1..=MAX_KEY).contains(&length), why());
            Ok(self.get(key)?.is_some())
        };
        let had_value = changes.keys().map(had_value).collect::<Result<Vec<_>>>()?;
        self.failed = true;
        let mut records = Vec::new();
        for (key, value) in changes {
            let previous = self.push(key, self.log.place_after(&records));
            Record::write(&mut records, previous, key, value.as_deref());
        }
        self.log.append(&records)?;
        for ((key, value), had_value) in changes.iter().zip(had_value) {
            self.note(key, had_value, value.is_some())?;
        }
        self.failed = false;
        Ok(())
    }

    /// Keeps the filter right: one copy of each key that has a value.
    fn note(&self, key: &[u8], had_value: bool, has_value: bool) -> Result<()> {
        if has_value && !had_value {
            (self.filter.insert(key)).context("the filter has no room for another key")?;
        } else if had_value && !has_value {
            self.filter.remove(key);
        }
        Ok(())
    }

    /// Reads the whole log for the keys that have values.
    pub fn keys(&self) -> Result<BTreeSet<Vec<u8>>> {
        let mut keys = BTreeSet::new();
        let mut at = 0;
        while let Some((records, end)) = self.log.batch(at)? {
            at = end;
            for record in records {
                if record.value.is_some() {
                    keys.insert(record.key);
                } else {
                    keys.remove(&record.key);
                }
            }
        }
        Ok(keys)
    }

    /// Returns the number of records that were read to look up keys.
    pub fn reads(&self) -> u64 {
        self.log.reads.get()
    }

    /// Returns the filter, which has one copy of each key that has a value.
    pub fn filter(&self) -> &GrowingCuckooFilter {
        &self.filter
    }

    fn chain(&self, key: &[u8]) -> usize {
        FixedState.hash_one(key) as usize & (self.newest.len() - 1)
    }

    /// Notes the place of a key's newest record, and returns the one before it in its chain.
    fn push(&mut self, key: &[u8], at: u64) -> u64 {
        // Each chain becomes two, which have their old records in common.
        if self.records == 2 * self.newest.len() {
            self.newest.extend_from_within(..);
        }
        self.records += 1;
        let chain = self.chain(key);
        mem::replace(&mut self.newest[chain], at)
    }
}
