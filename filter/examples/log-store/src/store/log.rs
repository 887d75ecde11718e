//! The log: changes, appended in batches of whole pages.
//!
//! A record is the change of one key:
//!
//! | Bytes | What |
//! |---:|---|
//! | 2 | length of the key, at least 1 |
//! | 4 | length of the value, or 2^32 − 1 if the key was deleted |
//! | then | the key |
//! | then | the value, which continues in the next page if this one ends |
//!
//! The part before the value is never split between pages. A batch begins in a new page, so no page
//! is ever written twice: writing it again could tear what was acknowledged.
//!
//! # What a crash leaves
//!
//! All of a batch but its last page is written and synced, and then the last page is written and
//! synced. So if the last page of a batch is intact, all pages before it were, too. When a log is
//! opened, everything up to the last such page was acknowledged (or was about to be). If a page is
//! damaged
//!
//! - *after* that page, a crash tore it: it and all that follow are ignored, and dropped before the
//!   next batch is written (and the drop is synced, too: otherwise, with parts of that batch in
//!   between, a batch that was torn could come back);
//! - *before* that page, it was damaged later. That is an error, and nothing is changed.
//!
//! Damage to the last page of the very last batch cannot be told from a crash: that batch is
//! considered torn.

use std::cell::Cell;
use std::collections::HashMap;

use anyhow::{Context, Result, bail, ensure};

use super::disk::Disk;
use super::page::{self, Page};

/// Maximum length of a key: everything before a value must fit into a page.
pub const MAX_KEY: usize = 1 << 10;

/// Maximum length of a value, all of which is in memory.
pub const MAX_VALUE: usize = 1 << 30;

/// Contents of the first page.
const MAGIC: &[u8] = b"log_store, version 1\n";

/// Length of a record up to its key.
const HEAD: usize = 6;

/// Stands in place of a value's length: the key was deleted.
const DELETED: u32 = u32::MAX;

/// A change to one key.
pub struct Change {
    /// At least one byte, and at most [`MAX_KEY`].
    pub key: Vec<u8>,
    /// At most [`MAX_VALUE`] bytes; `None` if the key is deleted.
    pub value: Option<Vec<u8>>,
}

/// Where a record begins: the number of bytes before it in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Offset(u64);

impl Offset {
    /// Returns the number of its page.
    pub fn page(self) -> u64 {
        self.0 / page::SIZE as u64
    }

    /// Returns its place in the contents of that page.
    fn within(self) -> usize {
        (self.0 % page::SIZE as u64) as usize - page::HEADER
    }

    fn new(page: u64, within: usize) -> Offset {
        Offset(page * page::SIZE as u64 + (page::HEADER + within) as u64)
    }
}

/// The place of the record of each key that has a value.
pub type Live = HashMap<Vec<u8>, Offset>;

/// The part of a record before the value.
struct Head<'a> {
    key: &'a [u8],
    value_length: Option<usize>,
    /// Its own length.
    length: usize,
}

impl Head<'_> {
    /// Reads the head at the beginning of `bytes`, if there is one.
    fn read(bytes: &[u8]) -> Option<Head<'_>> {
        let (head, rest) = bytes.split_first_chunk::<HEAD>()?;
        let [k0, k1, value @ ..] = *head;
        let key = rest.get(..usize::from(u16::from_le_bytes([k0, k1])))?;
        let value_length = u32::from_le_bytes(value);
        Some(Head {
            key,
            value_length: (value_length != DELETED).then_some(value_length as usize),
            length: HEAD + key.len(),
        })
    }
}

/// A record, with the page that it begins in.
pub struct Record {
    offset: Offset,
    page: Page,
}

impl Record {
    fn head(&self) -> Head<'_> {
        let bytes = self.page.contents().get(self.offset.within()..);
        bytes.and_then(Head::read).expect("offsets lead to records")
    }

    /// Returns the key of the record.
    pub fn key(&self) -> &[u8] {
        self.head().key
    }

    /// Returns where the record begins.
    pub fn offset(&self) -> Offset {
        self.offset
    }
}

