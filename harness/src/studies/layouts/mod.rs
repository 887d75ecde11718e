//! The `layouts` study: layouts of the filter, measured against theory. It measures how full they
//! get, their false positive rates, and the memory per key.

pub mod figure;

use anyhow::{Result, ensure};
use clap::{Args, value_parser};
use filter::CuckooFilter;
use filter::internals::Geometry;
use filter::layout::Layout;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, Normal};

use crate::results::rows::{Record, columns};
use crate::results::summary::Summary;
use crate::results::verdict::Judge;
use crate::show::chart::Figure;
use crate::show::findings::Story;
use crate::show::sheet::Sheet;
use crate::show::sidecar::Sidecar;
use crate::studies::study::{About, Progress, Shown, Study, within};
use crate::subjects::registry::Registry;

/// Measure the filter's layouts against theory: false positives, how full a table gets, and bits
/// per key.
///
/// Prints one table, and writes layouts.csv, layouts.machine.toml and layouts.svg. Takes about
/// a minute on two cores.
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
    #[arg(long, default_value_t = 1)]
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
    const COLUMNS: &'static [(&'static str, &'static str)] = COLUMNS;

    fn validate(&self) -> Result<()> {
        let rates = [
            self.rate,
            self.rate_lower,
            self.rate_upper,
            self.rate_theory,
        ];
        ensure!(
            rates.iter().all(|rate| (0.0..=1.0).contains(rate)) && self.rate_theory > 0.0,
            "a rate is not between 0 and 1"
        );
        ensure!(
            self.bits_a_key > 0.0 && self.bits_a_key < f64::from(u16::MAX),
            "column `bits_a_key`: {} is not possible",
            self.bits_a_key
        );
        Ok(())
    }
}

impl Study for Layouts {
    type Row = Row;

    const NAME: &'static str = "layouts";

    fn about(&self, _: &Registry) -> Result<About> {
        Ok(About {
            title: "False positives and memory of the layouts",
            question: "What does a lower false positive rate cost in memory?",
            seed: self.seed,
            pinning: "one thread, not pinned: nothing is timed".into(),
            ..About::default()
        })
    }

    fn steps(&self) -> u64 {
        NUMBER as u64 * (self.tables as u64 + LOOKUP_STEPS)
    }

    /// Measures the named layouts, and some more.
    fn measure(&self, progress: &mut Progress, rows: &mut Vec<Row>) -> Result<()> {
        macro_rules! each {
            ($($slots:literal $bits:literal,)+) => {
                $(match self.measure_one::<$slots, $bits>(progress)? {
                    Some(row) => rows.push(row),
                    None => return Ok(()),
                })+
            };
        }
        each! { 8 7, 7 8, 6 8, 6 9, 4 8, 5 10, 5 11, 4 12, 4 13, 3 16, 2 24, }
        Ok(())
    }
}

/// Number of layouts that are measured.
pub const NUMBER: usize = 11;

/// Number of steps in which the lookups of absent keys are made.
const LOOKUP_STEPS: u64 = 10;

impl Layouts {
    /// Measures one layout; `None` if it is to stop.
    fn measure_one<const SLOTS: usize, const BITS: usize>(
        &self,
        progress: &mut Progress,
    ) -> Result<Option<Row>> {
        type Of<const SLOTS: usize, const BITS: usize> = Layout<SLOTS, BITS>;
        let Some(refusals) = self.refusals::<SLOTS, BITS>(progress)? else {
            return Ok(None);
        };
        let refusals = Summary::of(refusals);
        let filter = self.build::<SLOTS, BITS>()?;
        let planned = Of::<SLOTS, BITS>::WORKABLE_LOAD;
        let keys = (planned * filter.capacity() as f64) as u64;
        let Some(wrong) = self.wrong(&filter, keys, progress)? else {
            return Ok(None);
        };
        let (rate_lower, rate_upper) = confidence(wrong, self.absent);
        Ok(Some(Row {
            slots: SLOTS,
            bits: BITS,
            timestamp_bits: Of::<SLOTS, BITS>::TIMESTAMP_BITS,
            buckets: Geometry::<SLOTS, BITS>::new(self.buckets).buckets(),
            tables: self.tables,
            planned_load: planned,
            refusal_min: refusals.map_or(f64::NAN, |summary| summary.min),
            refusal_median: refusals.map_or(f64::NAN, |summary| summary.median),
            absent: self.absent,
            wrong,
            rate: wrong as f64 / self.absent as f64,
            rate_lower,
            rate_upper,
            rate_theory: Of::<SLOTS, BITS>::FALSE_POSITIVE_RATE * filter.load_factor(),
            bits_a_key: filter.memory_bytes() as f64 * 8.0 / keys as f64,
            bits_a_key_theory: Of::<SLOTS, BITS>::BITS_A_KEY,
        }))
    }

