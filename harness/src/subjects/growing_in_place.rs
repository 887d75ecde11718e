//! A filter that grows in one table, bucket by bucket: cuckoo hashing plus linear hashing (Litwin
//! 1980), with fingerprints of several lengths (Dayan et al. 2023). It is the hot path of a design that may
//! replace [`Growing`](super::Growing), built to be measured beside it.
//!
//! **Addresses.** A hash gives a tag and the address of the first bucket; the second one's is its
//! xor with a number that the tag chooses. A table of n buckets, 2^l ≤ n < 2^(l+1), is in the middle of
//! a round: buckets below n − 2^l have been *split*, and use l + 1 bits of an address; the others use l.
//!
//! **Splitting.** A K-CAS of two words splits bucket i of level l: what stays, and what goes to the
//! new bucket i + 2^l, whose word was zero. The next bit of each address says which. A bucket's level
//! is part of its word, so the number of buckets that a thread has read is only a hint: if a word has
//! another level than the hint promises, the bucket is looked for again. An insert that looked at
//! many buckets to find room splits the next run of them. Nothing is claimed, so a thread that stops
//! in the middle of a run holds nobody up.
//!
//! ```text
//! bit 62 …  55 54 … 51 50 …  34 33 … 17 16 … 0     a slot: bit 16  15 … 10    9 … 0
//!    timestamp  level   slot 2   slot 1  slot 0            empty?     tag    next bits of the address,
//!                                                                            1, then zeros
//! ```
//!
//! **Lengths.** Each split uses up one bit of each slot; the 1 that ends a slot's address moves up. A
//! slot without bits left goes to both buckets, and has a copy in each from then on: false positives,
//! never a false negative. A remove takes the longest match: a shorter one may stand for another key.
//!
//! **What is missing.** Unique inserts, counts, snapshots, saves; shrinking; a timestamp that wraps 256
//! times within one lookup is not noticed; of a slot that was copied, a remove takes one copy.

use std::hash::{BuildHasher, Hash};

use anyhow::Result;
use arrayvec::ArrayVec;
use filter::FixedState;
use filter::hashing::mix;
use filter::internals::length::Length;
use kcas::sync::{AtomicU64, Ordering};
use kcas::{Entry, WordArray, thread_id};
use subject::Subject;
use subject::layout::slots;

const SLOTS: u32 = 3;
/// Bits of a slot.
const SLOT: u32 = 17;
/// Bits of a tag.
const TAG: u32 = 6;
/// Most bits of an address in a slot.
const AHEAD: u32 = SLOT - 1 - TAG - 1;

/// One in the lowest bit of every slot.
const LOWEST: u64 = 1 | 1 << SLOT | 1 << (2 * SLOT);
/// One in the highest bit of every slot: those of an empty bucket.
const EMPTY: u64 = LOWEST << (SLOT - 1);
const USED: u32 = SLOTS * SLOT;
const ALL_SLOTS: u64 = (1 << USED) - 1;
/// The bits of an address in every slot, and the 1 that ends them.
const ADDRESSES: u64 = LOWEST * ((2 << AHEAD) - 1);
const LEVEL: u64 = 15 << USED;
const ADDITION: u64 = 1 << (USED + 4);
const VALUE: u64 = u64::MAX >> 1;

/// Buckets that are split in one go.
const RUN: usize = 16;
/// An insert that has read more buckets than this splits a run.
const MANY_READS: usize = 16;
/// Most buckets that an insert reads.
const MOST_READS: usize = 512;

/// The lowest bits of an address in reverse, and the 1 that ends them: the bit that is used up next
/// comes first.
static REVERSED: [u16; 1 << AHEAD] = {
    let mut table = [0; 1 << AHEAD];
    let mut bits = 0;
    while bits < table.len() {
        table[bits] = (bits as u16).reverse_bits() >> (16 - AHEAD) << 1 | 1;
        bits += 1;
    }
    table
};

/// By tag: what the addresses of the two buckets differ by.
static APART: [u64; 1 << TAG] = {
    let mut table = [0; 1 << TAG];
    let mut tag = 0;
    while tag < table.len() {
        table[tag] = mix(tag as u64 + 1) >> TAG;
        tag += 1;
    }
    table
};

/// A key: its tag and the addresses of its buckets.
#[derive(Clone, Copy)]
struct Key {
    tag: u64,
    addresses: [u64; 2],
}

