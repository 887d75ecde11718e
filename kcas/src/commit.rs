//! Install → decide → release: the K-CAS protocol, and helping.
//!
//! The crate's docs describe the protocol as a whole, those of [`WordArray`](crate::WordArray) say when
//! an operation takes effect, and the comments here why each step is safe.

use crate::descriptor::{self, Own, State};
use crate::entry::{Entries, Entry};
use crate::steps::{Event, report};
use crate::storage::Words;
use crate::sync::{AtomicU64, Ordering};
use crate::tagged::{self, InstallTag, KcasTag, Word};
use crate::thread_id::{ThreadId, TooManyThreads};

/// Returns the word at `index` as it stands: a value or a tag.
#[inline]
pub(crate) fn load_raw<W: Words + ?Sized>(words: &W, index: usize) -> u64 {
    look(&words[index])
}

/// Returns a word as it stands.
#[inline]
pub(crate) fn look(word: &AtomicU64) -> u64 {
    // SeqCst: see the crate's docs, "Orderings". As an Acquire it pairs with every exchange of a
    // word, because the record of what is found is read next.
    word.load(Ordering::SeqCst)
}

/// Returns the logical value of the word at `index`. Writes nothing.
#[inline]
pub(crate) fn load<W: Words + ?Sized>(words: &W, index: usize) -> u64 {
    let raw = load_raw(words, index);
    if tagged::is_value(raw) {
        raw
    } else {
        load_through(words, index, raw)
    }
}

/// The slow path of [`load`]: an operation was seen on the word.
#[cold]
fn load_through<W: Words + ?Sized>(words: &W, index: usize, mut raw: u64) -> u64 {
    loop {
        if let Some(value) = meaning(words, index, raw) {
            return value;
        }
        // The record has moved on, so its tag has left the word: whoever reused it has made
        // progress.
        if is_lost(words, index, raw) {
            return 0;
        }
        raw = load_raw(words, index);
    }
}

/// Returns what the word at `index` stood for when it was read as `raw`, or `None` if the operation
/// found there is over.
fn meaning<W: Words + ?Sized>(words: &W, index: usize, raw: u64) -> Option<u64> {
    match Word::from(raw) {
        Word::Value(value) => Some(value),
        Word::Kcas(tag) => descriptor::read_entry(words, tag, index, State::confirmed),
        Word::Owner(tag) => descriptor::read_entry(words, tag, index, State::owned),
        // It replaces a value or an owner's tag, never another installation.
        Word::Install(tag) => meaning(words, index, descriptor::read_install(words, tag)?.1),
    }
}

/// True if the word still holds a tag, although its record has been found to have moved on, or not to have the word.
/// The tag of an operation leaves its words before that, and never comes back: so in shared memory, another process has
/// written it.
#[inline]
fn is_lost<W: Words + ?Sized>(words: &W, index: usize, raw: u64) -> bool {
    let lost = W::SHARED && look(&words[index]) == raw;
    if lost {
        words.note_damage();
    }
    lost
}

/// Returns the logical value of the word at `index`, after helping any operation under way on it.
#[inline]
pub(crate) fn load_helping<W: Words + ?Sized>(
    words: &W,
    index: usize,
) -> Result<u64, TooManyThreads> {
    let raw = load_raw(words, index);
    if tagged::is_value(raw) {
        Ok(raw)
    } else {
        help_and_load(words, index, raw)
    }
}

/// The slow path of [`load_helping`]: an operation was seen on the word.
#[cold]
fn help_and_load<W: Words + ?Sized>(
    words: &W,
    index: usize,
    mut raw: u64,
) -> Result<u64, TooManyThreads> {
    while !tagged::is_value(raw) {
        words.with_id(|me| clear(words, me, index, raw))?;
        if words.is_damaged() {
            return Ok(0);
        }
        raw = load_raw(words, index);
    }
    Ok(raw)
}

