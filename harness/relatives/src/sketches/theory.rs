//! The claims of the literature about the sketches: rows of formula beside measurement.

use std::f64::consts::{E, LN_2};

use anyhow::Result;
use filter::hashing::mix;
use statrs::distribution::{Binomial, ChiSquared, ContinuousCDF, DiscreteCDF, Normal};
use statrs::statistics::Statistics;

use crate::sketches::{CountMin, HyperLogLog};
use crate::theory::Claim;

/// The standard deviations by which a measurement may be off. Chance exceeds this once in 1.7
/// million rows.
const SIGMAS: f64 = 5.0;

/// Returns hashes of keys, different for every seed.
fn hashes(seed: u64, keys: u64) -> impl Iterator<Item = u64> {
    let start = mix(seed);
    (0..keys).map(move |key| mix(start.wrapping_add(key)))
}

/// Measures the count-min sketch: estimates are never too low, and seldom too high.
///
/// # Errors
///
/// If a sketch cannot be built.
pub fn count_min() -> Result<Vec<Claim>> {
    const ERROR: f64 = 0.01;
    const FAILURE: f64 = 0.05;
    let width = (E / ERROR).ceil() as u64;
    let uniform = vec![10; width as usize];
    let zipf: Vec<_> = (1..=2_000)
        .map(|rank| (20_000.0 / f64::from(rank)) as u64)
        .collect();
    let mut rows = Vec::new();
    for (stream, sketches, counts) in [
        ("10 of each key", 400, uniform),
        ("a Zipf law of exponent 1", 40, zipf),
    ] {
        let about = |what| format!("{what}, ε = {ERROR}, δ = {FAILURE}, {stream}");
        let measured = measure_count_min(ERROR, FAILURE, &counts, sketches)?;
        rows.push(Claim {
            structure: "count-min",
            quantity: about("estimates below the count"),
            formula: "none (Cormode and Muthukrishnan 2005)",
            predicted: 0.0,
            measured: measured.too_low as f64,
            least: 0.0,
            most: 0.0,
        });
        let share = (&measured.too_high).mean();
        let allowed = SIGMAS * (&measured.too_high).std_dev() / f64::from(sketches).sqrt();
        rows.push(Claim {
            structure: "count-min",
            quantity: about("share of keys whose error is above ε N"),
            formula: "δ at most, for width ⌈e/ε⌉ and depth ⌈ln 1/δ⌉ (Cormode and Muthukrishnan 2005)",
            predicted: FAILURE,
            measured: share,
            least: 0.0,
            most: FAILURE + allowed,
        });
        if stream.starts_with("10") {
            // The number of other keys that may share a counter before their occurrences exceed ε
            // N.
            let bearable = (ERROR * counts.len() as f64).floor() as u64;
            let others = Binomial::new(1.0 / width as f64, counts.len() as u64 - 1)?;
            let predicted = others.sf(bearable).powi((1.0 / FAILURE).ln().ceil() as i32);
            rows.push(Claim {
                structure: "count-min",
                quantity: about("share of keys whose error is above ε N, exactly"),
                formula: "P(B(n − 1, 1/w) > ε n)^d: keys fall into the counters of each row like balls into bins",
                predicted,
                measured: share,
                least: predicted - allowed,
                most: predicted + allowed,
            });
        }
    }
    Ok(rows)
}

/// The errors measured in several sketches of one stream.
struct CountMinErrors {
    /// The number of estimates below the count.
    too_low: usize,
    /// For each sketch, the share of keys whose estimates were too high by more than ε N.
    too_high: Vec<f64>,
}

/// Sketches a stream whose keys have these counts, with other hashes each time.
fn measure_count_min(
    error: f64,
    failure: f64,
    counts: &[u64],
    sketches: u32,
) -> Result<CountMinErrors> {
    let mut errors = CountMinErrors {
        too_low: 0,
        too_high: Vec::new(),
    };
    for seed in 0..u64::from(sketches) {
        let sketch = CountMin::new(error, failure, seed)?;
        let keys = || hashes(seed, counts.len() as u64).zip(counts);
        keys().for_each(|(hash, &count)| _ = sketch.add(hash, count));
        let mut too_high = 0;
        let bearable = error * counts.iter().sum::<u64>() as f64;
        for (hash, &count) in keys() {
            let estimate = sketch.estimate(hash);
            errors.too_low += usize::from(estimate < count);
            too_high += usize::from(estimate.saturating_sub(count) as f64 > bearable);
        }
        let share = too_high as f64 / counts.len() as f64;
        errors.too_high.push(share);
    }
    Ok(errors)
}