impl Key {
    #[inline(always)]
    fn new(hash: u64) -> Self {
        let (tag, first) = (hash & ((1 << TAG) - 1), hash >> TAG);
        let addresses = [first, first ^ APART[tag as usize]];
        Key { tag, addresses }
    }
}

/// A bucket, and how many bits of an address it uses.
#[derive(Clone, Copy)]
struct Place {
    bucket: usize,
    level: u32,
}

impl Place {
    /// The bucket of an address in a table of this many.
    #[inline(always)]
    fn of(address: u64, buckets: usize) -> Self {
        let level = 63 - (buckets as u64 | 1).leading_zeros();
        let half = 1usize << level;
        let upper = address as usize & (2 * half - 1);
        let lower = upper & (half - 1);
        let split = lower < buckets - half;
        Place {
            bucket: if split { upper } else { lower },
            level: level + u32::from(split),
        }
    }

    /// Zero if the word has this level.
    #[inline(always)]
    fn differs(self, word: u64) -> u64 {
        (word ^ u64::from(self.level) << USED) & LEVEL
    }
}

/// What a key that is inserted now has in a slot of this level.
#[inline(always)]
fn slot_of(tag: u64, address: u64, level: u32) -> u64 {
    let ahead = address >> level & ((1 << AHEAD) - 1);
    tag << (AHEAD + 1) | u64::from(REVERSED[ahead as usize])
}

/// Returns the highest bit of each slot that stands for a key with this [`slot_of`].
#[inline(always)]
fn matches(word: u64, slot: u64) -> u64 {
    // All bits of a slot up to its lowest 1: those that need not agree. They are greater than the
    // difference if and only if all the others agree; and an empty slot differs in its highest bit.
    let ignored = word ^ word.wrapping_sub(LOWEST);
    let difference = (word ^ slot.wrapping_mul(LOWEST)) & ALL_SLOTS;
    (ignored | EMPTY).wrapping_sub(difference) & EMPTY
}

#[inline(always)]
fn room(word: u64) -> u32 {
    (word & EMPTY).count_ones()
}

/// Returns the number of the lowest slot that one of these bits is the highest of.
fn lowest(highest: u64) -> u32 {
    (highest.trailing_zeros() - (SLOT - 1)) / SLOT
}

fn slot_at(word: u64, slot: u32) -> u64 {
    word >> (slot * SLOT) & ((1 << SLOT) - 1)
}

/// Returns `word` with this in a slot, and the timestamp advanced.
#[inline(always)]
fn placed(word: u64, slot: u32, content: u64) -> u64 {
    let cleared = word & !(((1 << SLOT) - 1) << (slot * SLOT));
    (cleared | content << (slot * SLOT)).wrapping_add(ADDITION) & VALUE
}

/// Returns how many bits of its address an occupied slot holds.
fn length(slot: u64) -> u32 {
    AHEAD - slot.trailing_zeros()
}

/// An occupied slot of some bucket, as far as it is known.
#[derive(Clone, Copy)]
struct Moving {
    tag: u64,
    /// The address of its other bucket.
    address: u64,
    /// Number of known bits of the address.
    known: u32,
}

impl Moving {
    fn out_of(from: Place, slot: u64) -> Self {
        let ahead = u64::from(REVERSED[(slot as usize & ((2 << AHEAD) - 1)) >> 1] >> 1);
        let known = from.level + length(slot);
        let tag = slot >> (AHEAD + 1);
        let ahead = ahead & ((1 << length(slot)) - 1);
        let address = (from.bucket as u64 | ahead << from.level) ^ APART[tag as usize];
        let address = address & ((1 << known) - 1);
        Moving {
            tag,
            address,
            known,
        }
    }

    /// What it has in a slot of this level, at most as high as its bits are known.
    fn slot(self, level: u32) -> u64 {
        let end = AHEAD - (self.known - level).min(AHEAD);
        slot_of(self.tag, self.address, level) >> (end + 1) << (end + 1) | 1 << end
    }
}

/// The filter. Its table has a fixed address space, of which it uses more and more pages.
#[derive(Debug)]
pub struct GrowingInPlace {
    words: WordArray,
    /// Number of buckets: those below have been made.
    buckets: AtomicU64,
    length: Length,
    slots: usize,
}

