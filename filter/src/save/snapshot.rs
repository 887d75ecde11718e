//! Copying the table while other threads write.
//!
//! Reading every bucket once is not enough: a fingerprint that moves from a bucket still to be read
//! to one already read would be in neither. So the copy is made in four steps:
//!
//! ```text
//! 1. read every bucket, in order
//! 2. read every bucket again, in the same order; then those that had changed, again and again,
//!    until few are left. The copy has the last word of each.
//! 3. for every two of those that are left, read both words at one moment
//! 4. a class is suspect if its fingerprint does not occur equally often in two successive words of
//!    a bucket, or in the copy's word and in that of step 3. Count the suspect classes in the
//!    table, as a lookup does, and make the copy hold each as often
//! ```
//!
//! **What the copy holds.** It holds, for each class, as many copies as there were at some moment
//! of the call (at different moments for different classes). So whatever was in the table
//! throughout is in the copy, and whatever never was is not.
//!
//! **Why.** Every change that adds a fingerprint to a bucket advances its timestamp, so a word that
//! is the same at two reads was the same in between. (This holds modulo the timestamp's width, and
//! a copy takes longer than a lookup: if a bucket is hammered throughout, one read in
//! 2^[`TIMESTAMP_BITS`](Layout::TIMESTAMP_BITS) may take it for unchanged by chance. See
//! [`layout`](crate::layout#when-a-timestamp-wraps).)
//!
//! A class that is counted in step 4 is right as of that count. Now take one that is not counted,
//! with buckets A and B. It is not suspect, so its fingerprint occurs equally often in all words
//! that steps 1 and 2 read of A, and in all that they read of B.
//!
//! - *A and B are the same bucket.* Every word of it is right as of when it was read.
//! - *In some round of step 2, both were read again, and neither had changed.* Both this round and
//!   the one before it went through the buckets in the same order, and one was over when the other
//!   began. So at the later of the two earlier reads, both were as they are in the copy.
//! - *In some round, both were read again, A had changed, and B had not.* If A comes before B, then
//!   A's second read lies between the two reads of B; otherwise A's first one does. At that moment
//!   B was as it is in the copy, and A had the fingerprint as often as in the copy.
//! - *Both had changed in every round*, and so both are left. At the moment when step 3 read both,
//!   each had the fingerprint as often as in the copy, or the class would be suspect.
//!
//! There is no other case, since a bucket leaves the rounds only when it has not changed. What step
//! 4 does to one class does not affect the number of copies of another.
//!
//! **What it costs.** If nobody writes, two passes over the table, and the copy's memory. Otherwise
//! the number of reads is limited ([`PASSES`]), and so is memory: one table for the words, at most
//! half of one for the list of changed buckets, and one for the suspect classes, or one and a half
//! while that list moves to a larger place. When the list of suspects is full, those that are right
//! as of now are taken out. If that frees too little room, or the copy has no room for what it must
//! hold, everything begins again, within the same limit of reads. When the limit is reached, the
//! result is [`TooBusy`](SnapshotError::TooBusy).
//!
//! Rounds become shorter: the fewer buckets are left, the less time a round takes, and the fewer of
//! them change meanwhile. But with more threads than cores, the copying thread loses its core now
//! and then, and everything hot has changed by the time it is back; and rounds over so many changed
//! buckets, which take longer than passes over unchanged ones, are interrupted again. In that case
//! it is better to begin again. So during the first half of the reads, a second pass that finds
//! more than a sixteenth of the buckets changed is abandoned at once; the other half is for filters
//! in which this much changes all the time.

use kcas::thread_id::{self, TooManyThreads};

use crate::buckets::{BucketTable, Buckets};
use crate::hashing::{Geometry, Location};
use crate::layout::Layout;
use crate::lookup;
use crate::update::{self, InsertError};

/// Limit on the buckets that a copy may read, in passes over the table. (If the three reads of a
/// pair or of a count must be repeated because a bucket changed between them, they count once.)
const PASSES: usize = 32;

/// Reads allowed in addition: in a small table, 32 passes take no time.
const MORE_READS: usize = 1 << 12;

