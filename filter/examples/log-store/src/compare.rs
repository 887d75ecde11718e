//! Counting the pages that are read to find a key, or to learn that it is absent: with the filter,
//! and with alternatives to it.
//!
//! The offsets alone deny most absent keys, too, because their hash table keeps seven bits of each
//! hash. So the filter is worth most where it is all that is kept for each key, and pages are found
//! by their key ranges: the least memory, and hardly a page read for an absent key. But then a
//! present key costs another page for each later batch over its range, until somebody sorts the
//! log; with offsets it always costs one page.

use std::fmt;

use anyhow::Result;
use filter::layout::Layout;
use indicatif::ProgressIterator;

use crate::lines::order;
use crate::store::Store;
use crate::store::disk::Disk;
use crate::store::log::{Live, Offset};

/// The costs of the ways to find a key.
pub struct Comparison {
    /// Number of present keys that were looked up.
    pub present: usize,
    /// Number of absent keys that were looked up.
    pub absent: usize,
    /// Number of absent keys that the filter took for present ones.
    pub mistaken: usize,
    /// The expected number of them.
    pub expected: f64,
    /// Number of keys in the store.
    pub keys: usize,
    /// What each way costs.
    pub ways: Vec<Way>,
}

/// One way to find a key.
pub struct Way {
    /// What is kept in memory.
    pub name: &'static str,
    /// Pages read for all present keys. Does not include the pages where a value continues.
    pub present: u64,
    /// Pages read for all absent keys.
    pub absent: u64,
    /// Memory taken, in bytes.
    pub bytes: usize,
}

/// The keys that are looked up.
struct Asked<'a> {
    live: &'a Live,
    present: Vec<&'a [u8]>,
    absent: Vec<Vec<u8>>,
}

/// Looks up at most `most` present keys, evenly chosen, and for each an absent one.
pub fn compare<D: Disk>(store: &Store<D>, most: usize) -> Result<Comparison> {
    let live = store.live()?;
    let asked = Asked::of(&live, most);
    let mistaken = (asked.absent.iter())
        .filter(|key| store.index().may_have(key))
        .count();
    let rate = Layout::<4, 12>::FALSE_POSITIVE_RATE * store.index().filter().load_factor();

    let mut ways = asked.by_offsets(store)?;
    ways.extend(asked.by_ranges(store)?);
    ways.push(Way {
        name: "exact map of keys to offsets",
        present: asked.present.len() as u64,
        absent: 0,
        bytes: map_bytes(&live),
    });
    Ok(Comparison {
        present: asked.present.len(),
        absent: asked.absent.len(),
        mistaken,
        expected: rate * asked.absent.len() as f64,
        keys: live.len(),
        ways,
    })
}

impl<'a> Asked<'a> {
    /// Chooses the keys.
    fn of(live: &'a Live, most: usize) -> Self {
        let mut keys: Vec<&[u8]> = live.keys().map(Vec::as_slice).collect();
        keys.sort_unstable_by_key(|key| order(key));
        let step = keys.len().div_ceil(most).max(1);
        let present: Vec<&[u8]> = keys.into_iter().step_by(step).collect();
        let absent = present.iter().filter_map(|key| absent(key, live)).collect();
        Self {
            live,
            present,
            absent,
        }
    }

    /// Finds the keys in the store, which keeps the offset of each: with its filter and without.
    fn by_offsets<D: Disk>(&self, store: &Store<D>) -> Result<Vec<Way>> {
        let pages_read = |keys: &mut dyn Iterator<Item = &[u8]>, with_filter: bool| {
            let before = store.log().pages_read();
            for key in keys {
                if with_filter {
                    store.find(key)?;
                } else {
                    store.find_without_filter(key)?;
                }
            }
            Ok::<_, anyhow::Error>(store.log().pages_read() - before)
        };
        let mut ways = Vec::new();
        for (name, with_filter, bytes) in [
            (
                "filter and offsets",
                true,
                store.index().filter().memory_bytes(),
            ),
            ("offsets", false, 0),
        ] {
            ways.push(Way {
                name,
                present: pages_read(&mut self.present.iter().copied(), with_filter)?,
                absent: pages_read(&mut self.absent.iter().map(Vec::as_slice), with_filter)?,
                bytes: bytes + store.index().offsets_bytes(),
            });
        }
        Ok(ways)
    }

