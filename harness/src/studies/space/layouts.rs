//! Layouts of the filter, measured against theory: how full they get, their false positive rates,
//! and the memory per key.

use anyhow::{Context, Result};
use clap::{Args, value_parser};
use filter::CuckooFilter;
use filter::internals::Geometry;
use filter::layout::Layout;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use relatives::theory::Trial;
use serde::Serialize;

use crate::machine;
use crate::results::{Record, Summary, bounded, columns};
use crate::show::chart::{Axis, Line, Look, Panel, Scale};
use crate::show::{Run, rounded};
use crate::studies::shown::Unit::{Number, Rate};
use crate::studies::{At, Progress, Quantity, Shown, Study, joined, seeds, within};
use crate::subjects::Registry;
use crate::wording::grouped;

/// Measure the filter's layouts against theory: false positives, how full a table gets, and bits
/// per key.
///
/// Prints one table, and writes layouts.csv, layouts.machine.toml and layouts.svg. Takes some
/// seconds on two cores.
#[derive(Clone, Copy, Debug, Args, Serialize)]
pub struct Layouts {
    /// Buckets of each table.
    #[arg(long, default_value_t = 1 << 18, value_parser = within(1_000..1 << 32))]
    pub buckets: usize,
    /// Number of tables of each layout to fill until an insert is refused.
    #[arg(long, default_value_t = 11, value_parser = within(1..1 << 32))]
    pub tables: usize,
    /// Number of absent keys to look up in a table of each layout.
    #[arg(long, default_value_t = 20_000_000, value_parser = value_parser!(u64).range(1..1 << 50))]
    pub absent: u64,
    /// Seed of the keys.
    #[arg(long, default_value_t = 1, value_parser = seeds())]
    pub seed: u64,
}

columns! {
    /// What was measured of one layout.
    Row:
    /// Slots of a bucket.
    slots: usize,
    /// Bits of a fingerprint.
    bits: usize,
    /// Bits of a bucket's timestamp.
    timestamp_bits: usize,
    /// Buckets of each table.
    buckets: usize,
    /// Tables that were filled until an insert was refused.
    tables: usize,
    /// Load factor to plan for: `Layout::WORKABLE_LOAD`.
    planned_load: f64,
    /// Lowest load factor at which a table first refused an insert.
    refusal_min: f64,
    /// Median load factor at which a table first refused an insert.
    refusal_median: f64,
    /// Absent keys looked up in a table filled to the planned load factor.
    absent: u64,
    /// Absent keys that the table took for present.
    wrong: u64,
    /// False positive rate: wrong / absent.
    rate: f64,
    /// Lower end of the 95 % confidence interval of the rate (Wilson).
    rate_lower: f64,
    /// Upper end of the 95 % confidence interval of the rate (Wilson).
    rate_upper: f64,
    /// Rate that theory gives at this load factor: `Layout::FALSE_POSITIVE_RATE` times the load
    /// factor.
    rate_theory: f64,
    /// Memory for each key in bits: that of the whole filter, at the planned load factor.
    bits_a_key: f64,
    /// Bits a key that theory gives: 64 / slots / planned load factor.
    bits_a_key_theory: f64,
}

impl Record for Row {
    fn check(&self) -> Result<()> {
        for (column, rate) in [("rate", self.rate), ("rate_upper", self.rate_upper)] {
            bounded(column, rate, self.rate_lower..=1.0)?;
        }
        bounded("rate_theory", self.rate_theory, 1e-30..=1.0)?;
        bounded("bits_a_key", self.bits_a_key, 1e-9..=f64::from(u16::MAX))
    }
}

/// A bucket, and its part of the counters.
const BYTES_PER_BUCKET: f64 = 9.0;

type Measure = fn(&Layouts) -> Result<Row>;

