//! Confidence intervals by bootstrap: how far a median would move if the same rounds were drawn
//! again.
//!
//! The percentile method of Efron (*Bootstrap Methods: Another Look at the Jackknife*, Annals of
//! Statistics 7(1), 1979; Efron & Tibshirani, *An Introduction to the Bootstrap*, 1993, chapter
//! 13): as many rounds as were measured are drawn from them with replacement; the statistic of each
//! such resample is taken; the middle 95 % of these are the interval. It assumes nothing about the
//! distribution of the measurements. Resamples are drawn from a fixed seed, so that the same rows
//! give the same interval.
//!
//! With few rounds the interval of a median extends from the smallest to the largest value. It
//! covers the true median in 1 - 2 / 2ⁿ of all cases: never with one round, in half of all cases
//! with two, in 94 % with five. Below [`FEWEST`](crate::results::verdict::FEWEST) rounds it is
//! therefore only a range, and no basis for a claim.

use std::cell::RefCell;
use std::rc::Rc;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

/// The share of the resamples that lies within an interval.
const CONFIDENCE: f64 = 0.95;
/// More resamples would move the ends of an interval by less than rounds do.
const RESAMPLES: usize = 2_000;
const SEED: u64 = 1979;

thread_local! {
    /// All resamples of the number of rounds that was requested last: usually the next interval
    /// needs the same.
    static DRAWN: RefCell<Rc<[usize]>> = RefCell::default();
}

/// Returns all resamples of `rounds` rounds, one after the other; each is the list of rounds drawn.
fn resamples(rounds: usize) -> Rc<[usize]> {
    DRAWN.with_borrow_mut(|drawn| {
        if drawn.len() != RESAMPLES * rounds {
            let random = &mut SmallRng::seed_from_u64(SEED);
            *drawn = (0..RESAMPLES * rounds)
                .map(|_| random.random_range(0..rounds))
                .collect();
        }
        Rc::clone(drawn)
    })
}

/// Returns the interval of a statistic. The statistic gets the numbers of the rounds drawn, each
/// from 0 to below `rounds`: all that belongs to one round is drawn together. `None` without
/// rounds.
pub fn interval(rounds: usize, statistic: impl FnMut(&[usize]) -> f64) -> Option<(f64, f64)> {
    if rounds == 0 {
        return None;
    }
    let resamples = resamples(rounds);
    let mut statistics: Vec<f64> = resamples.chunks_exact(rounds).map(statistic).collect();
    let outside = ((1.0 - CONFIDENCE) / 2.0 * RESAMPLES as f64) as usize;
    let mut nth = |nth| *statistics.select_nth_unstable_by(nth, f64::total_cmp).1;
    Some((nth(outside), nth(RESAMPLES - 1 - outside)))
}

/// Returns the interval of the median of these values; `None` if there are none.
pub fn of_median(values: &[f64]) -> Option<(f64, f64)> {
    let count = values.len();
    let mut ascending: Vec<usize> = (0..count).collect();
    ascending.sort_unstable_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0; count];
    for (rank, &round) in ascending.iter().enumerate() {
        ranks[round] = rank;
    }
    // How often each value was drawn, in ascending order: this finds the median without sorting
    // each resample.
    let mut times = vec![0; count];
    interval(count, |drawn| {
        times.fill(0);
        for &round in drawn {
            times[ranks[round]] += 1;
        }
        let (mut rank, mut passed) = (0, times[0]);
        let mut nth = |nth| {
            while passed <= nth {
                rank += 1;
                passed += times[rank];
            }
            values[ascending[rank]]
        };
        // Call it in this order: it only moves forward.
        let lower = nth((count - 1) / 2);
        let upper = nth(count / 2);
        if count.is_multiple_of(2) {
            f64::midpoint(lower, upper)
        } else {
            upper
        }
    })
}

