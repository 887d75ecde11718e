//! The mini-filter of a block of a vector quotient filter: which of the block's slots belong to
//! which of its buckets, and the moves of tags between slots.
//!
//! A block has [`SLOTS`] slots, each with a tag, and [`BUCKETS`] buckets, each of which has as many
//! consecutive slots as it needs. Their *runs* are written in unary, in 128 bits: for each bucket in
//! order, a zero and then a one for each of its slots. The rest are zeros, so a block of zeros is
//! empty.
//!
//! ```text
//! bit 0 …                                      … 127
//!     0 1 1   0   0 1   …   0 1        0 … 0
//!     bucket  1   2         the last   one for each empty slot
//!     0: two  no  one
//! ```
//!
//! To find a bucket's slots, *select* its zero: the zeros before it count the preceding buckets, the
//! ones the preceding slots.

/// Slots per block. Two fewer than in the paper: their bytes hold the block's lock and version.
pub(super) const SLOTS: usize = 46;

/// Buckets per block: more than slots, so that a bucket has 0.56 slots when all are taken.
pub(super) const BUCKETS: usize = 82;

const TAG_BITS: usize = 8;

pub(super) const TAGS_PER_WORD: usize = 64 / TAG_BITS;

/// Words that hold a block's tags. The last two bytes hold none.
pub(super) const TAG_WORDS: usize = SLOTS.div_ceil(TAGS_PER_WORD);

const _: () = assert!(SLOTS + BUCKETS == 128);

/// A one in each byte.
const LOW_BITS: u64 = 0x0101_0101_0101_0101;

/// The highest bit of each byte.
const HIGH_BITS: u64 = 0x80 * LOW_BITS;

/// The position of a bucket's slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// The first of its slots, or where it would be.
    pub(super) slot: usize,
    /// A one for each of its slots, from bit 1 on.
    pub(super) ones: u64,
    /// The bucket's zero. The ones of its slots follow.
    bit: usize,
}

impl Run {
    /// Returns the slots of a bucket with its zero at this bit; `following` is the runs from there.
    #[inline(always)]
    pub(super) fn at(bit: usize, bucket: usize, following: u64) -> Self {
        Self {
            // Wraps only if the run is arbitrary.
            slot: bit.wrapping_sub(bucket),
            // The sum carries over the ones after the bucket's zero, which it thus clears.
            ones: following & !following.wrapping_add(2),
            bit,
        }
    }

    #[inline(always)]
    pub(super) fn len(self) -> usize {
        self.ones.count_ones() as usize
    }

    #[inline]
    fn below(self) -> u128 {
        u128::MAX >> (127 - self.bit)
    }

    /// Returns the runs after this bucket, which must be one of theirs, gains a slot: the one after
    /// its last. The block must not be full.
    #[inline]
    pub(super) fn grown(self, runs: u128) -> u128 {
        let below = self.below();
        runs & below | (runs & !below) << 1 | 2 << self.bit
    }

    /// Returns the runs after this bucket, which must be one of theirs and not empty, loses a slot.
    #[inline]
    pub(super) fn shrunk(self, runs: u128) -> u128 {
        let below = self.below();
        runs & below | runs >> 1 & !below
    }
}

/// Finds the slots of a bucket; the answer is arbitrary if the runs have too few buckets.
#[inline]
pub(super) fn run_of(bucket: usize, runs: u128) -> Run {
    let bit = select_zero(runs, bucket);
    Run::at(bit, bucket, runs.unbounded_shr(bit as u32) as u64)
}

#[inline]
pub(super) fn taken(runs: u128) -> usize {
    runs.count_ones() as usize
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
        let of_others = u64::MAX.unbounded_shl(((run.len() - passed) * TAG_BITS) as u32);
        let difference = tags ^ (u64::from(tag) * LOW_BITS);
        // The highest bit of each byte that is zero, and perhaps of some above the lowest of these.
        let zero = difference.wrapping_sub(LOW_BITS) & !difference & HIGH_BITS & !of_others;
        if zero != 0 {
            return Some(slot + zero.trailing_zeros() as usize / TAG_BITS);
        }
        passed += TAGS_PER_WORD;
        if passed >= run.len() {
            return None;
        }
    }
}