/// The layouts that are measured: the named ones, and some more.
const LAYOUTS: [(&str, Measure); 11] = [
    ("8×7", Layouts::row::<8, 7>),
    ("7×8", Layouts::row::<7, 8>),
    ("6×8", Layouts::row::<6, 8>),
    ("6×9", Layouts::row::<6, 9>),
    ("4×8", Layouts::row::<4, 8>),
    ("5×10", Layouts::row::<5, 10>),
    ("5×11", Layouts::row::<5, 11>),
    ("4×12", Layouts::row::<4, 12>),
    ("4×13", Layouts::row::<4, 13>),
    ("3×16", Layouts::row::<3, 16>),
    ("2×24", Layouts::row::<2, 24>),
];

impl Study for Layouts {
    type Row = Row;

    const NAME: &'static str = "layouts";

    fn check(&self, _: &Registry) -> Result<bool> {
        machine::check_memory("--buckets", self.buckets as f64 * BYTES_PER_BUCKET)?;
        Ok(true)
    }

    fn about(&self, _: &Registry) -> Result<(Run, Vec<(String, String)>)> {
        let about = [
            "False positives and memory of the layouts",
            "What does a lower false positive rate cost in memory?",
        ];
        let pinning = "one thread, not pinned: nothing is timed";
        Ok((Run::seeded(about, self.seed, pinning), Vec::new()))
    }

    fn steps(&self) -> u64 {
        LAYOUTS.len() as u64
    }

    fn measure(&self, progress: &mut Progress, rows: &mut Vec<Row>) -> Result<()> {
        for (name, row) in LAYOUTS {
            progress(name)?;
            rows.push(row(self)?);
        }
        Ok(())
    }
}

impl Layouts {
    /// Fills tables until each refuses; and one to the planned load, for lookups of absent keys.
    fn row<const SLOTS: usize, const BITS: usize>(&self) -> Result<Row> {
        let empty = || {
            let builder = CuckooFilter::builder().layout::<SLOTS, BITS>();
            anyhow::Ok(builder.buckets(self.buckets).build()?)
        };
        let mut refusals = Vec::new();
        for table in 0..self.tables as u64 {
            let mut random = SmallRng::seed_from_u64(self.seed ^ table << 32);
            let filter = empty()?;
            while filter.insert(&random.random::<u64>()).is_ok() {}
            refusals.push(filter.load_factor());
        }
        let refusals = Summary::of(refusals).context("no table was filled")?;
        let filter = empty()?;
        let planned_load = Layout::<SLOTS, BITS>::WORKABLE_LOAD;
        let keys = (planned_load * filter.capacity() as f64) as u64;
        let trial = Trial::new(self.absent, self.seed);
        for index in 0..keys {
            filter.insert(&trial.key(index))?;
        }
        let absent = keys..keys + self.absent;
        let wrong = absent.filter(|&index| filter.contains(&trial.key(index)));
        let wrong = wrong.count() as u64;
        let rate = super::share(wrong, self.absent);
        Ok(Row {
            slots: SLOTS,
            bits: BITS,
            timestamp_bits: Layout::<SLOTS, BITS>::TIMESTAMP_BITS,
            buckets: Geometry::<SLOTS, BITS>::new(self.buckets).buckets(),
            tables: self.tables,
            planned_load,
            refusal_min: refusals.min,
            refusal_median: refusals.median,
            absent: self.absent,
            wrong,
            rate: rate.median,
            rate_lower: rate.low,
            rate_upper: rate.high,
            rate_theory: Layout::<SLOTS, BITS>::FALSE_POSITIVE_RATE * filter.load_factor(),
            bits_a_key: filter.memory_bytes() as f64 * 8.0 / keys as f64,
            bits_a_key_theory: Layout::<SLOTS, BITS>::BITS_A_KEY,
        })
    }
}

impl Row {
    fn name(&self) -> String {
        format!("{}×{}", self.slots, self.bits)
    }

