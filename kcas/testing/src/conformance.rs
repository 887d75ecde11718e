//! Checks that the code does what the proof says: each write to a word, a status or an installation's number must be an
//! action of the model in `kcas/proof/kcas.py`, in a state that allows it, and only linearization points may change
//! what the words mean. Models under loom are watched, and so are real threads that take turns
//! (`tests/conformance.rs`); a write that is no action panics, and names the line that made it.
//!
//! The checks look at the state, not at what a thread knows. Where an action of the model needs knowledge (a helper
//! decides for success once it has *seen* every word confirmed), they check what the invariant says of the words then.
//! What a thread has read shows in the exchanges that it tries.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::fs::OpenOptions;
use std::io::Write;
use std::panic::Location;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
#[cfg(not(kcas_loom))]
use std::thread::{self, ThreadId};

use kcas::internals::{InstallTag, KcasTag, State, Word, next_sequence};
use kcas::steps::{self, Access, Event, Observer, with_observer};
use kcas::sync::AtomicU64;
use kcas::{Entry, thread_id};
#[cfg(kcas_loom)]
use loom::thread::{self, ThreadId};

/// What an atomic is to the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Place {
    /// A word: its array, by number, and its index.
    Word(usize, usize),
    /// The status of a thread's operation.
    Status(usize),
    /// The number of a thread's installation.
    InstallSequence(usize),
}

/// How much of an execution is checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checks {
    /// All.
    #[default]
    All,
    /// All, but helpers may begin with any word.
    AnyOrder,
    /// Nothing.
    None,
}

/// An operation from the moment at which its tag stood in a word until its record is reused.
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
    /// The thread that finishes it may have read "undecided": the target was undecided when the installation came, or a
    /// load may still miss the decision. The latter can happen over the owner's tag after a success decided by the
    /// owner, since the word has held that tag throughout, and after a failure, until the owner has gone over the word.
    /// It cannot happen after a success decided by a helper, nor over a value after any success.
    in_time: bool,
}

/// The state of all arrays and records, as their writes have left it.
#[derive(Debug, Default)]
pub struct Watch {
    places: HashMap<usize, Place>,
    values: HashMap<Place, u64>,
    /// What the words of each array mean.
    arrays: Vec<Vec<u64>>,
    /// The last operation of each thread, and the last installation.
    begun: HashMap<usize, Vec<Entry>>,
    installs: HashMap<usize, (KcasTag, u64)>,
    /// Operations of which no tag has stood in a word, and whose owner has seen no word differ.
    fresh: HashSet<u64>,
    /// Operations whose owner has been killed.
    dead: HashSet<u64>,
    shown: HashMap<u64, Operation>,
    /// Operations that are over: late helpers still install for them.
    over: HashMap<u64, Operation>,
    installed: HashMap<u64, Installation>,
    /// What each thread in `compare_exchange` is about to try: the address, the current value, and the new one.
    exchanges: HashMap<ThreadId, (usize, u64, u64)>,
    /// The write being looked at is the one of `compare_exchange`, or one of `WordArray::clear`.
    direct: bool,
    /// What the words of an array have meant, at each moment at which that changed.
    pub moments: Vec<Vec<u64>>,
    /// How often each action was seen.
    pub seen: HashMap<&'static str, u64>,
}

std::thread_local! {
    /// Under loom all threads of an execution are one system thread.
    static CHECKS: Cell<Checks> = const { Cell::new(Checks::All) };
}

/// From here on, this much of a model's execution is checked.
pub fn check(checks: Checks) {
    CHECKS.set(checks);
}

/// What is known of some threads. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Watched(Arc<Mutex<Watch>>);

/// Watches a thread, which may have another observer already.
struct Watcher {
    watched: Watched,
    other: Option<Rc<dyn Observer>>,
}

impl Observer for Watcher {
    fn step(&self, access: Access, address: usize) {
        if let Some(other) = &self.other {
            other.step(access, address);
        }
    }

