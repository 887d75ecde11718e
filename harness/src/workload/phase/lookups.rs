//! The phase that only looks keys up.

use std::hash::Hash;
use std::hint::black_box;
use std::iter;
use std::sync::Arc;

use subject::Subject;

use super::{Cycle, Tally};

/// A list of keys to look up, cyclically.
///
/// Answers are counted without a branch on whether a key is present: where present and absent keys
/// alternate at random, the processor could not predict it, and the measurement would show the
/// mispredictions instead of the subject.
pub struct Lookups {
    pub cycle: Cycle,
    pub present: Present,
}

/// Which keys of the list are in the filter.
pub enum Present {
    All,
    None,
    /// The list holds [copies](crate::workload::keys::copied) of keys in lookup order, so that
    /// reaching a rare key costs no more than reaching a frequent one. These are their indices among
    /// all keys, and how many of all keys, from the first on, are in the filter.
    Drawn(Arc<[usize]>, usize),
}

impl Lookups {
    pub(super) fn perform_batch<S: Subject>(
        &mut self,
        subject: &S,
        keys: &[u64],
        length: usize,
        tally: &mut Tally,
    ) {
        let batch = self.cycle.next_batch(length);
        tally.operations += batch.len() as u64;
        let asked = keys[batch.clone()].iter();
        match &self.present {
            Present::All => look_up(subject, asked, iter::repeat(true), tally),
            Present::None => look_up(subject, asked, iter::repeat(false), tally),
            Present::Drawn(drawn, residents) => {
                let present = drawn[batch].iter().map(|index| index < residents);
                look_up(subject, asked, present, tally);
            }
        }
    }

    /// Looks up a chain of keys: the answer to one chooses the next. After a right answer that is
    /// the following key, and otherwise the one after it, so that a lap of right answers asks for
    /// every key; but the processor has to know the answer to find the key.
    pub(super) fn perform_chain<S: Subject>(
        &mut self,
        subject: &S,
        keys: &[u64],
        length: usize,
        tally: &mut Tally,
    ) {
        for _ in 0..length {
            let at = self.cycle.next;
            let found = black_box(subject.contains(&keys[at]));
            let present = match &self.present {
                Present::All => true,
                Present::None => false,
                Present::Drawn(drawn, residents) => drawn[at] < *residents,
            };
            tally.note_lookup(present, found);
            self.cycle.go_to(at + 1 + usize::from(found != present));
        }
        tally.operations += length as u64;
    }
}

fn look_up<'k, S: Subject, K: Hash + ?Sized + 'k>(
    subject: &S,
    keys: impl ExactSizeIterator<Item = &'k K>,
    mut present: impl Iterator<Item = bool>,
    tally: &mut Tally,
) {
    subject.look_up(keys, |found| {
        tally.note_lookup(present.next().unwrap_or(false), found);
    });
}
