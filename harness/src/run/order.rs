//! The order in which subjects take turns.
//!
//! Each round has an order of its own. If subjects only rotated, each would always follow the same
//! one, and would find the caches and the clock rate as that one leaves them.

use anyhow::Result;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;

/// Returns the subjects of a round, from 1, in an order of its own. `turn` numbers what is measured in
/// that round. The same numbers give the same order, so that an interrupted run can go on. Round 1
/// keeps the order of the list: figures and tables name subjects in the order of their first rows.
pub fn shuffled<T: Clone>(subjects: &[T], seed: u64, round: usize, turn: usize) -> Vec<T> {
    let mut subjects = subjects.to_vec();
    if round > 1 {
        let drawn = seed ^ (round as u64) << 32 ^ (turn as u64) << 48;
        subjects.shuffle(&mut SmallRng::seed_from_u64(drawn));
    }
    subjects
}

/// Measures each subject in each case, in rounds. The subjects of a case are in a new order each time.
/// Fails as soon as `measure` does.
pub fn in_rounds<C, S: Clone>(
    (seed, rounds): (u64, usize),
    cases: &[C],
    subjects: &[S],
    mut measure: impl FnMut(usize, &C, &S) -> Result<()>,
) -> Result<()> {
    for round in 1..=rounds {
        for (turn, case) in cases.iter().enumerate() {
            for subject in &shuffled(subjects, seed, round, turn) {
                measure(round, case, subject)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: [usize; 4] = [0, 1, 2, 3];

    #[test]
    fn an_order_depends_on_seed_round_and_turn() {
        assert_eq!(shuffled(&LIST, 1, 1, 5), LIST);
        let all = |of: &dyn Fn(usize) -> Vec<usize>| {
            let orders: std::collections::BTreeSet<_> = (2..50).map(of).collect();
            assert!(orders.len() > 12, "{orders:?}");
        };
        all(&|round| shuffled(&LIST, 1, round, 0));
        all(&|turn| shuffled(&LIST, 1, 2, turn));
        all(&|seed| shuffled(&LIST, seed as u64, 2, 0));
        assert_eq!(shuffled(&LIST, 7, 3, 2), shuffled(&LIST, 7, 3, 2));
    }
}