    fn build<const SLOTS: usize, const BITS: usize>(&self) -> Result<CuckooFilter<SLOTS, BITS>> {
        let builder = CuckooFilter::builder().layout::<SLOTS, BITS>();
        Ok(builder.buckets(self.buckets).build()?)
    }

    /// Fills tables, and returns the load factor at which each first refused an insert; `None` if
    /// it is to stop.
    fn refusals<const SLOTS: usize, const BITS: usize>(
        &self,
        progress: &mut Progress,
    ) -> Result<Option<Vec<f64>>> {
        let mut refusals = Vec::new();
        for table in 0..self.tables as u64 {
            if progress(&format!("{SLOTS}×{BITS}: filling tables")).is_break() {
                return Ok(None);
            }
            let mut random = SmallRng::seed_from_u64(self.seed ^ table << 32);
            let filter = self.build::<SLOTS, BITS>()?;
            while filter.insert(&random.random::<u64>()).is_ok() {}
            refusals.push(filter.load_factor());
        }
        Ok(Some(refusals))
    }

    /// Inserts this many keys into an empty filter, and counts the absent keys that it then takes
    /// for present; `None` if it is to stop.
    fn wrong<const SLOTS: usize, const BITS: usize>(
        &self,
        filter: &CuckooFilter<SLOTS, BITS>,
        keys: u64,
        progress: &mut Progress,
    ) -> Result<Option<u64>> {
        // Counting from a random number gives keys that are certainly distinct, from each other and
        // from absent ones.
        let start = SmallRng::seed_from_u64(self.seed).random::<u64>();
        let key = |number: u64| start.wrapping_add(number);
        for number in 0..keys {
            filter.insert(&key(number))?;
        }
        let mut wrong = 0;
        let part = self.absent.div_ceil(LOOKUP_STEPS);
        for lookups in 0..LOOKUP_STEPS {
            if progress(&format!("{SLOTS}×{BITS}: looking up absent keys")).is_break() {
                return Ok(None);
            }
            let absent = lookups * part..((lookups + 1) * part).min(self.absent);
            wrong += absent
                .filter(|number| filter.contains(&key(keys + number)))
                .count() as u64;
        }
        Ok(Some(wrong))
    }
}

/// Returns the 95 % confidence interval of a probability, after `hits` of `trials` (Wilson 1927).
fn confidence(hits: u64, trials: u64) -> (f64, f64) {
    let z = Normal::standard().inverse_cdf(0.975);
    let (trials, rate) = (trials as f64, hits as f64 / trials as f64);
    let whole = 1.0 + z * z / trials;
    let middle = (rate + z * z / (2.0 * trials)) / whole;
    let half = z / whole * (rate * (1.0 - rate) / trials + (z / (2.0 * trials)).powi(2)).sqrt();
    ((middle - half).max(0.0), (middle + half).min(1.0))
}

