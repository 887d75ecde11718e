//! A key–value store whose filter detects absent keys without reading the file.
//!
//! Keys and values are in a file of [`redb`], a B-tree, of which each lookup reads some pages. A cuckoo filter in memory
//! has one copy of each key with a value. A key that is not in the filter is absent, and nothing is read. A delete removes
//! the key from the filter, which a Bloom filter cannot do.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs::File;
use std::hash::RandomState;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use filter::GrowingCuckooFilter;
use redb::TableDefinition;
use redb::{Builder, Database, DatabaseError, ReadOnlyTable, ReadableDatabase, ReadableTable};
use tempfile::NamedTempFile;

/// Keys with their new values; `None` deletes a key.
pub type Changes = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

/// Maximum length of a key.
const MAX_KEY: usize = 1 << 10;

const VALUES: TableDefinition<&[u8], &[u8]> = TableDefinition::new("values");

/// Values by their keys.
pub struct Store {
    database: Database,
    /// With random seeds, so that no client can choose keys that collide in it.
    filter: GrowingCuckooFilter<RandomState>,
    reads: Cell<u64>,
    /// A commit failed, so filter and file may differ.
    failed: bool,
}

impl Store {
    /// Opens the store in this file and reads all of it. Until it is dropped, no other process can open it. With `write`,
    /// creates the file if it does not exist. Reading also needs permission to write, as redb repairs the file.
    pub fn open(path: &Path, write: bool) -> Result<Store> {
        let name = path.display();
        if !path.exists() {
            ensure!(
                write,
                "there is no store at {name}: `import` or `set` creates one"
            );
            create(path).with_context(|| format!("cannot create {name}"))?;
        }
        let mut builder = Builder::new();
        let database = match builder.set_check_integrity_on_open(true).open(path) {
            Err(DatabaseError::DatabaseAlreadyOpen) => {
                bail!("another process uses the store at {name}: wait until it has finished")
            }
            opened => opened.with_context(|| format!("{name} is no store, or is damaged"))?,
        };
        let filter = GrowingCuckooFilter::builder().unmixed_hasher(RandomState::new());
        let store = Store {
            database,
            filter: filter.build()?,
            reads: Cell::new(0),
            failed: false,
        };
        for entry in store.table()?.iter()? {
            store.insert(entry?.0.value())?;
        }
        Ok(store)
    }

    fn table(&self) -> Result<ReadOnlyTable<&'static [u8], &'static [u8]>> {
        Ok(self.database.begin_read()?.open_table(VALUES)?)
    }

    /// Inserts a key that gets a value into the filter.
    fn insert(&self, key: &[u8]) -> Result<()> {
        let inserted = self.filter.insert(key);
        inserted.context("the filter has no room for another key")
    }

    /// Returns the value of a key. Reads nothing if the key is not in the filter.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        if !self.filter.contains(key) {
            return Ok(None);
        }
        self.reads.set(self.reads.get() + 1);
        let value = self.table()?.get(key)?;
        Ok(value.map(|value| value.value().to_vec()))
    }

    /// Makes all of these changes, which are durable once this returns. After a crash during the call, the file has all
    /// of them or none. After an error, open the store again.
    pub fn commit(&mut self, changes: &Changes) -> Result<()> {
        ensure!(!self.failed, "a commit failed: open the store again");
        for length in changes.keys().map(Vec::len) {
            let fits = (1..=MAX_KEY).contains(&length);
            ensure!(fits, "a key of {length} bytes: it must have 1 to {MAX_KEY}");
        }
        // Until the commit succeeds, the filter may have keys that the file lacks: each costs a read.
        self.failed = true;
        let transaction = self.database.begin_write()?;
        let mut table = transaction.open_table(VALUES)?;
        let mut deleted = Vec::new();
        for (key, value) in changes {
            let before = match value {
                Some(value) => table.insert(&**key, &**value)?,
                None => table.remove(&**key)?,
            };
            match (before.is_some(), value) {
                // Inserts before the commit, removes after it: the filter never lacks a key.
                (false, Some(_)) => self.insert(key)?,
                (true, None) => deleted.push(key),
                _ => {}
            }
        }
        drop(table);
        transaction.commit().context("cannot write to the store")?;
        for key in deleted {
            self.filter.remove(key.as_slice())?;
        }
        self.failed = false;
        Ok(())
    }

    /// Returns the keys that have values, in their order.
    pub fn keys(&self) -> Result<Vec<Vec<u8>>> {
        let key = |entry: Result<(redb::AccessGuard<&[u8]>, _), _>| Ok(entry?.0.value().to_vec());
        self.table()?.iter()?.map(key).collect()
    }

    /// Returns the number of lookups that read the file.
    pub fn reads(&self) -> u64 {
        self.reads.get()
    }

    /// Returns the filter, which has one copy of each key that has a value.
    pub fn filter(&self) -> &GrowingCuckooFilter<RandomState> {
        &self.filter
    }
}

/// Creates an empty store, unless another process does. A crash never leaves an incomplete file under this name.
fn create(path: &Path) -> Result<()> {
    let folder = (path.parent()).filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let file = NamedTempFile::new_in(folder)?;
    let transaction = Database::create(file.path())?.begin_write()?;
    transaction.open_table(VALUES)?;
    transaction.commit()?;
    match file.persist_noclobber(path) {
        Err(failed) if !path.exists() => return Err(failed.error.into()),
        // The name survives a power failure, too. (Directories cannot be opened on Windows.)
        _ if cfg!(unix) => File::open(folder)?.sync_all()?,
        _ => {}
    }
    Ok(())
}
