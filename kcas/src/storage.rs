//! Where the words of an array are: in one [`Block`], or in [`Pieces`] that are made one after another.

use std::fmt::Debug;
use std::ops::Index;

use crossbeam_utils::CachePadded;

use crate::commit::look;
use crate::descriptor::Record;
use crate::entry::Entry;
use crate::steps::{Event, report};
use crate::sync::{AtomicU64, SetOnce, zeros};
use crate::thread_id::{self, ThreadId, TooManyThreads};
use crate::words::{OutOfMemory, WordArray};

/// Words by index, as the protocol reaches them, with the ids and the records of the threads that change them: by
/// default those of the process.
pub trait Words: Index<usize, Output = AtomicU64> {
    /// True if a thread can be killed in the middle of an operation, so that the next holder of its id has to
    /// finish that first (`commit::take_over`). Then the record of an installation also has the index of its word.
    const SHARED: bool = false;

    /// Returns the record of an id.
    #[inline(always)]
    fn record(&self, id: usize) -> Record<'_> {
        Record::get(id)
    }

    /// True if there is a word of this index: the operations of other processes may name others.
    fn has_word(&self, _index: usize) -> bool {
        true
    }

    /// True once [`note_damage`](Self::note_damage) was called: then all loops end.
    #[inline(always)]
    fn is_damaged(&self) -> bool {
        false
    }

    /// Notes that another process has written what no operation writes.
    fn note_damage(&self) {}

    /// Runs `action` with the id that the current thread has here.
    ///
    /// # Errors
    /// When no id is left.
    #[inline(always)]
    fn with_id<R>(&self, action: impl FnOnce(&ThreadId) -> R) -> Result<R, TooManyThreads> {
        thread_id::with(action)
    }
}

impl Words for [AtomicU64] {}

impl Words for Pieces {}

/// What a [`WordArray`] keeps its words in.
pub trait Storage: Debug {
    /// The words by index.
    type Words: Words + ?Sized;

    /// Returns the words by index.
    fn words(&self) -> &Self::Words;

    /// Returns the number of words there are now.
    fn number(&self) -> usize;

    /// True if the array has a word of this index now.
    fn has(&self, index: usize) -> bool;

    /// True if the array has the words of all these entries now. Their indices ascend.
    fn has_all(&self, entries: &[Entry]) -> bool;

    /// Calls `each` for each piece of memory.
    fn each_piece(&self, each: impl FnMut(&[AtomicU64]));
}

/// Prepares a piece of memory for the words of an array.
fn prepare(words: &[AtomicU64]) {
    #[cfg(feature = "huge-pages")]
    huge_pages::advise(words);
    crate::steps::name("bucket", words);
}

/// Reports the beginning or the end of an array to an observer, which may ask for its words.
pub(crate) fn report_words(words: &impl Storage, exist: bool) {
    let each = |see: &mut dyn FnMut(&AtomicU64)| {
        words.each_piece(|piece| piece.iter().for_each(&mut *see));
    };
    report(|| Event::Array(&each, exist));
}

/// All words in one piece of memory.
#[derive(Debug)]
pub struct Block(pub(crate) Box<[AtomicU64]>);

impl Block {
    pub(crate) fn new(words: Box<[AtomicU64]>) -> Block {
        prepare(&words);
        Block(words)
    }
}

impl Storage for Block {
    type Words = [AtomicU64];

    #[inline]
    fn words(&self) -> &[AtomicU64] {
        &self.0
    }

    #[inline]
    fn number(&self) -> usize {
        self.0.len()
    }

    #[inline]
    fn has(&self, index: usize) -> bool {
        index < self.0.len()
    }

    #[inline]
    fn has_all(&self, entries: &[Entry]) -> bool {
        entries.last().is_none_or(|last| self.has(last.index))
    }

    fn each_piece(&self, mut each: impl FnMut(&[AtomicU64])) {
        each(&self.0);
    }
}

#[cfg(any(kcas_loom, feature = "__steps"))]
impl Drop for Block {
    fn drop(&mut self) {
        report_words(self, false);
    }
}

