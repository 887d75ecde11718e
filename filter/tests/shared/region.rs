//! Files into which another process has written anything, as some bytes say.

use std::fmt::Debug;
use std::fs;
use std::io::sink;
use std::os::unix::fs::FileExt;
use std::thread;

use filter::shared::SharedLookup;
use filter::{CuckooFilter, ExpiringCuckooFilter, Filter};
use kcas::shared::Shared;
use kcas::{Entry, WordArray};

use crate::any::AnyFilter;
use crate::any::Kind::{Expiring, Fixed};
use crate::file::{CLOCK, CORRECTION, File};

const BUCKETS: u64 = 4;
/// Words of the table, what announces a snapshot, and its places.
const WORDS: u64 = words_of(BUCKETS);
/// Where records and words begin in a file.
const RECORDS: u64 = 512;
const TABLE: u64 = 1 << 18;
/// Ids that damaged records belong to: those of the calls, and others.
const IDS: u64 = 20;
/// Kinds of calls.
const CALLS: u64 = 17;

const fn words_of(buckets: u64) -> u64 {
    buckets.next_multiple_of(8) + 1 + buckets
}

/// Choices; the first of each when the bytes are used up.
struct Choices<'a>(&'a [u8]);

impl Choices<'_> {
    fn below(&mut self, limit: u64) -> u64 {
        let size = if limit > 256 { 8 } else { 1 };
        let (taken, rest) = self.0.split_at(size.min(self.0.len()));
        self.0 = rest;
        let number = |sum, &byte| sum << 8 | u64::from(byte);
        taken.iter().fold(0, number) % limit
    }

    /// Returns a number such as words and records have, with a small sequence number, or any.
    fn number(&mut self) -> u64 {
        let (id, sequence) = (self.below(IDS), self.below(4));
        match self.below(10) {
            0 => u64::MAX - self.below(2),
            1 => self.below(u64::MAX) >> self.below(64),
            // A bucket, an index or a length.
            2..4 => self.below(WORDS + 1),
            // A status.
            4 => sequence << 2 | self.below(4),
            5 => sequence,
            // What announces a snapshot, with the number of buckets that it has behind it.
            6 => sequence << 33 | self.below(BUCKETS + 2),
            kind => tag(kind - 7, id, sequence),
        }
    }

    /// Returns this number, or now and then another.
    fn nearly(&mut self, right: u64) -> u64 {
        match self.below(24) {
            1 => self.number(),
            _ => right,
        }
    }
}

/// Returns the confirmed tag of a K-CAS (0), its owner's (1), or that of an installation (2).
fn tag(kind: u64, id: u64, sequence: u64) -> u64 {
    1 << 63 | kind << 61 | id << 49 | sequence
}

struct Damage<'a>(&'a File, Choices<'a>);