/// What was found in a log when it was opened.
pub struct Recovered {
    /// The keys that have a value.
    pub live: Live,
    /// Number of bytes at the end that belong to no batch.
    pub torn: u64,
}

/// A log on some disk.
pub struct Log<D> {
    disk: D,
    /// Number of pages up to the end of the last batch.
    pages: u64,
    /// Number of pages read to find records and values.
    pages_read: Cell<u64>,
}

/// Returns the first page of every log.
pub fn first_page() -> Vec<u8> {
    Page::seal(0, MAGIC, true)
}

impl<D: Disk> Log<D> {
    /// Opens a log and reads all of it; changes nothing.
    pub fn open(disk: D) -> Result<(Log<D>, Recovered)> {
        let length = disk
            .len()
            .context("cannot determine the length of the log")?;
        let mut log = Log {
            disk,
            pages: length / page::SIZE as u64,
            pages_read: Cell::new(0),
        };
        let first = log.page(0)?;
        ensure!(
            first.is_some_and(|page| page.contents() == MAGIC),
            "the log does not begin like one: it is damaged, not a log at all, or of another version"
        );
        log.pages = log.committed()?;
        let recovered = Recovered {
            live: log.live()?,
            torn: length - log.pages * page::SIZE as u64,
        };
        Ok((log, recovered))
    }

    /// Returns the number of pages up to the last one that ends a batch; all of them must be
    /// intact.
    fn committed(&self) -> Result<u64> {
        let mut committed = 0;
        let mut broken = None;
        for number in 0..self.pages {
            match (self.page(number)?, broken) {
                (None, _) => broken = broken.or(Some(number)),
                (Some(page), Some(broken)) if page.ends_batch() => return Err(damaged(broken)),
                (Some(page), _) if page.ends_batch() => committed = number + 1,
                (Some(_), _) => {}
            }
        }
        Ok(committed)
    }

    /// Reads the whole log for the keys that have a value.
    pub fn live(&self) -> Result<Live> {
        let mut live = Live::new();
        self.each_record(|key, offset, is_deleted| {
            if is_deleted {
                live.remove(key);
            } else if let Some(place) = live.get_mut(key) {
                *place = offset;
            } else {
                live.insert(key.to_vec(), offset);
            }
        })?;
        Ok(live)
    }

    /// Calls `take` for each record in order, with its key, its place, and whether it deletes the
    /// key.
    pub fn each_record(&self, mut take: impl FnMut(&[u8], Offset, bool)) -> Result<()> {
        // How much of a value is still to come.
        let mut rest = 0;
        for number in 1..self.pages {
            let page = self.page(number)?.ok_or_else(|| damaged(number))?;
            let contents = page.contents();
            let mut within = rest.min(contents.len());
            rest -= within;
            while within < contents.len() {
                let Some(head) = Head::read(&contents[within..]) else {
                    bail!("page {number} of the log is undamaged, but has no record at {within}");
                };
                let offset = Offset::new(number, within);
                take(head.key, offset, head.value_length.is_none());
                within += head.length;
                let value = head.value_length.unwrap_or(0);
                let here = value.min(contents.len() - within);
                within += here;
                rest = value - here;
            }
        }
        Ok(())
    }

    /// Appends a batch; once this returns, the batch is sure to stay. Returns the place of each
    /// record.
    pub fn append(&mut self, changes: &[Change]) -> Result<Vec<Offset>> {
        let mut batch = Batch::new(self.pages);
        let offsets = (changes.iter()).map(|change| batch.push(change)).collect();
        let start = self.pages * page::SIZE as u64;
        let bytes = batch.seal();
        let last = bytes.len() - page::SIZE;
        let mut write = || {
            if self.disk.len()? > start {
                self.disk.truncate(start)?;
                self.disk.sync()?;
            }
            if last > 0 {
                self.disk.write_at(start, &bytes[..last])?;
                self.disk.sync()?;
            }
            self.disk.write_at(start + last as u64, &bytes[last..])?;
            self.disk.sync()
        };
        write().context("cannot write to the log")?;
        self.pages += (bytes.len() / page::SIZE) as u64;
        Ok(offsets)
    }