/// Base-2 logarithm of the number of words up to which an array grows.
const MAX_LEN_BITS: u32 = 34;

/// Maximum number of pieces after the first: four to each doubling, from one of four words on.
const LATER: usize = if cfg!(kcas_loom) {
    4
} else {
    4 * (MAX_LEN_BITS - 2) as usize
};

/// Number of [side words](WordArray::side). (In models one, since fewer words have fewer orders.)
const SIDE_WORDS: usize = if cfg!(kcas_loom) { 1 } else { 8 };

/// A piece of memory of a growing array: for the words from an index on.
#[derive(Debug)]
pub struct Piece {
    before: usize,
    words: Box<[AtomicU64]>,
}

impl Piece {
    fn try_new(before: usize, len: usize) -> Result<Piece, OutOfMemory> {
        let words = zeros(len).ok_or(OutOfMemory { len })?;
        prepare(&words);
        Ok(Piece { before, words })
    }

    fn get(&self, index: usize) -> Option<&AtomicU64> {
        self.words.get(index.wrapping_sub(self.before))
    }

    /// Returns the number of words.
    #[expect(clippy::len_without_is_empty, reason = "a piece is never empty")]
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Returns the word of this index of the array, if it is in this piece.
    #[inline(always)]
    pub fn word(&self, index: usize) -> Option<Word<'_>> {
        self.get(index).map(Word)
    }

    /// Returns the word at this place in the piece: in the [first](WordArray::first_piece), that of this index.
    #[inline(always)]
    pub fn nth(&self, place: usize) -> Option<Word<'_>> {
        self.words.get(place).map(Word)
    }
}

/// Words in pieces that are never moved or freed while the array lives. Four pieces of equal size
/// double the array; so whatever it grows to, at most a fifth of it is more than was asked for.
///
/// In models, all pieces are made at once, so that no publication is hidden from them.
#[derive(Debug)]
pub struct Pieces {
    side: Box<[CachePadded<AtomicU64>; SIDE_WORDS]>,
    first: Piece,
    /// Base-2 logarithm of the number of words of one of the first four pieces after the first.
    quarter: u32,
    bias: usize,
    origin: usize,
    later: Box<[SetOnce<Piece>; LATER]>,
}

impl Pieces {
    /// Makes the first piece.
    pub(crate) fn try_new(first: usize) -> Result<Pieces, OutOfMemory> {
        let quarter = (first.max(4) / 4).ilog2();
        let pieces = Pieces {
            side: Box::new(std::array::from_fn(|_| CachePadded::new(AtomicU64::new(0)))),
            first: Piece::try_new(0, first)?,
            quarter,
            bias: (4usize << quarter).wrapping_sub(first),
            origin: 4 * quarter as usize + 4,
            later: Box::new([const { SetOnce::new() }; LATER]),
        };
        crate::steps::name("side word", &*pieces.side);
        #[cfg(kcas_loom)]
        for piece in 0..LATER {
            pieces.make(piece)?;
        }
        Ok(pieces)
    }

    /// The index of the first side word, above those of all other words. (In models no words are added, so it
    /// is the next index.)
    #[inline]
    fn first_side(&self) -> usize {
        if cfg!(kcas_loom) {
            self.number()
        } else {
            usize::MAX - SIDE_WORDS
        }
    }

    /// Returns the number of the piece after the first that holds the word of this index. (The first piece is counted
    /// as if it consisted of four quarters.)
    #[inline(always)]
    fn piece_of(&self, index: usize) -> usize {
        let after = index.wrapping_add(self.bias);
        let size = (after | 4).ilog2() - 2;
        (4 * size as usize + (after >> size)).wrapping_sub(self.origin)
    }

    /// Returns the number of words of a piece after the first.
    fn size_of(&self, piece: usize) -> usize {
        1 << (self.quarter as usize + piece / 4)
    }

    fn make(&self, piece: usize) -> Result<(), OutOfMemory> {
        if self.later[piece].get().is_none() {
            let sizes = (0..piece).map(|piece| self.size_of(piece));
            let before = self.first.words.len() + sizes.sum::<usize>();
            // If it fails, another thread has made the piece.
            self.later[piece].set(Piece::try_new(before, self.size_of(piece))?);
        }
        Ok(())
    }