/// Exchanges one word if it stands at this value; otherwise returns what it stands at.
#[inline]
pub(crate) fn exchange<W: Words + ?Sized>(
    words: &W,
    index: usize,
    current: u64,
    new: u64,
) -> Result<u64, u64> {
    let word = &words[index];
    report(|| Event::ExchangesOne(word, current, new));
    // SeqCst, both: see the crate's docs, "Orderings". As a Release it pairs with the loads of
    // the word; as an Acquire, with the exchanges before it.
    word.compare_exchange(current, new, Ordering::SeqCst, Ordering::SeqCst)
}

/// Exchanges one word as if no operation were under way on it. (Orderings: see [`exchange`].)
pub(crate) fn compare_exchange<W: Words + ?Sized>(
    words: &W,
    index: usize,
    current: u64,
    new: u64,
) -> Result<u64, CompareExchangeError> {
    loop {
        match exchange(words, index, current, new) {
            Ok(_) => return Ok(current),
            // What follows would say the same of a value, more slowly.
            Err(raw) if tagged::is_value(raw) => return Err(CompareExchangeError::Differs(raw)),
            Err(raw) => {
                let logical = load_through(words, index, raw);
                if logical != current || words.is_damaged() {
                    return Err(CompareExchangeError::Differs(logical));
                }
                words.with_id(|me| clear(words, me, index, raw))?;
            }
        }
    }
}

/// Why a [`compare_exchange`](crate::WordArray::compare_exchange) did not take effect. The word has not changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CompareExchangeError {
    /// The word holds this value instead.
    #[error("the word holds {0:#x}")]
    Differs(u64),
    /// The current or the new value does not fit into [`WordArray::VALUE_BITS`](crate::WordArray::VALUE_BITS) bits.
    #[error("a value is wider than 63 bits")]
    ValueTooWide,
    /// The call met an operation on the word, and no id is free to help it.
    #[error(transparent)]
    TooManyThreads(#[from] TooManyThreads),
}

/// Runs the K-CAS `entries` (one or more, ascending indices, all in range) to completion; true if it
/// succeeded.
#[inline]
pub(crate) fn kcas<W: Words + ?Sized>(words: &W, me: &ThreadId, entries: &[Entry]) -> bool {
    let own = descriptor::begin_kcas(words, me, entries);
    // No other thread sees an operation whose first word differs: it needs no decision.
    match place(words, me, own, &entries[0]) {
        Placed::Differs => false,
        Placed::Yes | Placed::Decided => finish_own(words, me, own, entries),
    }
}

/// Completes this thread's own K-CAS, which already has its first word, and leaves its record ready for the
/// next one.
#[inline]
pub fn finish_own<W: Words + ?Sized>(
    words: &W,
    me: &ThreadId,
    own: Own,
    entries: &[Entry],
) -> bool {
    let state = own.decide(place_rest(words, me, own, entries));
    for entry in entries {
        withdraw(words, own.tag, state, entry);
    }
    state.succeeded()
}

/// Puts the owner's tag into every word but the first. Returns the verdict, which is void if a
/// helper has decided.
#[inline]
fn place_rest<W: Words + ?Sized>(words: &W, me: &ThreadId, own: Own, entries: &[Entry]) -> State {
    for entry in &entries[1..] {
        match place(words, me, own, entry) {
            Placed::Yes => {}
            Placed::Differs => return State::Failed,
            Placed::Decided => break,
        }
    }
    State::SucceededByOwner
}

/// What the owner found when it tried to put its tag into a word.
pub enum Placed {
    /// The word holds a tag of the operation, or held one and the operation is decided.
    Yes,
    /// The word holds a value other than the expected one.
    Differs,
    /// A helper has decided the operation.
    Decided,
}

/// Puts the owner's tag into a word that holds the expected value: unconditionally, so perhaps
/// after a helper has decided. In that case the word was released before, and the tag stands for
/// the value it replaced ([`State::owned`]).
#[inline]
pub fn place<W: Words + ?Sized>(words: &W, me: &ThreadId, own: Own, entry: &Entry) -> Placed {
    loop {
        // SeqCst, both: as in `compare_exchange`. Acquire on failure: the record of what is found
        // is read next.
        match words[entry.index].compare_exchange(
            entry.expected,
            own.tag.owner_raw(),
            Ordering::SeqCst,
            Ordering::SeqCst,
        ) {
            Ok(_) => return Placed::Yes,
            Err(raw) if tagged::is_value(raw) => return Placed::Differs,
            Err(raw) => {
                if let Some(placed) = make_way(words, me, own, entry.index, raw) {
                    return placed;
                }
            }
        }
    }
}