/// Number of buckets that may have changed at first in half of the attempts, in addition to a
/// sixteenth of all.
const FEW: usize = 1 << 6;

/// Number of places that a list may have even for a small table, and that are allocated at once.
const LEAST_ENTRIES: usize = 1 << 10;

/// Why a filter could not be copied. The filter itself is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// There is not enough memory for the copy, or for making it.
    #[error(
        "no memory to copy a table of {buckets} buckets, 8 bytes each: up to three times as much is needed \
         while others change the filter"
    )]
    OutOfMemory {
        /// Number of buckets in the table.
        buckets: usize,
    },
    /// The table changed so quickly that the limit of reads was reached; or it is so full that the
    /// copy had no room for keys of different moments, all of which it needs.
    #[error(
        "the filter is changing too quickly, or is too full, to be copied: try again when fewer threads \
         insert and remove, or build it with a larger capacity"
    )]
    TooBusy,
    /// The filter was changed meanwhile, and more than [`MAX_THREADS`](crate::MAX_THREADS) live
    /// threads insert or remove: the copy takes over changes by inserts.
    #[error(transparent)]
    TooManyThreads(#[from] TooManyThreads),
}

/// Copies the table, as the module's docs describe.
///
/// Progress: lock-free; the number of reads is limited ([`PASSES`]). No linearization point: each
/// class has its own.
pub(crate) fn copy<const SLOTS: usize, const BITS: usize>(
    buckets: &Buckets<SLOTS, BITS>,
) -> Result<Buckets<SLOTS, BITS>, SnapshotError> {
    let number = buckets.geometry().buckets();
    let all = PASSES.saturating_mul(number).saturating_add(MORE_READS);
    let mut reads = Reads(all);
    loop {
        let most_changed = if reads.0 > all / 2 {
            number.min(number / 16 + FEW)
        } else {
            number
        };
        match attempt(buckets, &mut reads, most_changed) {
            Err(SnapshotError::TooBusy) if reads.0 > 0 => {}
            result => return result,
        }
    }
}

/// Number of buckets that may still be read.
struct Reads(usize);

impl Reads {
    /// Takes this many; if fewer are left, none are left afterwards.
    fn spend(&mut self, reads: usize) -> Result<(), SnapshotError> {
        let left = self.0.checked_sub(reads);
        self.0 = left.unwrap_or(0);
        left.map(|_| ()).ok_or(SnapshotError::TooBusy)
    }
}

/// Makes one attempt; [`TooBusy`](SnapshotError::TooBusy) if too much changed meanwhile: for
/// example, more buckets than `most_changed` between the first two passes.
fn attempt<const SLOTS: usize, const BITS: usize>(
    buckets: &Buckets<SLOTS, BITS>,
    reads: &mut Reads,
    most_changed: usize,
) -> Result<Buckets<SLOTS, BITS>, SnapshotError> {
    let (words, suspects) = Reading::of(buckets, reads, most_changed)?;
    // Each is counted at most twice, with three reads each time.
    reads.spend(6 * suspects.len())?;
    let copy = Buckets::from_words(words);
    if suspects.is_empty() {
        return Ok(copy);
    }
    match thread_id::with(|_| adjust(&copy, suspects, |class| lookup::count(buckets, class)))? {
        Ok(()) => Ok(copy),
        Err(_no_room) => Err(SnapshotError::TooBusy),
    }
}

/// The state of steps 1 to 3.
struct Reading<'a, const SLOTS: usize, const BITS: usize> {
    buckets: &'a Buckets<SLOTS, BITS>,
    reads: &'a mut Reads,
    /// The latest word of each bucket.
    words: Vec<u64>,
    suspects: List<Suspect>,
}