    /// Counts the pages that a store would read that keeps the key range of each page: with the
    /// filter and without.
    fn by_ranges<D: Disk>(&self, store: &Store<D>) -> Result<[Way; 2]> {
        let ranges = Ranges::of(store)?;
        let present = (self.present.iter().progress())
            .map(|key| ranges.pages_read(key, Some(self.live[*key])))
            .sum();
        let absent: Vec<u64> = (self.absent.iter().progress())
            .map(|key| ranges.pages_read(key, None))
            .collect();
        let filtered = (self.absent.iter().zip(&absent))
            .filter(|(key, _)| store.index().may_have(key))
            .map(|(_, pages)| pages)
            .sum();
        Ok([
            Way {
                name: "filter and key ranges of pages",
                present,
                absent: filtered,
                bytes: store.index().filter().memory_bytes() + ranges.bytes(),
            },
            Way {
                name: "key ranges of pages",
                present,
                absent: absent.iter().sum(),
                bytes: ranges.bytes(),
            },
        ])
    }
}

/// Returns an absent key like `key`, with its last byte changed: it lies between the present keys.
fn absent(key: &[u8], live: &Live) -> Option<Vec<u8>> {
    let mut key = key.to_vec();
    let last = key.len() - 1;
    let byte = key[last];
    (0x80..=0xff).chain(1..0x80).find_map(|change: u8| {
        key[last] = byte ^ change;
        (!live.contains_key(&key)).then(|| key.clone())
    })
}

/// The first and the last key, in sorted order, of the records that begin in each page: the least
/// that a store has to keep if it keeps nothing for each key.
struct Ranges {
    /// The pages, oldest first.
    pages: Vec<(u64, Vec<u8>, Vec<u8>)>,
}

impl Ranges {
    fn of<D: Disk>(store: &Store<D>) -> Result<Ranges> {
        let mut pages: Vec<(u64, Vec<u8>, Vec<u8>)> = Vec::new();
        store
            .log()
            .each_record(|key, offset, _| match pages.last_mut() {
                Some((page, least, most)) if *page == offset.page() => {
                    if order(key) < order(least) {
                        *least = key.to_vec();
                    }
                    if order(key) > order(most) {
                        *most = key.to_vec();
                    }
                }
                _ => pages.push((offset.page(), key.to_vec(), key.to_vec())),
            })?;
        Ok(Ranges { pages })
    }

    /// Returns the number of pages read, newest first, until the key is found at this place; or of
    /// all pages that might have it.
    fn pages_read(&self, key: &[u8], place: Option<Offset>) -> u64 {
        let oldest = place.map_or(0, Offset::page);
        let read = (self.pages.iter().rev())
            .take_while(|(page, ..)| *page >= oldest)
            .filter(|(_, least, most)| order(least) <= order(key) && order(key) <= order(most));
        read.count() as u64
    }

    fn bytes(&self) -> usize {
        let keys = self.pages.iter().map(|(_, a, b)| a.len() + b.len());
        size_of_val(&self.pages[..]) + keys.sum::<usize>()
    }
}

/// Returns the memory of a hash map, without the allocator's overhead for each key.
fn map_bytes(live: &Live) -> usize {
    let keys: usize = live.keys().map(Vec::len).sum();
    // The table's size is a power of two; at most seven eighths of it are used, and each slot has
    // an extra byte.
    let slots = (live.capacity() * 8 / 7).next_power_of_two();
    keys + slots * (size_of::<(Vec<u8>, Offset)>() + 1)
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Comparison {
            present,
            absent,
            keys,
            ..
        } = self;
        writeln!(
            f,
            "{:<32} {:>22} {:>22} {:>14}",
            "Page reads",
            format!("{present} present keys"),
            format!("{absent} absent keys"),
            "memory per key"
        )?;
        for way in &self.ways {
            let bytes = way.bytes as f64 / (*keys).max(1) as f64;
            writeln!(
                f,
                "{:<32} {:>22} {:>22} {:>8.1} bytes",
                way.name, way.present, way.absent, bytes
            )?;
        }
        write!(
            f,
            "The filter took {} absent keys for present ones; {:.1} were expected.",
            self.mistaken, self.expected
        )
    }
}
