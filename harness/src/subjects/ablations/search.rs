//! Ways to search for an eviction path that ends in an empty slot.

use filter::internals::Location;
use filter::internals::path::{Chain, Step};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use subject::SLOTS_PER_BUCKET;
use subject::layout::{Geometry, Layout};

use crate::subjects::locks::chain::find_chain;
use crate::subjects::locks::victim_cuckoo::MAX_KICKS;

/// A way to search. It only reads.
pub trait Search: 'static {
    /// Returns an eviction path from one of the two buckets of a location, if it finds one. `read`
    /// returns a bucket's word.
    fn search(
        geometry: &Geometry,
        location: Location,
        read: impl Fn(usize) -> u64,
    ) -> Option<Chain>;
}

/// Ours: finds the shortest path among some hundreds of buckets.
#[derive(Debug)]
pub struct BreadthFirst;

impl Search for BreadthFirst {
    #[inline]
    fn search(
        geometry: &Geometry,
        location: Location,
        read: impl Fn(usize) -> u64,
    ) -> Option<Chain> {
        find_chain(geometry, location, read)
    }
}

/// The classic search (Fan, Andersen, Kaminsky and Mitzenmacher, *Cuckoo Filter: Practically Better
/// Than Bloom*, 2014): at each full bucket, the fingerprint in a random slot is the one to move.
///
/// It is not exactly theirs. Theirs kicks fingerprints out as it goes, up to 500 times, and holds the
/// one kicked out last in its hand, where no lookup finds it: that needs a lock. This one only reads,
/// and the path it finds is carried out as one K-CAS, as all else is ours. A path that is too long
/// for a K-CAS ([`MAX_CHAIN`](filter::internals::path::MAX_CHAIN) buckets) or that meets itself is of
/// no use, so it then starts again, with the same number of kicks in all. Their walk as published is
/// in `global-lock`, under a mutex.
///
/// Theirs cannot be had here with all else equal:
///
/// - *In one K-CAS*, 500 kicks need as many entries. The record of each thread has room for eight,
///   and a walk that returns to a bucket names a word twice, which no K-CAS can.
/// - *Step by step, forwards*, as published, lookups would miss the fingerprint in hand, or they
///   would have to look in a third place, where each thread keeps its own.
/// - *Hop by hop, backwards* from the empty slot ([`HopByHop`](super::HopByHop)), a path may be
///   longer than a K-CAS. But a walk that returns to a slot moves on what it had put there, and going
///   backwards that is not there yet: other fingerprints would move than in theirs. Two decisions
///   would differ from the control, too.
#[derive(Debug)]
pub struct RandomWalk;

impl Search for RandomWalk {
    #[inline(never)]
    fn search(
        geometry: &Geometry,
        location: Location,
        read: impl Fn(usize) -> u64,
    ) -> Option<Chain> {
        // The bucket's contents, including its timestamp, differ each time, and no state has to be
        // kept.
        let mut random = SmallRng::seed_from_u64(read(location.first));
        let mut kicks = 0;
        while kicks < MAX_KICKS {
            let root = if random.random() {
                location.first
            } else {
                location.second
            };
            let (chain, ended) = walk(geometry, root, &mut random, &read);
            if ended {
                return Some(chain);
            }
            kicks += chain.len();
        }
        None
    }
}

/// Walks from a bucket until it finds an empty slot (true), returns to a bucket already visited, or
/// reaches the maximum length of a path.
fn walk(
    geometry: &Geometry,
    mut bucket: usize,
    random: &mut SmallRng,
    read: impl Fn(usize) -> u64,
) -> (Chain, bool) {
    let mut chain = Chain::new();
    while chain.iter().all(|step| step.bucket != bucket) && !chain.is_full() {
        let word = read(bucket);
        let empty = Layout::find_empty(word);
        let slot = empty.unwrap_or_else(|| random.random_range(0..SLOTS_PER_BUCKET));
        chain.push(Step { bucket, slot, word });
        if empty.is_some() {
            return (chain, true);
        }
        bucket = geometry.other(Layout::fingerprint(word, slot), bucket);
    }
    (chain, false)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use filter::internals::path::MAX_CHAIN;
    use subject::layout::{geometry, locate};

    use super::*;

    /// Returns a table in which one bucket in `one_in` has an empty slot.
    fn table(one_in: u64, buckets: usize) -> (Geometry, Vec<u64>) {
        let mut random = SmallRng::seed_from_u64(1);
        let mut bucket = |_| {
            let full = !random.random_ratio(1, one_in as u32);
            (0..SLOTS_PER_BUCKET).fold(0, |word, slot| match slot {
                0 if !full => word,
                _ => Layout::place(word, slot, random.random_range(1..=Layout::MAX_FINGERPRINT)),
            })
        };
        let words = (0..buckets).map(&mut bucket).collect();
        (geometry(buckets).unwrap(), words)
    }

    /// Checks that each path is valid, and returns their lengths.
    fn chains<S: Search>() -> Vec<usize> {
        let (geometry, words) = table(8, 10_000);
        let length_of_chain = |key: u64| {
            let location = locate(&geometry, &key);
            let chain = S::search(&geometry, location, |bucket| words[bucket]).unwrap();
            let (last, before) = chain.split_last().unwrap();
            assert!([location.first, location.second].contains(&chain[0].bucket));
            assert_eq!(Layout::fingerprint(last.word, last.slot), 0);
            for (step, next) in before.iter().zip(&chain[1..]) {
                assert_eq!(step.word, words[step.bucket]);
                let moving = Layout::fingerprint(step.word, step.slot);
                assert_eq!(geometry.other(moving, step.bucket), next.bucket);
            }
            let buckets: HashSet<_> = chain.iter().map(|step| step.bucket).collect();
            assert_eq!(buckets.len(), chain.len(), "no bucket occurs twice");
            chain.len()
        };
        (0..2_000).map(length_of_chain).collect()
    }

    #[test]
    fn both_find_chains_and_random_ones_are_longer() {
        let (shortest, random) = (chains::<BreadthFirst>(), chains::<RandomWalk>());
        let sum = |lengths: &[usize]| lengths.iter().sum::<usize>();
        assert!(sum(&random) > sum(&shortest) * 3 / 2);
        assert_eq!(random.iter().max(), Some(&MAX_CHAIN));
        assert!(std::iter::zip(&shortest, &random).all(|(shortest, random)| shortest <= random));
    }

    #[test]
    fn a_full_table_has_none() {
        let (geometry, full) = table(u64::from(u32::MAX), 100);
        let location = locate(&geometry, &1);
        assert_eq!(
            RandomWalk::search(&geometry, location, |bucket| full[bucket]),
            None
        );
    }
}