impl<'a, const SLOTS: usize, const BITS: usize> Reading<'a, SLOTS, BITS> {
    /// Returns the words, and the suspect classes without duplicates.
    fn of(
        buckets: &'a Buckets<SLOTS, BITS>,
        reads: &'a mut Reads,
        most_changed: usize,
    ) -> Result<(Vec<u64>, Vec<Suspect>), SnapshotError> {
        let number = buckets.geometry().buckets();
        reads.spend(2 * number)?;
        let mut words = Vec::new();
        words
            .try_reserve_exact(number)
            .map_err(|_| SnapshotError::OutOfMemory { buckets: number })?;
        words.extend((0..number).map(|bucket| buckets.read(bucket)));
        let mut reading = Reading {
            buckets,
            reads,
            words,
            suspects: List::of_at_most(number.max(LEAST_ENTRIES), number),
        };
        let mut changed = List::<u32>::of_at_most(most_changed, number);
        for bucket in 0..number {
            if reading.read_again(bucket)? {
                // There are at most 2^32.
                changed.push(bucket as u32)?;
            }
        }
        let mut changed = changed.entries;
        while pairs(changed.len()) > number / 2 {
            reading.reads.spend(changed.len())?;
            let mut left = 0;
            for at in 0..changed.len() {
                let bucket = changed[at];
                if reading.read_again(bucket as usize)? {
                    changed[left] = bucket;
                    left += 1;
                }
            }
            changed.truncate(left);
        }
        reading.reads.spend(3 * pairs(changed.len()))?;
        for (at, &first) in changed.iter().enumerate() {
            for &second in &changed[at + 1..] {
                reading.read_both([first as usize, second as usize])?;
            }
        }
        let mut suspects = reading.suspects.entries;
        suspects.sort_unstable();
        suspects.dedup();
        Ok((reading.words, suspects))
    }

    /// Reads a bucket once more; true if it has changed.
    fn read_again(&mut self, bucket: usize) -> Result<bool, SnapshotError> {
        let word = self.buckets.read(bucket);
        let former = self.words[bucket];
        if word == former {
            return Ok(false);
        }
        self.words[bucket] = word;
        for fingerprint in different::<SLOTS, BITS>(former, word) {
            let other = self.buckets.geometry().other(fingerprint, bucket);
            self.suspect(fingerprint, [bucket, other])?;
        }
        Ok(true)
    }

    /// Does step 3 for these two buckets.
    fn read_both(&mut self, pair: [usize; 2]) -> Result<(), SnapshotError> {
        let [first, second] = pair;
        let words = lookup::both(self.buckets, first, second);
        for (bucket, other, word) in [(first, second, words[0]), (second, first, words[1])] {
            for fingerprint in different::<SLOTS, BITS>(self.words[bucket], word) {
                if self.buckets.geometry().other(fingerprint, bucket) == other {
                    self.suspect(fingerprint, pair)?;
                }
            }
        }
        Ok(())
    }

    fn suspect(&mut self, fingerprint: u64, pair: [usize; 2]) -> Result<(), SnapshotError> {
        if self.suspects.is_full() {
            self.acquit()?;
        }
        self.suspects.push(Suspect::new(fingerprint, pair))
    }

    /// Makes room in the list: a class that the words hold as often as the table does is right as
    /// of now. If one of its words changes, it becomes suspect again.
    fn acquit(&mut self) -> Result<(), SnapshotError> {
        let suspects = &mut self.suspects.entries;
        suspects.sort_unstable();
        suspects.dedup();
        self.reads.spend(3 * suspects.len())?;
        suspects.retain(|suspect| {
            let class = suspect.location(self.buckets.geometry());
            let held =
                |bucket: usize| Layout::<SLOTS, BITS>::count(self.words[bucket], class.fingerprint);
            let elsewhere = if class.first == class.second {
                0
            } else {
                held(class.second)
            };
            held(class.first) + elsewhere != lookup::count(self.buckets, class)
        });
        // If this made little room, it would soon be needed again.
        if suspects.len() > self.suspects.most / 8 * 7 {
            Err(SnapshotError::TooBusy)
        } else {
            Ok(())
        }
    }
}

/// Returns the number of pairs of `number` things.
fn pairs(number: usize) -> usize {
    number.saturating_mul(number.saturating_sub(1)) / 2
}