    /// [`has_all`](Storage::has_all) when the last entry names a side word.
    #[cold]
    fn has_all_but_side(&self, entries: &[Entry]) -> bool {
        let is_other = |entry: &&Entry| entry.index < self.first_side();
        let last = entries.iter().rev().find(is_other);
        last.is_none_or(|last| self.has(last.index))
    }

    /// Returns the piece after the first that may hold the word of this index, if there is one.
    #[inline(always)]
    fn later(&self, index: usize) -> Option<&Piece> {
        self.later[self.piece_of(index) % LATER].get()
    }

    // Not inlined: many arrays have one piece.
    #[inline(never)]
    fn get_elsewhere(&self, index: usize) -> Option<&AtomicU64> {
        match index.checked_sub(self.first_side()) {
            Some(number) => self.side.get(number).map(|word| &**word),
            None => self.later(index)?.get(index),
        }
    }
}

#[cfg(any(kcas_loom, feature = "__steps"))]
impl Drop for Pieces {
    fn drop(&mut self) {
        report_words(self, false);
    }
}

#[doc(hidden)]
impl WordArray<Pieces> {
    /// Returns the index of a *side word*, an extra word that is in a cache line of its own and can be
    /// used like any other, also in a [`kcas`](Self::kcas) with others. There are eight; `number` is taken
    /// modulo eight.
    #[inline]
    #[cfg_attr(kcas_loom, allow(clippy::modulo_one))]
    pub fn side(&self, number: usize) -> usize {
        self.words.first_side() + number % SIDE_WORDS
    }

    /// Returns the [side word](Self::side) itself.
    #[inline(always)]
    #[cfg_attr(kcas_loom, allow(clippy::modulo_one))]
    pub fn side_word(&self, number: usize) -> Word<'_> {
        Word(&self.words.side[number % SIDE_WORDS])
    }

    /// Returns the piece of memory that the array began with.
    #[inline(always)]
    pub fn first_piece(&self) -> &Piece {
        &self.words.first
    }

    /// Returns the one piece, other than the first, that can have the word of this index, if it has been made.
    #[inline(always)]
    pub fn later_piece(&self, index: usize) -> Option<&Piece> {
        self.words.later(index)
    }

    /// Returns the memory, in bytes, that the array takes in addition to its words: its side words, and a list of
    /// its pieces.
    pub fn extra_bytes(&self) -> usize {
        let Pieces { side, later, .. } = &self.words;
        let made = later.iter().map_while(SetOnce::get);
        size_of_val(&**side) + size_of_val(&**later) + made.map(size_of_val).sum::<usize>()
    }

    /// Makes all words below `len` that do not exist yet, all zero, and perhaps some more: the array
    /// grows by a quarter of a doubling at a time. Words that exist stay where they are.
    ///
    /// Progress: lock-free, apart from the allocator. Threads that make the same words at the same time
    /// each ask for their memory, and all but one give it back. A thread may use a word once it has
    /// synchronised with the end of a call that made it.
    ///
    /// ```
    /// use kcas::storage::Pieces;
    /// use kcas::{Entry, WordArray};
    ///
    /// let words = WordArray::<Pieces>::try_growing(4)?;
    /// words.grow_to(100)?;
    /// words.kcas(&[Entry::new(3, 0, 1), Entry::new(99, 0, 2)])?;
    /// assert_eq!((words.load(3), words.load(99)), (1, 2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`OutOfMemory`] if the allocator refuses the memory, or for more than about 2^34 words. Words already made
    /// stay, and a later call continues. If the allocator grants a piece but not the 24 bytes of its entry in the
    /// list, the process ends.
    pub fn grow_to(&self, len: usize) -> Result<(), OutOfMemory> {
        let pieces = &self.words;
        if len <= pieces.first.words.len() {
            return Ok(());
        }
        let last = pieces.piece_of(len - 1);
        // (With a first piece of fewer than four words, the last piece ends a little below 2^34.)
        if len.checked_shr(MAX_LEN_BITS).unwrap_or(0) != 0 || last >= LATER {
            return Err(OutOfMemory { len });
        }
        (0..=last).try_for_each(|piece| pieces.make(piece))
    }
}

