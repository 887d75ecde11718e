//! The rows of `growth`, and the quantities that a table, a figure or a page computes from them.

use super::slices::GROWTH;
use super::{Quantity, Row};
use crate::results::series::Series;
use crate::results::summary::Summary;
use crate::results::verdict::Comparison;
use crate::show::sidecar::Sidecar;

/// The rows of a run.
#[derive(Clone, Copy, Debug)]
pub struct GrowthRows<'a>(pub &'a [Row]);

impl GrowthRows<'_> {
    /// Returns the numbers of keys at which slices end, ascending.
    pub fn ends(self) -> Vec<u64> {
        let mut ends: Vec<_> = self.0.iter().map(|row| row.keys).collect();
        ends.sort_unstable();
        ends.dedup();
        ends
    }

    /// Returns a few of these ends: the nearest to a thousandth, a hundredth, a tenth, and all of
    /// the keys.
    pub fn sizes(self) -> Vec<u64> {
        let ends = self.ends();
        let Some(all) = self.0.first().map(|row| row.all_keys) else {
            return Vec::new();
        };
        let shares = (0..=GROWTH.ilog10())
            .rev()
            .map(|tens| all / 10_u64.pow(tens));
        let nearest = |keys: u64| ends.iter().copied().min_by_key(|end| end.abs_diff(keys));
        let mut sizes: Vec<_> = shares.filter_map(nearest).collect();
        sizes.dedup();
        sizes
    }

    /// Returns the number of rounds, complete or not.
    pub fn rounds(self) -> usize {
        self.0.iter().map(|row| row.round).max().unwrap_or_default()
    }

    fn series(self, subject: &str, keys: u64, quantity: Quantity) -> Series {
        let rows = (self.0.iter()).filter(|row| row.keys == keys && row.subject == subject);
        Series::of(rows, |row| quantity.of(row))
    }

    /// Summarises a quantity over the rounds; `None` if nothing was measured.
    pub fn summary(self, subject: &str, keys: u64, quantity: Quantity) -> Option<Summary> {
        self.series(subject, keys, quantity).summary()
    }

    /// Compares a quantity of subject `a` with that of subject `b`, within each round that has both.
    pub fn comparison(
        self,
        keys: u64,
        (a, b): (&str, &str),
        quantity: Quantity,
    ) -> Option<Comparison> {
        let [a, b] = [a, b].map(|subject| self.series(subject, keys, quantity));
        Comparison::between(&a, &b)
    }

    /// Returns the medians of both subjects, in ns, if they are latencies and the clock cannot tell one
    /// of them from none.
    pub fn untold(
        self,
        keys: u64,
        (a, b): (&str, &str),
        quantity: Quantity,
        sidecar: Option<&Sidecar>,
    ) -> Option<[f64; 2]> {
        let shortest = sidecar.map_or(0.0, Sidecar::shortest_ns);
        let median = |subject| Some(self.summary(subject, keys, quantity)?.median);
        let both = [median(a)?, median(b)?];
        let is_told = !quantity.is_latency() || both.iter().all(|&ns| ns >= shortest);
        (!is_told).then_some(both)
    }

    /// Compares how long the whole run takes subject `a` with how long it takes `b`.
    pub fn durations(self, a: &str, b: &str) -> Option<Comparison> {
        let all = self.0.first()?.all_keys;
        self.comparison(all, (a, b), Quantity::Elapsed)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{OURS, RIVALS, sample};
    use super::*;

    #[test]
    fn ratios_are_taken_within_rounds_that_have_both() {
        let mut rows = sample(&[[2.0, 1.0, 1.0], [30.0, 10.0, 1.0], [4.0, 1.0, 1.0]]);
        let ratio = |rows: &[Row]| {
            GrowthRows(rows)
                .comparison(10_000, (OURS, RIVALS[0]), Quantity::Throughput)
                .unwrap()
                .ratio
        };
        // The ratio of the medians would be 4.
        assert_eq!(ratio(&rows).median, 3.0);
        assert_eq!(
            GrowthRows(&rows)
                .durations(OURS, RIVALS[0])
                .unwrap()
                .ratio
                .median,
            1.0 / 3.0
        );
        // The run of the last round's rivals was aborted.
        rows.truncate(rows.len() - 3);
        assert_eq!(ratio(&rows).count, 2);
        assert_eq!(
            GrowthRows(&rows)
                .durations(OURS, RIVALS[0])
                .unwrap()
                .ratio
                .count,
            2
        );
        assert_eq!(GrowthRows(&rows).rounds(), 3);
    }

    #[test]
    fn slices_in_which_nothing_was_timed_are_left_out() {
        let mut rows = sample(&[[1.0; 3], [2.0; 3]]);
        let first = rows
            .iter_mut()
            .find(|row| row.subject == OURS && row.keys == 10);
        first.unwrap().lookup_p50_ns = None;
        let p50 = Quantity::LookupMedian;
        let summary = GrowthRows(&rows).summary(OURS, 10, p50).unwrap();
        assert_eq!((summary.count, summary.median), (1, 50.0));
        let ratio = GrowthRows(&rows)
            .comparison(10, (OURS, RIVALS[1]), p50)
            .unwrap()
            .ratio;
        assert_eq!((ratio.count, ratio.median), (1, 1.0));
    }

    #[test]
    fn the_sizes_of_the_table_are_powers_of_ten_or_next_to_them() {
        let at = |ends: &[u64]| {
            let row = |&keys: &u64| Row {
                keys,
                ..sample(&[[1.0; 3]]).remove(0)
            };
            let rows: Vec<_> = ends.iter().map(row).collect();
            GrowthRows(&rows).sizes()
        };
        assert_eq!(at(&[10, 100, 316, 1_000, 10_000]), [10, 100, 1_000, 10_000]);
        assert_eq!(at(&[10, 80, 900, 9_000, 10_000]), [10, 80, 900, 10_000]);
        assert_eq!(at(&[10, 10_000]), [10, 10_000]);
        assert_eq!(at(&[]), [0; 0]);
    }
}
