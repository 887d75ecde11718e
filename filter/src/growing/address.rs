//! From a key's hash to its tag and its two buckets, in a table of any number of buckets, and from
//! what a slot holds to its other bucket.
//!
//! A hash gives a tag and the address of the first bucket; the address of the second is its xor with
//! a number that the tag chooses. A table of n buckets, 2^l ≤ n < 2^(l+1), is in the middle of a
//! round: buckets below n − 2^l have been split, and use l + 1 bits of an address, as do those that
//! were made of them; the others use l.

use super::word::{self, AHEAD, TAG};
use crate::hashing::mix;
use crate::traits::Class;

/// The bits of an address in reverse, and the 1 that ends them: the bit that is used up next comes
/// first.
static REVERSED: [u16; 1 << AHEAD] = {
    let mut table = [0; 1 << AHEAD];
    let mut bits = 0;
    while bits < table.len() {
        table[bits] = (bits as u16).reverse_bits() >> (16 - AHEAD) << 1 | 1;
        bits += 1;
    }
    table
};

/// By tag: the xor of the addresses of the two buckets.
static APART: [u64; 1 << TAG] = {
    let mut table = [0; 1 << TAG];
    let mut tag = 0;
    while tag < table.len() {
        table[tag] = mix(tag as u64 + 1) >> TAG;
        tag += 1;
    }
    table
};

/// Returns the xor of the two addresses of a key with this hash, for tests that choose hashes.
pub fn apart(hash: u64) -> u64 {
    let [first, second] = Key::new(hash).addresses;
    first ^ second
}

/// A key: its tag, and the addresses of its buckets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    tag: u64,
    pub(super) addresses: [u64; 2],
}

impl Key {
    #[inline(always)]
    pub(super) fn new(hash: u64) -> Self {
        let (tag, first) = (hash & ((1 << TAG) - 1), hash >> TAG);
        let addresses = [first, first ^ APART[tag as usize]];
        Key { tag, addresses }
    }

    /// Chooses the counter of wraps for its first bucket.
    #[inline(always)]
    pub(super) fn side(self) -> usize {
        self.addresses[0] as usize
    }

    /// True for one key in eight.
    pub(super) fn is_one_of_few(self) -> bool {
        self.tag & 7 == 0
    }

    #[inline(always)]
    pub(super) fn places(self, size: Size) -> [Place; 2] {
        let [first, second] = self.addresses;
        [Place::new(first, size), Place::new(second, size)]
    }

    /// What a slot of this one of its buckets holds for the key, if it is inserted now.
    #[inline(always)]
    pub(super) fn slot(self, which: usize, place: Place) -> u64 {
        slot_at(self.tag, self.addresses[which], place.level)
    }

    /// The words of its buckets if the key was in each slot, to compare with. `untagged` is [`word::untagged`].
    #[inline(always)]
    pub(super) fn full(self, places: [Place; 2], untagged: u64) -> [u64; 2] {
        let tagged = word::tagged(untagged, self.tag);
        // (Without `map`, which is a call where crates are not optimised together.)
        let full = |which: usize| {
            let level = places[which].level;
            word::full_of(tagged, ahead_at(self.addresses[which], level), level)
        };
        [full(0), full(1)]
    }

    /// The key's class in a table that has used this many bits of an address.
    pub(super) fn class(self, level: u32) -> Class {
        let mut known = self
            .addresses
            .map(|address| address & ((1 << (level + AHEAD)) - 1));
        known.sort_unstable();
        // The bits that a `usize` of 32 bits has no room for. (Those of the other address follow from them.)
        let high = known[0].checked_shr(usize::BITS).unwrap_or(0);
        Class {
            fingerprint: self.tag | high << TAG,
            buckets: known.map(|address| address as usize),
        }
    }
}

/// The number of buckets: how many were split in this round and, in the lowest six bits, the base-2 logarithm of how
/// many there were before it. A lookup would take longer to compute these than to load them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size(u64);

impl Size {
    pub(super) fn new(buckets: usize) -> Self {
        let level = buckets.ilog2();
        Size((buckets as u64 - (1 << level)) << 6 | u64::from(level))
    }

    #[inline(always)]
    pub(super) fn from_bits(bits: u64) -> Self {
        Size(bits)
    }

    pub(super) fn bits(self) -> u64 {
        self.0
    }

