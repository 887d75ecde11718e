//! The study of space: what a key takes in memory, how often a structure is wrong for that, how
//! fast it answers, and how full it gets.

pub mod layouts;
pub mod memory;
mod structures;
pub mod theory;

use anyhow::Result;
use clap::Subcommand;
use statrs::distribution::{ContinuousCDF, Normal};

use super::study::Options;
use crate::results::Summary;
use crate::run::Ending;
use crate::show::chart::{Axis, Guide, Line, Panel, Scale};
use crate::subjects::Registry;

/// The studies of space.
#[derive(Debug, Subcommand)]
pub enum Command {
    Memory(Options<memory::Memory>),
    Layouts(Options<layouts::Layouts>),
    Theory(Options<theory::Theory>),
}

impl Command {
    /// Measures, and writes the results.
    pub fn run(&self, registry: &Registry) -> Result<Ending> {
        match self {
            Self::Memory(options) => options.run(registry),
            Self::Layouts(options) => options.run(registry),
            Self::Theory(options) => options.run(registry),
        }
    }
}

/// Returns what share `hits` are of `trials`, with its 95 % confidence interval (Wilson 1927).
fn share(hits: u64, trials: u64) -> Summary {
    let z = Normal::standard().inverse_cdf(0.975);
    let (trials, rate) = (trials as f64, hits as f64 / trials as f64);
    let whole = 1.0 + z * z / trials;
    let middle = (rate + z * z / (2.0 * trials)) / whole;
    let half = z / whole * (rate * (1.0 - rate) / trials + (z / (2.0 * trials)).powi(2)).sqrt();
    Summary {
        low: (middle - half).max(0.0),
        high: (middle + half).min(1.0),
        ..Summary::of(vec![rate]).expect("there is one")
    }
}

fn bits() -> Axis {
    Axis::new("bits a key", Scale::FromZero, |bits| format!("{bits:.0}"))
}

/// Draws false positive rates against bits per key, with the least memory possible for a rate, and
/// that of a Bloom filter.
fn rates(id: &str, title: &str, lines: Vec<Line>) -> Panel {
    let rate = Axis::new("false positive rate ε", Scale::Logarithmic, |rate| {
        format!("{rate:.0e}")
    });
    let bound = |name, bits_a_halving: f64| Guide {
        name,
        points: vec![(0.0, 1.0), (1000.0 * bits_a_halving, 0.5_f64.powi(1000))],
    };
    Panel {
        guides: vec![
            bound("least possible for any filter: log₂(1/ε)", 1.0),
            bound("Bloom filter: 1.44 log₂(1/ε)", std::f64::consts::LOG2_E),
        ],
        ..Panel::new(id, title, [bits(), rate], lines)
    }
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn the_interval_of_a_share_is_wilsons() {
        for (hits, expected) in [(10, [552.0, 1000.0, 1744.0]), (0, [0.0, 0.0, 370.0])] {
            let of = share(hits, 100);
            let found = [of.low, of.median, of.high].map(|of| (of * 1e4).round());
            assert_eq!(found, expected);
        }
    }
}
