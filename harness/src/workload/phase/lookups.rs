//! The phase that looks up keys drawn before anything is timed.

use std::sync::Arc;

use subject::Subject;

use super::{Cycle, Tally};
use crate::workload::keys::KeyList;

/// A list of keys to look up, cyclically.
///
/// The list that it runs over holds copies of the keys in lookup order, so that reaching a rare key
/// costs no more than reaching a frequent one. Present and absent keys alternate at random. Answers
/// are counted without a branch on which of the two a key is: the processor could not predict it,
/// and the measurement would show the mispredictions instead of the subject.
#[derive(Debug)]
pub struct Lookups {
    /// For each key in the list, its index among all keys.
    drawn: Arc<[usize]>,
    cycle: Cycle,
    /// Smaller indices are those of keys in the filter, all others those of absent keys.
    residents: usize,
}

impl Lookups {
    /// Creates lookups of the keys at these indices, at least one, starting `offset` keys into the
    /// list. They must run over [copies](crate::workload::keys::Keys::copied) of these keys. The
    /// first `residents` of all keys must be in the filter, and no others.
    pub fn new(drawn: Arc<[usize]>, offset: usize, residents: usize) -> Self {
        Self {
            cycle: Cycle::new(0..drawn.len(), offset),
            drawn,
            residents,
        }
    }

    pub(super) fn perform_batch<S: Subject, L: KeyList + ?Sized>(
        &mut self,
        subject: &S,
        keys: &L,
        length: usize,
        tally: &mut Tally,
    ) {
        let batch = self.cycle.next_batch(length);
        let mut indices = self.drawn[batch.clone()].iter();
        tally.operations += batch.len() as u64;
        subject.look_up(keys.iter(batch), |found| {
            let present = indices.next().is_some_and(|&index| index < self.residents);
            tally.note_lookup(present, found);
        });
    }

    /// Looks up a [chain](Cycle::look_up_chain) of the keys.
    pub(super) fn perform_chain<S: Subject, L: KeyList + ?Sized>(
        &mut self,
        subject: &S,
        keys: &L,
        length: usize,
        tally: &mut Tally,
    ) {
        let is_present = |at: usize| self.drawn[at] < self.residents;
        (self.cycle).look_up_chain(subject, keys, length, is_present, tally);
    }
}

#[cfg(test)]
mod tests {
    use super::super::Phase;
    use super::super::exact::Exact;
    use super::*;
    use crate::workload::keys::Keys;

    #[test]
    fn every_key_drawn_is_looked_up_and_every_answer_checked() {
        let keys = Keys::Numbers((0..100).collect());
        let drawn: Arc<[usize]> = [0, 7, 60, 7, 99].into();
        let copies = &keys.copied(&drawn);
        let lookups = || Phase::Lookup(Lookups::new(Arc::clone(&drawn), 3, 50));
        let subject = Exact::holding(50, &keys, 0..50);
        let tally = subject.perform_exactly(5_000, copies, &mut lookups());
        let right = Tally {
            operations: 5_000,
            absent: 2_000,
            ..Tally::default()
        };
        assert_eq!(tally, right);
        assert_eq!(*subject.calls.lock().unwrap(), [0, 5_000, 0]);

        subject.hold(&keys, 10..50);
        let tally = subject.perform_exactly(5_000, copies, &mut lookups());
        assert_eq!((tally.missing, tally.false_positives), (3_000, 0));
        let subject = Exact::holding(61, &keys, 0..61);
        let tally = subject.perform_exactly(5_000, copies, &mut lookups());
        assert_eq!((tally.missing, tally.false_positives), (0, 1_000));
    }
}
