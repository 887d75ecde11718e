//! All segments of a filter at one time, and what their words say together.

use std::sync::Arc;

use arrayvec::ArrayVec;
use kcas::WordArray;

use super::schedule::MAX_SEGMENTS;
use super::segment::{Key, Segment};
use crate::hashing::Location;

/// The segments, the newest first. Never changed, but replaced by another list.
#[derive(Clone, Debug)]
pub(crate) struct Segments(ArrayVec<Arc<Segment>, MAX_SEGMENTS>);

/// What a segment showed of a key.
type Seen<'a> = (&'a Segment, Location, [u64; 2]);

impl Segments {
    /// One segment alone.
    pub(crate) fn of(only: Segment) -> Segments {
        Segments(ArrayVec::from_iter([Arc::new(only)]))
    }

    /// Those and a newer one.
    pub(crate) fn with(&self, newer: Segment) -> Segments {
        let older = self.0.iter().cloned();
        Segments([Arc::new(newer)].into_iter().chain(older).collect())
    }

    /// Those that are not empty, of which the newest takes inserts again; nothing when all are empty. For who has the
    /// filter alone.
    pub(crate) fn without_empty(&self) -> Option<Segments> {
        let kept = self.0.iter().filter(|segment| segment.len() > 0);
        let kept = Segments(kept.cloned().collect());
        kept.0.first()?.reopen();
        kept.older()
            .for_each(|segment| segment.close(segment.turn()));
        Some(kept)
    }

    /// The newest and, of the older ones, those that are not spent; nothing when none is.
    pub(crate) fn without_spent(&self) -> Option<Segments> {
        if !self.older().any(|segment| segment.is_spent()) {
            return None;
        }
        let older = self.0[1..].iter().filter(|segment| !segment.is_spent());
        Some(Segments(self.0[..1].iter().chain(older).cloned().collect()))
    }

    /// The one that inserts go to.
    #[inline]
    pub(crate) fn newest(&self) -> &Arc<Segment> {
        &self.0[0]
    }

    /// All others, the newest first.
    pub(crate) fn older(&self) -> impl DoubleEndedIterator<Item = &Segment> {
        self.0[1..].iter().map(|segment| &**segment)
    }

    /// All, the newest first.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &Segment> {
        self.0.iter().map(|segment| &**segment)
    }

    /// Whether the key has a copy, as long as this is the list of the filter's segments; `None` when something was
    /// added to the key's buckets meanwhile.
    ///
    /// Nothing is added to closed segments, so a key that is not there will not be there. Of the others, in most lists
    /// the newest alone, it takes two looks. Had a copy been in any of them between the looks, it would have been
    /// seen by the first, or been added since and seen by the second. So between them was a moment at which none had one: the linearization point.
    #[inline]
    pub(crate) fn find(&self, key: Key) -> Option<bool> {
        let newest = self.newest();
        let location = newest.locate(key);
        let words = newest.peek(location);
        if is_under_way(words) {
            return self.find_slowly(key);
        }
        if newest.matches(words, location.fingerprint) {
            return Some(true);
        }
        for segment in self.older() {
            // Before its words: what was added before it was closed is seen.
            let closed = segment.is_closed();
            let location = segment.locate(key);
            let words = segment.peek(location);
            if !closed || is_under_way(words) {
                return self.find_slowly(key);
            }
            if segment.matches(words, location.fingerprint) {
                return Some(true);
            }
        }
        (newest.peek(location) == words).then_some(false)
    }

    /// [`find`](Self::find), when there are several segments that things are added to, or an operation is under way.
    #[cold]
    fn find_slowly(&self, key: Key) -> Option<bool> {
        let mut open = ArrayVec::<Seen, MAX_SEGMENTS>::new();
        for segment in self.iter() {
            let closed = segment.is_closed();
            let location = segment.locate(key);
            let words = segment.read(location);
            if segment.matches(words, location.fingerprint) {
                return Some(true);
            }
            if !closed {
                open.push((segment, location, words));
            }
        }
        are_unchanged(&open).then_some(false)
    }

    /// How many copies the key has, as long as this is the list of the filter's segments; `None` when one of
    /// its buckets has changed meanwhile. Linearization point: between the two looks at all buckets.
    pub(crate) fn count(&self, key: Key) -> Option<usize> {
        let seen: ArrayVec<Seen, MAX_SEGMENTS> = (self.iter())
            .map(|segment| {
                let location = segment.locate(key);
                (segment, location, segment.read(location))
            })
            .collect();
        let count = |&(segment, location, words): &Seen| segment.count(words, location);
        are_unchanged(&seen).then(|| seen.iter().map(count).sum())
    }
}

fn is_under_way([first, second]: [u64; 2]) -> bool {
    (first | second) >> WordArray::VALUE_BITS != 0
}

fn are_unchanged(seen: &[Seen]) -> bool {
    let unchanged = |&(segment, location, words): &Seen| segment.read(location) == words;
    seen.iter().all(unchanged)
}
