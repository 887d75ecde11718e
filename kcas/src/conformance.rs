//! Whether the code does what the proof says: each write to a word or to a record must be an action of the model in
//! `kcas/proof/kcas.py`, in a state that allows it. Models under loom are watched, and so are real threads that take turns
//! (`conformance_tests.rs`); a write that is no action panics, with the line that made it.
//!
//! The checks are of the state, not of what a thread knows: where an action of the model needs knowledge (a helper decides for
//! success once it has *seen* every word confirmed), the invariant says what the words then hold, and that is checked.
//! Under loom, a load may return an older value; whatever a thread concludes from it shows in a write.

use std::collections::HashMap;
use std::panic::Location;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use crate::descriptor::State;
use crate::entry::Entry;
use crate::tagged::{InstallTag, KcasTag, Word};
use crate::watch::{self, Event, Place};

/// An operation since its tag stood in a word.
#[derive(Debug)]
struct Operation {
    array: usize,
    entries: Vec<Entry>,
    /// A word of it held another value, at a moment since then.
    differed: bool,
}

#[derive(Debug)]
struct Installation {
    target: KcasTag,
    old: u64,
    /// Whoever finishes it may have read "undecided": its target was, or it was decided at so short a notice that a load may
    /// lag behind, and the installation may as well have come first. That is so of one over the owner's tag after the owner's
    /// success, where the word has held that tag throughout, and of any after a failure, until the owner has gone over the
    /// word. After a helper's success it is not, nor over a value after any success.
    in_time: bool,
}

/// The state of all arrays and records, as their writes have left it.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    places: HashMap<usize, Place>,
    values: HashMap<Place, u64>,
    arrays: usize,
    shown: HashMap<u64, Operation>,
    installed: HashMap<u64, Installation>,
    /// How often each action was seen.
    pub(crate) seen: HashMap<&'static str, u64>,
}

/// What this thread writes from now on is checked.
pub(crate) fn watch(shared: Arc<Mutex<Watch>>) {
    watch::watch(Some(Rc::new(move |event, by| {
        let mut watch = shared.lock().unwrap_or_else(PoisonError::into_inner);
        watch.learn(event, by);
    })));
}

/// What this thread writes from now on is not checked.
#[cfg(test)]
pub(crate) fn unwatch() {
    watch::watch(None);
}

/// What a word with the confirmed tag stands for. (As the proof has it, not as the code has it.)
fn confirmed(state: State, entry: Entry) -> u64 {
    match state {
        State::SucceededByOwner | State::SucceededByHelper => entry.new,
        State::Undecided | State::Failed => entry.expected,
    }
}

/// What a word with the owner's tag stands for.
fn owned(state: State, entry: Entry) -> u64 {
    match state {
        State::SucceededByOwner => entry.new,
        State::Undecided | State::SucceededByHelper | State::Failed => entry.expected,
    }
}

impl Watch {
    fn learn(&mut self, event: Event, by: &Location) {
        match event {
            Event::Field(address, place) => {
                if self.places.insert(address, place) != Some(place) {
                    self.values.insert(place, 0);
                }
            }
            Event::Array(words) => {
                for (index, (address, value)) in words.into_iter().enumerate() {
                    let place = Place::Word(self.arrays, index);
                    self.places.insert(address, place);
                    self.values.insert(place, value);
                }
                self.arrays += 1;
            }
            Event::Dropped(addresses) => {
                self.places
                    .retain(|address, _| !addresses.contains(address));
            }
            Event::Wrote {
                address,
                before,
                after,
            } => {
                if let Some(&place) = self.places.get(&address) {
                    self.check(place, before, after, by);
                }
            }
        }
    }

    fn check(&mut self, place: Place, before: Option<u64>, after: u64, by: &Location) {
        let was = self.values.insert(place, after).unwrap_or(0);
        let is_known = before.is_none_or(|before| before == was);
        assert!(is_known, "{by}: {place:?} was not {before:?} but {was}");
        match self.action(place, was, after, before.is_some()) {
            Ok(action) => *self.seen.entry(action).or_default() += 1,
            Err(why) => {
                let (was, now) = (Word::from(was), Word::from(after));
                panic!("{by}: {place:?} went from {was:?} to {now:?}: {why}");
            }
        }
    }

    fn value(&self, place: Place) -> u64 {
        self.values.get(&place).copied().unwrap_or(0)
    }

    fn word(&self, array: usize, index: usize) -> Word {
        Word::from(self.value(Place::Word(array, index)))
    }

    /// The state of an operation; `None` once its record is reused.
    fn state(&self, tag: KcasTag) -> Option<State> {
        let status = self.value(Place::Status(tag.thread()));
        (status >> 2 == tag.sequence()).then(|| State::of(status))
    }

    fn operation(&self, tag: KcasTag) -> Result<&Operation, String> {
        self.shown
            .get(&tag.raw())
            .ok_or("an operation whose tag was never shown".into())
    }

