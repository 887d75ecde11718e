//! The published crate `kcas` 0.1.0: the algorithm of Harris, Fraser & Pratt with one record per
//! thread, but without the conditional installation.
//!
//! **It is not sound where values return.** A slow helper puts a marker into a word that holds its
//! expected value *again* (see [`kcas`] on why installing takes two steps): threads soon end up in
//! endless loops, or an update is done twice. Where values only grow this happens rarely, and that is
//! what is measured: now and then a word is wrong in the end, or threads do not end (columns
//! `wrong_words` and `stuck`). `harness kcas --check` shows both.
//!
//! It has no way to read a word: a thread that meets a marker has to retry until another thread has
//! removed it. The number of entries is part of its types.

use std::array;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Result;
use kcas_crate::{KCasWord, RefStateWrapper, State, is_value_a_kcas_marker};

use super::{Change, Engine, EngineInfo, MAX_THREADS, START, Words, boxed};

pub(super) const ENGINE: EngineInfo = EngineInfo {
    name: "crate kcas",
    description: "kcas 0.1.0, a published crate: descriptors reused, unconditional installation",
    guarantees: "loses updates or hangs where a word's value returns, and rarely elsewhere; readers wait for operations under way",
    counted: false,
    build,
};

fn build(len: usize, entries: usize) -> Box<dyn Engine> {
    match entries {
        1 => boxed::<Shared<1>>(len),
        2 => boxed::<Shared<2>>(len),
        3 => boxed::<Shared<3>>(len),
        4 => boxed::<Shared<4>>(len),
        5 => boxed::<Shared<5>>(len),
        6 => boxed::<Shared<6>>(len),
        7 => boxed::<Shared<7>>(len),
        _ => boxed::<Shared<8>>(len),
    }
}

struct Shared<const ENTRIES: usize> {
    words: Vec<AtomicUsize>,
    state: Box<State<MAX_THREADS, ENTRIES>>,
}

impl<const ENTRIES: usize> Words for Shared<ENTRIES> {
    fn new(len: usize) -> Result<Self> {
        Ok(Shared {
            words: (0..len).map(|_| AtomicUsize::new(START as usize)).collect(),
            state: Box::new(State::new()),
        })
    }

    fn try_change(&self, changes: &[Change]) -> bool {
        self.session()(changes)
    }

    fn session(&self) -> impl FnMut(&[Change]) -> bool {
        let (words, state) = (&*self.words, RefStateWrapper::construct(&self.state));
        let mut state = state.expect("the number of threads is limited");
        move |changes| {
            let mut values = [0; ENTRIES];
            for (value, change) in values.iter_mut().zip(changes) {
                match read(&words[change.index]) {
                    Some(read) => *value = read,
                    None => return false,
                }
            }
            let entries = array::from_fn(|entry| {
                let (change, value) = (changes[entry], values[entry]);
                let new = change.apply(value as u64) as usize;
                KCasWord::new(&words[change.index], value, new)
            });
            state.kcas(entries).is_ok()
        }
    }

    fn value(&self, index: usize) -> Option<u64> {
        read(&self.words[index]).map(|value| value as u64)
    }
}

/// Returns the value of a word, or `None` if it holds a marker.
fn read(word: &AtomicUsize) -> Option<usize> {
    let value = word.load(Ordering::Acquire);
    (!is_value_a_kcas_marker::<MAX_THREADS>(value)).then_some(value)
}