/// Returns the median of at least one value. Reorders the values.
pub fn median(values: &mut [f64]) -> f64 {
    let middle = values.len() / 2;
    let even = values.len().is_multiple_of(2);
    let (below, &mut upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    if !even {
        return upper;
    }
    let lower = below.iter().copied().max_by(f64::total_cmp);
    lower.map_or(upper, |lower| f64::midpoint(lower, upper))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::verdict::FEWEST;

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(&mut [7.0]), 7.0);
        assert_eq!(median(&mut [9.0, 1.0]), 5.0);
        assert_eq!(median(&mut [5.0, 1.0, 4.0, 2.0, 3.0]), 3.0);
        assert_eq!(median(&mut [4.0, 1.0, 10.0, 2.0]), 3.0);
    }

    #[test]
    fn few_values_give_their_range() {
        assert_eq!(of_median(&[]), None);
        assert_eq!(of_median(&[3.0]), Some((3.0, 3.0)));
        assert_eq!(of_median(&[4.0, 2.0]), Some((2.0, 4.0)));
        let five = [5.0, 1.0, 2.0, 4.0, 3.0];
        assert_eq!(of_median(&five), Some((1.0, 5.0)));
    }

    #[test]
    fn the_same_values_give_the_same_interval() {
        let values: Vec<f64> = (0..11).map(|value| f64::from(value * value)).collect();
        let interval = of_median(&values).unwrap();
        assert_eq!(of_median(&values), Some(interval));
        // A mean depends on all values, so that different draws would show.
        let mean = |drawn: &[usize]| drawn.iter().map(|&of| values[of]).sum::<f64>() / 11.0;
        assert_eq!(super::interval(11, mean), super::interval(11, mean));
        // Covers neither all values nor the median alone.
        assert!(0.0 < interval.0 && interval.0 < 25.0, "{interval:?}");
        assert!(25.0 < interval.1 && interval.1 < 100.0, "{interval:?}");
    }

    /// Covers values drawn any number of times, and both one and two values in the middle.
    #[test]
    fn the_median_of_a_resample_is_that_of_its_values() {
        for values in [
            &[2.0, 7.0, 1.0, 7.0, 5.0, 3.0, 8.0][..],
            &[4.0, -1.0, 4.0, 6.0, 2.5, 9.0],
            &[1.0, 3.0],
            &[f64::INFINITY, 1.0, 2.0, f64::INFINITY, 0.0, 5.0],
        ] {
            let by_sorting = interval(values.len(), |drawn| {
                median(&mut drawn.iter().map(|&round| values[round]).collect::<Vec<_>>())
            });
            assert_eq!(of_median(values), by_sorting, "{values:?}");
        }
    }

    /// Cached resamples for another number of rounds are not reused.
    #[test]
    fn an_interval_does_not_depend_on_what_was_asked_for_before() {
        let values = [3.0, 1.0, 4.0, 1.5, 5.0, 9.0, 2.0];
        let alone = std::thread::spawn(move || of_median(&values));
        for count in 1..=7 {
            of_median(&values[..count]);
        }
        of_median(&[0.0; 12]);
        assert_eq!(of_median(&values), alone.join().unwrap());
    }

    #[test]
    fn an_infinite_value_is_drawn_like_any_other() {
        let mut values = vec![1.0; 12];
        values.push(f64::INFINITY);
        assert_eq!(of_median(&values), Some((1.0, 1.0)));
    }

    /// Returns in how many of 100 samples of a skewed distribution the interval covers its true
    /// median.
    fn coverage(rounds: usize) -> f64 {
        const SAMPLES: usize = 200;
        let random = &mut SmallRng::seed_from_u64(rounds as u64);
        let covers = |_: &usize| {
            // Exponentially distributed.
            let values: Vec<f64> = (0..rounds)
                .map(|_| -(1.0 - random.random::<f64>()).ln())
                .collect();
            let truth = std::f64::consts::LN_2;
            of_median(&values).is_some_and(|(low, high)| low <= truth && truth <= high)
        };
        let covered = (0..SAMPLES).filter(covers).count();
        covered as f64 / SAMPLES as f64 * 100.0
    }

    #[test]
    fn the_true_median_is_covered_as_often_as_promised() {
        for rounds in [9, 21] {
            let coverage = coverage(rounds);
            assert!((88.0..=99.0).contains(&coverage), "{rounds}: {coverage}");
        }
    }

    #[test]
    fn too_few_rounds_cover_the_true_median_less_often() {
        assert!(coverage(FEWEST - 2) < 85.0);
        assert!(coverage(FEWEST) > 90.0);
    }
}