    fn installation(&self, tag: InstallTag) -> Result<&Installation, String> {
        self.installed
            .get(&tag.raw())
            .ok_or("an installation that was never put into a word".into())
    }

    fn entry(&self, tag: KcasTag, array: usize, index: usize) -> Result<Entry, String> {
        let operation = self.operation(tag)?;
        let found = operation
            .entries
            .iter()
            .find(|entry| entry.index == index && operation.array == array);
        found
            .copied()
            .ok_or("a word that is not of the operation".into())
    }

    fn is_confirmed(&self, tag: KcasTag, array: usize, index: usize) -> bool {
        self.word(array, index) == Word::Kcas(tag)
    }

    /// Whether the word holds a tag of the operation, or an installation over its owner's.
    fn is_held(&self, tag: KcasTag, array: usize, index: usize) -> bool {
        match self.word(array, index) {
            Word::Kcas(found) | Word::Owner(found) => found == tag,
            Word::Install(found) => self
                .installed
                .get(&found.raw())
                .is_some_and(|installation| {
                    installation.target == tag && installation.old == tag.owner_raw()
                }),
            Word::Value(_) => false,
        }
    }

    /// Whether all entries, or those below `index`, are as they must be.
    fn all(
        &self,
        tag: KcasTag,
        below: usize,
        is: impl Fn(&Self, KcasTag, usize, usize) -> bool,
    ) -> bool {
        let operation = &self.shown[&tag.raw()];
        let mut entries = operation.entries.iter().filter(|entry| entry.index < below);
        entries.all(|entry| is(self, tag, operation.array, entry.index))
    }

    /// Notes the entries of an operation whose tag now stands in a word for the first time.
    fn show(&mut self, tag: KcasTag, array: usize) {
        if !self.shown.contains_key(&tag.raw()) {
            let owner = tag.thread();
            let entries = (0..self.value(Place::Len(owner)) as usize).map(|at| Entry {
                index: self.value(Place::Index(owner, at)) as usize,
                expected: self.value(Place::Expected(owner, at)),
                new: self.value(Place::New(owner, at)),
            });
            let entries: Vec<_> = entries.collect();
            let differed = entries.iter().any(|entry| self.differs(array, entry));
            self.shown.insert(
                tag.raw(),
                Operation {
                    array,
                    entries,
                    differed,
                },
            );
        }
    }

    fn differs(&self, array: usize, entry: &Entry) -> bool {
        matches!(self.word(array, entry.index), Word::Value(value) if value != entry.expected)
    }

    /// Whether nothing of a decided operation is left in its words, or can come back.
    fn is_clean(&self, tag: KcasTag, array: usize, index: usize) -> bool {
        match self.word(array, index) {
            Word::Kcas(found) | Word::Owner(found) => found != tag,
            // Over a value it may be of a helper that will find the operation over: if not, it becomes a tag of it.
            Word::Install(found) => {
                let installation = self.installed.get(&found.raw());
                installation.is_none_or(|installation| installation.old != tag.owner_raw())
            }
            Word::Value(_) => true,
        }
    }

