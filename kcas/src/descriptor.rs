//! A thread's reusable record of one operation, read safely by helpers.
//!
//! Each thread id owns one [`Record`] for ever: for the K-CAS it is running, and for the one
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
use crate::sync::{AtomicU64, OnFirstUse, Ordering, shared_static};
use crate::tagged::{InstallTag, KcasTag, next_sequence};
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
    pub fn of(status: u64) -> State {
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

/// One thread's record.
#[derive(Debug)]
pub(crate) struct Record {
    /// [`status`] of the owner's K-CAS.
    status: AtomicU64,
    len: AtomicU64,
    entries: [SharedEntry; MAX_ENTRIES],
    /// Sequence number of the owner's installation.
    install_sequence: AtomicU64,
    /// Raw tag of the K-CAS on whose behalf the owner installs.
    install_target: AtomicU64,
    /// The word that the installation replaces: a value, or the owner's tag of that K-CAS.
    install_old: AtomicU64,
}

#[derive(Debug)]
struct SharedEntry {
    index: AtomicU64,
    expected: AtomicU64,
    new: AtomicU64,
}

const RECORDS_PER_CHUNK: usize = if cfg!(kcas_loom) { 4 } else { 32 };
const CHUNKS: usize = MAX_THREADS / RECORDS_PER_CHUNK;

/// Records of neighbouring threads share no cache line.
type Chunk = [CachePadded<Record>; RECORDS_PER_CHUNK];

shared_static! {
    /// Every thread's record, made in chunks as thread ids grow and never freed: memory is bounded
    /// by the largest number of threads that were ever alive at the same time.
    static RECORDS: [OnFirstUse<Chunk>; CHUNKS] = each OnFirstUse::new(new_chunk, ());
}

fn new_chunk((): ()) -> Chunk {
    std::array::from_fn(|_| CachePadded::new(Record::new()))
}

/// Names the record for an id's descriptors for an observer; makes it if there is none.
#[cfg(any(kcas_loom, feature = "__steps"))]
pub(crate) fn name(id: usize) {
    crate::steps::name("descriptor", std::slice::from_ref(Record::of(id)));
}

impl Record {
    fn new() -> Record {
        let zero = || AtomicU64::new(0);
        Record {
            status: zero(),
            len: zero(),
            entries: std::array::from_fn(|_| SharedEntry {
                index: zero(),
                expected: zero(),
                new: zero(),
            }),
            install_sequence: zero(),
            install_target: zero(),
            install_old: zero(),
        }
    }

    fn of(thread: usize) -> &'static Record {
        let chunk = RECORDS[thread / RECORDS_PER_CHUNK].get_or_make();
        &chunk[thread % RECORDS_PER_CHUNK]
    }

    /// Loads the [`status`].
    fn status(&self) -> u64 {
        // SeqCst: the decision is the linearization point of every entry (see the crate's docs,
        // "Orderings"). As an Acquire it pairs with `decide`: a thread that sees the decision also
        // sees every tag that was installed before it.
        self.status.load(Ordering::SeqCst)
    }
}

/// A K-CAS of the current thread, with its record at hand.
#[derive(Clone, Copy, Debug)]
pub struct Own {
    /// Its tag.
    pub tag: KcasTag,
    record: &'static Record,
}

impl Own {
    /// The [`state`]; the owner has not moved on.
    pub(crate) fn state(self) -> State {
        State::of(self.record.status())
    }

    /// [`decide`]s, and returns what has been decided, by whichever thread.
    #[inline]
    pub fn decide(self, verdict: State) -> State {
        match decide_in(self.record, self.tag, verdict) {
            Ok(_) => verdict,
            Err(status) => State::of(status),
        }
    }
}

/// Starts the owner's next K-CAS: its record now describes `entries`, undecided.
///
/// The previous operation must be over: its tag is in no word, and nobody can put it there again.
#[inline]
pub fn begin_kcas(owner: &ThreadId, entries: &[Entry]) -> Own {
    let record = Record::of(owner.index());
    report(|| Event::Begins(owner.index(), &record.status, entries));
    // Relaxed: a helper can only have changed the state of the previous operation; whatever state
    // is read here, the sequence number beside it is the owner's own last one.
    let last = record.status.load(Ordering::Relaxed) >> 2;
    let tag = KcasTag::new(owner.index(), next_sequence(last));
    // Release pairs with the load in `Record::status`: a thread that finds the previous operation
    // over also finds its words released, and does not meet its tag again. (For a thread that sees
    // one of the fields, that field's own Release orders this store.)
    record
        .status
        .store(status(tag, State::Undecided), Ordering::Release);
    // Release, each of them: pairs with the Acquire loads in `read_kcas` and `read_entry`.
    record.len.store(entries.len() as u64, Ordering::Release);
    for (shared, entry) in record.entries.iter().zip(entries) {
        shared.index.store(entry.index as u64, Ordering::Release);
        shared.expected.store(entry.expected, Ordering::Release);
        shared.new.store(entry.new, Ordering::Release);
    }
    Own { tag, record }
}

