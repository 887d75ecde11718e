//! Keys that come and go, first in, first out.

use super::after;

/// A ring of keys that no other thread touches; `live` of them are in the filter, from the oldest on. So every
/// answer about one of them is known in advance.
#[derive(Debug)]
pub struct Pool {
    keys: Vec<usize>,
    oldest: usize,
    live: usize,
}

impl Pool {
    /// The ring of these keys, of which the first `live` must be in the filter.
    pub fn new(keys: Vec<usize>, live: usize) -> Self {
        Self {
            keys,
            oldest: 0,
            live,
        }
    }

    /// Number of keys in the filter.
    pub fn live(&self) -> usize {
        self.live
    }

    /// Takes the oldest key out of the account, if there is one. It must now be removed from the filter.
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

    /// The key that is next to be inserted, if there is one that is not in the filter.
    #[inline]
    pub(super) fn next_in(&self) -> Option<usize> {
        (self.live < self.keys.len()).then(|| self.at(self.live))
    }

    /// Takes the key that was [next](Self::next_in) into the account. One that was refused stays next in line.
    #[inline]
    pub(super) fn accept(&mut self) {
        self.live += 1;
    }

    /// The key after whose insertion `age` others were inserted, or the newest if none is as old.
    #[inline]
    pub(super) fn of_age(&self, age: usize) -> Option<usize> {
        let newest = self.live.checked_sub(1)?;
        Some(self.at(newest - if age < self.live { age } else { 0 }))
    }

    /// The key so many places after the oldest.
    #[inline]
    fn at(&self, place: usize) -> usize {
        let place = self.oldest + place;
        self.keys[place.checked_sub(self.keys.len()).unwrap_or(place)]
    }
}
