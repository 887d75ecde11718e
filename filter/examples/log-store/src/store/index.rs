//! What is kept in memory for each key: a fingerprint in the filter, and next to it the key's place
//! in the log.
//!
//! The filter says *whether* the log need be read at all, the offsets say *where*; neither holds
//! the key, so every key takes about the same memory however long it is. Offsets are found by other
//! bits of the key's hash than those that make the fingerprint. If both are mistaken about a key,
//! the log itself settles it, since it has the keys.

use filter::{CuckooFilter, InsertError, hashing};
use hashbrown::HashTable;

use anyhow::{Result, bail};

use super::log::{Live, Offset};

/// Minimum number of keys that there is room for.
const LEAST_ROOM: usize = 1 << 10;

/// How often more room is tried if the keys do not fit.
const ATTEMPTS: u32 = 8;

/// Which keys there are, and where. By chance it may name a wrong place, but it never misses the
/// right one.
pub struct Index {
    /// One copy for each key that has a value.
    filter: CuckooFilter,
    /// One offset for each key that has a value.
    offsets: HashTable<Offset>,
}

impl Index {
    /// Makes the index of these keys, with room for as many again.
    pub fn of(live: &Live) -> Result<Index> {
        let mut room = LEAST_ROOM.max(2 * live.len());
        for _ in 0..ATTEMPTS {
            if let Ok(index) = Index::with_room(room, live)? {
                return Ok(index);
            }
            room *= 2;
        }
        bail!(
            "the {} keys do not fit into a filter with room for {room}: too many are mistaken for one another",
            live.len()
        )
    }

    fn with_room(room: usize, live: &Live) -> Result<Result<Index, InsertError>> {
        let mut offsets = HashTable::new();
        if offsets
            .try_reserve(room, |_| unreachable!("it is empty"))
            .is_err()
        {
            bail!("no memory for the offsets of {room} keys");
        }
        let filter = CuckooFilter::builder().capacity(room).build()?;
        let mut index = Index { filter, offsets };
        let all = live
            .iter()
            .try_for_each(|(key, offset)| index.insert(key, *offset));
        Ok(all.map(|()| index))
    }

    /// True if the filter takes the key for one that is there.
    pub fn may_have(&self, key: &[u8]) -> bool {
        self.filter.contains(key)
    }

    /// Returns the places where the key may be. It is at one of them, or nowhere.
    pub fn places(&self, key: &[u8]) -> impl Iterator<Item = Offset> {
        self.offsets.iter_hash(self.hash(key)).copied()
    }

    /// Adds a key that is not there yet.
    pub fn insert(&mut self, key: &[u8], offset: Offset) -> Result<(), InsertError> {
        // The table must not grow here: it would need the hashes of its entries, which are not
        // kept.
        if self.offsets.len() == self.offsets.capacity() {
            return Err(InsertError::Full);
        }
        self.filter.insert(key)?;
        let hash = self.hash(key);
        self.offsets
            .insert_unique(hash, offset, |_| unreachable!("there is room"));
        Ok(())
    }

    /// Changes where a key is.
    pub fn relocate(&mut self, key: &[u8], from: Offset, to: Offset) {
        let hash = self.hash(key);
        let place = self.offsets.find_mut(hash, |offset| *offset == from);
        *place.expect("the key is there") = to;
    }

    /// Removes a key that is there.
    pub fn remove(&mut self, key: &[u8], offset: Offset) {
        let hash = self.hash(key);
        let entry = self.offsets.find_entry(hash, |other| *other == offset);
        entry.expect("the key is there").remove();
        assert!(self.filter.remove(key), "the filter had a copy of each key");
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.offsets.len()
    }

    /// Returns the filter.
    pub fn filter(&self) -> &CuckooFilter {
        &self.filter
    }

    /// Returns the memory of the offsets, in bytes.
    pub fn offsets_bytes(&self) -> usize {
        self.offsets.allocation_size()
    }

    /// Returns a hash that is mixed once more, so that the offsets tell apart keys that the filter
    /// cannot.
    fn hash(&self, key: &[u8]) -> u64 {
        hashing::mix(self.filter.hash(key))
    }
}