    /// Reads the record that begins at `offset`: one page.
    pub fn record(&self, offset: Offset) -> Result<Record> {
        let page = self.page_of_record(offset.page())?;
        Ok(Record { offset, page })
    }

    /// Reads the value of a record, with as many more pages as it continues in. `None` if the
    /// record deletes its key.
    pub fn value(&self, record: &Record) -> Result<Option<Vec<u8>>> {
        let head = record.head();
        let Some(length) = head.value_length else {
            return Ok(None);
        };
        let beginning = &record.page.contents()[record.offset.within() + head.length..];
        let mut value = beginning[..length.min(beginning.len())].to_vec();
        let mut number = record.offset.page();
        while value.len() < length {
            number += 1;
            let page = self.page_of_record(number)?;
            let contents = page.contents();
            value.extend(&contents[..contents.len().min(length - value.len())]);
        }
        Ok(Some(value))
    }

    /// Returns the number of pages read by [`record`](Self::record) and [`value`](Self::value).
    pub fn pages_read(&self) -> u64 {
        self.pages_read.get()
    }

    /// Returns the number of pages.
    pub fn pages(&self) -> u64 {
        self.pages
    }

    fn page_of_record(&self, number: u64) -> Result<Page> {
        self.pages_read.update(|read| read + 1);
        if number >= self.pages {
            return Err(damaged(number));
        }
        self.page(number)?.ok_or_else(|| damaged(number))
    }

    /// Reads the page with this number; `None` if it is damaged.
    fn page(&self, number: u64) -> Result<Option<Page>> {
        if number >= self.pages {
            return Ok(None);
        }
        let mut bytes = vec![0; page::SIZE];
        (self.disk.read_at(number * page::SIZE as u64, &mut bytes))
            .with_context(|| format!("cannot read page {number} of the log"))?;
        Ok(Page::open(number, bytes))
    }
}

fn damaged(number: u64) -> anyhow::Error {
    anyhow::anyhow!(
        "page {number} of the log (from byte {} on) is damaged, but pages after it are not: nothing was \
         changed. Replace the page by a copy",
        number * page::SIZE as u64
    )
}

/// The pages of a batch while records are being put into them.
struct Batch {
    /// The number of its first page.
    start: u64,
    /// The contents of each page.
    pages: Vec<Vec<u8>>,
}

impl Batch {
    fn new(start: u64) -> Batch {
        let pages = vec![Vec::new()];
        Batch { start, pages }
    }

    fn push(&mut self, change: &Change) -> Offset {
        let length = change.value.as_ref().map_or(DELETED, |v| v.len() as u32);
        let mut head = (change.key.len() as u16).to_le_bytes().to_vec();
        head.extend(length.to_le_bytes());
        head.extend(&change.key);
        if self.room() < head.len() {
            self.pages.push(Vec::new());
        }
        let offset = Offset::new(self.start + self.pages.len() as u64 - 1, self.last().len());
        self.last().extend(head);
        let mut rest = change.value.as_deref().unwrap_or_default();
        while !rest.is_empty() {
            if self.room() == 0 {
                self.pages.push(Vec::new());
            }
            let (here, later) = rest.split_at(rest.len().min(self.room()));
            self.last().extend(here);
            rest = later;
        }
        offset
    }

    fn last(&mut self) -> &mut Vec<u8> {
        self.pages.last_mut().expect("there is always a page")
    }

    fn room(&mut self) -> usize {
        page::ROOM - self.last().len()
    }

    fn seal(self) -> Vec<u8> {
        let last = self.pages.len() - 1;
        let pages = self.pages.iter().enumerate();
        pages
            .flat_map(|(index, contents)| {
                Page::seal(self.start + index as u64, contents, index == last)
            })
            .collect()
    }
}