/// Gets what was seen on the word at `index` out of the owner's way, unless it is a tag of the owner's
/// operation, or the owner's operation is already decided.
#[cold]
fn make_way<W: Words + ?Sized>(
    words: &W,
    me: &ThreadId,
    own: Own,
    index: usize,
    raw: u64,
) -> Option<Placed> {
    match Word::from(raw) {
        Word::Kcas(tag) | Word::Owner(tag) if tag == own.tag => return Some(Placed::Yes),
        // A decided operation waits for nobody: its early words may be released and owned by
        // operations that in turn wait for its late words. (`help` alone would end that, since it
        // releases a decided operation and installs nothing: this spares the owner the help, so that
        // a call helps only while it may have to.)
        Word::Kcas(_) | Word::Owner(_) if own.state() != State::Undecided => {
            return Some(Placed::Decided);
        }
        _ => clear(words, me, index, raw),
    }
    words.is_damaged().then_some(Placed::Differs)
}

/// [`kcas`] as Harris, Fraser & Pratt describe it: the owner installs by DCSS, as its helpers do.
pub(crate) fn kcas_by_dcss<W: Words + ?Sized>(words: &W, me: &ThreadId, entries: &[Entry]) -> bool {
    let own = descriptor::begin_kcas(words, me, entries);
    while let Some((other, index)) = install_and_decide(words, me, own.tag, entries) {
        help(words, me, index, other);
        if words.is_damaged() {
            return false;
        }
    }
    let state = own.state();
    if state.succeeded() {
        release(words, own.tag, state, entries);
    } else {
        for entry in entries {
            withdraw(words, own.tag, state, entry);
        }
    }
    state.succeeded()
}

/// Gets the operation seen on the word at `index` out of the way.
fn clear<W: Words + ?Sized>(words: &W, me: &ThreadId, index: usize, raw: u64) {
    match Word::from(raw) {
        Word::Value(_) => {}
        Word::Install(tag) => complete_install(words, index, tag),
        Word::Kcas(tag) | Word::Owner(tag) => help(words, me, index, tag),
    }
}

/// Runs the K-CAS `met`, whose tag was found in the word at `index`, to completion, and before it whatever stands in
/// its way.
///
/// Undecided operations that wait for one another form a chain of ascending indices, because tags
/// are installed in index order, and a decided operation waits for nobody: so the chain ends. It is
/// walked without recursion, so the stack does not grow with it. (All callers look at their word
/// again, so to return after the first operation of the chain would be right, too.)
fn help<W: Words + ?Sized>(words: &W, me: &ThreadId, index: usize, met: KcasTag) {
    let (mut current, mut at) = (met, index);
    loop {
        let read = descriptor::read_kcas(words, current);
        if W::SHARED && !is_possible(words, at, current, read.as_ref()) {
            return words.note_damage();
        }
        // If its owner has moved on, there is nothing left to help. A decided operation is
        // released, and nothing of it is installed: two helpers that put their installations over a
        // tag of its owner in turn would keep meeting and undoing each other's forever.
        if let Some((entries, state)) = read {
            let met_another = match state {
                State::Undecided => install_and_decide(words, me, current, &entries),
                _ => None,
            };
            if let Some((other, next)) = met_another {
                if W::SHARED && next <= at {
                    return words.note_damage();
                }
                (current, at) = (other, next);
                continue;
            }
            if let Some(state) = descriptor::state(words, current) {
                release(words, current, state, &entries);
            }
        }
        if current == met || words.is_damaged() {
            return;
        }
        (current, at) = (met, index);
    }
}

