//! A thread's reusable record of one operation, read safely by helpers.
//!
//! Each thread id owns one [`Record`] forever: for the K-CAS it is running, and for the one
//! installation (DCSS) it has under way. A helper or a reader loads fields that the owner may be
//! overwriting for its next operation, and then checks that the sequence number is still that of its
//! tag. If not, the operation is over, and it discards what it read.
//!
//! **Why the check is sound.** No field is older than the tag: whoever has the tag has synchronised with
//! the exchange that put it into a word. The owner first advances the sequence number and then writes the
//! fields (Release). A reader loads the fields (Acquire) and then the sequence number. If a field belongs to
//! a later operation, its load synchronises with the owner's store, and the sequence number loaded
//! afterwards is at least as new: it differs from the tag's.

use crossbeam_utils::CachePadded;

use crate::entry::{Entries, Entry, MAX_ENTRIES};
use crate::steps::{Event, report};
use crate::storage::Words;
use crate::sync::{AtomicU64, OnFirstUse, Ordering, shared_static};
use crate::tagged::{InstallTag, KcasTag, Word, is_value, next_sequence};
use crate::thread_id::{MAX_THREADS, ThreadId};

/// State of an operation. It leaves `Undecided` once and never returns to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Its words stand for their expected values.
    Undecided = 0,
    /// By its owner: a word that holds the owner's tag got it in time.
    SucceededByOwner = 1,
    /// By a helper: a word that holds the owner's tag got it too late.
    SucceededByHelper = 2,
    /// By whichever thread found that a word differed.
    Failed = 3,
}

impl State {
    /// Returns the state in the `status` of a record.
    pub fn decode(status: u64) -> State {
        match status & 3 {
            0 => State::Undecided,
            1 => State::SucceededByOwner,
            2 => State::SucceededByHelper,
            _ => State::Failed,
        }
    }

    /// True if the words have changed.
    #[inline]
    pub(crate) fn succeeded(self) -> bool {
        matches!(self, State::SucceededByOwner | State::SucceededByHelper)
    }

    /// What a word with the confirmed tag stands for, given its expected and its new value.
    #[inline]
    pub fn confirmed(self, expected: u64, new: u64) -> u64 {
        if self.succeeded() { new } else { expected }
    }

    /// What a word with the owner's tag stands for.
    #[inline]
    pub fn owned(self, expected: u64, new: u64) -> u64 {
        if self == State::SucceededByOwner {
            new
        } else {
            expected
        }
    }
}

/// Packs the sequence number and the state of the owner's current K-CAS into one number. They have no
/// bit in common.
fn status(tag: KcasTag, state: State) -> u64 {
    tag.sequence() << 2 | state as u64
}

/// The words of one thread's record: nothing but words, so that it may be in memory that processes share.
///
/// ```text
/// entries     of the owner's K-CAS, each with index, expected and new value
/// status      of that K-CAS, then the number of its entries
/// install     the owner's installation: its sequence number; the raw tag of the K-CAS on whose behalf the owner installs;
///             the word that it replaces, a value or the owner's tag of that K-CAS; if shared, the index of that word
/// ```
pub(crate) type RecordWords = [AtomicU64; RECORD_WORDS];

/// In shared memory, two words are left for what is kept with the record.
pub(crate) const RECORD_WORDS: usize = if cfg!(kcas_loom) {
    INSTALL_INDEX + 1
} else {
    32
};

const STATUS: usize = 3 * MAX_ENTRIES;
const LEN: usize = STATUS + 1;
const INSTALL_SEQUENCE: usize = LEN + 1;
const INSTALL_TARGET: usize = INSTALL_SEQUENCE + 1;
const INSTALL_OLD: usize = INSTALL_TARGET + 1;
const INSTALL_INDEX: usize = INSTALL_OLD + 1;

/// A word that is not the protocol's.
#[cfg(shared_words)]
pub(crate) const KEPT: usize = RECORD_WORDS - 2;

/// One thread's record.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a>(&'a RecordWords);

const RECORDS_PER_CHUNK: usize = if cfg!(kcas_loom) { 4 } else { 32 };
const CHUNKS: usize = MAX_THREADS / RECORDS_PER_CHUNK;