impl Damage<'_> {
    fn write(&self, word: u64, value: u64) {
        self.0.write(word, &[value]);
    }

    fn write_any(&mut self) {
        for _ in 0..1 << self.1.below(7) {
            let word = match self.1.below(8) {
                0..3 => TABLE + self.1.below(WORDS),
                3 => [CORRECTION, CLOCK][self.1.below(2) as usize],
                _ => RECORDS + 32 * self.1.below(IDS) + self.1.below(32),
            };
            let value = self.1.number();
            self.write(word, value);
        }
        for _ in 0..self.1.below(4) {
            self.write_operation();
        }
    }

    /// Writes a K-CAS as a process that was killed may have left it, or nearly, and an installation.
    fn write_operation(&mut self) {
        let (id, sequence) = (self.1.below(IDS), self.1.below(4));
        let record = RECORDS + 32 * id;
        let (mut len, mut index) = (0, self.1.below(4));
        while len < 8 && index < WORDS {
            let expected = self.1.below(2);
            for (place, right) in [index, expected, self.1.below(4)].into_iter().enumerate() {
                let field = self.1.nearly(right);
                self.write(record + 3 * len + place as u64, field);
            }
            match self.1.below(5) {
                0 => {}
                1 => self.write(TABLE + index, expected),
                kind => self.write(TABLE + index, tag(kind - 2, id, sequence)),
            }
            len += 1;
            index += 1 + self.1.below(4);
        }
        let target = [id, self.1.below(IDS)][self.1.below(2) as usize];
        let old = match self.1.below(5) {
            0..2 => self.1.below(2),
            2..4 => tag(1, target, sequence),
            _ => tag(self.1.below(3), target, sequence),
        };
        let state = self.1.below(4);
        let fields = [
            sequence << 2 | state,
            len,
            sequence,
            tag(0, target, sequence),
        ];
        let fields = fields.into_iter().chain([old, self.1.below(WORDS)]);
        for (place, right) in fields.enumerate() {
            let field = self.1.nearly(right);
            self.write(record + 24 + place as u64, field);
        }
        // All ids were claimed.
        self.write(64, IDS);
    }

    /// Writes into the header: the number of ids (rarely, since each takes time), or what never changes, with the right
    /// checksum or not.
    fn write_header(&mut self) {
        let (kind, value) = (self.1.below(64), self.1.number());
        match kind {
            0 => self.write(64, value),
            1..24 => {
                let buckets = self.1.below(BUCKETS + 2);
                self.write(1, words_of(buckets));
                self.write(10, buckets);
            }
            _ => {
                let word = self.1.below(17);
                self.write(word, value);
            }
        }
        let mut header = [0; 8 * 16];
        let opened = fs::File::open(&self.0.0).unwrap();
        opened.read_exact_at(&mut header, 0).unwrap();
        let words = header.chunks(8);
        let words = words.map(|word| u64::from_ne_bytes(word.try_into().unwrap()));
        const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
        let step = |sum: u64, word: u64| (sum ^ word).wrapping_mul(FACTOR).rotate_left(29);
        let checksum = self.1.nearly(words.fold(1, step));
        self.write(16, checksum);
    }
}

/// Makes a call of each kind on files that are written to before and meanwhile. True if damage was found.
///
/// # Panics
/// If a call panics, or does not say what is promised once damage was found.
pub(crate) fn calls_on_damaged_file(bytes: &[u8]) -> bool {
    let (file, saved) = (File::new("damaged"), File::new("damaged-saved"));
    let mut damage = Damage(&file, Choices(bytes));
    let first = AnyFilter::create(&file.0, BUCKETS as usize, damage.1.below(2) == 1);
    first.insert_all(0..6).unwrap();
    let array = WordArray::open(&file.0).unwrap();
    if damage.1.below(8) == 1 {
        damage.write_header();
    }
    damage.write_any();
    let second = AnyFilter::open(&file.0);
    let lookups = [
        CuckooFilter::builder().open_shared_to_read(&file.0),
        ExpiringCuckooFilter::builder().open_shared_to_read(&file.0),
    ];
    // One filter was opened before the damage, the other after it, unless it was refused.
    let mut filters = [&first, second.as_ref().unwrap_or(&first)];
    filters.rotate_left(damage.1.below(2) as usize);
    for (filter, is_meanwhile) in filters.into_iter().zip([false, true]) {
        let choices = damage.1.0;
        let (nows, laters) = choices.split_at(choices.len() / 2);
        damage.1 = Choices(laters);
        thread::scope(|threads| {
            if is_meanwhile {
                threads.spawn(|| (0..4).for_each(|_| damage.write_any()));
            }
            let mut choices = Choices(nows);
            let start = choices.below(CALLS);
            for nth in 0..CALLS {
                let keys = [choices.below(8), choices.below(8)];
                call(filter, (start + nth) % CALLS, keys, &saved);
            }
            call_array(&array, &mut choices);
            (lookups.iter().flatten()).for_each(|lookup| look_up(lookup, [0, 7]));
        });
    }
    filters.into_iter().any(|filter| filter.is_damaged())
}

