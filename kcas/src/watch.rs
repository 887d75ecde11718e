//! What a watcher of tests and models learns: each write and each exchange of a [`Place`], which atomics these are, and what a
//! record is about to describe.

use std::cell::RefCell;
use std::ops::Range;
use std::panic::Location;
use std::rc::Rc;

use crate::entry::Entry;
use crate::tagged::KcasTag;

/// What an atomic is to the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    /// A word: its array, by number, and its index.
    Word(usize, usize),
    /// The status of a thread's operation.
    Status(usize),
    /// The number of a thread's installation.
    InstallSequence(usize),
}

/// What has happened.
pub(crate) enum Event {
    /// The field of a record at this address is about to be used. It holds `held`, if others may have changed it.
    Field {
        address: usize,
        place: Place,
        held: Option<u64>,
    },
    /// A thread begins an operation with these entries.
    Begins(usize, Vec<Entry>),
    /// A thread begins an installation, for this operation, over what is there.
    Installs(usize, KcasTag, u64),
    /// A new array has words at these addresses, which hold these values.
    Array(Vec<(usize, u64)>),
    /// An array had these addresses, and is no more.
    Dropped(Range<usize>),
    /// A store of this value at this address.
    Store(usize, u64),
    /// `compare_exchange` is about to try this at this address.
    ExchangesOne {
        address: usize,
        current: u64,
        new: u64,
    },
    /// A compare-and-swap at this address.
    Exchange {
        address: usize,
        current: u64,
        new: u64,
        result: Result<u64, u64>,
    },
    /// From here on a model lets helpers begin with any word.
    #[cfg(all(test, kcas_loom))]
    AnyOrder,
}

type Watcher = Rc<dyn Fn(Event, &Location)>;

std::thread_local! {
    /// Under loom all threads of an execution are one system thread.
    static WATCHER: RefCell<Option<Watcher>> = const { RefCell::new(None) };
}

/// What this thread does from now on is watched, or no longer.
pub(crate) fn watch(watcher: Option<Watcher>) {
    WATCHER.set(watcher);
}

/// Reports an event to the watcher, if there is one.
#[track_caller]
pub(crate) fn report(event: Event) {
    let watcher = WATCHER.try_with(|watcher| watcher.borrow().clone());
    if let Ok(Some(watcher)) = watcher {
        watcher(event, Location::caller());
    }
}