/// Puts a tag into a slot; its old tag and all later ones move up by one.
///
/// All words are computed in the same way, so that there is no loop of unknown length to predict,
/// and the compiler can use vectors. (`array::from_fn` is compiled without them.)
#[inline(always)]
pub(super) fn insert_tag(words: [u64; TAG_WORDS], slot: usize, tag: u8) -> [u64; TAG_WORDS] {
    let mut result = [0; TAG_WORDS];
    let mut before = 0;
    for at in 0..TAG_WORDS {
        let moved = words[at] << TAG_BITS | before >> (64 - TAG_BITS);
        let (from, after) = (tags_from(slot, at), tags_from(slot + 1, at));
        result[at] =
            words[at] & !from | (u64::from(tag) * LOW_BITS) & from & !after | moved & after;
        before = words[at];
    }
    result
}

/// Removes the tag of a slot; all later ones move down by one, and an empty slot follows.
#[inline(always)]
pub(super) fn remove_tag(words: [u64; TAG_WORDS], slot: usize) -> [u64; TAG_WORDS] {
    let mut result = [0; TAG_WORDS];
    let mut next = 0;
    for at in (0..TAG_WORDS).rev() {
        let moved = words[at] >> TAG_BITS | next << (64 - TAG_BITS);
        let from = tags_from(slot, at);
        result[at] = words[at] & !from | moved & from;
        next = words[at];
    }
    result
}

/// Returns the bits of the word with this number that belong to this slot and later ones.
#[inline(always)]
fn tags_from(slot: usize, word: usize) -> u64 {
    u64::MAX.unbounded_shl((slot * TAG_BITS).saturating_sub(word * 64) as u32)
}

/// Returns the position of the zero with this number, counted from 0, or 128 if there is none.
#[inline]
fn select_zero(runs: u128, number: usize) -> usize {
    let zeros = [!runs as u64, (!runs >> 64) as u64];
    let in_low = zeros[0].count_ones() as usize;
    let high = usize::from(number >= in_low);
    let (word, number) = (zeros[high], number - high * in_low);
    if number >= word.count_ones() as usize {
        return 128;
    }
    64 * high + broadword::select1_raw(number, word)
}

#[cfg(test)]
mod tests {
    use rand::rngs::SmallRng;
    use rand::seq::IndexedRandom;
    use rand::{RngExt, SeedableRng};

    use super::*;

    /// Compares the mini-filter with a list of tags for each bucket.
    #[test]
    fn mini_filter_is_tag_list_per_bucket() {
        let mut random = SmallRng::seed_from_u64(2);
        let mut runs = 0;
        let mut words = [0; TAG_WORDS];
        let mut lists = vec![Vec::new(); BUCKETS];
        let (mut was_full, mut most) = (0, 0);
        for step in 0..20_000 {
            let count: usize = lists.iter().map(Vec::len).sum();
            assert_eq!(taken(runs), count);
            was_full += usize::from(count == SLOTS);
            // Fills and empties the block in turn. One bucket has many tags.
            if count == 0 || count < SLOTS && random.random_bool([0.7, 0.3][step / 500 % 2]) {
                let bucket = random.random_range(0..BUCKETS + 20).min(BUCKETS - 1);
                let run = run_of(bucket, runs);
                lists[bucket].push(random.random());
                words = insert_tag(words, run.slot + run.len(), *lists[bucket].last().unwrap());
                runs = run.grown(runs);
            } else {
                let some: Vec<_> = (0..BUCKETS).filter(|&b| !lists[b].is_empty()).collect();
                let &bucket = some.choose(&mut random).unwrap();
                let run = run_of(bucket, runs);
                let which = random.random_range(0..run.len());
                words = remove_tag(words, run.slot + which);
                runs = run.shrunk(runs);
                lists[bucket].remove(which);
            }
            let mut slot = 0;
            for (bucket, list) in lists.iter().enumerate() {
                let run = run_of(bucket, runs);
                assert_eq!((run.slot, run.len()), (slot, list.len()), "bucket {bucket}");
                for &tag in list.iter().chain(&[0, random.random()]) {
                    let first = list.iter().position(|&other| other == tag);
                    let found = find_tag(run, tag, |word| words[word]);
                    assert_eq!(found, first.map(|at| slot + at));
                }
                slot += run.len();
            }
            assert_eq!(words[TAG_WORDS - 1] >> 48, 0, "two bytes hold no tags");
            most = most.max(lists[BUCKETS - 1].len());
        }
        let no_bucket = run_of(BUCKETS, u128::MAX << 82);
        assert_eq!(no_bucket.slot, 128 - BUCKETS);
        assert!(was_full > 100 && most > 8, "{was_full}, {most}");
    }
}