/// Records of neighbouring threads share no cache line.
type Chunk = [CachePadded<RecordWords>; RECORDS_PER_CHUNK];

shared_static! {
    /// Every thread's record, for the words of this process alone. Made in chunks as thread ids grow and never freed:
    /// memory is bounded by the largest number of threads that were ever alive at the same time.
    static RECORDS: [OnFirstUse<Chunk>; CHUNKS] = each OnFirstUse::new(new_chunk, ());
}

fn new_chunk((): ()) -> Chunk {
    std::array::from_fn(|_| CachePadded::new(std::array::from_fn(|_| AtomicU64::new(0))))
}

/// Names the record for an id's descriptors for an observer; makes it if there is none.
#[cfg(any(kcas_loom, feature = "__steps"))]
pub(crate) fn name(id: usize) {
    crate::steps::name("descriptor", Record::get(id).0);
}

impl<'a> Record<'a> {
    #[cfg(shared_words)]
    pub(crate) fn new(words: &'a RecordWords) -> Record<'a> {
        Record(words)
    }

    /// Returns the record of a thread of this process.
    pub(crate) fn get(thread: usize) -> Record<'static> {
        let chunk = RECORDS[thread / RECORDS_PER_CHUNK].get_or_make();
        Record(&chunk[thread % RECORDS_PER_CHUNK])
    }

    /// [`status`] of the owner's K-CAS.
    #[inline(always)]
    fn status(self) -> &'a AtomicU64 {
        &self.0[STATUS]
    }

    #[inline(always)]
    fn len(self) -> &'a AtomicU64 {
        &self.0[LEN]
    }

    /// Index, expected and new value of each of the first `len` entries.
    #[inline(always)]
    fn entries(self, len: usize) -> impl Iterator<Item = &'a [AtomicU64]> {
        self.0[..3 * len].chunks_exact(3)
    }

    /// Loads the [`status`].
    fn load_status(self) -> u64 {
        // SeqCst: the decision is the linearization point of every entry (see the crate's docs,
        // "Orderings"). As an Acquire it pairs with `decide`: a thread that sees the decision also
        // sees every tag that was installed before it.
        self.status().load(Ordering::SeqCst)
    }
}

/// A K-CAS of the current thread, with its record at hand.
#[derive(Clone, Copy, Debug)]
pub struct Own<'a> {
    /// Its tag.
    pub tag: KcasTag,
    record: Record<'a>,
}

impl<'a> Own<'a> {
    /// Finds the record of the K-CAS that this tag names.
    #[cfg(any(kcas_loom, feature = "__steps", shared_words))]
    pub fn new<W: Words + ?Sized>(words: &'a W, tag: KcasTag) -> Own<'a> {
        let record = words.record(tag.thread());
        Own { tag, record }
    }

    /// The [`state`]; the owner has not moved on.
    pub(crate) fn state(self) -> State {
        State::decode(self.record.load_status())
    }

    /// [`decide`]s, and returns what has been decided, by whichever thread.
    #[inline]
    pub fn decide(self, verdict: State) -> State {
        match decide_in(self.record, self.tag, verdict) {
            Ok(_) => verdict,
            Err(status) => State::decode(status),
        }
    }
}

/// Starts the owner's next K-CAS: its record now describes `entries`, undecided.
///
/// The previous operation must be over: its tag is in no word, and nobody can put it there again.
#[inline]
pub fn begin_kcas<'a, W: Words + ?Sized>(
    words: &'a W,
    owner: &ThreadId,
    entries: &[Entry],
) -> Own<'a> {
    let record = words.record(owner.index());
    report(|| Event::Begins(owner.index(), record.status(), entries));
    // Relaxed: a helper can only have changed the state of the previous operation; whatever state
    // is read here, the sequence number beside it is the owner's own last one.
    let last = record.status().load(Ordering::Relaxed) >> 2;
    let tag = KcasTag::new(owner.index(), next_sequence(last));
    // Release pairs with the load in `load_status`: a thread that finds the previous operation
    // over also finds its words released, and does not meet its tag again. (For a thread that sees
    // one of the fields, that field's own Release orders this store.)
    record
        .status()
        .store(status(tag, State::Undecided), Ordering::Release);
    // Release, each of them: pairs with the Acquire loads in `read_kcas` and `read_entry`.
    record.len().store(entries.len() as u64, Ordering::Release);
    for (shared, entry) in record.entries(MAX_ENTRIES).zip(entries) {
        shared[0].store(entry.index as u64, Ordering::Release);
        shared[1].store(entry.expected, Ordering::Release);
        shared[2].store(entry.new, Ordering::Release);
    }
    Own { tag, record }
}

