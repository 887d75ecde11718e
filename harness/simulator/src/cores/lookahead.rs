//! Predicts the accesses of a core.
//!
//! A branch that depends on a loaded value cannot be seen here, but its effect can: another kind of
//! access than the last time after the same ones. A core predicts branches much like that.

use std::collections::HashMap;

use kcas::steps::Access;

/// An access as a branch predictor distinguishes it: its kind, and its memory.
type Kind = (u8, u32);

/// How many accesses a prediction depends on.
const RECENT: usize = 3;

/// The recent accesses of a core, and its predictions.
#[derive(Debug, Default)]
pub(crate) struct Lookahead {
    recent: [Option<Kind>; RECENT],
    /// The prediction after these accesses, and whether it was right the last time: it changes once it was wrong twice
    /// in a row.
    expected: HashMap<[Option<Kind>; RECENT], (Kind, bool)>,
}

impl Lookahead {
    /// Records an access. Returns whether the core had predicted another one. After accesses that are new to it, any
    /// access counts as predicted.
    pub(crate) fn misses(&mut self, access: Access, region: u32) -> bool {
        let kind = (access as u8, region);
        let (expected, is_sure) = self.expected.entry(self.recent).or_insert((kind, false));
        let missed = *expected != kind;
        if missed && !*is_sure {
            *expected = kind;
        }
        *is_sure = !missed;
        self.recent.rotate_left(1);
        self.recent[RECENT - 1] = Some(kind);
        missed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REGION: u32 = 7;

    /// Returns which of these accesses the core does not predict, after it has made them often.
    fn missed(accesses: &[Access]) -> Vec<bool> {
        let mut lookahead = Lookahead::default();
        let mut once = || {
            (accesses
                .iter()
                .map(|access| lookahead.misses(*access, REGION)))
            .collect()
        };
        (0..10).map(|_| once()).last().unwrap_or_default()
    }

    #[test]
    fn accesses_in_same_order_are_predicted() {
        use Access::{Exchange, Load, Store};
        assert_eq!(missed(&[Load, Load, Exchange, Store]), [false; 4]);
    }

    #[test]
    fn one_exception_changes_no_prediction() {
        let mut lookahead = Lookahead::default();
        let mut make = |access| lookahead.misses(access, REGION);
        let loads = [Access::Load; 10];
        assert!(!loads.map(&mut make).contains(&true));
        assert!(make(Access::Store));
        assert!(!loads.map(&mut make).contains(&true));
    }

    #[test]
    fn other_memory_is_another_access() {
        let mut lookahead = Lookahead::default();
        let loads = [REGION; 10].map(|region| lookahead.misses(Access::Load, region));
        assert!(!loads.contains(&true) && lookahead.misses(Access::Load, REGION + 1));
    }
}
