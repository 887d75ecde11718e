//! Install → decide → release: the K-CAS protocol, and helping.
//!
//! The crate's docs tell the protocol as a whole; here each step says why it is safe where it is.

use crate::descriptor::{self, State};
use crate::op::{Op, Ops};
use crate::sync::{AtomicU64, Ordering};
use crate::tagged::{self, InstallTag, KcasTag, Word};
use crate::thread_id::{self, ThreadId, TooManyThreads};

/// The word at `index` as it stands: a value or a tag.
#[inline]
pub(crate) fn peek(words: &[AtomicU64], index: usize) -> u64 {
    // SeqCst: see the crate's docs, "Orderings". As an Acquire it pairs with every exchange of a word.
    words[index].load(Ordering::SeqCst)
}

/// The logical value of the word at `index`. Writes nothing.
///
/// Linearization point: the load of the word when it holds a value, an installation, or the tag of an
/// operation that is undecided or failed; the decision (or the load, whichever is later) when it holds
/// the tag of an operation that succeeded.
#[inline]
pub(crate) fn load(words: &[AtomicU64], index: usize) -> u64 {
    let raw = peek(words, index);
    if tagged::is_value(raw) {
        raw
    } else {
        load_through(words, index, raw)
    }
}

/// [`load`], of a word on which an operation was seen.
#[cold]
fn load_through(words: &[AtomicU64], index: usize, mut raw: u64) -> u64 {
    loop {
        let logical = match Word::from(raw) {
            Word::Value(value) => Some(value),
            Word::Kcas(tag) => descriptor::read_entry(tag, index),
            Word::Install(tag) => descriptor::read_install(tag).map(|(_, expected)| expected),
        };
        if let Some(value) = logical {
            return value;
        }
        // The record moved on, so its tag has left the word: whoever reused it made progress.
        raw = peek(words, index);
    }
}

/// The logical value of the word at `index`, after helping whatever is under way on it.
///
/// Linearization point: the last load of the word.
#[inline]
pub(crate) fn load_helping(words: &[AtomicU64], index: usize) -> Result<u64, TooManyThreads> {
    let raw = peek(words, index);
    if tagged::is_value(raw) {
        Ok(raw)
    } else {
        help_and_load(words, index, raw)
    }
}

/// [`load_helping`], of a word on which an operation was seen.
#[cold]
fn help_and_load(words: &[AtomicU64], index: usize, mut raw: u64) -> Result<u64, TooManyThreads> {
    while !tagged::is_value(raw) {
        thread_id::with(|me| clear(words, me, index, raw))?;
        raw = peek(words, index);
    }
    Ok(raw)
}

/// Exchanges one word as if no operation were under way on it.
///
/// Linearization point: the successful exchange of the word, or the [`load`] that differs.
pub(crate) fn compare_exchange(
    words: &[AtomicU64],
    index: usize,
    current: u64,
    new: u64,
) -> Result<u64, CompareExchangeError> {
    loop {
        // SeqCst, both: see the crate's docs, "Orderings". As a Release it pairs with the loads of the
        // word, as an Acquire with the exchanges before it.
        match words[index].compare_exchange(current, new, Ordering::SeqCst, Ordering::SeqCst) {
            Ok(_) => return Ok(current),
            Err(raw) if tagged::is_value(raw) => return Err(CompareExchangeError::Differs(raw)),
            Err(raw) => {
                let logical = load_through(words, index, raw);
                if logical != current {
                    return Err(CompareExchangeError::Differs(logical));
                }
                thread_id::with(|me| clear(words, me, index, raw))?;
            }
        }
    }
}

/// Why one word was not exchanged.
pub(crate) enum CompareExchangeError {
    /// It held this value.
    Differs(u64),
    /// An operation is under way on it, and there is no id left to help it with.
    TooManyThreads,
}

impl From<TooManyThreads> for CompareExchangeError {
    fn from(_: TooManyThreads) -> Self {
        CompareExchangeError::TooManyThreads
    }
}