    fn learn(&self, event: Event, by: &Location) {
        if CHECKS.get() != Checks::None {
            self.watched.lock().learn(event, by);
        }
    }
}

impl Watched {
    /// Runs `action`, in which each write of this thread is checked.
    pub fn watch<R>(&self, action: impl FnOnce() -> R) -> R {
        let watched = self.clone();
        let other = steps::observer();
        with_observer(Rc::new(Watcher { watched, other }), action)
    }

    /// Begins to watch another execution; how often each action was seen is kept.
    pub fn begin_execution(&self) {
        CHECKS.set(Checks::All);
        let mut watch = self.lock();
        watch.seen = std::mem::take(&mut *watch).seen;
    }

    /// Locks what is known.
    pub fn lock(&self) -> MutexGuard<'_, Watch> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a row to the file that `ACTIONS` names: how often each action was seen.
    pub fn tell(&self, name: &str) {
        if let Some(path) = std::env::var_os("ACTIONS") {
            let mut row = name.to_owned();
            for action in actions() {
                row += &format!(",{}", self.lock().seen.get(action).unwrap_or(&0));
            }
            let file = OpenOptions::new().append(true).create(true).open(path);
            writeln!(file.expect("ACTIONS names a file"), "{row}").expect("it can be written");
        }
    }
}

/// The actions of the proof, in its order.
pub fn actions() -> Vec<&'static str> {
    let mut lines = include_str!("../../proof/kcas.py").lines();
    let mut actions = Vec::new();
    while lines.any(|line| line.trim() == "action(") {
        let names = lines.next().unwrap_or_default().split('"');
        actions.extend(names.skip(1).step_by(2));
    }
    actions
}

type Checked<T = ()> = Result<T, &'static str>;

fn require(holds: bool, why: &'static str) -> Checked {
    if holds { Ok(()) } else { Err(why) }
}

/// Finds the action that a write is, if it is one: the place, what was there, and what is there now.
type Action = fn(&mut Watch, Place, u64, u64) -> Checked<Option<&'static str>>;

const OVER: &str = "the operation is over";

impl Watch {
    fn learn(&mut self, event: Event, by: &Location) {
        match event {
            Event::Begins(owner, status, entries) => {
                self.name(status, Place::Status(owner));
                self.begun.insert(owner, entries.to_vec());
            }
            Event::TakesOver(id) => {
                self.dead.insert(self.current(id).raw());
                self.saw("the owner is killed");
            }
            Event::Installs(installer, number, target, old) => {
                self.name(number, Place::InstallSequence(installer));
                let target = KcasTag::from_raw(target);
                self.installs.insert(installer, (target, old));
            }
            Event::Array(each_word, true) => {
                let (array, mut means) = (self.arrays.len(), Vec::new());
                each_word(&mut |word| {
                    self.name(word, Place::Word(array, means.len()));
                    means.push(word.peek());
                });
                self.moments.push(means.clone());
                self.arrays.push(means);
            }
            Event::Array(each_word, false) => each_word(&mut |word| {
                self.places.remove(&address_of(word));
            }),
            Event::ExchangesOne(word, current, new) => {
                let exchange = (address_of(word), current, new);
                self.exchanges.insert(thread::current().id(), exchange);
            }
            Event::Store(atomic, value) => {
                self.direct = by.file().ends_with("words.rs");
                if let Some(&place) = self.places.get(&address_of(atomic)) {
                    self.check(place, value, by, Self::store);
                }
            }
            Event::Exchange(atomic, current, new, result) => {
                let address = address_of(atomic);
                let announced = self.exchanges.remove(&thread::current().id());
                self.direct = announced == Some((address, current, new));
                if let Some(&place) = self.places.get(&address) {
                    let (Ok(was) | Err(was)) = result;
                    assert_eq!(was, self.value(place), "{by}: {place:?} has changed unseen");
                    match result {
                        Ok(_) => self.check(place, new, by, Self::exchange),
                        Err(found) => self.attempt(place, current, new, found),
                    }
                }
            }
        }
    }

