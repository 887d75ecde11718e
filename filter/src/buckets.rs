//! A table of buckets, on top of an array of words.

use arrayvec::ArrayVec;
use kcas::storage::{Block, Storage};
use kcas::{CompareExchangeError, Entry, Error, OutOfMemory, WordArray};

use crate::geometry::Geometry;
use crate::layout::Layout;
use crate::path::Step;

/// The greatest word with no operation under way on it.
pub(crate) const MAX_WORD: u64 = (1 << WordArray::VALUE_BITS) - 1;

/// A table of buckets as seen by inserts and removes.
pub(crate) trait BucketTable<const SLOTS: usize, const BITS: usize> {
    /// How keys are distributed over the buckets.
    fn geometry(&self) -> &Geometry<SLOTS, BITS>;

    /// Returns the bucket's word.
    fn read(&self, bucket: usize) -> u64;

    /// Returns the words of several buckets, each read at its own moment.
    #[inline]
    fn read_all<const N: usize>(&self, buckets: [usize; N]) -> [u64; N] {
        buckets.map(|bucket| self.read(bucket))
    }

    /// Replaces the bucket's word if it is still `current`.
    fn replace(&self, bucket: usize, current: u64, new: u64) -> bool;

    /// Returns the bucket's word as it stands: greater than [`MAX_WORD`] while an operation is under way on it.
    fn read_raw(&self, bucket: usize) -> u64 {
        self.read(bucket)
    }

    /// [`replace`](Self::replace), if nothing stands in its way.
    fn replace_at_once(&self, bucket: usize, current: u64, new: u64) -> bool {
        self.replace(bucket, current, new)
    }

    /// True if another process has damaged the table, in shared memory: then no call may loop forever.
    #[inline]
    fn is_damaged(&self) -> bool {
        false
    }

    /// Replaces several words at one moment if each is as expected; the indices are bucket numbers,
    /// in ascending order.
    fn commit(&self, entries: &[Entry]) -> bool;

    /// Returns what a slot of this word holds, all of which moves with its fingerprint.
    fn held(word: u64, slot: usize) -> u64 {
        Layout::<SLOTS, BITS>::fingerprint(word, slot)
    }

    /// Returns the word with this in a slot, whatever was there, and the timestamp advanced.
    fn place(word: u64, slot: usize, held: u64) -> u64 {
        Layout::<SLOTS, BITS>::place(word, slot, held)
    }

    /// Shifts what the slots of the chain hold one step on and puts `arriving` into the slot of
    /// the first step, all at one moment, provided that no bucket of the chain has changed since
    /// the search read it and each bucket of `unchanged` still holds this word.
    fn shift(&self, chain: &[Step], mut arriving: u64, unchanged: &[(usize, u64)]) -> bool {
        let mut entries: ArrayVec<Entry, { WordArray::MAX_ENTRIES }> = chain
            .iter()
            .map(|step| {
                let leaving = Self::held(step.word, step.slot);
                let placed = std::mem::replace(&mut arriving, leaving);
                Entry {
                    index: step.bucket,
                    expected: step.word,
                    new: Self::place(step.word, step.slot, placed),
                }
            })
            .collect();
        if !compare_too(&mut entries, unchanged.iter().copied()) {
            return false;
        }
        let sorted = in_order(&entries);
        self.commit(&sorted[..entries.len()])
    }
}

/// Adds entries that only compare, for those of these words (by index) that the operation does not change; false
/// if it changes one of them, but expects another word there.
#[inline]
pub(crate) fn compare_too(
    entries: &mut ArrayVec<Entry, { WordArray::MAX_ENTRIES }>,
    unchanged: impl Iterator<Item = (usize, u64)>,
) -> bool {
    for (index, word) in unchanged {
        match entries.iter().find(|entry| entry.index == index) {
            Some(entry) if entry.expected == word => {}
            Some(_) => return false,
            None => entries.push(Entry {
                index,
                expected: word,
                new: word,
            }),
        }
    }
    true
}

