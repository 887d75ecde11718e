//! A pool of keys that are inserted and removed, first in, first out.

use super::after;

/// A ring of keys that no other thread touches. The filter holds `live` of them, from the oldest
/// on, so every answer about them is known in advance.
#[derive(Debug)]
pub struct Pool {
    keys: Vec<usize>,
    oldest: usize,
    live: usize,
}

impl Pool {
    /// Creates a ring of these keys, of which the first `live` must be in the filter.
    pub fn new(keys: Vec<usize>, live: usize) -> Self {
        Self {
            keys,
            oldest: 0,
            live,
        }
    }

    /// Returns the number of keys in the filter.
    pub fn live(&self) -> usize {
        self.live
    }

    /// Takes out the oldest key, if there is one. The caller must now remove it from the filter.
    #[inline]
    pub(super) fn take_oldest(&mut self) -> Option<usize> {
        if self.live == 0 {
            return None;
        }
        let key = self.keys[self.oldest];
        self.oldest = after(self.oldest, self.keys.len());
        self.live -= 1;
        Some(key)
    }

    /// Returns the next key to insert, if any key is not in the filter.
    #[inline]
    pub(super) fn next_in(&self) -> Option<usize> {
        (self.live < self.keys.len()).then(|| self.at(self.live))
    }

    /// Records that the [next](Self::next_in) key was inserted. If it was refused, do not call
    /// this; it stays next in line.
    #[inline]
    pub(super) fn accept(&mut self) {
        self.live += 1;
    }

    /// Returns the key after which `age` others were inserted, or the newest if none is that old.
    #[inline]
    pub(super) fn of_age(&self, age: usize) -> Option<usize> {
        let newest = self.live.checked_sub(1)?;
        Some(self.at(newest - if age < self.live { age } else { 0 }))
    }

    /// Returns the key this many places after the oldest.
    #[inline]
    fn at(&self, place: usize) -> usize {
        let place = self.oldest + place;
        self.keys[place.checked_sub(self.keys.len()).unwrap_or(place)]
    }
}