/// Makes a call of this kind with these keys.
fn call(filter: &AnyFilter, kind: u64, keys: [u64; 2], saved: &File) {
    let was_damaged = filter.is_damaged();
    let mut found = [false; 2];
    let mut inserted = [Ok(()), Ok(())];
    let mut changed = [Ok(true), Ok(true)];
    let mut removed = [Ok(true), Ok(true)];
    let says_so = match kind {
        0 => is_refused(filter.insert(&keys[0])),
        1 => is_refused(filter.insert_if_absent(&keys[0])),
        2 => is_refused(filter.remove(&keys[0])),
        3 => is_refused(filter.insert_all(keys)),
        4 => {
            filter.insert_batch(&keys, &mut inserted);
            inserted.into_iter().all(is_refused)
        }
        5 => {
            filter.insert_if_absent_batch(&keys, &mut changed);
            changed.into_iter().all(is_refused)
        }
        6 => {
            filter.remove_batch(&keys, &mut removed);
            removed.into_iter().all(is_refused)
        }
        7 => match &filter.kind {
            Fixed(filter) => is_refused(filter.remove_all()),
            Expiring(filter) => is_refused(filter.advance()),
        },
        8 => filter.contains(&keys[0]),
        9 => {
            filter.contains_batch(&keys, &mut found);
            found == [true; 2]
        }
        // (If the header is damaged, it may be taken for that of another file.)
        10 => filter.copy().is_err(),
        11 => {
            let bytes = filter.to_bytes();
            bytes.iter().for_each(|bytes| match &filter.kind {
                Fixed(_) => drop(CuckooFilter::from_bytes(bytes).unwrap()),
                Expiring(_) => drop(ExpiringCuckooFilter::from_bytes(bytes).unwrap()),
            });
            bytes.is_err()
        }
        12 => filter.write_to(sink()).is_err(),
        13 => filter.save(&saved.0).is_err(),
        14 => {
            let lengths = (filter.len(), filter.recount(), filter.count(&keys[0]));
            let text = match &filter.kind {
                Fixed(filter) => format!("{filter:?}"),
                Expiring(filter) => format!("{filter:?}"),
            };
            drop((lengths, filter.load_factor(), text));
            true
        }
        15 => match &filter.kind {
            Fixed(_) => true,
            Expiring(filter) => {
                // (The header may say that the time of no period has come.)
                let _ = (filter.advance_to_now(), filter.period_length());
                let period = filter.period().min(1 << 41) + keys[0];
                is_refused(filter.advance_to(period))
            }
        },
        _ => {
            let _ = filter.take_over_all();
            true
        }
    };
    assert!(says_so || !was_damaged, "call {kind} on a damaged file");
}

/// True if a call says that the file is damaged.
fn is_refused<T: Debug, E: Debug>(result: Result<T, E>) -> bool {
    result.is_err_and(|error| format!("{error:?}").contains("Damaged"))
}

/// Makes the calls of an array that filters do not make.
fn call_array(array: &WordArray<Shared>, choices: &mut Choices) {
    let index = choices.below(WORDS - 2) as usize;
    let entries = [0, 1, 2].map(|at| {
        let expected = array.load(index + at);
        Entry::new(index + at, expected, choices.below(3))
    });
    drop((array.kcas_by_dcss(&entries), array.kcas(&entries)));
    array.load_helping(index);
}

fn look_up(lookup: &SharedLookup, keys: [u64; 2]) {
    let (was_damaged, mut found) = (lookup.is_damaged(), [false; 2]);
    lookup.contains_batch(&keys, &mut found);
    let says_so = lookup.contains(&keys[0]) && found == [true; 2];
    assert!(says_so || !was_damaged, "a lookup in a damaged file");
    let _: [usize; 3] = [lookup.len(), lookup.count(&keys[0]), lookup.slots()];
}
