//! Memory that has a name, cut into lines.
//!
//! Where memory is differs from run to run, so a line is known by its number: named memory has
//! consecutive numbers, as if it began with a line. Without a name, each word has a line of its own.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use kcas::simulation::Named;

use super::caches::LINE_BYTES;

#[derive(Debug)]
struct Region {
    named: Named,
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
    fn end(&self) -> usize {
        self.named.start + self.named.bytes * self.named.len
    }

    fn lines(&self) -> Range<u32> {
        let bytes = self.end() - self.named.start;
        self.base..self.base + bytes.div_ceil(LINE_BYTES) as u32
    }
}

impl Regions {
    /// Names memory. What was there before is forgotten.
    pub(crate) fn name(&mut self, named: Named) {
        if named.len == 0 {
            return;
        }
        let region = Region {
            named,
            base: self.lines,
        };
        let apart =
            |other: &Region| other.end() <= named.start || region.end() <= other.named.start;
        self.named.retain(|_, other| apart(other));
        self.lines = region.lines().end;
        self.named.insert(named.start, region);
    }

    /// Returns the number of an address's line.
    #[inline]
    pub(crate) fn number(&mut self, address: usize) -> u32 {
        if let Some(region) = self.find(address) {
            return region.base + ((address - region.named.start) / LINE_BYTES) as u32;
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
        (address < region.end()).then_some(region)
    }

    /// Returns the number of the first line of the memory with a name where this address is.
    pub(crate) fn base(&self, address: usize) -> Option<u32> {
        self.find(address).map(|region| region.base)
    }

    pub(crate) fn lines(&self) -> usize {
        self.lines as usize
    }

    pub(crate) fn called(&self, what: &str) -> Vec<u32> {
        let called = self.named.values().filter(|of| of.named.what == what);
        called.flat_map(Region::lines).collect()
    }

    /// Returns what a line holds, and the numbers of the first and the last element there.
    pub(crate) fn of_line(&self, line: u32) -> Option<(&'static str, usize, usize)> {
        let mut named = self.named.values();
        let holds = |region: &&Region| region.lines().contains(&line);
        let Region { named, base } = named.find(holds)?;
        let start = (line - base) as usize * LINE_BYTES;
        let element = |byte: usize| named.first + (byte / named.bytes).min(named.len - 1);
        Some((named.what, element(start), element(start + LINE_BYTES - 1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_do_not_depend_on_where_memory_is() {
        let numbers = |start: usize| {
            let mut regions = Regions::default();
            regions.name(Named {
                what: "bucket",
                start,
                bytes: 8,
                len: 20,
                first: 0,
            });
            let named = [0, 56, 64, 152].map(|offset| regions.number(start + offset));
            let others = [start + 160, 8, start + 160].map(|address| regions.number(address));
            assert_eq!(regions.of_line(2), Some(("bucket", 16, 19)));
            assert_eq!((regions.of_line(3), regions.lines()), (None, 5));
            assert_eq!(regions.called("bucket"), [0, 1, 2]);
            (named, others)
        };
        assert_eq!(numbers(4096), ([0, 0, 1, 2], [3, 4, 3]));
        assert_eq!(numbers(4096), numbers(4112));
    }

    #[test]
    fn memory_that_is_used_again_has_its_new_name() {
        let mut regions = Regions::default();
        let named = |what, start| Named {
            what,
            start,
            bytes: 64,
            len: 2,
            first: 5,
        };
        regions.name(named("old", 1024));
        regions.name(named("new", 1088));
        let line = regions.number(1088);
        assert_eq!(regions.of_line(line), Some(("new", 5, 5)));
        let line = regions.number(1024);
        assert_eq!(regions.of_line(line), None);
    }
}
