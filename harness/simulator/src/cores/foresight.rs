//! What a core foresees of its own accesses.
//!
//! A branch that depends on what was loaded cannot be seen here, but what it leads to can: another kind of
//! access than the last time after the same ones. A core predicts branches much like that.

use std::collections::HashMap;

use kcas::steps::Access;

/// An access as a branch predictor would tell it from others: what it does, and to which memory.
type Kind = (u8, u32);

/// How many accesses a prediction depends on.
const RECENT: usize = 3;

/// What a core has done, and what it predicts to do next.
#[derive(Debug, Default)]
pub(crate) struct Foresight {
    recent: [Option<Kind>; RECENT],
    /// What is predicted to come after these accesses, and whether it came the last time: it is predicted until
    /// something else has come twice in a row.
    expected: HashMap<[Option<Kind>; RECENT], (Kind, bool)>,
}

impl Foresight {
    /// Notes an access. Returns whether the core had predicted another one; what comes after accesses that are new to
    /// it counts as foreseen.
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

    /// Returns which of these accesses the core did not foresee, after it has made them often.
    fn missed(accesses: &[Access]) -> Vec<bool> {
        let mut foresight = Foresight::default();
        let mut once = || (accesses.iter().map(|of| foresight.misses(*of, REGION))).collect();
        (0..10).map(|_| once()).last().unwrap_or_default()
    }

    #[test]
    fn what_comes_in_the_same_order_is_foreseen() {
        use Access::{Exchange, Load, Store};
        assert_eq!(missed(&[Load, Load, Exchange, Store]), [false; 4]);
    }

    #[test]
    fn one_exception_is_missed_once_and_does_not_change_the_rule() {
        let mut foresight = Foresight::default();
        let mut make = |access| foresight.misses(access, REGION);
        let loads = [Access::Load; 10];
        assert!(!loads.map(&mut make).contains(&true));
        assert!(make(Access::Store));
        assert!(!loads.map(&mut make).contains(&true));
    }

    #[test]
    fn other_memory_is_another_access() {
        let mut foresight = Foresight::default();
        let loads = [REGION; 10].map(|region| foresight.misses(Access::Load, region));
        assert!(!loads.contains(&true) && foresight.misses(Access::Load, REGION + 1));
    }
}