    /// Returns the action of the model that this write is.
    fn action(
        &mut self,
        place: Place,
        was: u64,
        now: u64,
        exchanged: bool,
    ) -> Result<&'static str, String> {
        let require = |holds: bool, why: &str| if holds { Ok(()) } else { Err(why.to_owned()) };
        match place {
            Place::Word(array, index) => {
                let action = self.word_action((array, index), was, now);
                let differing: Vec<_> = self
                    .shown
                    .iter()
                    .filter(|(_, operation)| {
                        operation.array == array
                            && operation
                                .entries
                                .iter()
                                .any(|entry| entry.index == index && self.differs(array, entry))
                    })
                    .map(|(&tag, _)| tag)
                    .collect();
                for tag in differing {
                    self.shown
                        .entry(tag)
                        .and_modify(|operation| operation.differed = true);
                }
                action
            }
            Place::Status(owner) if exchanged => {
                let tag = KcasTag::new(owner, was >> 2);
                require(
                    was >> 2 == now >> 2 && State::of(was) == State::Undecided,
                    "a decision is for ever",
                )?;
                let differed = self.operation(tag)?.differed;
                match State::of(now) {
                    State::Undecided => Err("nothing is decided".into()),
                    State::SucceededByOwner => {
                        require(
                            self.all(tag, usize::MAX, Self::is_held),
                            "a word does not hold the operation's tag",
                        )?;
                        Ok("owner decides for success")
                    }
                    State::SucceededByHelper => {
                        require(
                            self.all(tag, usize::MAX, Self::is_confirmed),
                            "a word is not confirmed",
                        )?;
                        Ok("helper decides for success")
                    }
                    State::Failed => {
                        require(differed, "no word differed")?;
                        Ok("decide for failure")
                    }
                }
            }
            Place::Status(owner) => {
                let last = KcasTag::new(owner, was >> 2);
                require(
                    State::of(now) == State::Undecided && now >> 2 != was >> 2,
                    "it does not begin undecided",
                )?;
                let Some(operation) = self.shown.get(&last.raw()) else {
                    return Ok(if was == 0 {
                        "begin"
                    } else {
                        "give up at the first word"
                    });
                };
                require(
                    State::of(was) != State::Undecided,
                    "the last operation is undecided",
                )?;
                let mut entries = operation.entries.iter();
                let clean = entries.all(|entry| self.is_clean(last, operation.array, entry.index));
                require(
                    clean,
                    "a tag of the last operation is left, or can come back",
                )?;
                Ok("reuse the record")
            }
            Place::InstallSequence(installer) => {
                let last = InstallTag::new(installer, was).raw();
                let mut words = self
                    .values
                    .iter()
                    .filter(|(place, _)| matches!(place, Place::Word(..)));
                require(
                    words.all(|(_, &word)| word != last),
                    "the last installation is still in a word",
                )?;
                Ok("begin an installation")
            }
            _ => Ok("write a record"),
        }
    }

    fn word_action(
        &mut self,
        (array, index): (usize, usize),
        was: u64,
        now: u64,
    ) -> Result<&'static str, String> {
        let require = |holds: bool, why: &str| if holds { Ok(()) } else { Err(why.to_owned()) };
        match (Word::from(was), Word::from(now)) {
            _ if was == now => Ok("exchange a word for itself"),
            (Word::Value(_), Word::Value(_)) => Ok("exchange one word"),
            (Word::Value(value), Word::Owner(tag)) => {
                self.show(tag, array);
                require(
                    self.entry(tag, array, index)?.expected == value,
                    "it did not hold the expected value",
                )?;
                let state = self.state(tag).ok_or("the operation is over")?;
                require(state != State::SucceededByOwner, "the owner has decided")?;
                let lower = state != State::Undecided || self.all(tag, index, Self::is_held);
                require(lower, "a lower word is not held")?;
                Ok("place the owner's tag")
            }
            (old @ (Word::Value(_) | Word::Owner(_)), Word::Install(tag)) => {
                let installer = tag.thread();
                let current = self.value(Place::InstallSequence(installer));
                let target = KcasTag::from_raw(self.value(Place::InstallTarget(installer)));
                require(current == tag.sequence(), "it is not the installer's last")?;
                require(
                    self.value(Place::InstallOld(installer)) == was,
                    "its record names another word",
                )?;
                if installer == target.thread() && self.state(target) == Some(State::Undecided) {
                    self.show(target, array);
                }
                let (state, over_owner) = (self.state(target), matches!(old, Word::Owner(_)));
                match old {
                    Word::Owner(over) => {
                        require(over == target, "it is over another operation's tag")?;
                    }
                    // Of an operation that is over, nothing is known any more.
                    _ if state.is_none() => {}
                    old => {
                        let expected = Word::Value(self.entry(target, array, index)?.expected);
                        require(old == expected, "it is not over the expected value")?;
                    }
                }
                let lower =
                    state != Some(State::Undecided) || self.all(target, index, Self::is_confirmed);
                require(lower, "a lower word is not confirmed")?;
                let in_time = match state {
                    Some(State::Undecided | State::Failed) => true,
                    Some(State::SucceededByOwner) => over_owner,
                    _ => false,
                };
                self.installed.insert(
                    tag.raw(),
                    Installation {
                        target,
                        old: was,
                        in_time,
                    },
                );
                Ok(if matches!(old, Word::Owner(_)) {
                    "install over the owner tag"
                } else {
                    "install over the value"
                })
            }
            (Word::Install(tag), Word::Kcas(target)) => {
                let installation = self.installation(tag)?;
                require(installation.target == target, "it is for another operation")?;
                require(installation.in_time, "nobody can have read \"undecided\"")?;
                require(self.state(target).is_some(), "the operation is over")?;
                Ok("finish: confirm")
            }
            (Word::Install(tag), now) => {
                let installation = self.installation(tag)?;
                let (target, old) = (installation.target, Word::from(installation.old));
                let state = self.state(target);
                require(
                    state != Some(State::Undecided),
                    "the operation is undecided",
                )?;
                if now == old {
                    return Ok("finish: put back");
                }
                let entry = self.entry(target, array, index)?;
                let state = state.ok_or("the operation is over")?;
                let means = Word::Value(owned(state, entry));
                require(
                    matches!(old, Word::Owner(_)) && now == means,
                    "it is not what the word stood for",
                )?;
                Ok("withdraw: end an installation")
            }
            (old @ (Word::Kcas(tag) | Word::Owner(tag)), Word::Value(value)) => {
                let entry = self.entry(tag, array, index)?;
                let state = self.state(tag).ok_or("the operation is over")?;
                require(state != State::Undecided, "the operation is undecided")?;
                let (means, action) = match old {
                    Word::Kcas(_) => (confirmed(state, entry), "release the confirmed tag"),
                    _ => (owned(state, entry), "release the owner's tag"),
                };
                require(value == means, "it is not what the word stood for")?;
                Ok(action)
            }
            _ => Err("no action does that".into()),
        }
    }
}
