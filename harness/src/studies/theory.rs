//! The command `space theory`: claims of the literature about relatives of the cuckoo filter, computed and measured.

use anyhow::{Context, Result, ensure};
use clap::{Args, value_parser};
use figures::plot::number;
use figures::table;
use relatives::theory::{Claim, Claims, MIN_KEYS, SIGMAS, Trial};
use relatives::*;
use subject::Subject;

use crate::ending::Ending;
use crate::machine;
use crate::parsers::seeds;
use crate::show::say;

/// Compare relatives of the cuckoo filter with the literature: formula, prediction, measurement.
///
/// Covers error rates, estimates, failed inserts, and the effect of parameters. Each line gives the range that is allowed if the formula holds, which follows from
/// statistics and not from the measurement. If a measurement is outside of it, the exit code is 1.
/// Takes less than half a minute.
#[derive(Clone, Debug, Args)]
pub struct Theory {
    /// Keys of each table, and absent keys to look up in it. The more keys, the narrower the
    /// allowed range.
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = value_parser!(u64).range(MIN_KEYS..=1 << 28))]
    keys: u64,
    /// Seed of the keys.
    #[arg(long, default_value_t = 1, value_parser = seeds())]
    seed: u64,
}

impl Theory {
    /// Measures, and prints a table. Fails if a claim does not hold.
    pub fn run(&self) -> Result<Ending> {
        // The largest structure, and the keys.
        machine::check_memory("--keys", self.keys as f64 * 40.0)?;
        let (mut lines, mut broken) = (Vec::new(), 0);
        for (name, claims) in STRUCTURES {
            let claims = claims(Trial::new(self.keys, self.seed));
            for claim in claims.with_context(|| (*name).to_owned())? {
                broken += usize::from(!claim.holds());
                lines.push(line(name, &claim));
            }
        }
        let header = "claim|predicted|measured|allowed|holds".split('|');
        let header: Vec<_> = header.map(str::to_owned).collect();
        say!("{}", table::terminal(&header, &lines));
        say!("Allowed: {SIGMAS} standard deviations to either side, if chance plays a part.");
        let all = lines.len();
        ensure!(broken == 0, "claims that do not hold: {broken} of {all}");
        Ok(Ending::Complete)
    }
}

fn line(name: &str, claim: &Claim) -> Vec<String> {
    let (least, most) = (claim.allowed.start().max(0.0), *claim.allowed.end());
    vec![
        format!("{name}, {} = {}", claim.quantity, claim.formula),
        number(claim.predicted),
        number(claim.measured),
        format!("{} to {}", number(least), number(most)),
        if claim.holds() { "yes" } else { "NO" }.into(),
    ]
}

/// All structures with claims, by the names that `harness list` shows, in the order in which they are
/// shown.
const STRUCTURES: &[(&str, Claims)] = &[
    (Bloom::NAME, bloom::claims),
    (CountingBloom::NAME, bloom::claims_of_counters),
    (ScalableBloom::NAME, scalable_bloom::claims),
    (BlockedBloom::NAME, blocked_bloom::claims),
    (VectorQuotient::NAME, vector_quotient::claims),
    (SmartCuckooMutex::NAME, smart_cuckoo::claims),
    (CountMin::NAME, count_min::claims),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subjects::Registry;

    #[test]
    fn structures_are_subjects_whose_claims_hold() {
        let registry = Registry::standard();
        for (name, claims) in STRUCTURES {
            assert!(registry.get(name).is_ok());
            // The fewest keys that suffice.
            let keys = match *name {
                Bloom::NAME | VectorQuotient::NAME => 20_000,
                ScalableBloom::NAME => 70_000,
                SmartCuckooMutex::NAME | CountMin::NAME => MIN_KEYS,
                _ => 100_000,
            };
            let claims = claims(Trial::new(keys, 1 ^ 1 << 32)).unwrap();
            assert!(!claims.is_empty());
            assert!(claims.iter().all(Claim::holds), "{name}: {claims:?}");
        }
    }
}
