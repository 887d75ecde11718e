//! Cuts a run from no keys to all of them into slices, and each slice into one part per thread.

use std::ops::Range;

/// Ratio of the keys in the set at the end to those at the end of the first slice.
pub(super) const GROWTH: u64 = 1_000;

/// Returns the numbers of keys at which slices end: the first at a thousandth of all keys, then
/// `others` more, evenly spaced on a logarithmic scale.
pub(super) fn ends(keys: u64, others: usize) -> Vec<u64> {
    let end = |slice: usize| {
        let left = (others - slice) as f64 / others as f64;
        (keys as f64 / (GROWTH as f64).powf(left)).round() as u64
    };
    (0..=others).map(end).collect()
}

/// Returns the keys of each slice, given where slices end.
pub(super) fn between(ends: &[u64]) -> impl Iterator<Item = Range<u64>> {
    let starts = [0].into_iter().chain(ends.iter().copied());
    starts.zip(ends).map(|(start, &end)| start..end)
}

/// Returns the keys of a slice that a thread inserts. All threads together insert each key once.
pub(super) fn part(slice: &Range<u64>, thread: usize, threads: usize) -> Range<u64> {
    let length = slice.end - slice.start;
    let at = |thread: usize| slice.start + length * thread as u64 / threads as u64;
    at(thread)..at(thread + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_evenly_spaced_on_a_logarithmic_scale() {
        assert_eq!(ends(1_000_000, 3), [1_000, 10_000, 100_000, 1_000_000]);
        assert_eq!(ends(20_000, 6), [20, 63, 200, 632, 2_000, 6_325, 20_000]);
        let ends = ends(10_000_000, 30);
        let ratios = ends.windows(2).map(|pair| pair[1] as f64 / pair[0] as f64);
        for ratio in ratios {
            assert!((ratio - 10_f64.powf(0.1)).abs() < 1e-3, "{ratio}");
        }
    }

    #[test]
    fn slices_follow_each_other() {
        let slices: Vec<_> = between(&[10, 100, 1_000]).collect();
        assert_eq!(slices, [0..10, 10..100, 100..1_000]);
    }

    #[test]
    fn every_key_has_one_thread() {
        for threads in [1, 2, 3, 64] {
            let slice = 10..33;
            let parts = (0..threads).flat_map(|thread| part(&slice, thread, threads));
            assert!(parts.eq(slice.clone()), "{threads}");
            let longest = (0..threads).map(|thread| part(&slice, thread, threads).count());
            assert_eq!(longest.max(), Some(23_usize.div_ceil(threads)));
        }
    }
}