    #[inline(always)]
    pub(super) fn buckets(self) -> usize {
        self.split() + (1 << self.level())
    }

    /// Number of buckets split in this round: all below.
    #[inline(always)]
    fn split(self) -> usize {
        (self.0 >> 6) as usize
    }

    /// Number of buckets at the end of this round, in which each bucket that it began with is split.
    pub(super) fn end_of_round(self) -> usize {
        2 << self.level()
    }

    /// Base-2 logarithm, rounded down.
    #[inline(always)]
    fn level(self) -> u32 {
        (self.0 & 63) as u32
    }
}

/// A bucket, and how many bits of an address it uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) bucket: usize,
    pub(super) level: u32,
}

impl Place {
    /// The bucket of an address in a table of this size.
    #[inline(always)]
    pub(super) fn new(address: u64, size: Size) -> Self {
        let level = size.level();
        let half = 1usize << level;
        // (Not 2 * half - 1, which takes another shift.)
        let upper = address as usize & (half - 1 + half);
        let lower = address as usize & (half - 1);
        let split = lower < size.split();
        Place {
            bucket: if split { upper } else { lower },
            level: level + u32::from(split),
        }
    }

    /// The other bucket of the fingerprint in a slot of this one, in a table of this size; `None` if that bucket
    /// has been split once more, and the slot has no bit left to say which half it is. (As [`Moving`] says, with
    /// less effort.)
    #[inline(always)]
    pub(super) fn other(self, slot: u64, size: Size) -> Option<usize> {
        let next = slot >> AHEAD & 1;
        let address = (self.bucket as u64 | next << self.level) ^ APART[word::tag(slot) as usize];
        let place = Place::new(address, size);
        let known = place.level <= self.level || !word::is_spent(slot);
        known.then_some(place.bucket)
    }

    /// The bucket of an address that uses this many bits of it.
    pub(super) fn at(address: u64, level: u32) -> Self {
        let bucket = address as usize & ((1 << level) - 1);
        Place { bucket, level }
    }
}

/// Returns the bucket whose split makes this one, which must not be of the first size, and the number of
/// bits that it uses until then.
pub(super) fn parent(bucket: usize) -> Place {
    let level = bucket.ilog2();
    Place {
        bucket: bucket - (1 << level),
        level,
    }
}

/// The bits of an address after the first `level`, as a slot holds them.
#[inline(always)]
fn ahead_at(address: u64, level: u32) -> u64 {
    let ahead = address >> level & ((1 << AHEAD) - 1);
    u64::from(REVERSED[ahead as usize])
}

#[inline(always)]
fn slot_at(tag: u64, address: u64, level: u32) -> u64 {
    word::slot_of(tag, ahead_at(address, level))
}

/// The other bucket of an occupied slot's fingerprint, as far as the slot's bits determine it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moving {
    tag: u64,
    address: u64,
    /// Number of bits of the address that are known.
    known: u32,
}

impl Moving {
    #[inline]
    pub(super) fn out_of(from: Place, slot: u64) -> Self {
        let (tag, length) = (word::tag(slot), word::length(slot));
        let known = from.level + length;
        let ahead =
            u64::from(REVERSED[(word::ahead(slot) >> 1) as usize] >> 1) & ((1 << length) - 1);
        let address = (from.bucket as u64 | ahead << from.level) ^ APART[tag as usize];
        Moving {
            tag,
            address: address & ((1 << known) - 1),
            known,
        }
    }

    /// Calls `each` for every bucket of this level where it may be.
    pub(super) fn each(self, level: u32, mut each: impl FnMut(usize)) {
        let unknown = level.saturating_sub(self.known);
        for bits in 0..1 << unknown {
            each(Place::at(self.address | bits << self.known, level).bucket);
        }
    }

    /// Its bucket of this level, if enough bits are known.
    pub(super) fn bucket(self, level: u32) -> Option<usize> {
        (level <= self.known).then(|| Place::at(self.address, level).bucket)
    }

    /// What a slot of this level holds for it, if all of the level's bits are known.
    pub(super) fn slot(self, level: u32) -> u64 {
        let end = AHEAD - (self.known - level).min(AHEAD);
        slot_at(self.tag, self.address, level) >> (end + 1) << (end + 1) | 1 << end
    }
}