/// Returns the entries and the state of the K-CAS that `tag` names, or `None` if its owner has
/// moved on.
pub fn read_kcas<W: Words + ?Sized>(words: &W, tag: KcasTag) -> Option<(Entries, State)> {
    let record = words.record(tag.thread());
    // Acquire, each of them: pairs with the Release stores in `begin_kcas`.
    let len = record.len().load(Ordering::Acquire) as usize;
    let entries = record
        .entries(checked::<W>(len))
        .map(|entry| Entry {
            index: entry[0].load(Ordering::Acquire) as usize,
            expected: entry[1].load(Ordering::Acquire),
            new: entry[2].load(Ordering::Acquire),
        })
        .collect();
    state(words, tag).map(|state| (entries, state))
}

/// Returns the logical value of the word at `index`, where a tag of the K-CAS `tag` was seen: the
/// expected or the new value, as `meaning` ([`State::confirmed`] or [`State::owned`]) says. `None`
/// if its owner has moved on.
pub fn read_entry<W: Words + ?Sized>(
    words: &W,
    tag: KcasTag,
    index: usize,
    meaning: fn(State, u64, u64) -> u64,
) -> Option<u64> {
    let record = words.record(tag.thread());
    // Relaxed: the operation's own entries come first, and each names its word by the index. The
    // length of a later operation can only hide the entry, and then the owner has indeed moved on.
    // (Entries beyond it, left by earlier operations, would not be reached: the right one comes first.)
    // Acquire: in shared memory, the tag is then looked for in its word, and must be found to have left it.
    let len = if W::SHARED {
        record.len().load(Ordering::Acquire)
    } else {
        record.len().load(Ordering::Relaxed)
    };
    // Acquire, each of them: pairs with the Release stores in `begin_kcas`.
    let entry = record
        .entries(checked::<W>(len as usize))
        .find(|entry| entry[0].load(Ordering::Acquire) == index as u64)?;
    let expected = entry[1].load(Ordering::Acquire);
    let new = entry[2].load(Ordering::Acquire);
    let value = state(words, tag).map(|state| meaning(state, expected, new))?;
    (!W::SHARED || is_value(value)).then_some(value)
}

/// Returns a number of entries that was read from a record, or a smaller one if no operation can have as many.
#[inline(always)]
fn checked<W: Words + ?Sized>(len: usize) -> usize {
    if W::SHARED { len.min(MAX_ENTRIES) } else { len }
}

/// Returns the state of the K-CAS that `tag` names, or `None` if its owner has moved on.
pub fn state<W: Words + ?Sized>(words: &W, tag: KcasTag) -> Option<State> {
    let status = words.record(tag.thread()).load_status();
    (status >> 2 == tag.sequence()).then(|| State::decode(status))
}

/// Decides the K-CAS that `tag` names, unless it is decided already.
pub fn decide<W: Words + ?Sized>(words: &W, tag: KcasTag, verdict: State) {
    let _ = decide_in(words.record(tag.thread()), tag, verdict);
}

#[inline]
fn decide_in(record: Record, tag: KcasTag, verdict: State) -> Result<u64, u64> {
    // SeqCst: as in `load_status`. As a Release it publishes the tags that this thread installed
    // or saw installed. A failure pairs with this exchange by the thread that decided: the owner must
    // find the tags that were put into its words before that; and all threads must see the decision
    // before what the owner then puts there.
    record.status().compare_exchange(
        status(tag, State::Undecided),
        status(tag, verdict),
        Ordering::SeqCst,
        Ordering::SeqCst,
    )
}