/// True unless shared memory is damaged: a tag was found in a word, and its record read afterwards. Either the record
/// has the word, and entries that an operation can have, or it has moved on, and the tag has left the word.
fn is_possible<W: Words + ?Sized>(
    words: &W,
    index: usize,
    tag: KcasTag,
    read: Option<&(Entries, State)>,
) -> bool {
    match read {
        Some((entries, _)) => {
            let is_valid = |entry: &Entry| {
                words.has_word(entry.index) && tagged::is_value(entry.expected | entry.new)
            };
            entries.iter().all(is_valid)
                && entries.windows(2).all(|pair| pair[0].index < pair[1].index)
                && entries.iter().any(|entry| entry.index == index)
        }
        None => match Word::from(look(&words[index])) {
            Word::Kcas(found) | Word::Owner(found) => found != tag,
            _ => true,
        },
    }
}

/// Finishes the operations that the last holder of this thread's id has left unfinished: it has ended, or was killed at
/// any instruction. Afterwards no word holds a tag of the id and none comes back, so its record may be reused, as after
/// an operation of this thread's own. The last holder makes no more accesses, and this thread has synchronised with its
/// end.
///
/// The heir does what the last holder could have done next, so it is safe next to any helpers, and another heir can
/// begin again if this one is killed, too:
///
/// - It finishes the installation, as any thread may that finds one. If the last holder was killed before it had
///   written all of the installation's record, the number is one that no word has held.
/// - It decides for failure, unless the operation is decided. Perhaps no word differs, but no caller waits for the
///   answer. It could not decide for success, since it does not know whether all words hold a tag.
/// - It withdraws. If the last holder was killed before it had written all entries, these are partly those of an
///   earlier operation; but then no word has held the new tag, and `withdraw` exchanges some words for themselves.
///
/// It cannot find the installation through its target: after a success, the owner may leave an installation over a
/// value to its helper and reuse the record. Therefore the record has the index of the word before the word has the
/// tag.
///
/// Progress: lock-free.
#[cfg(any(kcas_loom, feature = "__steps", shared_words))]
pub fn take_over<W: Words + ?Sized>(words: &W, me: &ThreadId) {
    let (own, installation, index) = descriptor::last_begun(words, me);
    report(|| Event::TakesOver(me.index()));
    if words.has_word(index) && look(&words[index]) == installation.raw() {
        complete_install(words, index, installation);
    }
    let state = own.decide(State::Failed);
    match descriptor::read_kcas(words, own.tag) {
        Some((entries, _)) if entries.iter().all(|entry| words.has_word(entry.index)) => {
            for entry in &entries {
                withdraw(words, own.tag, state, entry);
            }
        }
        _ => words.note_damage(),
    }
}

/// Installs the confirmed tag of a K-CAS in each of its words and decides it. Returns the K-CAS
/// that stands in its way, with the index of the word, if there is one; otherwise it is decided.
fn install_and_decide<W: Words + ?Sized>(
    words: &W,
    me: &ThreadId,
    tag: KcasTag,
    entries: &[Entry],
) -> Option<(KcasTag, usize)> {
    let mut verdict = State::SucceededByHelper;
    for entry in entries {
        match install(words, me, tag, entry.index, entry.expected) {
            Installed::Yes => {}
            Installed::Decided => return None,
            Installed::Differs => {
                verdict = State::Failed;
                break;
            }
            // As in `make_way`.
            Installed::Blocked(other) if is_undecided(words, tag) => {
                return Some((other, entry.index));
            }
            Installed::Blocked(_) => return None,
        }
    }
    // Has no effect if somebody has decided already.
    descriptor::decide(words, tag, verdict);
    None
}

/// Outcome of an attempt to put a K-CAS tag into one word.
pub enum Installed {
    /// The word holds the confirmed tag, or held it and the operation is decided.
    Yes,
    /// The operation was already decided.
    Decided,
    /// The word holds a value other than the expected one.
    Differs,
    /// Another K-CAS owns the word.
    Blocked(KcasTag),
}