/// Measures HyperLogLog: estimates are unbiased and as precise as they should be, and those of
/// merged sketches equal those of the union.
///
/// # Errors
///
/// If a sketch cannot be built.
pub fn hyper_log_log() -> Result<Vec<Claim>> {
    const PRECISION: u8 = 10;
    const SEEDS: u64 = 250;
    let registers = f64::from(1 << PRECISION);
    let mut rows = Vec::new();
    for keys in [100, 1_000, 3_000, 10_000] {
        let about = |what: &str| format!("{what}, m = {registers}, {keys} keys");
        let mut errors = Vec::new();
        for seed in 0..SEEDS {
            let sketch = HyperLogLog::new(PRECISION)?;
            hashes(seed, keys).for_each(|hash| sketch.insert(hash));
            errors.push(sketch.estimate() / keys as f64 - 1.0);
        }
        let deviation = predicted_deviation(registers, keys as f64);
        let allowed = SIGMAS * deviation / (SEEDS as f64).sqrt();
        rows.push(Claim {
            structure: "hyperloglog",
            quantity: about("mean relative error"),
            formula: "0 (Ertl 2017: unbiased)",
            predicted: 0.0,
            measured: (&errors).mean(),
            least: -allowed,
            most: allowed,
        });
        let (least, most) = deviations(SEEDS);
        rows.push(Claim {
            structure: "hyperloglog",
            quantity: about("standard deviation of the relative error"),
            formula: "1.04/√m (Flajolet et al. 2007) of many keys; of few, smaller, by the delta method",
            predicted: deviation,
            measured: (&errors).std_dev(),
            least: least * deviation,
            most: most * deviation,
        });
    }
    rows.push(union(PRECISION)?);
    Ok(rows)
}

/// Returns the standard deviation of the relative error with n keys in m registers, to first order.
///
/// Take the number of keys as Poisson, so that the registers are independent: a rank is at most k
/// with probability e^(−t / 2^k), where t = n / m. The estimate is α m² / Z, where Z is a sum over
/// the registers. In it, a register of rank k contributes g(k) = 2^−k, and one of rank 0
/// contributes g(0) = σ′(e^−t), to first order. So the relative variance is that of g × t² / (α²
/// m), less the share 1 / n that is due to the Poisson number itself.
fn predicted_deviation(m: f64, n: f64) -> f64 {
    let t = n / m;
    let at_most = |k: i32| (-t * 2_f64.powi(-k)).exp();
    let slope = |x: f64| {
        let terms = (1..60).map(|k| 2_f64.powi(2 * k - 1) * x.powf(2_f64.powi(k) - 1.0));
        1.0 + terms.sum::<f64>()
    };
    let of_zero = (at_most(0), slope(at_most(0)));
    let of_rank = |k| (at_most(k) - at_most(k - 1), 2_f64.powi(-k));
    let law: Vec<_> = [of_zero].into_iter().chain((1..60).map(of_rank)).collect();
    let moment = |power| -> f64 { law.iter().map(|(p, g)| p * g.powi(power)).sum() };
    let variance = moment(2) - moment(1).powi(2);
    let alpha = 1.0 / (2.0 * LN_2);
    ((variance * (t / alpha).powi(2) - 1.0 / t) / m).sqrt()
}

/// Returns the multiples of the true standard deviation between which that of a sample lies, except
/// with a probability as small as that of [`SIGMAS`]: its square, times the degrees of freedom,
/// follows the chi-square law.
fn deviations(sample: u64) -> (f64, f64) {
    let freedom = sample as f64 - 1.0;
    let chance = Normal::standard().cdf(-SIGMAS);
    // There is at least one degree of freedom.
    let law = ChiSquared::new(freedom.max(1.0)).expect("the degrees of freedom are positive");
    let multiple = |chance| (law.inverse_cdf(chance) / freedom).sqrt();
    (multiple(chance), multiple(1.0 - chance))
}

/// Compares a merged sketch with that of the union.
fn union(precision: u8) -> Result<Claim> {
    let of = |keys: &mut dyn Iterator<Item = u64>| {
        let sketch = HyperLogLog::new(precision)?;
        keys.for_each(|hash| sketch.insert(hash));
        anyhow::Ok(sketch)
    };
    let merged = of(&mut hashes(1, 20_000).take(12_000))?;
    merged.merge(&of(&mut hashes(1, 20_000).skip(8_000))?)?;
    let whole = of(&mut hashes(1, 20_000))?;
    Ok(Claim {
        structure: "hyperloglog",
        quantity:
            "registers of a merged sketch that are not those of the union, m = 1024, 20000 keys"
                .into(),
        formula: "none (Flajolet et al. 2007)",
        predicted: 0.0,
        measured: merged.differing(&whole) as f64,
        least: 0.0,
        most: 0.0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rows: &[Claim]) {
        for row in rows {
            assert!(row.holds(), "{row:?}");
        }
    }

    #[test]
    fn count_min_is_as_wrong_as_the_paper_says() {
        check(&count_min().unwrap());
    }

    #[test]
    fn hyper_log_log_is_as_wrong_as_the_papers_say() {
        check(&hyper_log_log().unwrap());
    }

    #[test]
    fn the_predicted_deviation_is_flajolets_of_many_keys_and_linear_countings_of_few() {
        let many = predicted_deviation(1024.0, 1e12) * 32.0;
        assert!((many - 1.03896).abs() < 0.0001, "{many}");
        for t in [0.01_f64, 0.1] {
            let linear = (t.exp() - t - 1.0).sqrt() / t;
            let few = predicted_deviation(1024.0, 1024.0 * t) * 32.0;
            assert!((few / linear - 1.0).abs() < 0.02, "{few}, not {linear}");
        }
    }

    #[test]
    fn deviations_of_a_large_sample_are_as_the_normal_law_has_them() {
        let (least, most) = deviations(20_000);
        let expected = SIGMAS / (2.0 * 20_000_f64).sqrt();
        assert!((1.0 - least - expected).abs() < 0.001, "{least}");
        assert!((most - 1.0 - expected).abs() < 0.001, "{most}");
    }
}