    /// Notes what an atomic is. Where threads of other tests may have changed it, notes its value, too.
    fn name(&mut self, atomic: &AtomicU64, place: Place) {
        let known = self.places.insert(address_of(atomic), place) == Some(place);
        if !known || cfg!(not(kcas_loom)) {
            self.values.insert(place, atomic.peek());
        }
    }

    /// Checks a write, and that it changes what the words mean only where that is allowed.
    fn check(&mut self, place: Place, now: u64, by: &Location, action: Action) {
        let was = self.values.insert(place, now).unwrap_or(0);
        let checked = action(self, place, was, now).and_then(|action| {
            action.into_iter().for_each(|action| self.saw(action));
            self.check_memory(place, action)
        });
        if let Err(why) = checked {
            let (was, now) = (Word::from(was), Word::from(now));
            panic!("{by}: {place:?} went from {was:?} to {now:?}: {why}");
        }
    }

    fn check_memory(&mut self, place: Place, action: Option<&'static str>) -> Checked {
        let array = match place {
            Place::Word(array, _) => array,
            Place::Status(owner) => match self.shown.get(&self.current(owner).raw()) {
                Some(operation) => operation.array,
                None => return Ok(()),
            },
            Place::InstallSequence(_) => return Ok(()),
        };
        let means = (0..self.arrays[array].len()).map(|index| self.means(array, index));
        let means = means.collect::<Result<Vec<_>, _>>()?;
        let meant = std::mem::replace(&mut self.arrays[array], means.clone());
        let mut then = meant.clone();
        match (action, place) {
            // Only `clear` writes a word by no action.
            (None | Some("exchange one word"), Place::Word(_, index)) => {
                then[index] = means[index];
            }
            (Some(action), Place::Status(owner)) if action.ends_with("decides for success") => {
                for entry in &self.shown[&self.current(owner).raw()].entries {
                    let found = meant[entry.index] == entry.expected;
                    require(found, "a word does not mean the expected value")?;
                    then[entry.index] = entry.new;
                }
            }
            _ => {}
        }
        let why = "what words mean changes, at no linearization point";
        require(means == then, why)?;
        if means != meant {
            self.moments.push(means);
        }
        Ok(())
    }

    /// Forgets what the words have meant before, when no call is under way.
    pub fn forget(&mut self) {
        self.moments.drain(..self.moments.len() - 1);
    }

    /// Counts an action.
    pub fn saw(&mut self, action: &'static str) {
        *self.seen.entry(action).or_default() += 1;
    }

    fn value(&self, place: Place) -> u64 {
        self.values.get(&place).copied().unwrap_or(0)
    }

    fn word(&self, array: usize, index: usize) -> Word {
        Word::from(self.value(Place::Word(array, index)))
    }

    /// What a word stands for, by the table in the crate's docs. (As the proof has it, not as the code has it.)
    fn means(&self, array: usize, index: usize) -> Checked<u64> {
        let mut word = self.word(array, index);
        if let Word::Install(tag) = word {
            word = Word::from(self.installation(tag)?.old);
        }
        let (tag, is_confirmed) = match word {
            Word::Value(value) => return Ok(value),
            Word::Kcas(tag) => (tag, true),
            Word::Owner(tag) => (tag, false),
            Word::Install(_) => return Err("an installation over another"),
        };
        let state = self.state(tag).ok_or(OVER)?;
        let entry = self.entry(tag, array, index)?;
        Ok(match state {
            State::SucceededByOwner => entry.new,
            State::SucceededByHelper if is_confirmed => entry.new,
            State::SucceededByHelper | State::Undecided | State::Failed => entry.expected,
        })
    }

    /// The operation that a thread's record describes.
    fn current(&self, owner: usize) -> KcasTag {
        KcasTag::new(owner, self.value(Place::Status(owner)) >> 2)
    }