/// Puts `target`'s confirmed tag into a word that holds `expected`, or the tag of `target`'s owner,
/// provided that `target` is undecided: a double-compare-single-swap (DCSS).
///
/// The word first gets a tag of this thread's own, made for this one installation. Any thread that
/// sees this tag can finish the installation. No other installation ever has the same tag, so a
/// thread that finishes it late, having slept since it read "undecided", finds the tag gone and
/// does no harm.
pub fn install<W: Words + ?Sized>(
    words: &W,
    me: &ThreadId,
    target: KcasTag,
    index: usize,
    expected: u64,
) -> Installed {
    let word = &words[index];
    let mut old = look(word);
    loop {
        match Word::from(old) {
            Word::Value(value) if value != expected => return Installed::Differs,
            Word::Kcas(tag) if tag == target => return Installed::Yes,
            Word::Kcas(tag) => return Installed::Blocked(tag),
            Word::Owner(tag) if tag != target => return Installed::Blocked(tag),
            Word::Install(tag) => {
                complete_install(words, index, tag);
                if words.is_damaged() {
                    return Installed::Decided;
                }
                old = look(word);
                continue;
            }
            Word::Value(_) | Word::Owner(_) => {}
        }
        let mine = descriptor::begin_install(words, me, target, index, old);
        // SeqCst, both: as in `compare_exchange`. The Acquire of a success matters in
        // `finish_install`: a thread that takes a word after `withdraw` or `release` went over it must
        // read the decision that came before; so must one that takes a late tag of the owner.
        match word.compare_exchange(old, mine.raw(), Ordering::SeqCst, Ordering::SeqCst) {
            Ok(_) if finish_install(words, index, mine, target, old) => return Installed::Yes,
            Ok(_) => return Installed::Decided,
            Err(now) => old = now,
        }
    }
}

/// Finishes an installation found in the word at `index`.
fn complete_install<W: Words + ?Sized>(words: &W, index: usize, tag: InstallTag) {
    // If the installer has moved on, its tag has left the word: there is nothing to finish.
    if let Some((target, old)) = descriptor::read_install(words, tag) {
        finish_install(words, index, tag, target, old);
    } else {
        is_lost(words, index, tag.raw());
    }
}

fn is_undecided<W: Words + ?Sized>(words: &W, tag: KcasTag) -> bool {
    descriptor::state(words, tag) == Some(State::Undecided)
}

/// Turns an installation into its target's confirmed tag if the target is undecided (true),
/// otherwise back into what it replaced (false).
fn finish_install<W: Words + ?Sized>(
    words: &W,
    index: usize,
    tag: InstallTag,
    target: KcasTag,
    old: u64,
) -> bool {
    let undecided = is_undecided(words, target);
    let next = if undecided { target.raw() } else { old };
    // SeqCst: as in `compare_exchange`. A failure means that another thread finished it: what it put there is
    // what a decision of this thread will rest on, so all threads must see the two in this order.
    let _ = words[index].compare_exchange(tag.raw(), next, Ordering::SeqCst, Ordering::SeqCst);
    undecided
}

/// Replaces the tags of a decided operation, wherever they still stand, by what the decision says.
/// The order does not matter: each word stands for the same value before and after.
fn release<W: Words + ?Sized>(words: &W, tag: KcasTag, state: State, entries: &[Entry]) {
    for entry in entries {
        let word = &words[entry.index];
        let raw = look(word);
        let value = match Word::from(raw) {
            Word::Kcas(found) if found == tag => state.confirmed(entry.expected, entry.new),
            Word::Owner(found) if found == tag => state.owned(entry.expected, entry.new),
            _ => continue,
        };
        // SeqCst: as in `compare_exchange`. A failure means that another thread released it, or is
        // working on a late tag of the owner, which the owner sees to.
        let _ = word.compare_exchange(raw, value, Ordering::SeqCst, Ordering::Relaxed);
    }
}

