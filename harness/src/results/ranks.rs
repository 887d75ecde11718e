//! Signed ranks: an exact test and exact intervals for values that lie symmetrically around their centre
//! (Wilcoxon, *Individual Comparisons by Ranking Methods*, Biometrics Bulletin 1(6), 1945).
//!
//! Logarithms of ratios are such values if nothing differs, as two equal subjects could as well change
//! names. The test asks how likely the ranks of those above 0, by distance from 0, add up to as
//! uneven a sum if each is above or below with the same chance. The interval has the values that it
//! does not exclude (Hodges and Lehmann, 1963): it excludes 0 where the test does.

use crate::results::median;

/// More values than this take long.
pub const MOST_RANKED: usize = 200;

/// Returns how likely chance makes the values lie as unevenly around 0 as these. Values equal to 0
/// count for whichever side has less.
pub fn signed_rank(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(|a, b| a.abs().total_cmp(&b.abs()));
    // Twice the ranks, as those that are equal share the middle of their ranks.
    let (mut ranks, mut sums, mut before) = (Vec::new(), [0; 2], 0);
    for equal in sorted.chunk_by(|a, b| a.abs() == b.abs()) {
        let rank = 2 * before + equal.len() + 1;
        before += equal.len();
        for value in equal {
            ranks.push(rank);
            if *value != 0.0 {
                sums[usize::from(*value > 0.0)] += rank;
            }
        }
    }
    // Those of zeros, if any, are of the smaller side.
    let smaller = sums[0].min(sums[1]);
    let zeros = ranks.iter().sum::<usize>() - sums[0] - sums[1];
    let likely: f64 = sums_of(&ranks).iter().take(smaller + zeros + 1).sum();
    (2.0 * likely).min(1.0)
}

/// Returns the probability of each sum of these ranks, each of which is in it or not by chance.
fn sums_of(ranks: &[usize]) -> Vec<f64> {
    let mut likely = vec![0.0; ranks.iter().sum::<usize>() + 1];
    likely[0] = 1.0;
    for &rank in ranks {
        for sum in (0..likely.len()).rev() {
            let with = sum.checked_sub(rank).map_or(0.0, |rest| likely[rest]);
            likely[sum] = (likely[sum] + with) / 2.0;
        }
    }
    likely
}

/// Returns the centre of at least one value, and the interval that covers the true one with at least
/// this probability; the range of all values where they are too few for any.
pub fn centre(values: &[f64], confidence: f64) -> [f64; 3] {
    let mut averages = Vec::new();
    for (at, a) in values.iter().enumerate() {
        averages.extend(values[at..].iter().map(|b| f64::midpoint(*a, *b)));
    }
    averages.sort_unstable_by(f64::total_cmp);
    let ranks: Vec<_> = (1..=values.len()).collect();
    let outside = (sums_of(&ranks).into_iter())
        .scan(0.0, |sum, likely| {
            *sum += likely;
            Some(*sum)
        })
        .take_while(|likely| 2.0 * likely <= 1.0 - confidence)
        .count()
        .saturating_sub(1);
    let ends = [outside, averages.len() - 1 - outside].map(|at| averages[at]);
    [ends[0], median(&mut averages), ends[1]]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sums are those of textbooks: at 5 %, 0 of 6, 3 of 8, 5 of 9, 8 of 10, 52 of 20.
    #[test]
    fn the_test_is_exact() {
        for (count, critical) in [(6, 0), (8, 3), (9, 5), (10, 8), (20, 52)] {
            let below = |sum: usize| {
                // The greatest ranks that add up to the sum are below 0.
                let mut left = sum;
                let value = |rank: usize| {
                    let takes = rank <= left;
                    left -= if takes { rank } else { 0 };
                    if takes { -(rank as f64) } else { rank as f64 }
                };
                let values: Vec<_> = (1..=count).rev().map(value).collect();
                assert_eq!(left, 0);
                signed_rank(&values)
            };
            assert!(below(critical) <= 0.05, "{count}");
            assert!(below(critical + 1) > 0.05, "{count}");
        }
        assert_eq!(signed_rank(&[1.0; 8]), 2.0 / 256.0);
        assert_eq!(signed_rank(&[0.0; 8]), 1.0);
        assert_eq!(signed_rank(&[]), 1.0);
        // A zero counts for the one below.
        assert_eq!(signed_rank(&[0.0, 1.0, 2.0, 3.0]), 4.0 / 16.0);
        assert_eq!(
            signed_rank(&[f64::INFINITY, 1.0, 2.0, -3.0]),
            2.0 * 5.0 / 16.0
        );
    }

    #[test]
    fn the_interval_excludes_what_the_test_does() {
        let values = [0.031, 0.034, 0.029, 0.037, 0.036, 0.028, 0.040, -0.002];
        let [low, middle, high] = centre(&values, 0.95);
        for (at, excluded) in [
            (low - 1e-6, true),
            (low + 1e-6, false),
            (middle, false),
            (high - 1e-6, false),
            (high + 1e-6, true),
        ] {
            let from: Vec<_> = values.iter().map(|value| value - at).collect();
            assert_eq!(signed_rank(&from) <= 0.05, excluded, "{at}");
        }
        assert_eq!(centre(&[1.0, 3.0], 0.95), [1.0, 2.0, 3.0]);
        assert_eq!(centre(&[7.0], 0.95), [7.0; 3]);
    }
}
