//! The keys that occurred most often: a list of candidates beside a [`CountMin`] sketch.
//!
//! Every thread keeps its own candidates, and offers each key with the estimate that
//! [`CountMin::add`] returned. [`merge`](TopK::merge) combines the candidates of all threads, and
//! [`ranked`](TopK::ranked) asks the sketch about them once more.
//!
//! **Guarantee.** If no estimate is too high by more than ε N, then the k heaviest include every
//! key that occurred more than *f* + ε N + T − 1 times, where *f* is the count of the (k + 1)-th
//! heaviest key, and T is the number of threads. The reason: of all calls that add the key, the
//! last to begin returns at least the key's count less T − 1, which is what calls in progress can
//! hide. And the key is dropped only in favour of k others whose estimates are no smaller, one of
//! which occurred at most *f* times.
//!
//! Dropping is lazy: candidates pile up to twice k, and then the lesser half is dropped at once. A
//! key costs one comparison if its estimate is too low, and one access to a hash map otherwise.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use nohash_hasher::BuildNoHashHasher;

use super::CountMin;

/// The keys with the greatest estimates, as seen by one thread. A `Label` identifies a key besides
/// its hash.
#[derive(Debug)]
pub struct TopK<Label> {
    k: usize,
    /// At least k candidates have this estimate or more, once there have been more than k.
    threshold: u64,
    candidates: HashMap<u64, Candidate<Label>, BuildNoHashHasher<u64>>,
}

#[derive(Debug)]
struct Candidate<Label> {
    label: Label,
    estimate: u64,
}

/// One of the heaviest keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heavy<Label> {
    /// Its label.
    pub label: Label,
    /// How often it occurred, according to the sketch.
    pub count: u64,
}

impl<Label> TopK<Label> {
    /// Creates an empty list of candidates for the `k` heaviest keys. A `k` of zero counts as one.
    pub fn new(k: usize) -> Self {
        Self {
            k: k.max(1),
            threshold: 0,
            candidates: HashMap::default(),
        }
    }

    /// Offers an occurrence of a key with the estimate of its count. The label is made only if the
    /// key becomes a candidate.
    #[inline]
    pub fn offer(&mut self, hash: u64, estimate: u64, label: impl FnOnce() -> Label) {
        if estimate <= self.threshold {
            return;
        }
        match self.candidates.entry(hash) {
            Entry::Occupied(candidate) => {
                let known = &mut candidate.into_mut().estimate;
                *known = estimate.max(*known);
            }
            Entry::Vacant(place) => {
                let label = label();
                place.insert(Candidate { label, estimate });
                if self.candidates.len() > 2 * self.k {
                    self.drop_the_lesser();
                }
            }
        }
    }

    /// Keeps the k candidates with the greatest estimates.
    fn drop_the_lesser(&mut self) {
        let candidates = self.candidates.iter();
        let mut order: Vec<_> = candidates
            .map(|(&hash, one)| (Reverse(one.estimate), hash))
            .collect();
        let (_, &mut (Reverse(kth), _), rest) = order.select_nth_unstable(self.k - 1);
        self.threshold = kth;
        for (_, hash) in rest {
            self.candidates.remove(hash);
        }
    }

    /// Takes over the candidates of another thread that has finished.
    pub fn merge(&mut self, other: Self) {
        for (hash, candidate) in other.candidates {
            self.candidates.entry(hash).or_insert(candidate);
        }
    }

    /// Returns the k heaviest keys according to the sketch, the heaviest first; keys of the same
    /// count in the order of their labels.
    pub fn ranked(self, counts: &CountMin) -> Vec<Heavy<Label>>
    where
        Label: Ord,
    {
        let candidates = self.candidates.into_iter();
        let heavy = candidates.map(|(hash, candidate)| Heavy {
            label: candidate.label,
            count: counts.estimate(hash),
        });
        let mut ranked: Vec<_> = heavy.collect();
        ranked.sort_unstable_by(|one, other| {
            (other.count.cmp(&one.count)).then_with(|| one.label.cmp(&other.label))
        });
        ranked.truncate(self.k);
        ranked
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use filter::hashing::mix;

    use super::*;

    /// Wide enough that the estimates equal the counts.
    fn exact() -> CountMin {
        CountMin::with_shape(1 << 16, 4, 1).unwrap()
    }

    fn offer(top: &mut TopK<u64>, counts: &CountMin, key: u64) {
        let estimate = counts.add(mix(key), 1);
        top.offer(mix(key), estimate, || key);
    }

    fn heavy(counts: impl IntoIterator<Item = (u64, u64)>) -> Vec<Heavy<u64>> {
        let heavy = |(label, count)| Heavy { label, count };
        counts.into_iter().map(heavy).collect()
    }

    /// Key 1 occurs 100 times, key 2 99 times and so on, one after another or in turns.
    #[test]
    fn the_heaviest_are_found_wherever_they_are_in_the_stream() {
        let times = |key: u64| 101 - key;
        let in_order: Vec<u64> = (1..=100)
            .flat_map(|key| (0..times(key)).map(move |_| key))
            .collect();
        let backwards = in_order.iter().rev().copied().collect();
        let in_turns = (1..=100)
            .flat_map(|round| 1..=101 - round)
            .collect::<Vec<u64>>();
        for stream in [in_order, backwards, in_turns] {
            for k in [1, 3, 10] {
                let (mut top, counts) = (TopK::new(k), exact());
                stream.iter().for_each(|&key| offer(&mut top, &counts, key));
                let expected = heavy((1..=k as u64).map(|key| (key, times(key))));
                assert_eq!(top.ranked(&counts), expected);
            }
        }
    }

    #[test]
    fn candidates_are_bounded() {
        let (mut top, counts) = (TopK::new(5), exact());
        for key in 0..10_000 {
            offer(&mut top, &counts, key % 2_000);
            assert!(top.candidates.len() <= 10);
        }
        assert_eq!(top.ranked(&counts).len(), 5);
    }

    #[test]
    fn fewer_keys_than_asked_for_are_all_there_is() {
        let (mut top, counts) = (TopK::new(5), exact());
        [7, 9, 7]
            .iter()
            .for_each(|&key| offer(&mut top, &counts, key));
        assert_eq!(top.ranked(&counts), heavy([(7, 2), (9, 1)]));
        assert!(TopK::<u64>::new(5).ranked(&counts).is_empty());
    }

    /// One key is heavy only if all threads are taken together, and one is seen only by the last
    /// thread.
    #[test]
    fn the_candidates_of_threads_are_put_together() {
        const THREADS: u64 = 4;
        let counts = exact();
        let tops: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .map(|thread| {
                    let counts = &counts;
                    scope.spawn(move || {
                        let mut top = TopK::new(3);
                        for turn in 0..100 {
                            // Each thread has its own keys, 20 times each, and one key that all
                            // share, 50 times in each.
                            offer(&mut top, counts, 100 * (thread + 1) + turn % 5);
                            if turn % 2 == 0 {
                                offer(&mut top, counts, 1);
                            }
                            if thread == THREADS - 1 && turn < 60 {
                                offer(&mut top, counts, 2);
                            }
                        }
                        top
                    })
                })
                .collect();
            threads.into_iter().map(|one| one.join().unwrap()).collect()
        });
        let mut tops = tops.into_iter();
        let mut top = tops.next().unwrap();
        tops.for_each(|other| top.merge(other));
        let ranked = top.ranked(&counts);
        assert_eq!(ranked[..2], heavy([(1, 50 * THREADS), (2, 60)]));
        assert_eq!(ranked[2].count, 20);
    }
}
