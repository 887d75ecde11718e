//! The mini-filter of a block of a vector quotient filter: which of the block's slots belong to
//! which of its buckets.
//!
//! A block has [`SLOTS`] slots, each with a tag, and [`BUCKETS`] buckets, each of which has as many
//! consecutive slots as it needs. Their number is written in unary: for each bucket in order, a
//! zero for each of its slots and then a one. That takes one bit per bucket and one per taken slot;
//! the rest of the 128 bits are ones.
//!
//! ```text
//! bit 0 …                                                    … 127
//!     0 0 1   1   0 1   …   1          1 1 … 1
//!     bucket  1   2         the last   one for each empty slot
//!     0: two  no  one
//! ```
//!
//! So the last bit is always a one and need not be stored: the block's lock takes its place. To
//! find a bucket's slots, *select* the one that ends the preceding bucket: the ones up to there
//! count the preceding buckets, the zeros the preceding slots.

/// Slots per block.
pub(super) const SLOTS: usize = 48;

/// Buckets per block: more than slots, so that a bucket has 0.6 slots when all are taken.
pub(super) const BUCKETS: usize = 80;

/// Bits per tag.
const TAG_BITS: usize = 8;

/// Tags per word.
pub(super) const TAGS_PER_WORD: usize = 64 / TAG_BITS;

/// Words that hold a block's tags.
pub(super) const TAG_WORDS: usize = SLOTS / TAGS_PER_WORD;

/// The unary counts of a block without tags.
pub(super) const EMPTY: u128 = u128::MAX;

const _: () = assert!(SLOTS + BUCKETS == 128);

/// A one in each byte.
const LOWEST: u64 = 0x0101_0101_0101_0101;

/// The highest bit of each byte.
const HIGHEST: u64 = 0x80 * LOWEST;

/// The position of a bucket's slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// The first of its slots, or where it would be.
    pub(super) slot: usize,
    /// The number of its slots.
    pub(super) len: usize,
    /// The bit of the first slot.
    bit: usize,
}

impl Run {
    /// Finds the slots of a bucket.
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

    /// Returns the unary counts after this bucket, which must be one of theirs, gains a slot: the
    /// one after its last. The block must not be full.
    #[inline]
    pub(super) fn grown(self, unary: u128) -> u128 {
        let below = (1 << self.bit) - 1;
        unary & below | (unary & !below) << 1
    }

    /// Returns the unary counts after this bucket, which must be one of theirs and not empty, loses
    /// a slot.
    #[inline]
    pub(super) fn shrunk(self, unary: u128) -> u128 {
        let below = (1 << self.bit) - 1;
        unary & below | unary >> 1 & !below | 1 << 127
    }
}

/// Counts the taken slots.
#[inline]
pub(super) fn taken(unary: u128) -> usize {
    unary.count_zeros() as usize
}

/// Returns the first of a bucket's slots that holds a tag; `read` returns a word of tags.
///
/// Eight tags are compared at once, and hardly any bucket has more, so the processor need not
/// predict how many there are.
#[inline]
pub(super) fn find_tag(run: Run, tag: u8, read: impl Fn(usize) -> u64) -> Option<usize> {
    let word = |at| if at < TAG_WORDS { read(at) } else { 0 };
    let mut passed = 0;
    loop {
        let slot = run.slot + passed;
        let (at, shift) = (slot / TAGS_PER_WORD, slot % TAGS_PER_WORD * TAG_BITS);
        // The tags from this slot on. The second shift is split in two, as it may be by all 64
        // bits.
        let tags = word(at) >> shift | word(at + 1) << (63 - shift) << 1;
        let of_others = u64::MAX.unbounded_shl(((run.len - passed) * TAG_BITS) as u32);
        let difference = tags ^ (u64::from(tag) * LOWEST);
        // The highest bit of each byte that is zero, and perhaps of some above the lowest of these.
        let zero = difference.wrapping_sub(LOWEST) & !difference & HIGHEST & !of_others;
        if zero != 0 {
            return Some(slot + zero.trailing_zeros() as usize / TAG_BITS);
        }
        passed += TAGS_PER_WORD;
        if passed >= run.len {
            return None;
        }
    }
}