/// A word of a growing array, for a fast path that loads it more than once.
#[derive(Clone, Copy, Debug)]
pub struct Word<'a>(&'a AtomicU64);

impl Word<'_> {
    /// Loads it, as [`WordArray::load_raw`] does.
    #[inline(always)]
    pub fn load_raw(self) -> u64 {
        look(self.0)
    }
}

impl Index<usize> for Pieces {
    type Output = AtomicU64;

    #[inline(always)]
    fn index(&self, index: usize) -> &AtomicU64 {
        #[cold]
        fn past_end(index: usize) -> ! {
            panic!("index {index} is past the end of an array");
        }
        match self.first.words.get(index) {
            Some(word) => word,
            None => match self.get_elsewhere(index) {
                Some(word) => word,
                None => past_end(index),
            },
        }
    }
}

impl Storage for Pieces {
    type Words = Pieces;

    #[inline]
    fn words(&self) -> &Pieces {
        self
    }

    /// Not counting the side words.
    fn number(&self) -> usize {
        let made = self.later.iter().map_while(SetOnce::get);
        self.first.words.len() + made.map(|piece| piece.words.len()).sum::<usize>()
    }

    #[inline]
    fn has(&self, index: usize) -> bool {
        index < self.first.words.len() || self.get_elsewhere(index).is_some()
    }

    #[inline]
    fn has_all(&self, entries: &[Entry]) -> bool {
        // Words are made in order, and side words come after all others.
        entries.last().is_none_or(|last| {
            self.has(last.index)
                && (last.index < self.first_side() || self.has_all_but_side(entries))
        })
    }

    fn each_piece(&self, mut each: impl FnMut(&[AtomicU64])) {
        each(&self.first.words);
        for piece in self.later.iter().map_while(SetOnce::get) {
            each(&piece.words);
        }
        for word in &*self.side {
            each(std::slice::from_ref(&**word));
        }
    }
}

#[cfg(all(test, not(kcas_loom)))]
mod tests {
    use super::*;
    use crate::sync::Ordering;

    /// Each index has a word of its own, in the order of the pieces, whatever the first one's size.
    #[test]
    fn every_index_has_its_word() {
        for first in [1, 3, 4, 7, 8, 100, 128] {
            let words = WordArray::<Pieces>::try_growing(first).unwrap();
            let pieces = &words.words;
            assert_eq!(pieces.number(), first);
            assert!(!pieces.has(first));
            words.grow_to(20 * first).unwrap();
            let len = pieces.number();
            let expected = 20 * first..25 * first + 8;
            assert!(expected.contains(&len), "{first}: {len}");
            assert!(pieces.has(len - 1) && !pieces.has(len));
            for index in 0..len {
                // Relaxed, and below: there is one thread.
                pieces[index].store(index as u64, Ordering::Relaxed);
            }
            let mut next = 0;
            pieces.each_piece(|piece| {
                for word in piece {
                    let expected = if next < len as u64 { next } else { 0 };
                    assert_eq!(word.load(Ordering::Relaxed), expected);
                    next += 1;
                }
            });
            assert_eq!(next as usize, len + SIDE_WORDS);
            assert!((0..SIDE_WORDS).all(|number| pieces.has(words.side(number))));
        }
    }

    #[test]
    fn sizes_that_no_memory_has_are_refused() {
        let words = WordArray::<Pieces>::try_growing(8).unwrap();
        let pieces = &words.words;
        assert!(words.grow_to(usize::MAX / 2).is_err());
        let few = WordArray::<Pieces>::try_growing(2).unwrap();
        assert!(few.grow_to(usize::MAX).is_err());
        assert!(words.grow_to(8).is_ok() && !pieces.has(8));
        if let Some(most) = 1_usize.checked_shl(MAX_LEN_BITS) {
            assert_eq!(few.words.piece_of(most - 3), LATER - 1);
            assert!(few.grow_to(most - 1).is_err());
        }
    }
}