impl Shown for Row {
    fn sheet(rows: &[Self], _: Option<&Sidecar>, _: &Judge) -> Option<Sheet> {
        let first = rows.first()?;
        let header = [
            "layout",
            "timestamp bits",
            "planned load",
            "first refusal, min",
            "median",
            "false positives [95 %]",
            "theory",
            "bits a key",
            "theory",
        ];
        let line = |row: &Row| {
            vec![
                format!("{}×{}", row.slots, row.bits),
                row.timestamp_bits.to_string(),
                format!("{:.3}", row.planned_load),
                format!("{:.4}", row.refusal_min),
                format!("{:.4}", row.refusal_median),
                format!(
                    "{:.3e} [{:.3e}–{:.3e}]",
                    row.rate, row.rate_lower, row.rate_upper
                ),
                format!("{:.3e}", row.rate_theory),
                format!("{:.2}", row.bits_a_key),
                format!("{:.2}", row.bits_a_key_theory),
            ]
        };
        Some(Sheet {
            lead: "Layouts of the filter, measured and in theory.".into(),
            header: header.map(str::to_owned).into(),
            lines: rows.iter().map(line).collect(),
            notes: vec![
                format!(
                    "Tables of {} buckets, {} of each layout filled until an insert was refused. False positives: of {} absent \
                     keys, in a table filled to the planned load; theory: 2 × slots / 2^bits × load.",
                    first.buckets, first.tables, first.absent
                ),
                "Bits a key: of the whole filter at that load; theory: 64 / slots / load.".into(),
            ],
        })
    }

    fn figure(rows: &[Self], sidecar: Option<&Sidecar>) -> Result<Option<Figure>> {
        figure::of(rows, sidecar).map(Some)
    }

    /// Says how often each layout is wrong and what it costs, beside a Bloom filter that is wrong
    /// as often.
    fn story(rows: &[Self], _: Option<&Sidecar>, _: &Judge) -> Story {
        let sentence = |row: &Row| {
            let bloom = -row.rate_theory.log2() * std::f64::consts::LOG2_E;
            format!(
                "{}×{}: {:.1} bits a key, wrong about {:.2e} of absent keys by theory ({:.2e} measured); a Bloom filter as good \
                 takes {bloom:.1} bits, and cannot remove.",
                row.slots, row.bits, row.bits_a_key, row.rate_theory, row.rate
            )
        };
        Story {
            sentences: rows.iter().map(sentence).collect(),
            ..Story::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::studies::study::testing::{measure, measure_some};

    const SMALL: Layouts = Layouts {
        buckets: 2_000,
        tables: 3,
        absent: 200_000,
        seed: 1,
    };

    #[test]
    fn what_is_measured_agrees_with_theory() {
        let (rows, _) = measure(&SMALL);
        assert_eq!(rows.len(), NUMBER);
        for row in rows {
            let (slots, bits) = (row.slots, row.bits);
            assert!(row.refusal_min > row.planned_load && row.refusal_min <= row.refusal_median);
            assert!(row.rate_lower <= row.rate && row.rate <= row.rate_upper);
            let ratio = row.rate / row.rate_theory;
            // Where hundreds of answers were wrong, the rate agrees with theory; at 2×24 hardly one
            // is wrong.
            assert!(
                row.wrong < 400 || (0.8..1.1).contains(&ratio),
                "{slots}×{bits}: {ratio}"
            );
            assert!(
                row.wrong >= 400 || row.rate_lower <= row.rate_theory,
                "{slots}×{bits}"
            );
            // In such a small table the counters add noticeably.
            let spent = row.bits_a_key / row.bits_a_key_theory;
            assert!((0.99..1.8).contains(&spent), "{slots}×{bits}: {spent}");
        }
    }

    #[test]
    fn what_is_broken_off_ends() {
        assert_eq!(measure_some(&SMALL, SMALL.tables + 10 + 2).len(), 1);
    }

    #[test]
    fn confidence_is_that_of_the_tables() {
        let near = |a: f64, b: f64| (a - b).abs() < 5e-4;
        let (lower, upper) = confidence(10, 100);
        assert!(
            near(lower, 0.0552) && near(upper, 0.1744),
            "{lower} {upper}"
        );
        let (lower, upper) = confidence(0, 100);
        assert!(lower == 0.0 && near(upper, 0.0370), "{upper}");
    }
}
