//! The K-CAS algorithm: install → decide → release, as in `kcas`, whose docs say why each step is
//! safe.

use std::ptr;

use crossbeam_epoch::{Guard, pin};
use kcas::engines::Entries;
use kcas::sync::Ordering;

use crate::word::{Content, Install, Kcas, Word, is_value};

/// The state of an operation. It leaves `Undecided` once, and never returns to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Undecided = 0,
    Succeeded = 1,
    Failed = 2,
}

impl Kcas {
    fn state(&self) -> State {
        match self.status.load(Ordering::SeqCst) {
            0 => State::Undecided,
            1 => State::Succeeded,
            _ => State::Failed,
        }
    }

    /// Decides the operation, unless another thread has.
    fn decide(&self, state: State) {
        let _ = self.status.compare_exchange(
            State::Undecided as u64,
            state as u64,
            Ordering::SeqCst,
            Ordering::Relaxed,
        );
    }

    /// Returns the logical value of the word at `index`, given the content that was read.
    fn value_at(&self, index: usize) -> u64 {
        let entry = self.entries.iter().find(|entry| entry.index == index);
        let entry = entry.expect("an operation is in its own words only");
        match self.state() {
            State::Undecided | State::Failed => entry.expected,
            State::Succeeded => entry.new,
        }
    }
}

/// Returns the logical value of the word at `index`, on which an operation was under way.
#[cold]
pub(crate) fn load_through(words: &[Word], index: usize, guard: &Guard) -> u64 {
    match words[index].load(guard) {
        Content::Value(value) => value,
        Content::Kcas(kcas) => kcas.value_at(index),
        Content::Install(install) => install.expected,
    }
}

/// Exchanges one word as if no operation were under way on it; an error holds the actual value.
pub(crate) fn compare_exchange(
    words: &[Word],
    index: usize,
    current: u64,
    new: u64,
) -> Result<u64, u64> {
    loop {
        match words[index].compare_exchange_values(current, new) {
            Ok(_) => return Ok(current),
            Err(raw) if is_value(raw) => return Err(raw),
            Err(_) => {
                let guard = &pin();
                let logical = load_through(words, index, guard);
                if logical != current {
                    return Err(logical);
                }
                match words[index].load(guard) {
                    Content::Value(_) => {}
                    Content::Install(install) => {
                        finish_install(&words[index], install, guard);
                    }
                    Content::Kcas(kcas) => help(words, kcas, guard),
                }
            }
        }
    }
}

/// Completes the K-CAS `entries` (ascending indices, all in range); returns true if it succeeded.
pub(crate) fn kcas(words: &[Word], entries: Entries) -> bool {
    let guard = &pin();
    let kcas = Kcas::new(State::Undecided as u64, entries, guard);
    let mut from = 0;
    while let Some((other, entry)) = install_and_decide(words, kcas, Role::Owner { from }, guard) {
        from = entry;
        help(words, other, guard);
    }
    let succeeded = kcas.state() == State::Succeeded;
    if succeeded {
        release(words, kcas, guard);
    } else {
        for entry in &kcas.entries {
            settle(&words[entry.index], kcas, entry.expected, guard);
        }
    }
    // SAFETY: it was made above. It has left its words and cannot return: after a success, each
    // word held it when it was decided, so every earlier installation had ended, and whoever
    // finishes a later one reads the decision; after a failure, because of `settle`. This thread's
    // own installations have left their words, see `install`.
    unsafe { kcas.retire(guard) };
    succeeded
}

/// Completes the K-CAS `met`, and first whatever blocks it, without recursion.
fn help(words: &[Word], met: &Kcas, guard: &Guard) {
    let mut current = met;
    loop {
        if let Some((other, _)) = install_and_decide(words, current, Role::Helper, guard) {
            current = other;
            continue;
        }
        release(words, current, guard);
        if current.is(met) {
            return;
        }
        current = met;
    }
}

/// Who installs a K-CAS.
#[derive(Clone, Copy)]
enum Role {
    /// Its owner, beginning with this entry: it is in the words before, unless it is decided.
    Owner {
        from: usize,
    },
    Helper,
}

/// Installs a K-CAS in each of its words and decides it. Returns the K-CAS that blocks it, if there
/// is one, and the entry at which it does; otherwise it is decided.
fn install_and_decide<'g>(
    words: &[Word],
    kcas: &'g Kcas,
    role: Role,
    guard: &'g Guard,
) -> Option<(&'g Kcas, usize)> {
    let mut verdict = State::Succeeded;
    let from = match role {
        Role::Owner { from } => from,
        Role::Helper => 0,
    };
    for (nth, entry) in kcas.entries.iter().enumerate().skip(from) {
        match install(&words[entry.index], kcas, nth, role, guard) {
            Installed::Yes => {}
            Installed::Decided => break,
            Installed::Differs => {
                verdict = State::Failed;
                break;
            }
            Installed::Blocked(other) if kcas.state() == State::Undecided => {
                return Some((other, nth));
            }
            Installed::Blocked(_) => break,
        }
    }
    kcas.decide(verdict);
    None
}