/// Runs an operation; false if a word differs.
pub(crate) fn commit<W: Storage>(words: &WordArray<W>, entries: &[Entry]) -> bool {
    match words.kcas(entries) {
        Ok(()) => true,
        Err(Error::Mismatch { .. }) => false,
        Err(error) => panic!("{error}"),
    }
}

/// Replaces a word if it is still `current`, for a thread that has an id.
#[inline]
pub(crate) fn replace<W: Storage>(
    words: &WordArray<W>,
    index: usize,
    current: u64,
    new: u64,
) -> bool {
    /// Takes the error in registers: formatted where it is found, it would be stored.
    #[cold]
    #[inline(never)]
    fn refused(error: CompareExchangeError) -> ! {
        panic!("{error}")
    }
    match words.compare_exchange(index, current, new) {
        Ok(_) => true,
        Err(CompareExchangeError::Differs(_)) => false,
        Err(error) => refused(error),
    }
}

/// Returns the entries, of which there is at least one, in ascending order of index. Copies of the first fill the rest.
#[inline]
pub(crate) fn in_order(entries: &[Entry]) -> [Entry; WordArray::MAX_ENTRIES] {
    // Each goes where its rank says, without a branch: hashes choose the buckets, so no order is
    // likelier than another.
    let mut sorted = [entries[0]; WordArray::MAX_ENTRIES];
    for entry in entries {
        let precedes = |other: &Entry| usize::from(other.index < entry.index);
        let rank: usize = entries.iter().map(precedes).sum();
        sorted[rank] = *entry;
    }
    sorted
}

/// A table of buckets of one word each, all empty at first.
#[derive(Debug)]
pub(crate) struct Buckets<const SLOTS: usize, const BITS: usize, W = Block> {
    words: WordArray<W>,
    geometry: Geometry<SLOTS, BITS>,
}

impl<const SLOTS: usize, const BITS: usize> Buckets<SLOTS, BITS> {
    pub(crate) fn try_new(geometry: Geometry<SLOTS, BITS>) -> Result<Self, OutOfMemory> {
        Ok(Buckets {
            words: WordArray::try_new(geometry.buckets())?,
            geometry,
        })
    }

    /// Makes a table of these words, one per bucket. None may be wider than 63 bits.
    pub(crate) fn from_words(words: Vec<u64>) -> Self {
        Buckets {
            geometry: Geometry::new(words.len()),
            words: WordArray::from_values(words),
        }
    }

    pub(crate) fn clear(&mut self) {
        self.words.clear();
    }

    /// Returns the words of all buckets.
    #[cfg(shared_words)]
    pub(crate) fn all(&self) -> Vec<u64> {
        let buckets = 0..self.words.len();
        buckets.map(|bucket| self.words.load(bucket)).collect()
    }
}

impl<const SLOTS: usize, const BITS: usize, W: Storage> Buckets<SLOTS, BITS, W> {
    /// Makes a table of the first words of an array, one per bucket.
    #[cfg(any(shared_words, kcas_loom, feature = "__steps"))]
    pub(crate) fn from_array(words: WordArray<W>, buckets: usize) -> Self {
        Buckets {
            geometry: Geometry::new(buckets),
            words,
        }
    }

    /// Returns what a snapshot has of a bucket, provided that a bucket can hold it. In shared memory, another process
    /// may have emptied its place, or filled it with anything.
    pub(crate) fn possible(&self, slots: Option<u64>, is_possible: impl Fn(u64) -> bool) -> u64 {
        slots
            .filter(|&slots| is_possible(slots))
            .unwrap_or_else(|| {
                self.words.note_damage();
                assert!(self.words.is_damaged(), "it was kept, or else found here");
                0
            })
    }

    /// Returns the words, one per bucket, for a layout known only at run time.
    #[inline]
    pub(crate) fn words(&self) -> &WordArray<W> {
        &self.words
    }
}