/// Looks a key up in a table of this many buckets; `None` if the buckets have changed meanwhile.
#[inline(always)]
fn contains_at_once(words: &WordArray, buckets: usize, key: Key) -> Option<bool> {
    let places = key.addresses.map(|address| Place::of(address, buckets));
    let [first, second] = places.map(|place| words.load_raw(place.bucket));
    let changed = words.load_raw(places[0].bucket) ^ first;
    let levels = places[0].differs(first) | places[1].differs(second);
    let slots = [0, 1].map(|at| slot_of(key.tag, key.addresses[at], places[at].level));
    let found = matches(first, slots[0]) | matches(second, slots[1]);
    (changed | levels | (first | second) & !VALUE == 0).then_some(found != 0)
}

impl GrowingInPlace {
    fn new(start: usize, most: usize, slots: usize) -> Result<Self> {
        let words = WordArray::try_new(most)?;
        let empty = EMPTY | u64::from(start.ilog2()) << USED & LEVEL;
        for bucket in 0..start {
            words.compare_exchange(bucket, 0, empty).expect("it is new");
        }
        Ok(Self {
            words,
            buckets: AtomicU64::new(start as u64),
            length: Length::starting_at(0),
            slots,
        })
    }

    /// Acquire: with the exchange in [`grow`](Self::grow), after which the buckets were made.
    #[inline(always)]
    fn buckets(&self) -> usize {
        self.buckets.load(Ordering::Acquire) as usize
    }

    /// Returns the places of a key and their words, each of which was its bucket's when read.
    #[inline]
    fn look(&self, key: Key) -> [(Place, u64); 2] {
        let buckets = self.buckets();
        key.addresses.map(|address| {
            let mut place = Place::of(address, buckets);
            loop {
                let word = self.words.load(place.bucket);
                if place.differs(word) == 0 {
                    return (place, word);
                }
                // It has been split since.
                place.level += 1;
                place.bucket = address as usize & ((1 << place.level) - 1);
            }
        })
    }

    #[cold]
    fn contains_slowly(&self, key: Key) -> bool {
        loop {
            let looks = self.look(key);
            let found = |at: usize| {
                let (place, word) = looks[at];
                matches(word, slot_of(key.tag, key.addresses[at], place.level)) != 0
            };
            if found(0) || found(1) {
                return true;
            }
            if self.words.load(looks[0].0.bucket) == looks[0].1 {
                return false;
            }
        }
    }

    /// Adds a key; false if the table cannot grow any more.
    fn add(&self, key: Key) -> bool {
        loop {
            let looks = self.look(key);
            let [(_, first), (_, second)] = looks;
            if room(first) | room(second) != 0 {
                let at = usize::from(room(second) > room(first));
                let (place, word) = looks[at];
                let slot = slot_of(key.tag, key.addresses[at], place.level);
                let filled = placed(word, lowest(word & EMPTY), slot);
                if (self.words.compare_exchange(place.bucket, word, filled)).is_ok() {
                    return true;
                }
                continue;
            }
            let buckets = self.buckets();
            let (reads, chain) = self.search(buckets, key, looks);
            let added = chain.is_some_and(|chain| self.words.kcas(&chain).is_ok());
            if (reads > MANY_READS || reads == 0) && !self.grow(buckets) && !added {
                return false;
            }
            if added {
                return true;
            }
        }
    }