/// Returns the fingerprints that two words of a bucket do not hold equally often, some of them more
/// than once.
fn different<const SLOTS: usize, const BITS: usize>(
    former: u64,
    word: u64,
) -> impl Iterator<Item = u64> {
    let in_slots =
        |word| (0..SLOTS).map(move |slot| Layout::<SLOTS, BITS>::fingerprint(word, slot));
    let count = Layout::<SLOTS, BITS>::count;
    in_slots(former)
        .chain(in_slots(word))
        .filter(move |&fingerprint| fingerprint != 0)
        .filter(move |&fingerprint| count(former, fingerprint) != count(word, fingerprint))
}

/// A class as one number: the lower of its buckets, and the fingerprint. Neither has more than 32
/// bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Suspect(u64);

impl Suspect {
    fn new(fingerprint: u64, [first, second]: [usize; 2]) -> Suspect {
        Suspect((first.min(second) as u64) << 32 | fingerprint)
    }

    fn location<const SLOTS: usize, const BITS: usize>(
        self,
        geometry: &Geometry<SLOTS, BITS>,
    ) -> Location {
        let (first, fingerprint) = ((self.0 >> 32) as usize, self.0 & u64::from(u32::MAX));
        Location {
            fingerprint,
            first,
            second: geometry.other(fingerprint, first),
        }
    }
}

/// A list that takes memory as needed, up to a limit.
struct List<T> {
    entries: Vec<T>,
    most: usize,
    /// For the error message.
    buckets: usize,
}

impl<T> List<T> {
    fn of_at_most(most: usize, buckets: usize) -> Self {
        List {
            entries: Vec::new(),
            most,
            buckets,
        }
    }

    fn is_full(&self) -> bool {
        self.entries.len() == self.most
    }

    fn push(&mut self, entry: T) -> Result<(), SnapshotError> {
        if self.is_full() {
            return Err(SnapshotError::TooBusy);
        }
        let length = self.entries.len();
        if length == self.entries.capacity() {
            // While the list moves, both places are taken: together at most one and a half times
            // the limit.
            let room = if length < self.most / 4 {
                (2 * length).max(LEAST_ENTRIES.min(self.most))
            } else {
                self.most
            };
            self.entries.try_reserve_exact(room - length).map_err(|_| {
                SnapshotError::OutOfMemory {
                    buckets: self.buckets,
                }
            })?;
        }
        self.entries.push(entry);
        Ok(())
    }
}

/// Makes a copy that nobody else sees hold each of these classes as often as counted; an error if
/// there is no room.
fn adjust<const SLOTS: usize, const BITS: usize>(
    copy: &Buckets<SLOTS, BITS>,
    mut classes: Vec<Suspect>,
    count: impl Fn(Location) -> usize,
) -> Result<(), InsertError> {
    // Takes surplus copies away; returns how many are missing.
    let lower = |class: Location| {
        let (copies, held) = (count(class), lookup::count(copy, class));
        for _ in copies..held {
            update::remove(copy, class);
        }
        copies.saturating_sub(held)
    };
    // First for all classes, to make room for what is missing.
    classes.retain(|class| lower(class.location(copy.geometry())) > 0);
    for class in classes {
        let class = class.location(copy.geometry());
        for _ in 0..lower(class) {
            update::insert(copy, class)?;
        }
    }
    Ok(())
}

#[cfg(all(test, not(kcas_loom)))]
mod tests {
    use super::*;
    use crate::hashing::MAX_BUCKETS;

    #[test]
    fn adjusting_takes_away_before_it_adds() {
        let copy = Buckets::<2, 24>::from_words(vec![5 | 5 << 24]);
        let adjust_to = |wanted: &[(u64, usize)]| {
            let classes = wanted.iter().map(|&(class, _)| Suspect::new(class, [0, 0]));
            let counted = |class: Location| {
                let wanted = wanted.iter().find(|&&(f, _)| f == class.fingerprint);
                wanted.expect("nothing else is counted").1
            };
            adjust(&copy, classes.collect(), counted)
        };
        let held = |fingerprint| {
            lookup::count(
                &copy,
                Suspect::new(fingerprint, [0, 0]).location(copy.geometry()),
            )
        };
        assert!(adjust_to(&[(7, 1), (5, 1)]).is_ok());
        assert_eq!((held(5), held(7)), (1, 1));
        assert!(adjust_to(&[(9, 1)]).is_err());
        assert!(adjust_to(&[(9, 2), (7, 0), (5, 0)]).is_ok());
        assert_eq!((held(5), held(7), held(9)), (0, 0, 2));
    }

