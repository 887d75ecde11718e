//! The mini-filter of a block of a vector quotient filter: which of its slots belong to which of its buckets.
//!
//! A block has [`SLOTS`] slots, each with a tag, and [`BUCKETS`] buckets, each of which has as many slots as it
//! needs, one after the other. How many, is written in unary: for each bucket, from the first to the last, a zero for each
//! of its slots and then a one. That is a bit for each bucket and each slot that is taken; what is left of 128 bits
//! is ones.
//!
//! ```text
//! bit 0 …                                                    … 127
//!     0 0 1   1   0 1   …   1          1 1 … 1
//!     bucket  1   2         the last   one for each empty slot
//!     0: two  no  one
//! ```
//!
//! So the last bit is always a one, and need not be stored: a block's lock has its place. The slots of a bucket are
//! found by *selecting* the one that ends the bucket before it: the ones up to there are the buckets before, the
//! zeros the slots before.

/// Slots of a block.
pub(super) const SLOTS: usize = 48;

/// Buckets of a block: more than slots, so that a bucket has 0.6 slots when all are taken.
pub(super) const BUCKETS: usize = 80;

/// Bits of a tag.
const TAG_BITS: usize = 8;

/// Tags in a word.
pub(super) const TAGS_PER_WORD: usize = 64 / TAG_BITS;

/// Words of a block's tags.
pub(super) const TAG_WORDS: usize = SLOTS / TAGS_PER_WORD;

/// The unary numbers of a block without any tag.
pub(super) const EMPTY: u128 = u128::MAX;

const _: () = assert!(SLOTS + BUCKETS == 128);

/// Where a bucket's slots are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// The first of its slots, or where it would be.
    pub(super) slot: usize,
    /// How many it has.
    pub(super) len: usize,
    /// The bit of the first.
    bit: usize,
}

impl Run {
    /// The slots of a bucket.
    #[inline]
    pub(super) fn of(bucket: usize, unary: u128) -> Self {
        let bit = match bucket {
            0 => 0,
            _ => select(unary, bucket - 1) + 1,
        };
        Self {
            slot: bit - bucket,
            len: (unary >> bit).trailing_zeros() as usize,
            bit,
        }
    }

    /// The unary numbers when this bucket, which is one of theirs, has one slot more: the one after its
    /// last. The block must not be full.
    #[inline]
    pub(super) fn grown(self, unary: u128) -> u128 {
        let below = (1 << self.bit) - 1;
        unary & below | (unary & !below) << 1
    }

    /// The unary numbers when this bucket, which is one of theirs and not empty, has one slot less.
    #[inline]
    pub(super) fn shrunk(self, unary: u128) -> u128 {
        let below = (1 << self.bit) - 1;
        unary & below | unary >> 1 & !below | 1 << 127
    }
}

/// How many slots are taken.
#[inline]
pub(super) fn taken(unary: u128) -> usize {
    unary.count_zeros() as usize
}

/// The tag of a slot, from that one of the words of tags which holds it.
#[inline]
pub(super) fn tag(word: u64, slot: usize) -> u8 {
    (word >> (slot % TAGS_PER_WORD * TAG_BITS)) as u8
}

/// Puts a tag into a slot; what was there, and all after it, move on by one.
#[inline]
pub(super) fn insert_tag(words: &mut [u64; TAG_WORDS], slot: usize, tag: u8) {
    let (at, shift) = (slot / TAGS_PER_WORD, slot % TAGS_PER_WORD * TAG_BITS);
    for word in (at + 1..TAG_WORDS).rev() {
        words[word] = words[word] << TAG_BITS | words[word - 1] >> (64 - TAG_BITS);
    }
    let below = (1 << shift) - 1;
    let word = words[at];
    words[at] = word & below | u64::from(tag) << shift | (word & !below) << TAG_BITS;
}

/// Takes the tag of a slot out; all after it move back by one.
#[inline]
pub(super) fn remove_tag(words: &mut [u64; TAG_WORDS], slot: usize) {
    let (at, shift) = (slot / TAGS_PER_WORD, slot % TAGS_PER_WORD * TAG_BITS);
    let below = (1 << shift) - 1;
    let word = words[at];
    words[at] = word & below | word >> TAG_BITS & !below;
    for word in at + 1..TAG_WORDS {
        words[word - 1] |= words[word] << (64 - TAG_BITS);
        words[word] >>= TAG_BITS;
    }
}

