//! What the theory of random graphs predicts for both tables, beside what [`SmartCuckoo`] did: how
//! many inserts fail, and what a delete costs.
//!
//! A table of m buckets to which n keys were offered is a random graph of m vertices and n edges,
//! counting refused keys. In whatever order they come, a component that is a tree takes all of its
//! keys, and any other takes as many as it has buckets. So the table holds m keys less the number
//! of trees. Keys start to fail at a mean degree c = 2 n/m of 1, which is a load factor of one
//! half.

use anyhow::{Context, Result};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use statrs::function::factorial::{ln_binomial, ln_factorial};
use statrs::statistics::Statistics;

use crate::smart_cuckoo::{CuckooTable, Key, SmartCuckoo};
use crate::theory::Claim;

/// Compares formula and measurement, in tables that the seed determines. A mean may be off by five
/// of its standard errors, estimated from the measured values.
///
/// # Errors
///
/// Only if a table cannot be built.
pub fn theory(seed: u64) -> Result<Vec<Claim>> {
    let random = &mut SmallRng::seed_from_u64(seed);
    let mut rows = Vec::new();
    for load in [0.4, 0.5, 0.75] {
        rows.push(failures_of_small_tables(load, random)?);
    }
    for load in [0.75, 1.0] {
        rows.push(share_of_failures(load, random)?);
    }
    for load in [0.25, 0.35] {
        rows.push(cost_of_a_delete(load, random)?);
    }
    Ok(rows)
}

fn failures_of_small_tables(load: f64, random: &mut SmallRng) -> Result<Claim> {
    const BUCKETS: usize = 64;
    const TABLES: usize = 4_000;
    let keys = (load * BUCKETS as f64) as usize;
    let failures = (0..TABLES).map(|_| Ok(offer(BUCKETS, keys, random)?.1 as f64));
    let failures = failures.collect::<Result<Vec<_>>>()?;
    Ok(compare(
        format!("failed inserts of a table of {BUCKETS} buckets that {keys} keys are offered to"),
        "n − m + E[trees], E[trees] = Σ_k C(m,k) k^(k−2) n!/(n−k+1)! (2/m²)^(k−1) (1−k/m)^(2(n−k+1)), by Cayley's formula",
        expected_failures(BUCKETS, keys),
        &failures,
    ))
}

fn share_of_failures(load: f64, random: &mut SmallRng) -> Result<Claim> {
    const BUCKETS: usize = 1 << 14;
    const TABLES: usize = 8;
    let keys = (load * BUCKETS as f64) as usize;
    let shares = (0..TABLES).map(|_| Ok(offer(BUCKETS, keys, random)?.1 as f64 / keys as f64));
    let shares = shares.collect::<Result<Vec<_>>>()?;
    Ok(compare(
        format!("share of inserts that fail, {load} keys a bucket"),
        "1 − (1 − (t − t²/2)/c)/(c/2), c = 2n/m, t e^(−t) = c e^(−c), t ≤ 1: trees of a random graph, Erdős and Rényi 1960",
        share_beyond_the_threshold(load),
        &shares,
    ))
}

/// Draws a key from those in the table, since large subgraphs have many keys, and measures its
/// delete.
fn cost_of_a_delete(load: f64, random: &mut SmallRng) -> Result<Claim> {
    const BUCKETS: usize = 1_024;
    const TABLES: usize = 1_000;
    let keys = (load * BUCKETS as f64) as usize;
    let walked = (0..TABLES).map(|_| {
        let (mut table, _) = offer(BUCKETS, keys, random)?;
        let inside: Vec<Key> = (0..BUCKETS)
            .filter_map(|bucket| table.buckets().key_in(bucket))
            .collect();
        let walked = table.remove(inside[random.random_range(0..inside.len())]);
        Ok(walked.context("a key is missing")? as f64)
    });
    let walked = walked.collect::<Result<Vec<_>>>()?;
    Ok(compare(
        format!("buckets that a delete tells their subgraph anew, load factor {load}"),
        "2/(1 − c), c = 2n/m < 1: the mean component of a vertex has 1/(1 − c), Bollobás, Random Graphs, 2001",
        2.0 / (1.0 - 2.0 * load),
        &walked,
    ))
}

/// Offers this many random keys to a table. Returns the table and how many it refused.
fn offer(buckets: usize, keys: usize, random: &mut SmallRng) -> Result<(SmartCuckoo, usize)> {
    let mut table = SmartCuckoo::new(buckets)?;
    let mut refused = 0;
    for _ in 0..keys {
        let key = Key::new(random.random()).unwrap_or(Key::MIN);
        refused += usize::from(!table.insert(key).placed);
    }
    Ok((table, refused))
}