    /// Searches for a chain of shifts that ends in an empty slot. Returns the number of buckets read, or
    /// 0 if a bucket has been split that the number of buckets does not count yet.
    #[inline(never)]
    fn search(
        &self,
        buckets: usize,
        key: Key,
        roots: [(Place, u64); 2],
    ) -> (usize, Option<ArrayVec<Entry, { WordArray::MAX_ENTRIES }>>) {
        struct Node {
            place: Place,
            word: u64,
            parent: u16,
            /// What moves here.
            arriving: Moving,
            /// Where it moves from.
            slot: u8,
            depth: u8,
        }
        let mut nodes = ArrayVec::<Node, MOST_READS>::new();
        for (at, (place, word)) in roots.into_iter().enumerate() {
            let arriving = Moving {
                tag: key.tag,
                address: key.addresses[at],
                known: u64::BITS - TAG,
            };
            nodes.push(Node {
                place,
                word,
                parent: 0,
                arriving,
                slot: 0,
                depth: 1,
            });
        }
        let mut next = 0;
        while let Some(&Node {
            place, word, depth, ..
        }) = nodes.get(next)
        {
            if usize::from(depth) == WordArray::MAX_ENTRIES {
                break;
            }
            for slot in 0..SLOTS {
                let arriving = Moving::out_of(place, slot_at(word, slot));
                let to = Place::of(arriving.address, buckets);
                // Without a bit left, nobody knows into which half of a split bucket it goes.
                if to.level > arriving.known || nodes.is_full() {
                    continue;
                }
                let word = self.words.load(to.bucket);
                if to.differs(word) != 0 {
                    return (0, None);
                }
                nodes.push(Node {
                    place: to,
                    word,
                    parent: next as u16,
                    arriving,
                    slot: slot as u8,
                    depth: depth + 1,
                });
                if room(word) == 0 {
                    continue;
                }
                let mut chain = ArrayVec::<Entry, { WordArray::MAX_ENTRIES }>::new();
                let (mut at, mut into) = (nodes.len() - 1, lowest(word & EMPTY));
                loop {
                    let node = &nodes[at];
                    let content = node.arriving.slot(node.place.level);
                    chain.push(Entry {
                        index: node.place.bucket,
                        expected: node.word,
                        new: placed(node.word, into, content),
                    });
                    if at < roots.len() {
                        break;
                    }
                    (at, into) = (usize::from(node.parent), u32::from(node.slot));
                }
                // A chain that comes round to itself names a bucket twice.
                chain.sort_unstable_by_key(|entry| entry.index);
                if chain.windows(2).all(|pair| pair[0].index < pair[1].index) {
                    return (nodes.len(), Some(chain));
                }
            }
            next += 1;
        }
        (MOST_READS, None)
    }

    /// Splits the run of buckets after this many; false if there is no place for it.
    #[cold]
    fn grow(&self, buckets: usize) -> bool {
        if buckets + RUN > self.words.len() {
            return false;
        }
        (buckets..buckets + RUN).for_each(|upper| self.split(upper));
        // AcqRel: with the Acquire in `buckets`. If it fails, another thread has split them.
        let _ = self.buckets.compare_exchange(
            buckets as u64,
            (buckets + RUN) as u64,
            Ordering::AcqRel,
            Ordering::Relaxed,
        );
        true
    }

    /// Makes bucket `upper` of half of another one, unless that has been done.
    fn split(&self, upper: usize) {
        let level = upper.ilog2();
        let lower = Place {
            bucket: upper - (1 << level),
            level,
        };
        loop {
            let word = self.words.load(lower.bucket);
            if lower.differs(word) != 0 || self.words.load(upper) != 0 {
                return;
            }
            // One in the lowest bit of each slot that moves, and of each that has no bit left.
            let moves = word >> AHEAD & LOWEST;
            let spent = (0..SLOTS)
                .filter(|&slot| slot_at(word & ADDRESSES, slot) == 1 << AHEAD)
                .fold(0, |spent, slot| spent | 1 << (slot * SLOT));
            let shifted = word & ALL_SLOTS & !ADDRESSES | word << 1 & ADDRESSES & !LOWEST;
            let shifted = shifted | spent << AHEAD;
            let only = |which: u64| {
                let mask = which * ((1 << SLOT) - 1);
                shifted & mask | EMPTY & !mask
            };
            let head = (word & !(ALL_SLOTS | LEVEL)).wrapping_add(ADDITION) & VALUE
                | u64::from(level + 1) << USED & LEVEL;
            let halves = [
                (lower.bucket, word, head | only(!moves & LOWEST | spent)),
                (upper, 0, head | only(moves)),
            ];
            let entries = halves.map(|(index, expected, new)| Entry {
                index,
                expected,
                new,
            });
            if self.words.kcas(&entries).is_ok() {
                return;
            }
        }
    }

