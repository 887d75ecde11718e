//! Memory that has a name, cut into lines.
//!
//! Where memory is differs from run to run, so a line is known by its number: named memory has
//! consecutive numbers, as if it began with a line. Without a name, each word has a line of its own.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use super::caches::LINE_BYTES;

#[derive(Debug)]
struct Region {
    what: &'static str,
    bytes: Range<usize>,
    /// Number of its first line.
    base: u32,
}

/// All lines, by their addresses.
#[derive(Debug, Default)]
pub(crate) struct Regions {
    /// By their addresses.
    named: BTreeMap<usize, Region>,
    words: HashMap<usize, u32>,
    lines: u32,
}

impl Region {
    fn lines(&self) -> Range<u32> {
        self.base..self.base + self.bytes.len().div_ceil(LINE_BYTES) as u32
    }
}

impl Regions {
    /// Names memory. What was there before is forgotten.
    pub(crate) fn name(&mut self, what: &'static str, bytes: Range<usize>) {
        if bytes.is_empty() {
            return;
        }
        let start = bytes.start;
        let apart = |other: &Region| other.bytes.end <= start || bytes.end <= other.bytes.start;
        self.named.retain(|_, other| apart(other));
        let base = self.lines;
        let region = Region { what, bytes, base };
        self.lines = region.lines().end;
        self.named.insert(start, region);
    }

    /// Returns the number of an address's line.
    #[inline]
    pub(crate) fn number(&mut self, address: usize) -> u32 {
        if let Some(region) = self.find(address) {
            return region.base + ((address - region.bytes.start) / LINE_BYTES) as u32;
        }
        *self.words.entry(address).or_insert_with(|| {
            self.lines += 1;
            self.lines - 1
        })
    }

    /// Returns the memory with a name where this address is.
    #[inline]
    fn find(&self, address: usize) -> Option<&Region> {
        let (_, region) = self.named.range(..=address).next_back()?;
        region.bytes.contains(&address).then_some(region)
    }

    /// Returns the number of the first line of the memory with a name where this address is.
    pub(crate) fn base(&self, address: usize) -> Option<u32> {
        self.find(address).map(|region| region.base)
    }

    pub(crate) fn lines(&self) -> usize {
        self.lines as usize
    }

    pub(crate) fn called(&self, what: &str) -> Vec<u32> {
        let called = self.named.values().filter(|region| region.what == what);
        called.flat_map(Region::lines).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_numbers_do_not_depend_on_addresses() {
        let numbers = |start: usize| {
            let mut regions = Regions::default();
            regions.name("bucket", start..start + 160);
            let named = [0, 56, 64, 152].map(|offset| regions.number(start + offset));
            let others = [start + 160, 8, start + 160].map(|address| regions.number(address));
            assert_eq!(regions.lines(), 5);
            assert_eq!(regions.called("bucket"), [0, 1, 2]);
            (named, others)
        };
        assert_eq!(numbers(4096), ([0, 0, 1, 2], [3, 4, 3]));
        assert_eq!(numbers(4096), numbers(4112));
    }

    #[test]
    fn reused_memory_has_new_name() {
        let mut regions = Regions::default();
        regions.name("old", 1024..1152);
        regions.name("new", 1088..1216);
        let line = regions.number(1088);
        assert_eq!(regions.called("new"), [line, line + 1]);
        assert_eq!(regions.called("old"), []);
        assert_eq!(regions.number(1024), line + 2);
    }
}