    /// Returns its place in the figure. Where no key was wrong, that is the rate of theory.
    fn point(&self) -> (f64, Summary) {
        let mut point = super::share(self.wrong, self.absent);
        if self.wrong == 0 {
            point.median = self.rate_theory;
        }
        point.low = point.low.max(point.median / 10.0);
        (self.bits_a_key, point)
    }
}

type Of = Quantity<Row>;

impl Shown for Row {
    const QUANTITIES: &'static [Of] = &[
        Of::column("timestamp bits", Number, |row| {
            Some(row.timestamp_bits as f64)
        }),
        Of::column("first refusal, least", Number, |row| Some(row.refusal_min)),
        Of::column("median", Number, |row| Some(row.refusal_median)),
        Of::column("false positives", Rate, |row| Some(row.rate)),
        Of::column("at least", Rate, |row| Some(row.rate_lower)),
        Of::column("at most", Rate, |row| Some(row.rate_upper)),
        Of::column("theory", Rate, |row| Some(row.rate_theory)),
        Of::column("bits a key", Number, |row| Some(row.bits_a_key)),
        Of::column("theory", Number, |row| Some(row.bits_a_key_theory)),
    ];

    fn at(&self) -> At<'_> {
        At {
            subject: "lock-free",
            round: 1,
            case: self.name().into(),
            place: self.planned_load,
            pinned: true,
        }
    }

    fn axis(_: &str) -> Axis {
        Axis::new("load factor", Scale::Linear, rounded)
    }

    fn placed(_: &str, places: &[f64]) -> String {
        joined(places, |load| format!("planned load {load:.3}"))
    }

    fn how(rows: &[Self]) -> String {
        let first = &rows[0];
        format!(
            "Layouts of the filter, slots × bits of a fingerprint: tables of {} buckets, {} of each layout filled until an insert was \
             refused. False positives, with 95 % confidence: of {} absent keys, in a table filled to the load factor planned for \
             the layout; theory: 2 × slots / 2^bits × load. Bits a key: of the whole filter at that load; theory: 64 / slots / load. In \
             the figure, an open mark, where none was wrong, stands at the rate of theory. Our filter can also remove keys, and uses what \
             memory the fingerprints leave for timestamps.",
            grouped(first.buckets as u64),
            first.tables,
            grouped(first.absent),
        )
    }

    fn complete(rows: &[Self], panels: &mut Vec<Panel>) {
        let of = |subject: &str, is_shown: fn(&&Row) -> bool| {
            let shown = rows.iter().filter(is_shown);
            Line {
                look: Look::Named(shown.clone().map(Row::name).collect()),
                ..Line::new(subject, shown.map(Row::point).collect())
            }
        };
        let mut lines = vec![
            of("lock-free", |row| row.wrong > 0),
            of("none was wrong: rate of theory", |row| row.wrong == 0),
        ];
        lines.retain(|line| !line.points.is_empty());
        panels.push(super::rates("layouts", "", lines));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::studies::study::testing::measure;

    #[test]
    fn what_is_measured_agrees_with_theory() {
        let layouts = Layouts {
            buckets: 2_000,
            tables: 3,
            absent: 200_000,
            seed: 1,
        };
        let (rows, names) = measure(&layouts, None);
        for (row, name) in rows.iter().zip(names) {
            assert_eq!(row.name(), name);
            assert!(row.refusal_min > row.planned_load && row.refusal_min <= row.refusal_median);
            assert!(row.rate_lower <= row.rate && row.rate <= row.rate_upper);
            let ratio = row.rate / row.rate_theory;
            // Where hundreds of answers were wrong, the rate agrees with theory; at 2×24 hardly one
            // is wrong.
            let is_near = if row.wrong < 400 {
                row.rate_lower <= row.rate_theory
            } else {
                (0.8..1.1).contains(&ratio)
            };
            assert!(is_near, "{name}: {ratio}");
            // In such a small table the counters add noticeably.
            let spent = row.bits_a_key / row.bits_a_key_theory;
            assert!((0.99..1.8).contains(&spent), "{name}: {spent}");
        }
    }
}
