//! The rows of `cuckoo-hashing`, and the quantities that a table or a figure computes from them.

use super::{Mix, Row};
use crate::results::series::Series;
use crate::results::summary::Summary;
use crate::results::verdict::Comparison;

/// The rows of a run.
#[derive(Clone, Copy, Debug)]
pub struct CuckooHashingRows<'a>(pub &'a [Row]);

impl CuckooHashingRows<'_> {
    /// Returns the loads that were measured, ascending.
    pub fn loads(self) -> Vec<f64> {
        let mut loads: Vec<_> = self.0.iter().map(|row| row.load).collect();
        loads.sort_unstable_by(f64::total_cmp);
        loads.dedup();
        loads
    }

    /// Returns the mixes that were measured, in the order of the paper.
    pub fn mixes(self) -> Vec<Mix> {
        let measured = |mix: &Mix| self.0.iter().any(|row| row.mix == mix.to_string());
        Mix::ALL.into_iter().filter(measured).collect()
    }

    fn series(
        self,
        (mix, load): (Mix, f64),
        table: &str,
        quantity: impl Fn(&Row) -> f64,
    ) -> Series {
        let mix = mix.to_string();
        let is_there = |row: &&Row| row.mix == mix && row.load == load && row.table == table;
        Series::of(self.0.iter().filter(is_there), |row| Some(quantity(row)))
    }

    /// Summarises a quantity over the rounds; `None` if nothing was measured.
    pub fn summary(
        self,
        at: (Mix, f64),
        table: &str,
        quantity: impl Fn(&Row) -> f64,
    ) -> Option<Summary> {
        self.series(at, table, quantity).summary()
    }

    /// Compares the throughput of table `a` with that of table `b`, within each round that has both.
    pub fn comparison(self, at: (Mix, f64), a: &str, b: &str) -> Option<Comparison> {
        let [a, b] = [a, b].map(|table| self.series(at, table, |row| row.mops));
        Comparison::between(&a, &b)
    }

    /// Summarises the load at which a table first refused a key, over the rounds in which it did.
    /// Uses the first mix, as the order of keys is the same in all.
    pub fn first_refusal(self, table: &str) -> Option<Summary> {
        let mix = self.mixes().first()?.to_string();
        let last = self.loads().pop()?;
        let rows = self.0.iter();
        let rows = rows.filter(|row| row.mix == mix && row.load == last && row.table == table);
        Summary::of(rows.filter_map(|row| row.first_refusal).collect())
    }
}

impl Row {
    /// Returns the kicks per key offered, placed or refused, without the moves that undid them.
    pub fn kicks_per_insert(&self) -> f64 {
        (self.kicks + self.wasted_kicks) as f64 / self.inserts.max(1) as f64
    }

    /// Returns the share of the offered keys that were refused.
    pub fn refused_share(&self) -> f64 {
        self.refused as f64 / self.inserts.max(1) as f64
    }

    /// Returns the number of buckets whose subgraph an update renews; `None` if there are no
    /// updates.
    pub fn renewed_per_update(&self) -> Option<f64> {
        (self.updates > 0).then(|| self.renewed as f64 / self.updates as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn ratios_are_taken_within_rounds() {
        let mut rows = sample(&[[2.0, 1.0], [30.0, 10.0], [4.0, 1.0]]);
        let at = (Mix::ALL[0], 0.5);
        let ratio =
            |rows: &[Row]| CuckooHashingRows(rows).comparison(at, "smart-cuckoo", "plain-cuckoo");
        // The ratio of the medians would be 4.
        assert_eq!(ratio(&rows).unwrap().ratio.median, 3.0);
        // A round with only one table has no ratio.
        rows.pop();
        assert_eq!(ratio(&rows).unwrap().ratio.count, 2);
        assert_eq!(
            CuckooHashingRows(&rows).comparison((Mix::ALL[1], 0.5), "smart-cuckoo", "plain-cuckoo"),
            None
        );
    }

    #[test]
    fn quantities_are_for_each_insert_or_update() {
        let row = Row {
            inserts: 100,
            kicks: 30,
            wasted_kicks: 50,
            refused: 10,
            updates: 5,
            renewed: 20,
            ..sample(&[[1.0, 1.0]]).remove(0)
        };
        assert_eq!((row.kicks_per_insert(), row.refused_share()), (0.8, 0.1));
        assert_eq!(row.renewed_per_update(), Some(4.0));
        let none = Row { updates: 0, ..row };
        assert_eq!(none.renewed_per_update(), None);
    }

    #[test]
    fn the_first_refusal_is_that_of_rounds_that_had_one() {
        let mut rows = sample(&[[1.0, 1.0]; 3]);
        assert_eq!(CuckooHashingRows(&rows).first_refusal("smart-cuckoo"), None);
        rows[0].first_refusal = Some(0.4);
        rows[2].first_refusal = Some(0.5);
        let first = CuckooHashingRows(&rows)
            .first_refusal("smart-cuckoo")
            .unwrap();
        assert_eq!((first.count, first.min, first.max), (2, 0.4, 0.5));
    }
}