    /// Every class has its own number, even the last one of the largest table with the longest
    /// fingerprints.
    #[test]
    fn a_suspect_is_its_class() {
        for buckets in [1, 2, 7, 1 << 20, MAX_BUCKETS] {
            let geometry = Geometry::<1, 32>::new(buckets);
            for fingerprint in [1, 2, 77_777, u64::from(u32::MAX)] {
                for bucket in [0, buckets / 2, buckets - 1] {
                    let other = geometry.other(fingerprint, bucket);
                    let class = Suspect::new(fingerprint, [bucket, other]);
                    assert_eq!(class, Suspect::new(fingerprint, [other, bucket]));
                    let expected = Location {
                        fingerprint,
                        first: bucket.min(other),
                        second: bucket.max(other),
                    };
                    assert_eq!(class.location(&geometry), expected);
                }
            }
        }
    }

    /// A class that the words hold as often as the table does is no longer suspect, and every other
    /// class still is.
    #[test]
    fn classes_that_are_right_are_acquitted() {
        let geometry = Geometry::<4, 12>::new(7);
        let buckets = Buckets::try_new(geometry).unwrap();
        let class = |fingerprint| {
            let first = fingerprint as usize % 7;
            let second = geometry.other(fingerprint, first);
            Suspect::new(fingerprint, [first, second])
        };
        let location = |fingerprint| class(fingerprint).location(&geometry);
        (1..=20).for_each(|f| update::insert(&buckets, location(f)).unwrap());
        let mut reads = Reads(1_000);
        let mut reading = Reading {
            buckets: &buckets,
            reads: &mut reads,
            words: (0..7).map(|bucket| buckets.read(bucket)).collect(),
            suspects: List::of_at_most(16, 7),
        };
        // Seen to go, to come, and to be there twice.
        (1..=5).for_each(|f| assert!(update::remove(&buckets, location(f))));
        (21..=23).for_each(|f| update::insert(&buckets, location(f)).unwrap());
        update::insert(&buckets, location(10)).unwrap();
        (0..7).for_each(|bucket| assert!(reading.read_again(bucket).is_ok()));
        let mut noted = reading.suspects.entries.clone();
        noted.sort();
        noted.dedup();
        let mut expected = Vec::from_iter((1..=5).chain([10]).chain(21..=23).map(class));
        expected.sort();
        assert_eq!(noted, expected);
        // Not seen: one comes, one of two goes, one that was noted comes back, and one that was not
        // noted goes.
        update::insert(&buckets, location(24)).unwrap();
        assert!(update::remove(&buckets, location(10)));
        update::insert(&buckets, location(1)).unwrap();
        assert!(update::remove(&buckets, location(20)));
        let mut wrong = Vec::from_iter([24, 10, 1, 20].map(class));
        for &suspect in wrong.iter().cycle().take(100) {
            let Location {
                fingerprint,
                first,
                second,
            } = suspect.location(&geometry);
            reading.suspect(fingerprint, [first, second]).unwrap();
        }
        reading.acquit().unwrap();
        wrong.sort();
        assert_eq!(reading.suspects.entries, wrong);
        // A list in which nothing is acquitted is too long.
        reading.suspects.most = 4;
        assert_eq!(reading.suspect(25, [0, 0]), Err(SnapshotError::TooBusy));
    }

    /// While a list moves to a larger place, it takes both.
    #[test]
    fn lists_are_limited() {
        for most in [1, 1_000, 1_024, 4_000, 100_000] {
            let mut list = List::of_at_most(most, 77);
            let mut capacities = vec![0];
            while !list.is_full() {
                list.push(7_u64).unwrap();
                capacities.push(list.entries.capacity());
            }
            capacities.dedup();
            assert_eq!(list.push(7), Err(SnapshotError::TooBusy));
            assert_eq!(capacities.last(), Some(&most));
            let both = capacities.windows(2).map(|moved| moved[0] + moved[1]);
            assert!(both.max().unwrap() <= most + most / 2, "{capacities:?}");
        }
    }
}