/// Puts a tag into a slot; its old tag and all later ones move up by one.
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

/// Removes the tag of a slot; all later ones move down by one.
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

/// Returns the position of the one with this number, counted from 0. Branchless, after Vigna,
/// *Broadword Implementation of Rank/Select Queries* (2008).
#[inline]
fn select(unary: u128, number: usize) -> usize {
    let (low, high) = (unary as u64, (unary >> 64) as u64);
    let (low_sums, high_sums) = (byte_sums(low), byte_sums(high));
    let ones = (low_sums >> 56) as usize;
    let (word, sums, before, bit) = if number < ones {
        (low, low_sums, 0, 0)
    } else {
        (high, high_sums, ones, 64)
    };
    let number = number - before;
    let shift = bytes_up_to(sums, number) * 8;
    // The byte with the one we look for, and the number of that one within it.
    let byte = word >> shift & 0xff;
    let number = number - ((sums << 8) >> shift & 0xff) as usize;
    // The same with each bit of that byte in a byte of its own.
    let spread = (byte * LOWEST) & 0x8040_2010_0804_0201;
    let bits = (((spread | HIGHEST) - LOWEST) | spread) >> 7 & LOWEST;
    bit + shift + bytes_up_to(bits.wrapping_mul(LOWEST), number)
}

/// Returns, in each byte, how many ones are in it and all lower bytes.
#[inline]
fn byte_sums(word: u64) -> u64 {
    let pairs = word - ((word >> 1) & (0x55 * LOWEST));
    let fours = (pairs & (0x33 * LOWEST)) + ((pairs >> 2) & (0x33 * LOWEST));
    let bytes = (fours + (fours >> 4)) & (0x0f * LOWEST);
    bytes.wrapping_mul(LOWEST)
}

/// Counts the bytes of `sums` that are at most `number`. No byte of `sums` may exceed 64, and
/// `number` must be less than 64.
#[inline]
fn bytes_up_to(sums: u64, number: usize) -> usize {
    let up_to = (((number as u64 * LOWEST) | HIGHEST) - sums) & HIGHEST;
    ((up_to >> 7).wrapping_mul(LOWEST) >> 56) as usize
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

    /// Compares the mini-filter with a list of tags for each bucket.
    #[test]
    fn it_is_a_list_of_tags_for_each_bucket() {
        let mut random = SmallRng::seed_from_u64(2);
        let mut unary = EMPTY;
        let mut words = [0; TAG_WORDS];
        let mut lists = vec![Vec::new(); BUCKETS];
        let (mut was_full, mut most) = (0, 0);
        for step in 0..20_000 {
            let count: usize = lists.iter().map(Vec::len).sum();
            assert_eq!(taken(unary), count);
            was_full += usize::from(count == SLOTS);
            // Fills and empties the block in turn.
            let grows =
                count < SLOTS && (count == 0 || random.random_bool([0.7, 0.3][step / 500 % 2]));
            most = most.max(Run::of(BUCKETS - 1, unary).len);
            if grows {
                // One bucket has many tags.
                let bucket = random.random_range(0..BUCKETS + 20).min(BUCKETS - 1);
                let tag = random.random();
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
                let first = |tag| {
                    list.iter()
                        .position(|&other| other == tag)
                        .map(|at| slot + at)
                };
                for &tag in list.iter().chain(&[0, random.random()]) {
                    assert_eq!(find_tag(run, tag, |word| words[word]), first(tag));
                }
                slot += run.len;
            }
            assert!(unary >> 127 == 1, "the last bit is not stored");
        }
        assert!(was_full > 100 && most > 8, "{was_full}, {most}");
    }
}
