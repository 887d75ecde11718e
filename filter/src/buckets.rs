//! The word array seen as buckets.

use arrayvec::ArrayVec;
use kcas::{Error, Op, OutOfMemory, WordArray};

use crate::hashing::Geometry;
use crate::layout::Layout;
use crate::path::Step;

/// A table of buckets, as inserts and removes see it.
pub(crate) trait BucketTable<const SLOTS: usize, const BITS: usize> {
    /// How keys are spread over its buckets.
    fn geometry(&self) -> &Geometry<SLOTS, BITS>;

    /// The bucket's word.
    fn read(&self, bucket: usize) -> u64;

    /// The words of several buckets, each at a moment of its own.
    #[inline]
    fn read_all<const N: usize>(&self, buckets: [usize; N]) -> [u64; N] {
        buckets.map(|bucket| self.read(bucket))
    }

    /// Replaces the bucket's word if it still is `current`.
    fn replace(&self, bucket: usize, current: u64, new: u64) -> bool;

    /// So many copies may a class have.
    fn most_copies(&self) -> usize {
        usize::MAX
    }

    /// Replaces several words at one moment, if each is as expected; indices are numbers of buckets, in ascending order.
    fn commit(&self, ops: &[Op]) -> bool;

    /// Shifts every fingerprint of the chain one step on and puts `fingerprint` into the first step's
    /// slot, all at one moment, if no bucket of the chain has changed since the search read it, and if
    /// each bucket of `unchanged` still holds this word.
    fn shift(&self, chain: &[Step], fingerprint: u64, unchanged: &[(usize, u64)]) -> bool {
        let mut arriving = fingerprint;
        let mut ops: ArrayVec<Op, { WordArray::MAX_OPS }> = chain
            .iter()
            .map(|step| {
                let leaving = Layout::<SLOTS, BITS>::fingerprint(step.word, step.slot);
                let placed = std::mem::replace(&mut arriving, leaving);
                Op {
                    index: step.bucket,
                    expected: step.word,
                    new: Layout::<SLOTS, BITS>::place(step.word, step.slot, placed),
                }
            })
            .collect();
        for &(index, word) in unchanged {
            match ops.iter().find(|op| op.index == index) {
                Some(op) if op.expected == word => {}
                Some(_) => return false,
                None => ops.push(Op {
                    index,
                    expected: word,
                    new: word,
                }),
            }
        }
        // In ascending order of index. Each goes where its rank says, without a branch: of buckets that hashes choose, no order
        // is likelier than another.
        let mut sorted = [ops[0]; WordArray::MAX_OPS];
        for op in &ops {
            let precedes = |other: &Op| usize::from(other.index < op.index);
            let rank: usize = ops.iter().map(precedes).sum();
            sorted[rank] = *op;
        }
        self.commit(&sorted[..ops.len()])
    }
}

/// A table of buckets, one word each, all empty at first.
#[derive(Debug)]
pub(crate) struct Buckets<const SLOTS: usize, const BITS: usize> {
    words: WordArray,
    geometry: Geometry<SLOTS, BITS>,
}

impl<const SLOTS: usize, const BITS: usize> Buckets<SLOTS, BITS> {
    pub(crate) fn try_new(geometry: Geometry<SLOTS, BITS>) -> Result<Self, OutOfMemory> {
        Buckets::try_with_more(geometry, 0)
    }

    /// With so many words more after those of the buckets.
    pub(crate) fn try_with_more(
        geometry: Geometry<SLOTS, BITS>,
        more: usize,
    ) -> Result<Self, OutOfMemory> {
        Ok(Buckets {
            words: WordArray::try_new(geometry.buckets() + more)?,
            geometry,
        })
    }

    /// A table of these words, one a bucket. None is wider than 63 bits.
    pub(crate) fn from_words(words: Vec<u64>) -> Self {
        Buckets {
            geometry: Geometry::new(words.len()),
            words: WordArray::from_values(words),
        }
    }

    /// The words, one a bucket, for who learns the layout at run time.
    #[inline]
    pub(crate) fn words(&self) -> &WordArray {
        &self.words
    }

    /// Number of slots that are occupied, when nobody changes any.
    pub(crate) fn occupied(&self) -> usize {
        (0..self.geometry.buckets())
            .map(|bucket| Layout::<SLOTS, BITS>::occupied(self.read(bucket)))
            .sum()
    }

    /// Empties every bucket.
    pub(crate) fn clear(&mut self) {
        self.words.clear();
    }
}

impl<const SLOTS: usize, const BITS: usize> BucketTable<SLOTS, BITS> for Buckets<SLOTS, BITS> {
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
        let words = buckets.map(|bucket| self.words.peek(bucket));
        if words.iter().fold(0, |all, word| all | word) >> WordArray::VALUE_BITS == 0 {
            words
        } else {
            buckets.map(|bucket| self.words.load(bucket))
        }
    }

    #[inline]
    fn replace(&self, bucket: usize, current: u64, new: u64) -> bool {
        self.words.compare_exchange(bucket, current, new).is_ok()
    }

    fn commit(&self, ops: &[Op]) -> bool {
        match self.words.kcas(ops) {
            Ok(()) => true,
            Err(Error::Mismatch) => false,
            Err(error) => panic!("{error}"),
        }
    }
}
