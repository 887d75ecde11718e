//! A copy of the table, taken while others write.
//!
//! Reading every bucket once is not enough: a fingerprint that moves, from a bucket that is still to be read to
//! one that was read before, would be in neither. So the copy is made in three steps:
//!
//! ```text
//! 1. read every bucket, in order
//! 2. read every bucket again, in the same order; then those that had changed, again and again,
//!    until one or none has changed since it was last read. The copy has the last word of each.
//! 3. count in the table, as a lookup does, every class that has a fingerprint in any word that was
//!    read of a bucket that changed; make the copy hold it as often
//! ```
//!
//! **What the copy holds.** Of each class as many copies as there were at some moment of the call (at different
//! moments for different classes). So what was in the table throughout is in the copy, and what never was
//! is not.
//!
//! **Why.** Every change that adds a fingerprint to a bucket advances its timestamp, so a word that is read twice
//! and is the same was the same in between ([`layout`](crate::layout#when-a-timestamp-wraps) tells what a
//! timestamp's width has to do with it; a copy takes longer than a lookup, and a bucket that is hammered sees
//! more additions meanwhile). Take a class with the buckets A and B.
//!
//! - *Neither had changed when it was read the second time.* Every second read comes after every first one. So
//!   at the later of the two first reads both were as they were copied: the copy is right as of then.
//! - *In some round of rereading both took part, A had changed and B had not.* Both rounds, this one
//!   and the one before it, went through the buckets in the same order. If A comes before B, then A's second read
//!   lies between both of B's; otherwise A's first one does. Call what was read of A then a: at that
//!   moment the class had as many copies as a and B's word have together. If the fingerprint is in a, or
//!   in any other word of A, the class is counted in step 3, and the copy is right as of then. If it is in none of
//!   them, then it is not in a, either, nor in the last word of A, and B's word alone is right.
//! - There is no third case. A bucket leaves the rounds when it has not changed, and the rounds end when at most
//!   one is left: so one of A and B leaves before the other, or both at once, or they are the same bucket,
//!   of which any word is right. Those that leave at once, having changed before, are as in the first case,
//!   with the last two rounds instead of the first two.
//!
//! What step 3 does to one class does not touch the number of copies of another.

use crate::buckets::{BucketTable, Buckets};
use crate::cuckoo::Class;
use crate::hashing::Location;
use crate::layout::Layout;
use crate::lookup;
use crate::update::{self, InsertError};

/// How often a copy is begun again before it is given up.
const ATTEMPTS: usize = 16;

/// Why a filter could not be copied. The filter itself is as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// There is no memory for the copy.
    #[error("no memory to copy a table of {buckets} buckets, 8 bytes each")]
    OutOfMemory {
        /// How many buckets the table has.
        buckets: usize,
    },
    /// The table is so full, and was changed so quickly, that the keys of different moments which the copy
    /// needs found no room in it, several times in a row.
    #[error(
        "the filter is too full to be copied while it is changed so quickly: try again when fewer \
         threads insert and remove, or build it with a larger capacity"
    )]
    TooBusy,
}

/// A copy of the table, as the module's docs tell it.
///
/// Progress: lock-free; a bucket is read again only when another thread changed it, or has changed another
/// one, since it was last read. No linearization point: each class has one of its own.
///
/// # Panics
/// When the copy needs a chain of shifts, and more than `MAX_THREADS` live threads insert or remove.
pub(crate) fn copy<const SLOTS: usize, const BITS: usize>(
    buckets: &Buckets<SLOTS, BITS>,
) -> Result<Buckets<SLOTS, BITS>, SnapshotError> {
    for _ in 0..ATTEMPTS {
        let Reading { words, classes } = Reading::of(buckets)?;
        let copy = Buckets::from_words(words);
        let wanted = classes.into_iter().map(|location| {
            let copies = lookup::count(buckets, location);
            (location, copies)
        });
        if adjust(&copy, wanted).is_ok() {
            return Ok(copy);
        }
    }
    Err(SnapshotError::TooBusy)
}

/// Steps 1 and 2.
struct Reading {
    /// The last word of each bucket.
    words: Vec<u64>,
    /// The classes in any word of a bucket that changed, each once.
    classes: Vec<Location>,
}

impl Reading {
    fn of<const SLOTS: usize, const BITS: usize>(
        buckets: &Buckets<SLOTS, BITS>,
    ) -> Result<Reading, SnapshotError> {
        let number = buckets.geometry().buckets();
        let mut words = Vec::new();
        words
            .try_reserve_exact(number)
            .map_err(|_| SnapshotError::OutOfMemory { buckets: number })?;
        words.extend((0..number).map(|bucket| buckets.read(bucket)));
        let mut classes = Vec::new();
        let mut read_again = |bucket: &usize| {
            let word = buckets.read(*bucket);
            let former = std::mem::replace(&mut words[*bucket], word);
            if word == former {
                return false;
            }
            classes.extend(classes_in(buckets, *bucket, former));
            classes.extend(classes_in(buckets, *bucket, word));
            true
        };
        let mut changed: Vec<usize> = (0..number).filter(&mut read_again).collect();
        while changed.len() > 1 {
            changed.retain(&mut read_again);
        }
        classes.sort_unstable();
        classes.dedup();
        let classes = classes.into_iter().map(Class::location).collect();
        Ok(Reading { words, classes })
    }
}

/// The classes of the fingerprints in a bucket's word.
fn classes_in<const SLOTS: usize, const BITS: usize>(
    buckets: &Buckets<SLOTS, BITS>,
    bucket: usize,
    word: u64,
) -> impl Iterator<Item = Class> {
    let fingerprints = (0..SLOTS).map(move |slot| Layout::<SLOTS, BITS>::fingerprint(word, slot));
    fingerprints.filter(|&f| f != 0).map(move |fingerprint| {
        Class::from(Location {
            fingerprint,
            first: bucket,
            second: buckets.geometry().other(fingerprint, bucket),
        })
    })
}

/// Makes a copy that nobody else sees hold each of these classes as often as told; `Full` when there is no room.
fn adjust<const SLOTS: usize, const BITS: usize>(
    copy: &Buckets<SLOTS, BITS>,
    wanted: impl Iterator<Item = (Location, usize)>,
) -> Result<(), InsertError> {
    // What is too many goes first, so that there is room for what is missing.
    let mut missing = Vec::new();
    for (location, copies) in wanted {
        let held = lookup::count(copy, location);
        for _ in copies..held {
            update::remove(copy, location);
        }
        if held < copies {
            missing.push((location, copies - held));
        }
    }
    for (location, copies) in missing {
        for _ in 0..copies {
            update::insert(copy, location)?;
        }
    }
    Ok(())
}

#[cfg(all(test, not(kcas_loom)))]
mod tests {
    use super::*;

    fn location(fingerprint: u64) -> Location {
        Location {
            fingerprint,
            first: 0,
            second: 0,
        }
    }

    #[test]
    fn adjusting_takes_away_before_it_adds() {
        let copy = Buckets::<2, 24>::from_words(vec![5 | 5 << 24]);
        let wanted = [(location(7), 1), (location(5), 1)];
        assert_eq!(adjust(&copy, wanted.into_iter()), Ok(()));
        assert_eq!(lookup::count(&copy, location(5)), 1);
        assert_eq!(lookup::count(&copy, location(7)), 1);
        let too_many = [(location(9), 1)];
        assert_eq!(adjust(&copy, too_many.into_iter()), Err(InsertError::Full));
    }
}
