//! Packing a bucket into the 63-bit value of one word: three slots, its level, and its timestamp. The
//! [parent](super#the-states-of-a-word) draws it.

/// Slots of a bucket.
pub(super) const SLOTS: usize = 3;
/// Bits of a slot.
const SLOT: u32 = 17;
/// Bits of a tag.
pub(super) const TAG: u32 = 6;
/// Most bits of an address in a slot.
pub(super) const AHEAD: u32 = 9;

const USED: u32 = SLOTS as u32 * SLOT;
/// One in the lowest bit of every slot.
const LOWEST: u64 = 1 | 1 << SLOT | 1 << (2 * SLOT);
/// One in the highest bit of every slot.
const OCCUPIED: u64 = LOWEST << (SLOT - 1);
const ONE_SLOT: u64 = (1 << SLOT) - 1;
const ALL_SLOTS: u64 = (1 << USED) - 1;
/// In every slot, the bits of an address and the 1 that ends them.
const ADDRESSES: u64 = LOWEST * ((2 << AHEAD) - 1);
const LEVEL_BITS: u32 = 5;
const LEVEL: u64 = ((1 << LEVEL_BITS) - 1) << USED;
const SPLITTING: u64 = 1 << (USED + LEVEL_BITS);
const TIMESTAMP: u32 = USED + LEVEL_BITS + 1;
/// The last timestamp before a [wrap](turned). In models, it is so early that two inserts reach it.
const LAST: u64 = if cfg!(kcas_loom) {
    2
} else {
    (1 << (63 - TIMESTAMP)) - 1
};

/// Returns a slot that holds this tag and these [bits of an address](super::address).
#[inline(always)]
pub(super) fn slot_of(tag: u64, ahead: u64) -> u64 {
    1 << (SLOT - 1) | tag << (AHEAD + 1) | ahead
}

/// Returns the tag in an occupied slot.
pub(super) fn tag(slot: u64) -> u64 {
    slot >> (AHEAD + 1) & ((1 << TAG) - 1)
}

/// Returns the bits of an address in an occupied slot, and the 1 that ends them.
pub(super) fn ahead(slot: u64) -> u64 {
    slot & ((2 << AHEAD) - 1)
}

/// Returns how many bits of an address an occupied slot holds.
pub(super) fn length(slot: u64) -> u32 {
    AHEAD - slot.trailing_zeros()
}

/// How many times the bucket's part of the table has been split since the first size.
#[inline(always)]
pub(super) fn level(word: u64) -> u32 {
    ((word & LEVEL) >> USED) as u32
}

/// The level in a word.
#[inline(always)]
pub(super) fn of_level(level: u32) -> u64 {
    u64::from(level) << USED
}

/// An occupied slot without a tag, less the level of a bucket that uses `base` bits of an address. [`full_of`] adds
/// to it what differs from key to key.
pub(super) fn untagged(base: u32) -> u64 {
    (1u64 << (SLOT - 1)).wrapping_sub(of_level(base))
}

/// [`untagged`], and a tag.
#[inline(always)]
pub(super) fn tagged(untagged: u64, tag: u64) -> u64 {
    untagged.wrapping_add(tag << (AHEAD + 1))
}

/// A word with the same in each slot, and the level of a bucket that uses this many bits of an address: one sum, for
/// which a lookup needs fewer instructions than for the level by itself. (The product has the level once: two of its
/// three copies are too high for a word.)
#[inline(always)]
pub(super) fn full_of(tagged: u64, ahead: u64, used: u32) -> u64 {
    let slot = of_level(used).wrapping_add(ahead).wrapping_add(tagged);
    slot.wrapping_mul(LOWEST)
}

/// Not zero if a word has another level than its `like`, is being split, or is a tag of an operation; or if
/// `count` is such a tag. (Counts stay far below 2^51, where the bits compared begin.)
#[inline(always)]
pub(super) fn differ(words: [u64; 2], like: [u64; 2], count: u64) -> u64 {
    let differ = words[0] ^ like[0] | words[1] ^ like[1] | count;
    differ & (LEVEL | SPLITTING | 1 << 63)
}

/// True from the first step of the bucket's split to the last. Only the last changes the word.
#[inline(always)]
pub(super) fn is_splitting(word: u64) -> bool {
    word & SPLITTING != 0
}

/// Begins to split the bucket.
pub(super) fn splitting(word: u64) -> u64 {
    word | SPLITTING
}

/// The slots and the level.
pub(super) fn contents(word: u64) -> u64 {
    word & (ALL_SLOTS | LEVEL)
}

/// Returns the highest bit of each slot that may stand for a key with this slot.
#[inline]
pub(super) fn matches(word: u64, slot: u64) -> u64 {
    matches_and_more(word, slot * LOWEST) & OCCUPIED
}

/// True if a slot of one of the words may stand for a key. `full` has the key's slot in that bucket, in each
/// [place](full_of).
#[inline(always)]
pub(super) fn any_matches(words: [u64; 2], full: [u64; 2]) -> bool {
    let matches = |which: usize| matches_and_more(words[which], full[which]);
    (matches(0) | matches(1)) & OCCUPIED != 0
}