/// Starts the installer's next installation, of `target`'s tag over `old` in the word at `index`: a value, or the tag of
/// `target`'s owner.
///
/// The previous installation must be over: its tag is in no word.
pub fn begin_install<W: Words + ?Sized>(
    words: &W,
    installer: &ThreadId,
    target: KcasTag,
    index: usize,
    old: u64,
) -> InstallTag {
    let record = words.record(installer.index()).0;
    let number = &record[INSTALL_SEQUENCE];
    report(|| Event::Installs(installer.index(), number, target.raw(), old));
    // Relaxed: only the owner of a record writes this field.
    let last = number.load(Ordering::Relaxed);
    let sequence = next_sequence(last);
    // Release pairs with the load in `read_install`, for the same reason as in `begin_kcas`.
    number.store(sequence, Ordering::Release);
    // Release, both: pairs with the Acquire loads in `read_install`.
    record[INSTALL_TARGET].store(target.raw(), Ordering::Release);
    record[INSTALL_OLD].store(old, Ordering::Release);
    if W::SHARED {
        // Relaxed: only the owner reads it, or the next holder of its id, which synchronises with the owner's end.
        record[INSTALL_INDEX].store(index as u64, Ordering::Relaxed);
    }
    InstallTag::new(installer.index(), sequence)
}

/// Returns what the last holder of an id, which may have been killed anywhere, has begun last: a K-CAS, and an installation with
/// the index of its word.
#[cfg(any(kcas_loom, feature = "__steps", shared_words))]
pub(crate) fn last_begun<'a, W: Words + ?Sized>(
    words: &'a W,
    heir: &ThreadId,
) -> (Own<'a>, InstallTag, usize) {
    use crate::tagged::SEQUENCE_MASK;

    let record = words.record(heir.index());
    // Relaxed, all: whoever claims an id synchronises with the end of its last holder, which alone wrote these numbers.
    // Helpers decide the K-CAS, but keep its number.
    let kcas = (record.status().load(Ordering::Relaxed) >> 2) & SEQUENCE_MASK;
    let install = record.0[INSTALL_SEQUENCE].load(Ordering::Relaxed) & SEQUENCE_MASK;
    let index = record.0[INSTALL_INDEX].load(Ordering::Relaxed) as usize;
    let own = Own::new(words, KcasTag::new(heir.index(), kcas));
    (own, InstallTag::new(heir.index(), install), index)
}

/// Returns what an installation is for (the K-CAS it serves and the word it replaces), or `None` if
/// its installer has moved on.
pub fn read_install<W: Words + ?Sized>(words: &W, tag: InstallTag) -> Option<(KcasTag, u64)> {
    let record = words.record(tag.thread()).0;
    // Acquire, both: pairs with the Release stores in `begin_install`.
    let target = record[INSTALL_TARGET].load(Ordering::Acquire);
    let old = record[INSTALL_OLD].load(Ordering::Acquire);
    // Acquire pairs with the Release store in `begin_install`.
    let current = record[INSTALL_SEQUENCE].load(Ordering::Acquire);
    if W::SHARED {
        // No other is an installation; it might replace itself.
        let is_right = match Word::from(old) {
            Word::Value(_) => true,
            Word::Owner(tag) => tag.raw() == target,
            Word::Kcas(_) | Word::Install(_) => false,
        };
        if !is_right || !matches!(Word::from(target), Word::Kcas(_)) {
            return None;
        }
    }
    (current == tag.sequence()).then(|| (KcasTag::from_raw(target), old))
}

#[cfg(all(test, not(kcas_loom)))]
mod tests {
    use super::*;
    use crate::thread_id;

    /// Not even two for the same operation over the same word: a thread that finishes one late may
    /// have read "undecided" before the other began.
    #[test]
    fn installations_have_distinct_tags() {
        let (words, target): (&[AtomicU64], _) = (&[], KcasTag::new(0, 1));
        let begin = |_| thread_id::with(|me| begin_install(words, me, target, 0, 7)).unwrap();
        let [first, second] = [0, 1].map(begin);
        assert_ne!(first, second);
    }
}