/// Returns the entries and the state of the K-CAS that `tag` names, or `None` if its owner has
/// moved on.
pub fn read_kcas(tag: KcasTag) -> Option<(Entries, State)> {
    let record = Record::of(tag.thread());
    // Acquire, each of them: pairs with the Release stores in `begin_kcas`.
    let len = record.len.load(Ordering::Acquire) as usize;
    let entries = record.entries[..len]
        .iter()
        .map(|entry| Entry {
            index: entry.index.load(Ordering::Acquire) as usize,
            expected: entry.expected.load(Ordering::Acquire),
            new: entry.new.load(Ordering::Acquire),
        })
        .collect();
    state(tag).map(|state| (entries, state))
}

/// Returns the logical value of the word at `index`, where a tag of the K-CAS `tag` was seen: the
/// expected or the new value, as `meaning` ([`State::confirmed`] or [`State::owned`]) says. `None`
/// if its owner has moved on.
pub fn read_entry(tag: KcasTag, index: usize, meaning: fn(State, u64, u64) -> u64) -> Option<u64> {
    let record = Record::of(tag.thread());
    // Relaxed: the operation's own entries come first, and each names its word by the index. The
    // length of a later operation can only hide the entry, and then the owner has indeed moved on.
    // (Entries beyond it, left by earlier operations, would not be reached: the right one comes first.)
    let len = record.len.load(Ordering::Relaxed) as usize;
    // Acquire, each of them: pairs with the Release stores in `begin_kcas`.
    let entry = record.entries[..len]
        .iter()
        .find(|entry| entry.index.load(Ordering::Acquire) == index as u64)?;
    let expected = entry.expected.load(Ordering::Acquire);
    let new = entry.new.load(Ordering::Acquire);
    state(tag).map(|state| meaning(state, expected, new))
}

/// Returns the state of the K-CAS that `tag` names, or `None` if its owner has moved on.
pub fn state(tag: KcasTag) -> Option<State> {
    let status = Record::of(tag.thread()).status();
    (status >> 2 == tag.sequence()).then(|| State::of(status))
}

/// Decides the K-CAS that `tag` names, unless it is decided already.
pub fn decide(tag: KcasTag, verdict: State) {
    let _ = decide_in(Record::of(tag.thread()), tag, verdict);
}

#[inline]
fn decide_in(record: &Record, tag: KcasTag, verdict: State) -> Result<u64, u64> {
    // SeqCst: as in `Record::status`. As a Release it publishes the tags that this thread installed
    // or saw installed. A failure pairs with this exchange by the thread that decided: the owner must
    // find the tags that were put into its words before that; and all threads must see the decision
    // before what the owner then puts there.
    record.status.compare_exchange(
        status(tag, State::Undecided),
        status(tag, verdict),
        Ordering::SeqCst,
        Ordering::SeqCst,
    )
}

/// Starts the installer's next installation, of `target`'s tag over `old`: a value, or the tag of
/// `target`'s owner.
///
/// The previous installation must be over: its tag is in no word.
pub fn begin_install(installer: &ThreadId, target: KcasTag, old: u64) -> InstallTag {
    let record = Record::of(installer.index());
    let number = &record.install_sequence;
    report(|| Event::Installs(installer.index(), number, target.raw(), old));
    // Relaxed: only the owner of a record writes this field.
    let last = record.install_sequence.load(Ordering::Relaxed);
    let sequence = next_sequence(last);
    // Release pairs with the load in `read_install`, for the same reason as in `begin_kcas`.
    record.install_sequence.store(sequence, Ordering::Release);
    // Release, both: pairs with the Acquire loads in `read_install`.
    record.install_target.store(target.raw(), Ordering::Release);
    record.install_old.store(old, Ordering::Release);
    InstallTag::new(installer.index(), sequence)
}

/// Returns what an installation is for (the K-CAS it serves and the word it replaces), or `None` if
/// its installer has moved on.
pub fn read_install(tag: InstallTag) -> Option<(KcasTag, u64)> {
    let record = Record::of(tag.thread());
    // Acquire, both: pairs with the Release stores in `begin_install`.
    let target = record.install_target.load(Ordering::Acquire);
    let old = record.install_old.load(Ordering::Acquire);
    // Acquire pairs with the Release store in `begin_install`.
    let current = record.install_sequence.load(Ordering::Acquire);
    (current == tag.sequence()).then(|| (KcasTag::from_raw(target), old))
}

#[cfg(all(test, not(kcas_loom)))]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::thread_id;

    #[test]
    fn each_thread_has_a_record_of_its_own() {
        const THREADS: usize = 3 * RECORDS_PER_CHUNK;
        let address = |thread| std::ptr::from_ref(Record::of(thread)).addr();
        let records: BTreeSet<_> = (0..THREADS).map(address).collect();
        assert_eq!(records.len(), THREADS);
    }

    /// Not even two for the same operation over the same word: a thread that finishes one late may
    /// have read "undecided" before the other began.
    #[test]
    fn no_two_installations_share_a_tag() {
        let target = KcasTag::new(0, 1);
        let begin = |_| thread_id::with(|me| begin_install(me, target, 7)).unwrap();
        let [first, second] = [0, 1].map(begin);
        assert_ne!(first, second);
    }
}
