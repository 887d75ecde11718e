//! An array under one mutex: the baseline without any of this.

use std::sync::{Mutex, PoisonError};

use super::{Change, EngineInfo, START, Session, Words, boxed};

pub(super) const ENGINE: EngineInfo = EngineInfo {
    name: "mutex",
    description: "an array under one mutex, which is held while the words are read and written",
    guarantees: "linearizable; blocking",
    counted: false,
    build: |len, _| boxed::<Locked>(len),
};

struct Locked(Mutex<Vec<u64>>);

impl Words for Locked {
    type Session<'a> = &'a Locked;

    fn new(len: usize) -> Self {
        Locked(Mutex::new(vec![START; len]))
    }

    fn session(&self) -> &Locked {
        self
    }

    fn value(&self, index: usize) -> Option<u64> {
        Some(self.0.lock().unwrap_or_else(PoisonError::into_inner)[index])
    }
}

impl Session for &Locked {
    /// Always succeeds: no other thread can interfere.
    #[inline]
    fn try_change(&mut self, changes: &[Change]) -> bool {
        let mut words = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for &change in changes {
            let word = &mut words[change.index];
            *word = change.of(*word);
        }
        true
    }
}