fn compare(quantity: String, formula: &'static str, predicted: f64, measured: &[f64]) -> Claim {
    let allowed = 5.0 * measured.std_dev() / (measured.len() as f64).sqrt();
    Claim {
        structure: SmartCuckoo::NAME,
        quantity,
        formula,
        predicted,
        measured: measured.mean(),
        least: predicted - allowed,
        most: predicted + allowed,
    }
}

/// Returns the expected number of refused inserts in a table of this size: keys, less buckets, plus
/// the remaining trees. An exact sum over tree sizes.
fn expected_failures(buckets: usize, keys: usize) -> f64 {
    let (m, n) = (buckets as f64, keys as f64);
    let trees = |size: usize| {
        let (k, others) = (size as f64, keys + 1 - size);
        // No key may connect the tree to an outside vertex; that is certain if no key is left.
        let apart = match others {
            0 => 0.0,
            _ => 2.0 * others as f64 * (1.0 - k / m).ln(),
        };
        let places = ln_binomial(buckets as u64, size as u64) + (k - 2.0) * k.ln();
        let choices = ln_factorial(keys as u64) - ln_factorial(others as u64);
        (places + choices + (k - 1.0) * (2.0 / (m * m)).ln() + apart).exp()
    };
    let trees: f64 = (1..=buckets.min(keys + 1)).map(trees).sum();
    n - m + trees
}

/// Returns the share of inserts that a large table refuses.
fn share_beyond_the_threshold(load: f64) -> f64 {
    let c = 2.0 * load;
    // Newton's method would be faster, but this cannot miss the smaller solution, and ends within a
    // few dozen steps for c > 1.1.
    let mut t = 0.0;
    for _ in 0..1_000 {
        t = c * f64::exp(t - c);
    }
    1.0 - (1.0 - (t - t * t / 2.0) / c) / load
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_measured_agrees_with_theory() {
        for row in theory(1).unwrap() {
            assert!(row.holds(), "{row:?}");
            // The claim must not hold merely because its tolerance is so wide.
            assert!(row.most < 2.0 * row.predicted, "{row:?}");
        }
    }

    /// Kutzelnigg, *Bipartite Random Graphs and Cuckoo Hashing* (2006), and his thesis (2009): a
    /// table with 2m buckets for both functions and (1 − ε)m keys fails with probability (5 − 2ε)(1
    /// − ε)² / (48 ε³ m) + O(1/m²).
    #[test]
    fn the_sum_tends_to_the_known_probability_of_a_failure() {
        let sum = |epsilon: f64, m: usize| {
            let known = (5.0 - 2.0 * epsilon) * (1.0 - epsilon).powi(2)
                / (48.0 * epsilon.powi(3) * m as f64);
            expected_failures(2 * m, ((1.0 - epsilon) * m as f64) as usize) / known
        };
        for epsilon in [0.5, 0.75] {
            // Four times the table, a quarter of the error.
            let (small, large) = (sum(epsilon, 1 << 8) - 1.0, sum(epsilon, 1 << 10) - 1.0);
            assert!(large.abs() < 0.04, "{epsilon}: {large}");
            assert!(
                (3.0..5.0).contains(&(small / large)),
                "{epsilon}: {small} {large}"
            );
        }
    }

    /// Tables small enough to work out by hand.
    #[test]
    fn the_sum_is_right_for_two_buckets() {
        let near = |sum: f64, right: f64| (sum - right).abs() < 1e-12;
        assert!(near(expected_failures(2, 1), 0.0));
        // Two keys: refused if both have the same bucket twice, in 2 of 16 cases.
        assert!(near(expected_failures(2, 2), 0.125));
        // Three keys: one is refused, or two if all have the same bucket twice, in 2 of 64 cases.
        assert!(near(expected_failures(2, 3), 1.0 + 2.0 / 64.0));
    }

    #[test]
    fn shares_beyond_the_threshold_are_those_of_large_tables() {
        for load in [0.6, 0.75, 1.0] {
            let buckets = 1 << 14;
            let keys = (load * f64::from(buckets)) as usize;
            let exact = expected_failures(buckets as usize, keys) / keys as f64;
            assert!((share_beyond_the_threshold(load) - exact).abs() < 1e-4);
        }
    }
}
