//! Signed ranks: an exact test of whether values lie symmetrically around 0
//! (Wilcoxon, *Individual Comparisons by Ranking Methods*, Biometrics Bulletin 1(6), 1945).
//!
//! Logarithms of ratios are such values if nothing differs, as two equal subjects could as well change
//! names. The test asks how likely the ranks of those above 0, by distance from 0, add up to as
//! uneven a sum if each is above or below with the same chance.

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
    let likely = sums_of(&ranks, smaller + zeros);
    (2.0 * likely.iter().sum::<f64>()).min(1.0)
}

/// Returns the probability of each sum, up to `most`, of these ranks, each of which is in it or not by chance.
fn sums_of(ranks: &[usize], most: usize) -> Vec<f64> {
    let mut likely = vec![0.0; most + 1];
    likely[0] = 1.0;
    for &rank in ranks {
        for sum in (0..likely.len()).rev() {
            let with = sum.checked_sub(rank).map_or(0.0, |rest| likely[rest]);
            likely[sum] = (likely[sum] + with) / 2.0;
        }
    }
    likely
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
        let endless = signed_rank(&[f64::INFINITY, 1.0, 2.0, -3.0]);
        assert_eq!(endless, 2.0 * 5.0 / 16.0);
    }
}