/// Runs the K-CAS `ops` (ascending indices, all in range) to its end; true when it succeeded.
///
/// Linearization point: the decision ([`descriptor::decide`]) if it succeeds, else the access that found
/// a word to differ.
pub(crate) fn kcas(words: &[AtomicU64], me: &ThreadId, ops: &Ops) -> bool {
    let tag = descriptor::begin_kcas(me, ops);
    finish_own(words, me, tag, ops)
}

/// Runs this thread's own K-CAS to its end, and leaves its record ready for the next one.
pub(crate) fn finish_own(words: &[AtomicU64], me: &ThreadId, tag: KcasTag, ops: &Ops) -> bool {
    while let Some(other) = install_and_decide(words, me, tag, ops) {
        help(words, me, other);
    }
    let succeeded = descriptor::state(tag) == Some(State::Succeeded);
    if succeeded {
        release(words, tag, ops);
    } else {
        for op in ops {
            settle(&words[op.index], tag, op.expected);
        }
    }
    succeeded
}

/// Gets the operation that was seen on the word at `index` out of the way.
fn clear(words: &[AtomicU64], me: &ThreadId, index: usize, raw: u64) {
    match Word::from(raw) {
        Word::Value(_) => {}
        Word::Install(tag) => complete_install(&words[index], tag),
        Word::Kcas(tag) => help(words, me, tag),
    }
}

/// Runs the K-CAS `met` to its end, and before it whatever stands in its way.
///
/// Undecided operations that wait for one another form a chain of ascending indices, because tags are
/// installed in the order of the indices, and a decided operation waits for nobody: the chain ends. It
/// is walked without recursion, so no stack grows with it.
fn help(words: &[AtomicU64], me: &ThreadId, met: KcasTag) {
    let mut current = met;
    loop {
        // When its owner has moved on, there is nothing left to help.
        if let Some(ops) = descriptor::read_kcas(current) {
            if let Some(other) = install_and_decide(words, me, current, &ops) {
                current = other;
                continue;
            }
            release(words, current, &ops);
        }
        if current == met {
            return;
        }
        current = met;
    }
}

/// Installs the tag of a K-CAS in each of its words and decides it. Returns the K-CAS that stands in its
/// way, if one does; otherwise it is decided.
fn install_and_decide(
    words: &[AtomicU64],
    me: &ThreadId,
    tag: KcasTag,
    ops: &Ops,
) -> Option<KcasTag> {
    let mut verdict = State::Succeeded;
    for op in ops {
        match install(&words[op.index], me, tag, op.expected) {
            Installed::Yes => {}
            Installed::Decided => break,
            Installed::Differs => {
                verdict = State::Failed;
                break;
            }
            // A decided operation waits for nobody. Its early words may be released and owned by
            // operations that in turn wait for its late words: helping those first would never end.
            Installed::Blocked(other) if is_undecided(tag) => return Some(other),
            Installed::Blocked(_) => break,
        }
    }
    // When somebody decided before, this changes nothing.
    descriptor::decide(tag, verdict);
    None
}

/// What became of an attempt to put a K-CAS tag into one word.
pub(crate) enum Installed {
    /// The word holds the tag, or held it and the operation is decided.
    Yes,
    /// The operation was decided before.
    Decided,
    /// The word holds another value than the operation expects.
    Differs,
    /// Another K-CAS owns the word.
    Blocked(KcasTag),
}

/// Puts `target`'s tag into a word that holds `expected`, on condition that `target` is undecided: a
/// double-compare-single-swap (DCSS).
///
/// The word first gets a tag of this thread's own, made for this one installation. Whoever sees that
/// tag can finish the installation, and because no other installation ever bears it, a finisher that
/// slept since it read "undecided" finds the tag gone and does no harm.
pub(crate) fn install(
    word: &AtomicU64,
    me: &ThreadId,
    target: KcasTag,
    expected: u64,
) -> Installed {
    let mine = descriptor::begin_install(me, target, expected);
    loop {
        // SeqCst, both: as in `compare_exchange`. The Acquire of a success matters in
        // `finish_install`: whoever takes a word after `settle` or `release` went over it must read
        // the decision that came before.
        match word.compare_exchange(expected, mine.raw(), Ordering::SeqCst, Ordering::SeqCst) {
            Ok(_) => {
                return if finish_install(word, mine, target, expected) {
                    Installed::Yes
                } else {
                    Installed::Decided
                };
            }
            Err(raw) => match Word::from(raw) {
                Word::Value(_) => return Installed::Differs,
                Word::Kcas(tag) if tag == target => return Installed::Yes,
                Word::Kcas(tag) => return Installed::Blocked(tag),
                Word::Install(tag) => complete_install(word, tag),
            },
        }
    }
}