/// Outcome of an attempt to put a K-CAS into one word.
enum Installed<'g> {
    /// The word holds it, or held it and it is decided.
    Yes,
    /// It was decided before.
    Decided,
    /// The word holds a value other than the expected one.
    Differs,
    /// Another K-CAS owns the word.
    Blocked(&'g Kcas),
}

/// Puts `target` into the word of this entry if that holds the expected value, on condition that `target` is
/// undecided (DCSS).
fn install<'g>(
    word: &Word,
    target: &'g Kcas,
    entry: usize,
    role: Role,
    guard: &'g Guard,
) -> Installed<'g> {
    let expected = target.entries[entry].expected;
    let (mine, is_helper) = match role {
        Role::Owner { .. } => (target.installation(entry), false),
        Role::Helper => (Install::new(target, expected, guard), true),
    };
    let blocked = loop {
        match word.compare_exchange(Content::Value(expected), Content::Install(mine), guard) {
            Ok(()) => {
                let installed = finish_install(word, mine, guard);
                if is_helper {
                    // SAFETY: it was made above, was put into one word once, and has left it.
                    unsafe { mine.retire(guard) };
                }
                return if installed {
                    Installed::Yes
                } else {
                    Installed::Decided
                };
            }
            Err(Content::Value(_)) => break Installed::Differs,
            Err(Content::Kcas(kcas)) if kcas.is(target) => break Installed::Yes,
            Err(Content::Kcas(kcas)) => break Installed::Blocked(kcas),
            Err(Content::Install(other)) => {
                finish_install(word, other, guard);
            }
        }
    };
    if is_helper {
        // SAFETY: it was made above, and was never put into a word.
        unsafe { Install::free(ptr::from_ref(mine).addr()) };
    }
    blocked
}

/// Turns an installation into its target while that is undecided (returns true), else back into the
/// value that it replaced (returns false).
fn finish_install(word: &Word, install: &Install, guard: &Guard) -> bool {
    let target = install.target(guard);
    let undecided = target.state() == State::Undecided;
    let next = if undecided {
        Content::Kcas(target)
    } else {
        Content::Value(install.expected)
    };
    // An error means that another thread finished it.
    let _ = word.compare_exchange(Content::Install(install), next, guard);
    undecided
}

/// Replaces a decided operation, wherever it stands, by the value that the decision determines.
fn release(words: &[Word], kcas: &Kcas, guard: &Guard) {
    let succeeded = kcas.state() == State::Succeeded;
    for entry in &kcas.entries {
        let outcome = if succeeded { entry.new } else { entry.expected };
        // An error means that another thread released it.
        let _ = words[entry.index].compare_exchange(
            Content::Kcas(kcas),
            Content::Value(outcome),
            guard,
        );
    }
}

/// Ensures, before a *failed* operation is retired, that it is not in `word` and can never get
/// there again: see the function of this name in `kcas`.
fn settle(word: &Word, kcas: &Kcas, expected: u64, guard: &Guard) {
    let mut content = word.load(guard);
    loop {
        let next = match content {
            Content::Kcas(found) if found.is(kcas) => Content::Value(expected),
            Content::Install(found) if found.target(guard).is(kcas) => Content::Value(expected),
            other => other,
        };
        match word.compare_exchange(content, next, guard) {
            Ok(()) => return,
            Err(now) => content = now,
        }
    }
}

#[cfg(all(test, feature = "steps"))]
mod tests {
    use std::sync::Arc;

    use kcas::Entry;
    use kcas_testing::steps::freeze;

    use super::*;

    /// More steps than an operation on two words has, and than it takes to help one.
    const STEPS: u64 = 30;

    fn all_values(words: &[Word]) -> bool {
        words.iter().all(|word| is_value(word.load_raw()))
    }

    /// A helper installs an operation that is about to fail into the word on which it fails, as
    /// that word has been repaired; then it sleeps. When the operation's owner learns of the
    /// failure, nothing of it is left in the words.
    #[test]
    fn failed_operation_leaves_nothing_behind() {
        let mut installed_late = 0;
        for (owner_stops, helper_stops) in (0..STEPS).flat_map(|a| (0..STEPS).map(move |b| (a, b)))
        {
            let words: Arc<[Word]> = [Word::default(), Word::default()].into();
            compare_exchange(&words, 1, 0, 5).unwrap();
            let (for_owner, for_helper) = (Arc::clone(&words), Arc::clone(&words));
            let entries = Entries::from_iter([0, 1].map(|index| Entry::new(index, 0, 1)));
            let Ok(owner) = freeze(owner_stops, move || kcas(&for_owner, entries)) else {
                break;
            };
            let _ = compare_exchange(&words, 1, 5, 0);
            let helper = freeze(helper_stops, move || {
                compare_exchange(&for_helper, 0, 0, 7).is_ok()
            });
            let installed = !is_value(words[1].load_raw());
            let succeeded = owner.thaw();
            installed_late += u64::from(installed && !succeeded);
            assert!(all_values(&words), "steps {owner_stops}, {helper_stops}");
            if let Ok(helper) = helper {
                helper.thaw();
            }
            assert!(all_values(&words), "steps {owner_stops}, {helper_stops}");
        }
        assert!(installed_late > 0, "no helper got so far");
    }
}