    /// Takes the longest match of a key, if it has one.
    fn take(&self, key: Key) -> bool {
        loop {
            let looks = self.look(key);
            let mut longest = None;
            for (at, &(place, word)) in looks.iter().enumerate() {
                let mut found = matches(word, slot_of(key.tag, key.addresses[at], place.level));
                while found != 0 {
                    let slot = lowest(found);
                    let known = place.level + length(slot_at(word, slot));
                    longest = longest.max(Some((known, at, slot)));
                    found &= found - 1;
                }
            }
            let Some((_, at, slot)) = longest else {
                if self.words.load(looks[0].0.bucket) == looks[0].1 {
                    return false;
                }
                continue;
            };
            // If it is not as long as any, a longer one may have come to the other bucket.
            let entries: ArrayVec<Entry, 2> = looks
                .iter()
                .enumerate()
                .filter(|&(other, (place, _))| {
                    let whole = length(slot_at(looks[at].1, slot)) == AHEAD;
                    other == at || !whole && place.bucket != looks[at].0.bucket
                })
                .map(|(other, &(place, word))| {
                    let cleared = word & !(((1 << SLOT) - 1) << (slot * SLOT))
                        | 1 << (slot * SLOT + SLOT - 1);
                    Entry {
                        index: place.bucket,
                        expected: word,
                        new: if other == at { cleared } else { word },
                    }
                })
                .collect();
            if self.words.kcas(&entries).is_ok() {
                return true;
            }
        }
    }

    fn count(&self, change: impl Fn() -> bool, by: u64) -> bool {
        let count = |id: &_| {
            let counter = self.length.counter(id);
            let changed = change();
            counter.change(if changed { by } else { 0 });
            changed
        };
        thread_id::with(count).unwrap_or_else(|error| panic!("{error}"))
    }
}

impl Subject for GrowingInPlace {
    const NAME: &'static str = "growing-in-place";
    const DESCRIPTION: &'static str = "a design for growing: one table, split bucket by bucket from a hundredth of the size; no epochs";
    const GUARANTEES: &'static str =
        "lock-free inserts, removes and splits; lookups never write; no proof, and no snapshots";
    const GROWS: bool = true;

    fn with_buckets(buckets: usize) -> Result<Self> {
        let slots = slots(buckets)?;
        let start = (buckets / 100).next_power_of_two().max(RUN);
        Self::new(start, buckets.next_power_of_two().max(start) * 4, slots)
    }

    #[inline]
    fn insert<K: Hash + ?Sized>(&self, key: &K) -> bool {
        let key = Key::new(FixedState.hash_one(key));
        self.count(|| self.add(key), 1)
    }

    #[inline(always)]
    fn contains<K: Hash + ?Sized>(&self, key: &K) -> bool {
        let hash = FixedState.hash_one(key);
        match contains_at_once(&self.words, self.buckets(), Key::new(hash)) {
            Some(found) => found,
            // Not given the key, which would be stored to memory in every lookup.
            None => self.contains_slowly(Key::new(hash)),
        }
    }

    #[inline]
    fn remove<K: Hash + ?Sized>(&self, key: &K) -> bool {
        let key = Key::new(FixedState.hash_one(key));
        self.count(|| self.take(key), u64::MAX)
    }

    fn slots(&self) -> usize {
        self.slots
    }

    fn memory_bytes(&self) -> usize {
        self.buckets() * size_of::<u64>() + self.length.memory_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From 16 buckets to 2^13 times as many, while four threads look up what they have inserted; then
    /// back to nothing.
    #[test]
    fn no_key_is_lost_over_thirteen_doublings() {
        let filter = GrowingInPlace::new(16, 1 << 18, 0).unwrap();
        const KEYS: u64 = 80_000;
        let key = |thread: u64, nth: u64| nth * 4 + thread;
        std::thread::scope(|threads| {
            for thread in 0..4 {
                let filter = &filter;
                threads.spawn(move || {
                    for nth in 0..KEYS {
                        assert!(filter.insert(&key(thread, nth)));
                        let earlier = key(thread, nth * 7919 % (nth + 1));
                        assert!(filter.contains(&earlier), "{earlier}");
                    }
                });
            }
        });
        assert_eq!(filter.length.sum() as u64, 4 * KEYS);
        let wrong = (0..100_000u64).filter(|key| filter.contains(&(key + 1_000_000)));
        assert!(wrong.count() < 400);
        std::thread::scope(|threads| {
            for thread in 0..4 {
                let filter = &filter;
                threads.spawn(move || {
                    // The newest first: most of what matches them as well is shorter.
                    for nth in (0..KEYS).rev() {
                        let key = key(thread, nth);
                        assert!(filter.contains(&key) && filter.remove(&key), "{key}");
                    }
                });
            }
        });
        assert_eq!(filter.length.sum(), 0);
    }
}
