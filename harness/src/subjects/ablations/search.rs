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
    /// Returns an eviction path from one of a location's buckets, if it finds one.
    fn search(geometry: &Geometry, of: Location, read: impl Fn(usize) -> u64) -> Option<Chain>;
}

/// Ours: finds the shortest path among some hundreds of buckets.
pub struct BreadthFirst;

impl Search for BreadthFirst {
    #[inline]
    fn search(geometry: &Geometry, of: Location, read: impl Fn(usize) -> u64) -> Option<Chain> {
        find_chain(geometry, of, read)
    }
}

/// The classic search (Fan, Andersen, Kaminsky and Mitzenmacher, *Cuckoo Filter: Practically Better
/// Than Bloom*, 2014): at each full bucket, the fingerprint in a random slot is the one to move.
///
/// Theirs kicks fingerprints out as it goes, which needs a lock (`global-lock` has it). This one only
/// reads, and its path is carried out as one K-CAS. A path that is too long for a K-CAS
/// ([`MAX_CHAIN`](filter::internals::path::MAX_CHAIN) buckets) or that meets itself is of no use, so
/// it then starts again, with the same number of kicks in all.
pub struct RandomWalk;

impl Search for RandomWalk {
    #[inline(never)]
    fn search(geometry: &Geometry, of: Location, read: impl Fn(usize) -> u64) -> Option<Chain> {
        // The bucket's contents, including its timestamp, differ each time, and no state has to be
        // kept.
        let mut random = SmallRng::seed_from_u64(read(of.first));
        let mut kicks = 0;
        while kicks < MAX_KICKS {
            let root = if random.random() { of.first } else { of.second };
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
    use filter::internals::path::MAX_CHAIN;
    use subject::layout::{geometry, locate};

    use super::*;

    /// Returns the lengths of paths for many keys, where one bucket of eight has an empty slot.
    fn lengths<S: Search>() -> Vec<usize> {
        let mut random = SmallRng::seed_from_u64(1);
        let mut bucket = |_| {
            let taken = usize::from(random.random_ratio(1, 8))..SLOTS_PER_BUCKET;
            taken.fold(0, |word, slot| {
                Layout::place(word, slot, random.random_range(1..=Layout::MAX_FINGERPRINT))
            })
        };
        let words: Vec<u64> = (0..10_000).map(&mut bucket).collect();
        let geometry = geometry(words.len()).unwrap();
        let length = |key: u64| {
            let location = locate(&geometry, &key);
            S::search(&geometry, location, |bucket| words[bucket]).map_or(0, |chain| chain.len())
        };
        (0..2_000).map(length).collect()
    }

    #[test]
    fn random_paths_are_longer_than_shortest() {
        let (shortest, random) = (lengths::<BreadthFirst>(), lengths::<RandomWalk>());
        let sum = |lengths: &[usize]| lengths.iter().sum::<usize>();
        assert!(sum(&random) > sum(&shortest) * 3 / 2);
        assert_eq!(random.iter().max(), Some(&MAX_CHAIN));
        assert!(std::iter::zip(&shortest, &random).all(|(shortest, random)| shortest <= random));
    }
}