/// The bit that is the one of this number, from 0.
#[inline]
fn select(unary: u128, number: usize) -> usize {
    let (low, high) = (unary as u64, (unary >> 64) as u64);
    let ones = low.count_ones() as usize;
    match number.checked_sub(ones) {
        None => select_in_word(low, number),
        Some(number) => 64 + select_in_word(high, number),
    }
}

/// As [`select`], after Vigna, *Broadword Implementation of Rank/Select Queries* (2008): the ones are counted in
/// all bytes at once.
#[inline]
fn select_in_word(word: u64, number: usize) -> usize {
    /// One in each byte.
    const LOWEST: u64 = 0x0101_0101_0101_0101;
    const HIGHEST: u64 = 0x80 * LOWEST;
    let pairs = word - ((word >> 1) & (0x55 * LOWEST));
    let fours = (pairs & (0x33 * LOWEST)) + ((pairs >> 2) & (0x33 * LOWEST));
    let bytes = (fours + (fours >> 4)) & (0x0f * LOWEST);
    // In each byte, the ones in it and all below it: at most 64.
    let sums = bytes.wrapping_mul(LOWEST);
    // The bytes that end before the one that is sought: their sums are not above its number.
    let passed = (((number as u64 * LOWEST) | HIGHEST) - sums) & HIGHEST;
    let shift = passed.count_ones() * 8;
    let mut left = word >> shift;
    for _ in (sums << 8) >> shift & 0xff..number as u64 {
        left &= left - 1;
    }
    (shift + left.trailing_zeros()) as usize
}

#[cfg(test)]
mod tests {
    use rand::rngs::SmallRng;
    use rand::seq::IndexedRandom;
    use rand::{RngExt, SeedableRng};

    use super::*;

    #[test]
    fn the_ones_of_words_are_selected() {
        let mut random = SmallRng::seed_from_u64(1);
        let sparse = |random: &mut SmallRng| random.random::<u128>() & random.random::<u128>();
        for _ in 0..2_000 {
            for unary in [
                random.random(),
                sparse(&mut random),
                !sparse(&mut random),
                u128::MAX << random.random_range(0..128),
                u128::MAX >> random.random_range(0..128),
            ] {
                let ones = (0..128).filter(|&bit| unary >> bit & 1 == 1);
                for (number, bit) in ones.enumerate() {
                    assert_eq!(select(unary, number), bit, "{unary:#x}, {number}");
                }
            }
        }
    }

    /// Against a list of tags for each bucket.
    #[test]
    fn it_is_a_list_of_tags_for_each_bucket() {
        let mut random = SmallRng::seed_from_u64(2);
        let mut unary = EMPTY;
        let mut words = [0; TAG_WORDS];
        let mut lists = vec![Vec::new(); BUCKETS];
        let mut was_full = 0;
        for step in 0..20_000 {
            let count: usize = lists.iter().map(Vec::len).sum();
            assert_eq!(taken(unary), count);
            was_full += usize::from(count == SLOTS);
            // Fuller and emptier in turn.
            let grows =
                count < SLOTS && (count == 0 || random.random_bool([0.7, 0.3][step / 500 % 2]));
            if grows {
                let (bucket, tag) = (random.random_range(0..BUCKETS), random.random());
                let run = Run::of(bucket, unary);
                insert_tag(&mut words, run.slot + run.len, tag);
                unary = run.grown(unary);
                lists[bucket].push(tag);
            } else {
                let some: Vec<_> = (0..BUCKETS).filter(|&b| !lists[b].is_empty()).collect();
                let &bucket = some.choose(&mut random).unwrap();
                let run = Run::of(bucket, unary);
                let which = random.random_range(0..run.len);
                remove_tag(&mut words, run.slot + which);
                unary = run.shrunk(unary);
                lists[bucket].remove(which);
            }
            let mut slot = 0;
            for (bucket, list) in lists.iter().enumerate() {
                let run = Run::of(bucket, unary);
                assert_eq!((run.slot, run.len), (slot, list.len()), "bucket {bucket}");
                let tags: Vec<u8> = (slot..slot + run.len)
                    .map(|slot| tag(words[slot / TAGS_PER_WORD], slot))
                    .collect();
                assert_eq!(&tags, list, "bucket {bucket}");
                slot += run.len;
            }
            assert!(unary >> 127 == 1, "the last bit is not stored");
        }
        assert!(was_full > 100, "{was_full}");
    }
}