    /// The state of an operation; `None` once its record is reused.
    fn state(&self, tag: KcasTag) -> Option<State> {
        let status = self.value(Place::Status(tag.thread()));
        (self.current(tag.thread()) == tag).then(|| State::decode(status))
    }

    fn installation(&self, tag: InstallTag) -> Checked<&Installation> {
        let installation = self.installed.get(&tag.raw());
        installation.ok_or("an installation that was never put into a word")
    }

    fn entry(&self, tag: KcasTag, array: usize, index: usize) -> Checked<Entry> {
        let shown = self.shown.get(&tag.raw());
        let operation = shown.or_else(|| self.over.get(&tag.raw()));
        let operation = operation.ok_or("its tag was never shown")?;
        let mut entries = operation.entries.iter();
        let found = entries.find(|entry| operation.array == array && entry.index == index);
        found.copied().ok_or("a word that is not of the operation")
    }

    fn is_confirmed(&self, tag: KcasTag, array: usize, index: usize) -> bool {
        CHECKS.get() == Checks::AnyOrder || self.word(array, index) == Word::Kcas(tag)
    }

    /// Whether the word holds a tag of the operation, or an installation over its owner's, which could put one back.
    /// (An installation over a value does not count: if its helper does not find the operation over, no action allows
    /// what follows.)
    fn is_held(&self, tag: KcasTag, array: usize, index: usize) -> bool {
        match self.word(array, index) {
            Word::Kcas(found) | Word::Owner(found) => found == tag,
            Word::Install(found) => (self.installed.get(&found.raw()))
                .is_some_and(|installation| installation.old == tag.owner_raw()),
            Word::Value(_) => false,
        }
    }

    /// Whether all entries of an operation, or those below `index`, are as they must be.
    fn all(
        &self,
        tag: KcasTag,
        below: usize,
        is: fn(&Self, KcasTag, usize, usize) -> bool,
    ) -> bool {
        let operation = &self.shown[&tag.raw()];
        let mut entries = operation.entries.iter().filter(|entry| entry.index < below);
        entries.all(|entry| is(self, tag, operation.array, entry.index))
    }

    /// Notes the entries of an operation whose tag now stands in a word for the first time.
    fn show(&mut self, tag: KcasTag, array: usize) {
        let owner = tag.thread();
        self.fresh.remove(&tag.raw());
        if !self.shown.contains_key(&tag.raw()) {
            let operation = Operation {
                array,
                entries: self.begun.get(&owner).cloned().unwrap_or_default(),
                differed: false,
            };
            self.shown.insert(tag.raw(), operation);
            self.note_differences(array);
        }
    }

    /// Notes which operations find a word that holds another value than they expect.
    fn note_differences(&mut self, array: usize) {
        let Watch { shown, values, .. } = self;
        for operation in shown.values_mut().filter(|one| one.array == array) {
            operation.differed |= operation.entries.iter().any(|entry| {
                let value = values.get(&Place::Word(array, entry.index)).copied();
                matches!(value.map(Word::from), Some(Word::Value(value)) if value != entry.expected)
            });
        }
    }

