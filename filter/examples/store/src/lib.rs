//! A key–value store whose filter knows, without reading the file, that a key is absent.
//!
//! Keys and values are in a file of [`redb`], a B-tree, of which each lookup reads some pages. In front of it
//! there is a cuckoo filter in memory, with one copy of each key that has a value: what it denies is absent,
//! and nothing is read. A deleted key leaves the filter, which a Bloom filter cannot do.

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
    /// With seeds that nobody knows: keys that collide in it cannot be chosen.
    filter: GrowingCuckooFilter<RandomState>,
    reads: Cell<u64>,
    /// A commit failed, so filter and file may differ.
    failed: bool,
}

impl Store {
    /// Opens the store in this file, of which it reads everything; nobody else can meanwhile. A store
    /// to write is created if it does not exist. (Even to read, the file must be one that may be written: it
    /// is checked.)
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
            store.note(entry?.0.value())?;
        }
        Ok(store)
    }

    fn table(&self) -> Result<ReadOnlyTable<&'static [u8], &'static [u8]>> {
        Ok(self.database.begin_read()?.open_table(VALUES)?)
    }

    /// Notes in the filter that a key has a value, which it had not.
    fn note(&self, key: &[u8]) -> Result<()> {
        let noted = self.filter.insert(key);
        noted.context("the filter has no room for another key")
    }

    /// Returns the value of a key. Nothing is read if the filter denies the key.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        if !self.filter.contains(key) {
            return Ok(None);
        }
        self.reads.set(self.reads.get() + 1);
        let value = self.table()?.get(key)?;
        Ok(value.map(|value| value.value().to_vec()))
    }

    /// Makes all of these changes; once this returns, they are sure to stay. After a crash during
    /// the call, either all of them are there or none. After an error, open the store again.
    pub fn commit(&mut self, changes: &Changes) -> Result<()> {
        ensure!(!self.failed, "a commit failed: open the store again");
        for length in changes.keys().map(Vec::len) {
            let fits = (1..=MAX_KEY).contains(&length);
            ensure!(fits, "a key of {length} bytes: it must have 1 to {MAX_KEY}");
        }
        // Until it has succeeded, the filter may have keys that the file lacks, which cost a read each.
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
                // Before the commit, and the reverse after it: the filter never lacks a key.
                (false, Some(_)) => self.note(key)?,
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

    /// Returns how often the file was read to look up a key.
    pub fn reads(&self) -> u64 {
        self.reads.get()
    }

    /// Returns the filter, which has one copy of each key that has a value.
    pub fn filter(&self) -> &GrowingCuckooFilter<RandomState> {
        &self.filter
    }
}

/// Creates an empty store, unless another process does. A crash leaves no half of one under this name.
fn create(path: &Path) -> Result<()> {
    let folder = (path.parent()).filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let file = NamedTempFile::new_in(folder)?;
    let transaction = Database::create(file.path())?.begin_write()?;
    transaction.open_table(VALUES)?;
    transaction.commit()?;
    match file.persist_noclobber(path) {
        Err(failed) if !path.exists() => return Err(failed.error.into()),
        // The name survives a power cut, too. (Directories cannot be opened on Windows.)
        _ if cfg!(unix) => File::open(folder)?.sync_all()?,
        _ => {}
    }
    Ok(())
}
