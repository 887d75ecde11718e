//! The vector quotient filter (Pandey, Conway, Durie, Bender, Farach-Colton, Johnson, *Vector
//! Quotient Filters: Overcoming the Time/Space Trade-Off in Filter Design*, SIGMOD 2021). It needs
//! no chains of shifts, as a key has two candidate blocks with many slots each, and takes the
//! emptier. This is our own implementation of the paper.
//!
//! These parts follow the paper:
//!
//! - **A block is one cache line**: slots of 8-bit tags, more buckets than slots, and 128 bits that
//!   map slots to buckets (module `mini_filter`). A key has a tag, a bucket, and two blocks; its
//!   bucket is the same in both.
//! - **Vector instructions**, chosen at run time, search a block (module `instructions`).
//! - **Lookups take no lock**; updates lock blocks.
//! - **The shortcut.** While the first block is less than three quarters full, an insert takes it
//!   without looking at the second.
//!
//! Unlike the paper:
//!
//! - **A block has a version** (module `block`), so that lookups are linearizable without a lock:
//!   where neither version has changed, what was read stood there at one moment. It takes the place
//!   of two tags: 46 slots and 82 buckets instead of 48 and 80.
//! - **A lookup always searches both blocks**, which saves it a branch that the processor could not
//!   predict.
//! - **An insert locks one block**, not two, unless that is full: it compares how full they are
//!   before it locks.
//! - **The second block** follows from the tag, the bucket and the first block by the involution of
//!   our own table instead of an *xor*, so there can be any number of blocks. Keys that share one
//!   block, bucket and tag also share the other block, so a remove never takes another key's copy.
//!
//! An update takes effect when it frees its block, a lookup at its last look at a version before it
//! reads. The limit: a lookup can be fooled if exactly 2^15 updates (or a multiple) change a block
//! between its two looks, the number that fools our own filter. Lookups also wait for whoever holds
//! a block. It does not report the class of a key, as its classes are not those of a cuckoo filter.
//!
//! It takes 11.1 bits per slot, where ours takes 16. An absent key's tag is compared with those of
//! two buckets, so `2 × load × (46 / 82) / 2^8` of them are found, 0.44 % when full, where ours finds
//! 0.20 %. An insert is refused when both blocks are full, first at loads of 0.946 to 0.954: so
//! experiments that fill tables to 0.95 see some keys refused.

mod block;
mod instructions;
mod mini_filter;

use std::hash::{BuildHasher, Hash};

use anyhow::Result;
use crossbeam_utils::Backoff;
use filter::FixedState;
use subject::layout::{Geometry, geometry};
use subject::spin::Guard;
use subject::{SLOTS_PER_BUCKET, Subject};

use block::{Block, Query};
use instructions::{Instructions, Processor, with_instructions};
use mini_filter::{BUCKETS, SLOTS};

/// With fewer slots taken than this, an insert does not look at the second block.
const SHORTCUT: usize = SLOTS * 3 / 4;

/// A vector quotient filter with a version in each block.
#[derive(Debug)]
pub struct VectorQuotient {
    /// Spreads keys over the blocks.
    geometry: Geometry,
    blocks: Box<[Block]>,
    processor: Processor,
}

/// The place of a key: its blocks, and its bucket and tag in either.
#[derive(Clone, Copy, Debug)]
struct Place {
    blocks: [usize; 2],
    wanted: Query,
}

impl VectorQuotient {
    #[inline(always)]
    fn place<K: Hash + ?Sized>(&self, key: &K) -> Place {
        let hash = FixedState.hash_one(key);
        // The block comes from the high end of the hash, the tag and the bucket from its low half.
        let first = self.geometry.locate(hash).first;
        let tag = hash as u8;
        let bucket = ((hash >> 8 & 0xff_ffff) as usize * BUCKETS) >> 24;
        let second = self
            .geometry
            .other((bucket << 8) as u64 | u64::from(tag), first);
        Place {
            blocks: [first, second],
            wanted: Query { bucket, tag },
        }
    }