/// Finishes an installation that was met in `word`.
fn complete_install(word: &AtomicU64, tag: InstallTag) {
    // When the installer has moved on, its tag has left the word: there is nothing to finish.
    if let Some((target, expected)) = descriptor::read_install(tag) {
        finish_install(word, tag, target, expected);
    }
}

fn is_undecided(tag: KcasTag) -> bool {
    descriptor::state(tag) == Some(State::Undecided)
}

/// Turns an installation into its target's tag while the target is undecided (true), else back into
/// the value that it replaced (false).
fn finish_install(word: &AtomicU64, tag: InstallTag, target: KcasTag, expected: u64) -> bool {
    let undecided = is_undecided(target);
    let next = if undecided { target.raw() } else { expected };
    // SeqCst: as in `compare_exchange`. A failure means that somebody else finished it.
    let _ = word.compare_exchange(tag.raw(), next, Ordering::SeqCst, Ordering::Relaxed);
    undecided
}

/// Replaces the tag of a decided operation by what the decision says, wherever it still stands.
fn release(words: &[AtomicU64], tag: KcasTag, ops: &Ops) {
    let outcome: fn(&Op) -> u64 = match descriptor::state(tag) {
        Some(State::Succeeded) => |op| op.new,
        Some(State::Failed) => |op| op.expected,
        // Its owner moved on, and had released every word before it did.
        Some(State::Undecided) | None => return,
    };
    for op in ops {
        // SeqCst: as in `compare_exchange`. A failure means that somebody else released it.
        let _ = words[op.index].compare_exchange(
            tag.raw(),
            outcome(op),
            Ordering::SeqCst,
            Ordering::Relaxed,
        );
    }
}

/// Makes sure, before the record of a *failed* operation is reused, that its tag is not in `word` and
/// cannot come there any more.
///
/// Without this, a helper that took the word for an installation while the operation was undecided and
/// then slept could turn it into the tag of an operation that no longer exists:
///
/// ```text
/// owner   sees a word differ, is about to decide "failed"
/// helper  takes another word w of the operation for its installation, reads "undecided", sleeps
/// owner   decides "failed"; its release finds no K-CAS tag in w; reuses its record
/// helper  wakes, and puts the tag of the dead operation into w, where nobody can ever resolve it
/// ```
///
/// So the owner ends the installation itself if it meets one. And it leaves each word by a successful
/// exchange, if only of the word for itself: any installation that takes the word later reads from a
/// chain of exchanges that starts here, synchronises with it (Release here, Acquire in [`install`]),
/// and so reads the decision. A plain load would not do: the installation's exchange and its load of
/// the status could both miss the owner's (store buffering).
///
/// A *succeeded* operation needs none of it: each word held its tag when it was decided, so every
/// earlier installation had ended, and every later one starts from the release of the word.
fn settle(word: &AtomicU64, tag: KcasTag, expected: u64) {
    // Acquire pairs with the exchange in `install`: the record of an installation that is found here is
    // about to be read. (With Relaxed, the model found a record read as it was before.)
    let mut raw = word.load(Ordering::Acquire);
    loop {
        let next = match Word::from(raw) {
            Word::Kcas(found) if found == tag => expected,
            Word::Install(found) => match descriptor::read_install(found) {
                Some((target, expected)) if target == tag => expected,
                _ => raw,
            },
            Word::Value(_) | Word::Kcas(_) => raw,
        };
        // Release: see above. Not SeqCst: a failed operation reads as if it had never been, so whoever
        // loads the word is told the same value before this exchange and after it, and no order among
        // words depends on it. Acquire of a failure: as the load before.
        match word.compare_exchange(raw, next, Ordering::Release, Ordering::Acquire) {
            Ok(_) => return,
            Err(now) => raw = now,
        }
    }
}
