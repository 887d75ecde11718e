//! What the theory of random graphs predicts for both tables, beside what [`SmartCuckoo`] did: how
//! many inserts fail, and what a delete costs.
//!
//! A table of m buckets to which n keys were offered is a random graph of m vertices and n edges,
//! counting refused keys. In whatever order they come, a component that is a tree takes all of its
//! keys, and any other takes as many as it has buckets. The table therefore holds m keys less the number
//! of trees. Keys start to fail at a mean degree c = 2 n/m of 1, which is a load factor of one
//! half.

use anyhow::{Context, Result};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use crate::smart_cuckoo::{CuckooTable, Key, SmartCuckoo};
use crate::theory::{Claim, Trial};

pub fn claims(trial: Trial) -> Result<Vec<Claim>> {
    let random = &mut SmallRng::seed_from_u64(trial.seed);
    let mut claims = Vec::new();
    for load in [0.75, 1.0] {
        let buckets = 1 << 14;
        let keys = (load * f64::from(buckets)) as usize;
        let shares =
            (0..8).map(|_| Ok(offer(buckets as usize, keys, random)?.1 as f64 / keys as f64));
        claims.push(Claim::mean(
            format!("share of inserts that fail, {load} keys a bucket"),
            "1 − (1 − (t − t²/2)/c)/(c/2), c = 2n/m, t e^(−t) = c e^(−c), t ≤ 1: trees of a random graph, Erdős and Rényi 1960",
            share_beyond_threshold(load),
            &shares.collect::<Result<Vec<_>>>()?,
        ));
    }
    for load in [0.25, 0.35] {
        // Draws a key from those in the table, since large subgraphs have many keys.
        let walked = (0..1_000).map(|_| {
            let (mut table, _) = offer(1_024, (load * 1_024.0) as usize, random)?;
            let inside = (0..1_024).filter_map(|bucket| table.buckets().key_in(bucket));
            let inside: Vec<Key> = inside.collect();
            let walked = table.remove(inside[random.random_range(0..inside.len())]);
            Ok(walked.context("a key is missing")? as f64)
        });
        claims.push(Claim::mean(
            format!("buckets that a delete tells their subgraph again, load factor {load}"),
            "2/(1 − c), c = 2n/m < 1: the mean component of a vertex has 1/(1 − c), Bollobás, Random Graphs, 2001",
            2.0 / (1.0 - 2.0 * load),
            &walked.collect::<Result<Vec<_>>>()?,
        ));
    }
    Ok(claims)
}

/// Offers this many random keys to a table. Returns the table and how many it refused.
fn offer(buckets: usize, keys: usize, random: &mut SmallRng) -> Result<(SmartCuckoo, usize)> {
    let mut table = SmartCuckoo::new(buckets)?;
    let mut key = || Key::new(random.random()).unwrap_or(Key::MIN);
    let refused = (0..keys).filter(|_| !table.insert(key()).placed).count();
    Ok((table, refused))
}

fn share_beyond_threshold(load: f64) -> f64 {
    let c = 2.0 * load;
    // Newton's method would be faster, but this cannot miss the smaller solution, and ends within a
    // few dozen steps for c > 1.1.
    let mut t = 0.0;
    for _ in 0..1_000 {
        t = c * f64::exp(t - c);
    }
    1.0 - (1.0 - (t - t * t / 2.0) / c) / load
}