    #[inline]
    fn hold(&self, block: usize) -> Guard<'_, Block> {
        Guard::take(&self.blocks[block])
    }

    /// Returns which of a key's blocks have a copy, both at one moment.
    #[inline(always)]
    fn find(&self, with: impl Instructions, place: Place) -> [bool; 2] {
        let (found, is_certain) = self.look(with, place);
        if is_certain {
            return found;
        }
        let Place { blocks, wanted } = place;
        self.confirm_lookup(with, blocks[0], blocks[1], wanted.bucket, wanted.tag)
    }

    /// Searches both blocks. The answer holds only if the second one is true.
    #[inline(always)]
    fn look(&self, with: impl Instructions, place: Place) -> ([bool; 2], bool) {
        let blocks = place.blocks.map(|block| &self.blocks[block]);
        // Neither block changes between the last of these looks and the first of those below.
        let before = blocks.map(Block::now);
        let found = blocks.map(|block| block.find(with, place.wanted).is_some());
        let is_certain = (0..2).all(|which| blocks[which].is_unchanged_since(before[which]));
        (found, is_certain)
    }

    /// Looks until no block changes meanwhile. Takes a place's parts, which are in registers.
    #[cold]
    #[inline(never)]
    fn confirm_lookup(
        &self,
        with: impl Instructions,
        first: usize,
        second: usize,
        bucket: usize,
        tag: u8,
    ) -> [bool; 2] {
        let place = Place {
            blocks: [first, second],
            wanted: Query { bucket, tag },
        };
        let backoff = Backoff::new();
        loop {
            backoff.snooze();
            if let (found, true) = self.look(with, place) {
                return found;
            }
        }
    }

    #[inline(always)]
    fn has(&self, with: impl Instructions, place: Place) -> bool {
        let [first, second] = self.find(with, place);
        first | second
    }

    /// Inserts into the emptier of the two blocks; returns `false` if both are full.
    #[inline(always)]
    fn insert_at(&self, with: impl Instructions, place: Place) -> bool {
        let [first, second] = place.blocks;
        // Looks without holding the blocks. If that misleads, a block gets a little fuller.
        let in_first = self.blocks[first].taken();
        let emptier = if in_first >= SHORTCUT && self.blocks[second].taken() < in_first {
            second
        } else {
            first
        };
        let inserted = Block::insert(&self.hold(emptier), with, place.wanted);
        inserted || self.insert_into_either(with, place)
    }

    /// Inserts where there is room; returns `false` if both blocks are full at one moment.
    #[cold]
    fn insert_into_either(&self, with: impl Instructions, place: Place) -> bool {
        let [one, other] = place.blocks;
        // Waits for blocks only in ascending order, so that threads cannot wait in a circle.
        let lower = self.hold(one.min(other));
        let higher = (one != other).then(|| self.hold(one.max(other)));
        Block::insert(&lower, with, place.wanted)
            || higher.is_some_and(|higher| Block::insert(&higher, with, place.wanted))
    }

    #[inline(always)]
    fn remove_at(&self, with: impl Instructions, place: Place) -> bool {
        loop {
            let block = match self.find(with, place) {
                [true, _] => place.blocks[0],
                [_, true] => place.blocks[1],
                _ => return false,
            };
            let held = self.hold(block);
            // Another thread may have removed it meanwhile.
            if let Some(found) = held.0.find(with, place.wanted) {
                Block::remove(&held, &found);
                return true;
            }
        }
    }
}

impl Subject for VectorQuotient {
    const NAME: &'static str = "vector-quotient";
    const DESCRIPTION: &'static str = "vector quotient filter: 8-bit tags, two blocks of a cache line to choose from, with a version in each, by the vector instructions of the processor";
    const GUARANTEES: &'static str = "linearizable; blocking; lookups never write";

    fn with_buckets(buckets: usize) -> Result<Self> {
        // Also checks the number of buckets.
        let slots = geometry(buckets)?.buckets() * SLOTS_PER_BUCKET;
        let blocks = slots.div_ceil(SLOTS);
        Ok(Self {
            geometry: geometry(blocks)?,
            blocks: (0..blocks).map(|_| Block::default()).collect(),
            processor: Processor::best(),
        })
    }

    #[inline]
    fn insert<K: Hash + ?Sized>(&self, key: &K) -> bool {
        let place = self.place(key);
        with_instructions!(self.processor, with => with.run(#[inline(always)] || self.insert_at(with, place)))
    }

    #[inline(always)]
    fn contains<K: Hash + ?Sized>(&self, key: &K) -> bool {
        let place = self.place(key);
        with_instructions!(self.processor, with => with.run(#[inline(always)] || self.has(with, place)))
    }

    /// Chooses the instructions once for all keys.
    #[inline]
    fn look_up<'k, K: Hash + ?Sized + 'k>(
        &self,
        keys: impl ExactSizeIterator<Item = &'k K>,
        mut report: impl FnMut(bool),
    ) {
        with_instructions!(self.processor, with => with.run(#[inline(always)] || {
            for key in keys {
                report(self.has(with, self.place(key)));
            }
        }));
    }

    #[inline]
    fn remove<K: Hash + ?Sized>(&self, key: &K) -> bool {
        let place = self.place(key);
        with_instructions!(self.processor, with => with.run(#[inline(always)] || self.remove_at(with, place)))
    }

    fn slots(&self, _: usize) -> usize {
        self.blocks.len() * SLOTS
    }

    fn memory_bytes(&self) -> usize {
        size_of_val(&*self.blocks)
    }
}

#[cfg(test)]
mod tests;