/// [`matches`] of the slot that is in each place of `full`, and other bits.
#[inline(always)]
fn matches_and_more(word: u64, full: u64) -> u64 {
    let marked = word | OCCUPIED;
    // In each slot, all bits up to its lowest 1: those that need not agree. They are at least as
    // great as the difference if and only if all the others agree. An empty slot differs in its
    // highest bit.
    let ignored = marked ^ marked.wrapping_sub(LOWEST);
    let difference = word ^ full;
    (ignored | OCCUPIED).wrapping_sub(difference)
}

/// Returns the number of slots whose highest bit is among these.
#[inline]
pub(super) fn number(highest: u64) -> usize {
    // In the product, the highest slot is the sum of all.
    let sum = (highest >> (SLOT - 1)).wrapping_mul(LOWEST) >> (2 * SLOT);
    (sum & 3) as usize
}

/// Returns the number of occupied slots.
#[inline]
pub(super) fn occupied(word: u64) -> usize {
    number(word & OCCUPIED)
}

/// Returns the lowest empty slot.
#[inline]
pub(super) fn find_empty(word: u64) -> Option<usize> {
    let empty = !word & OCCUPIED;
    (empty != 0).then(|| lowest(empty))
}

/// Returns the lowest slot whose highest bit is among these.
#[inline]
pub(super) fn lowest(highest: u64) -> usize {
    ((highest.trailing_zeros() + 1) / SLOT) as usize - 1
}

/// Returns what a slot holds; zero if it is empty.
#[inline]
pub(super) fn slot(word: u64, slot: usize) -> u64 {
    word >> (slot as u32 * SLOT) & ONE_SLOT
}

/// Returns `word` with a slot emptied.
#[inline]
pub(super) fn emptied(word: u64, slot: usize) -> u64 {
    word & !(ONE_SLOT << (slot as u32 * SLOT))
}

/// Returns `word` with one slot emptied, given by its highest bit.
#[inline]
pub(super) fn emptied_at(word: u64, highest: u64) -> u64 {
    word & !((highest << 1) - (highest >> (SLOT - 1)))
}

/// Returns `word` with this in a slot, and the timestamp advanced, which must not [have to wrap](must_turn).
#[inline]
pub(super) fn placed(word: u64, slot: usize, content: u64) -> u64 {
    advanced(emptied(word, slot) | content << (slot as u32 * SLOT))
}

/// Returns `true` if the timestamp must wrap before it can advance.
#[inline]
pub(super) fn must_turn(word: u64) -> bool {
    word >> TIMESTAMP == LAST
}

/// Returns `word` with the timestamp advanced.
#[inline]
pub(super) fn advanced(word: u64) -> u64 {
    word + (1 << TIMESTAMP)
}

/// Returns `word` with the timestamp at its beginning.
pub(super) fn turned(word: u64) -> u64 {
    word & ((1 << TIMESTAMP) - 1)
}

/// Returns what stays of a word that is split, and what moves to the new bucket, both of the next
/// level. What has no bit left goes to both.
pub(super) fn halves(word: u64) -> [u64; 2] {
    let spent = spent(word);
    let moves = word >> AHEAD & LOWEST;
    // A slot with no bit left keeps its final 1.
    let shifted = word & ALL_SLOTS & !ADDRESSES | word << 1 & ADDRESSES & !LOWEST | spent << AHEAD;
    let only = |slots: u64| shifted & (slots * ONE_SLOT);
    let level = (word & LEVEL) + (1 << USED);
    let timestamp = word >> TIMESTAMP << TIMESTAMP;
    [
        timestamp | level | only(LOWEST & !moves | spent),
        level | only(moves),
    ]
}

/// Returns the number of slots without a bit left: those that a split doubles.
pub(super) fn doubled(word: u64) -> usize {
    number(spent(word) << (SLOT - 1))
}

/// True if a slot has no bit of its address left.
#[inline(always)]
pub(super) fn is_spent(slot: u64) -> bool {
    ahead(slot) == 1 << AHEAD
}

/// One in the lowest bit of each slot without a bit left.
fn spent(word: u64) -> u64 {
    (0..SLOTS)
        .filter(|&at| is_spent(slot(word, at)))
        .fold(0, |spent, at| spent | 1 << (at as u32 * SLOT))
}

/// Undoes a split, if there is room. A slot that holds all nine bits of an address loses the last one.
pub(super) fn joined([stays, moves]: [u64; 2]) -> Option<u64> {
    let mut word = emptied(emptied(emptied(stays, 0), 1), 2) - (1 << USED);
    let mut next = 0;
    for (side, half) in [stays, moves].into_iter().enumerate() {
        let contents = (0..SLOTS).map(|at| slot(half, at));
        for content in contents.filter(|&content| content != 0) {
            if next == SLOTS {
                return None;
            }
            let ended = ahead(content) & 1;
            let bits = ahead(content) >> 1 | (side as u64) << AHEAD | ended;
            word |= slot_of(tag(content), bits) << (next as u32 * SLOT);
            next += 1;
        }
    }
    Some(word)
}

/// True if a saved word can be a bucket's [contents](contents): a slot has lost at most one bit in each split.
pub(super) fn is_possible(word: u64) -> bool {
    let possible = |content: u64| match content >> (SLOT - 1) {
        0 => content == 0,
        _ => ahead(content) != 0 && length(content) + level(word) >= AHEAD,
    };
    word == contents(word) && (0..SLOTS).all(|at| possible(slot(word, at)))
}