/// Takes every tag of the owner's decided operation out of the word of `entry` before its record is reused, so
/// that none is left there and none can come back.
///
/// If the owner decided for success, each word held one of its tags at that moment, or an
/// installation over one, and none comes back once it is released. Otherwise the word may hold a
/// tag that the owner put there too late, and over it the installation of a helper that has not
/// learned of the decision: when it does, it puts the owner's tag back. The owner therefore finishes such
/// an installation itself. It does not write back what the installation's record says was replaced,
/// since that is the late tag.
///
/// After a *failure* there may also be such an installation over a value: it began before the
/// decision, and its helper has slept since it read "undecided":
///
/// ```text
/// owner   sees a word differ, is about to decide "failed"
/// helper  takes another word w of the operation for its installation, reads "undecided", sleeps
/// owner   decides "failed"; finds none of its tags in w; reuses its record
/// helper  wakes, and puts the tag of the dead operation into w, where nobody can ever resolve it
/// ```
///
/// The owner also finishes that one. And it leaves each word of a failed operation by a
/// successful exchange, even if it only exchanges the word for itself: any later installation on
/// the word reads from a chain of exchanges that starts here, synchronises with it (Release here,
/// Acquire in [`install`]), and so reads the decision. A plain load would not be enough: it could
/// miss the installation's exchange while the helper's load of the status misses the owner's
/// decision (store buffering).
///
/// A *success* needs none of this: each word held a tag when it was decided, so every earlier
/// installation over a value had ended, and every later one starts from the release of the word.
#[inline]
fn withdraw<W: Words + ?Sized>(words: &W, tag: KcasTag, state: State, entry: &Entry) {
    let word = &words[entry.index];
    if state == State::SucceededByOwner {
        // SeqCst: as in `compare_exchange`. Acquire on failure pairs with the exchange that put
        // there what is found: its record is read next.
        match word.compare_exchange(
            tag.owner_raw(),
            entry.new,
            Ordering::SeqCst,
            Ordering::Acquire,
        ) {
            Ok(_) => {}
            Err(raw) => withdraw_what_is_there(words, word, tag, state, entry, raw),
        }
    } else {
        // Acquire: as on failure above.
        let raw = word.load(Ordering::Acquire);
        withdraw_what_is_there(words, word, tag, state, entry, raw);
    }
}

/// The rest of [`withdraw`], for a word that holds anything but an owner tag placed in time. (Exchanging
/// the word for itself would do no harm after a success. If an installation has left the word after a
/// failure, reading it again would do as well.)
#[cold]
fn withdraw_what_is_there<W: Words + ?Sized>(
    words: &W,
    word: &AtomicU64,
    tag: KcasTag,
    state: State,
    entry: &Entry,
    mut raw: u64,
) {
    loop {
        let left = match Word::from(raw) {
            Word::Owner(found) if found == tag => Some(state.owned(entry.expected, entry.new)),
            Word::Kcas(found) if found == tag => Some(state.confirmed(entry.expected, entry.new)),
            Word::Install(found) => match descriptor::read_install(words, found) {
                Some((target, old)) if target == tag => match Word::from(old) {
                    // After a success, its helper is certain to read the decision and to put the
                    // value back: to do that here would be right, and is not needed.
                    Word::Value(value) => (state == State::Failed).then_some(value),
                    _ => Some(state.owned(entry.expected, entry.new)),
                },
                Some(_) => None,
                // The installation has left the word, and may have left a tag of this operation
                // there.
                None if state != State::Failed => {
                    if is_lost(words, entry.index, raw) {
                        return;
                    }
                    // Acquire: as in `withdraw`.
                    raw = word.load(Ordering::Acquire);
                    continue;
                }
                None => None,
            },
            _ => None,
        };
        let next = match left {
            Some(value) => value,
            // Exchanged for itself: see `withdraw`. If it has changed, it is examined again.
            None if state == State::Failed => raw,
            None => return,
        };
        // SeqCst: as in `compare_exchange`. Acquire on failure: as in `withdraw`.
        match word.compare_exchange(raw, next, Ordering::SeqCst, Ordering::Acquire) {
            Ok(_) => return,
            Err(now) => raw = now,
        }
    }
}