impl<const SLOTS: usize, const BITS: usize, W: Storage> BucketTable<SLOTS, BITS>
    for Buckets<SLOTS, BITS, W>
{
    #[inline]
    fn geometry(&self) -> &Geometry<SLOTS, BITS> {
        &self.geometry
    }

    /// Never writes.
    #[inline]
    fn read(&self, bucket: usize) -> u64 {
        self.words.load(bucket)
    }

    #[inline]
    fn read_all<const N: usize>(&self, buckets: [usize; N]) -> [u64; N] {
        let words = buckets.map(|bucket| self.words.load_raw(bucket));
        if words.iter().fold(0, |all, word| all | word) >> WordArray::VALUE_BITS == 0 {
            words
        } else {
            buckets.map(|bucket| self.words.load(bucket))
        }
    }

    #[inline]
    fn replace(&self, bucket: usize, current: u64, new: u64) -> bool {
        replace(&self.words, bucket, current, new)
    }

    #[inline]
    fn read_raw(&self, bucket: usize) -> u64 {
        self.words.load_raw(bucket)
    }

    #[inline]
    fn replace_at_once(&self, bucket: usize, current: u64, new: u64) -> bool {
        self.words.exchange_raw(bucket, current, new)
    }

    #[inline]
    fn is_damaged(&self) -> bool {
        self.words.is_damaged()
    }

    fn commit(&self, entries: &[Entry]) -> bool {
        commit(&self.words, entries)
    }
}

#[cfg(all(test, not(kcas_loom)))]
mod tests {
    use std::cell::RefCell;

    use super::*;

    type FourSlots = Layout<4, 12>;

    /// Records what it should commit.
    struct Recorded(Geometry<4, 12>, RefCell<Vec<Entry>>);

    impl BucketTable<4, 12> for Recorded {
        fn geometry(&self) -> &Geometry<4, 12> {
            &self.0
        }

        fn read(&self, _: usize) -> u64 {
            unreachable!("the words of the chain count, not those of now")
        }

        fn replace(&self, _: usize, _: u64, _: u64) -> bool {
            unreachable!("all at one moment")
        }

        fn commit(&self, entries: &[Entry]) -> bool {
            self.1.borrow_mut().extend_from_slice(entries);
            true
        }
    }

    /// Returns a bucket with four fingerprints, counting up from this one.
    fn full(fingerprint: u64) -> u64 {
        (0..4).fold(0, |word, slot| {
            FourSlots::place(word, slot, fingerprint + slot as u64)
        })
    }

    /// Wherever the buckets of a chain are, each gets the fingerprint that leaves the one before it
    /// in the chain, and they are committed in ascending order, including the other root.
    #[test]
    fn chain_is_committed_in_ascending_order() {
        let words = [full(10), full(20), FourSlots::clear(full(30), 0)];
        let slots = [1, 3, 0];
        let arriving = [99, 11, 23];
        let root = (4, full(40));
        for buckets in [
            [1, 2, 6],
            [1, 6, 2],
            [2, 1, 6],
            [2, 6, 1],
            [6, 1, 2],
            [6, 2, 1],
        ] {
            let steps: [Step; 3] = std::array::from_fn(|at| Step {
                bucket: buckets[at],
                slot: slots[at],
                word: words[at],
            });
            let recorded = Recorded(Geometry::new(8), RefCell::default());
            assert!(recorded.shift(&steps, 99, &[(buckets[0], words[0]), root]));
            let arrived = |at: usize| FourSlots::place(words[at], slots[at], arriving[at]);
            let entry = |at: usize| Entry::new(buckets[at], words[at], arrived(at));
            let mut expected = [0, 1, 2].map(entry).to_vec();
            expected.push(Entry::new(root.0, root.1, root.1));
            expected.sort_by_key(|entry| entry.index);
            assert_eq!(recorded.1.take(), expected, "chain of {buckets:?}");
            assert!(!recorded.shift(&steps, 99, &[root, (buckets[0], words[1])]));
            assert_eq!(recorded.1.take(), []);
        }
    }
}