    /// The action that a store is, if it is one.
    fn store(&mut self, place: Place, was: u64, now: u64) -> Checked<Option<&'static str>> {
        match place {
            Place::Status(owner) => {
                let last = KcasTag::new(owner, was >> 2);
                let begins = now == next_sequence(was >> 2) << 2;
                require(begins, "it does not begin undecided, by the next number")?;
                if let Some(operation) = self.shown.get(&last.raw()) {
                    let decided = State::decode(was) != State::Undecided;
                    require(decided, "the last operation is undecided")?;
                    let array = operation.array;
                    let mut entries = operation.entries.iter();
                    let clean = entries.all(|entry| !self.is_held(last, array, entry.index));
                    let why = "a tag of the last operation is left, or can come back";
                    require(clean, why)?;
                    let over = self.shown.remove_entry(&last.raw());
                    self.over.extend(over);
                    self.saw("reuse the record");
                } else if was != 0 {
                    let differed = !self.fresh.remove(&last.raw());
                    // Two models begin operations, and leave them.
                    let right = differed || cfg!(kcas_loom);
                    require(right, "it gives up, and no word differed")?;
                    self.saw("give up at the first word");
                }
                self.fresh.insert(self.current(owner).raw());
                Ok(Some("begin"))
            }
            Place::InstallSequence(installer) => {
                require(now == next_sequence(was), "it is not the next number")?;
                let last = InstallTag::new(installer, was).raw();
                let words = |place: &Place| matches!(place, Place::Word(..));
                let mut held = self.values.iter().filter(|(place, _)| words(place));
                let gone = held.all(|(_, &word)| word != last);
                require(gone, "the last installation is still in a word")?;
                self.installed.remove(&last);
                if was != 0 {
                    self.saw("reuse the installation's record");
                }
                Ok(None)
            }
            Place::Word(..) => {
                let sets = self.direct && matches!(Word::from(now), Word::Value(_));
                require(sets, "only `clear` and `set` store words").map(|()| None)
            }
        }
    }

    /// The action that an exchange is.
    fn exchange(&mut self, place: Place, was: u64, now: u64) -> Checked<Option<&'static str>> {
        match place {
            Place::Word(array, index) => {
                let action = self.exchange_word((array, index), was, now);
                self.note_differences(array);
                action.map(Some)
            }
            Place::Status(owner) => {
                let tag = KcasTag::new(owner, was >> 2);
                let decides = was >> 2 == now >> 2 && State::decode(was) == State::Undecided;
                require(decides, "a decision is forever")?;
                let is_dead = self.dead.contains(&tag.raw());
                let shown = self.shown.get(&tag.raw());
                if shown.is_none() && is_dead && State::decode(now) == State::Failed {
                    // Its heir gives it up.
                    self.fresh.remove(&tag.raw());
                    return Ok(None);
                }
                let differed = shown.ok_or("its tag was never shown")?.differed;
                let (holds, why, action) = match State::decode(now) {
                    State::Undecided => return Err("nothing is decided"),
                    State::SucceededByOwner => (
                        self.all(tag, usize::MAX, Self::is_held) && is_of_this_thread(owner),
                        "a word does not hold the operation's tag, or it is not the owner",
                        "owner decides for success",
                    ),
                    State::SucceededByHelper => (
                        self.all(tag, usize::MAX, Self::is_confirmed),
                        "a word is not confirmed",
                        "helper decides for success",
                    ),
                    State::Failed => (
                        differed || is_dead,
                        "no word differed",
                        "decide for failure",
                    ),
                };
                require(holds, why)?;
                Ok(Some(action))
            }
            Place::InstallSequence(_) => Err("a number is stored, not exchanged"),
        }
    }

    fn exchange_word(&mut self, at: (usize, usize), was: u64, now: u64) -> Checked<&'static str> {
        let (array, index) = at;
        match (Word::from(was), Word::from(now)) {
            (Word::Value(_), Word::Value(_)) if self.direct => Ok("exchange one word"),
            // For itself.
            _ if was == now => Ok("withdraw: find nothing left"),
            (Word::Value(_), Word::Owner(tag)) => {
                self.show(tag, array);
                require(is_of_this_thread(tag.thread()), "it is not the owner")?;
                let state = self.state(tag).ok_or(OVER)?;
                require(state != State::SucceededByOwner, "the owner has decided")?;
                let lower = state != State::Undecided || self.all(tag, index, Self::is_held);
                require(lower, "a lower word is not held")?;
                Ok("place the owner's tag")
            }
            (old @ (Word::Value(_) | Word::Owner(_)), Word::Install(tag)) => {
                let installer = tag.thread();
                let current = self.value(Place::InstallSequence(installer));
                require(current == tag.sequence(), "it is not the installer's last")?;
                let (target, old_word) = *self.installs.get(&installer).ok_or("it never began")?;
                require(old_word == was, "its record names another word")?;
                let state = self.state(target);
                if installer == target.thread() && state == Some(State::Undecided) {
                    self.show(target, array);
                }
                let over_owner = old == Word::Owner(target);
                let expected = Word::Value(self.entry(target, array, index)?.expected);
                let right = over_owner || old == expected;
                require(right, "it is not over the expected value")?;
                let lower =
                    state != Some(State::Undecided) || self.all(target, index, Self::is_confirmed);
                require(lower, "a lower word is not confirmed")?;
                let in_time = match state {
                    Some(State::Undecided | State::Failed) => true,
                    Some(State::SucceededByOwner) => over_owner,
                    _ => false,
                };
                let installation = Installation {
                    target,
                    old: was,
                    in_time,
                };
                self.installed.insert(tag.raw(), installation);
                Ok(if over_owner {
                    "install over the owner tag"
                } else {
                    "install over the value"
                })
            }
            (Word::Install(tag), Word::Kcas(target)) => {
                let installation = self.installation(tag)?;
                require(installation.target == target, "it is for another operation")?;
                require(installation.in_time, "nobody can have read \"undecided\"")?;
                self.saw("finish: read undecided");
                Ok("finish: confirm")
            }
            (Word::Install(tag), new) => {
                let installation = self.installation(tag)?;
                let (target, put_back) = (installation.target, installation.old == now);
                let decided = self.state(target) != Some(State::Undecided);
                require(decided, "the operation is undecided")?;
                if put_back {
                    self.saw("finish: read decided");
                    return Ok("finish: put back");
                }
                let ends = is_of_this_thread(target.thread()) && matches!(new, Word::Value(_));
                require(ends, "it does not put back what was there")?;
                Ok("withdraw: end an installation")
            }
            (old @ (Word::Kcas(tag) | Word::Owner(tag)), Word::Value(_)) => {
                let state = self.state(tag).ok_or(OVER)?;
                require(state != State::Undecided, "the operation is undecided")?;
                Ok(match old {
                    _ if is_of_this_thread(tag.thread()) => "withdraw: take the own tag out",
                    Word::Kcas(_) => "release the confirmed tag",
                    _ => "release the owner's tag",
                })
            }
            _ => Err("no action does that"),
        }
    }

    /// Notes what a thread has learned from an exchange that failed.
    fn attempt(&mut self, place: Place, current: u64, new: u64, found: u64) {
        let Place::Word(array, index) = place else {
            if matches!(place, Place::Status(owner) if is_of_this_thread(owner)) {
                self.saw("owner learns the decision");
            }
            return;
        };
        match (Word::from(current), Word::from(new), Word::from(found)) {
            (Word::Value(_), Word::Owner(own), Word::Kcas(tag) | Word::Owner(tag))
                if own == tag =>
            {
                self.saw("find the own tag placed");
            }
            (Word::Value(_), Word::Owner(own), Word::Value(_)) => {
                self.fresh.remove(&own.raw());
                self.saw("see a word differ");
            }
            (_, Word::Install(tag), Word::Kcas(found))
                if self.installs.get(&tag.thread()).map(|install| install.0) == Some(found) =>
            {
                self.saw("find the confirmed tag");
            }
            (Word::Install(tag), Word::Kcas(_), _) => {
                self.saw("finish: read undecided");
                if is_of_this_thread(tag.thread()) {
                    self.saw("find the installation gone");
                }
            }
            (Word::Install(_), ..) => self.saw("finish: read decided"),
            (Word::Owner(tag), Word::Value(_), _)
                if is_of_this_thread(tag.thread()) && !self.is_held(tag, array, index) =>
            {
                self.saw("withdraw: find nothing left");
            }
            _ => {}
        }
    }
}

/// Whether this thread holds an id. (A model may act with an id that no thread holds.)
fn is_of_this_thread(id: usize) -> bool {
    thread_id::with_held(|me| me.index() == id) == Some(true)
}

fn address_of(atomic: &AtomicU64) -> usize {
    std::ptr::from_ref(atomic).addr()
}
