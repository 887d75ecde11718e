//! The command `space theory`: claims of the literature about structures, computed and measured. The
//! claims about structures that are no relatives are here.

use anyhow::{Context, Result, ensure};
use clap::{Args, value_parser};
use figures::plot::number;
use figures::table;
use relatives::theory::{Claim, Claims, LEAST_KEYS, SIGMAS, Trial};
use relatives::*;
use subject::layout::Layout;
use subject::{SLOTS_PER_BUCKET, Subject};

use crate::ending::Ending;
use crate::machine;
use crate::parsers::seeds;
use crate::show::say;
use crate::subjects::{Fastbloom, GlobalLock, Growing, LockFree};

/// Compare structures with the literature: formula, prediction, measurement.
///
/// Covers every structure with known formulas: error rate, load factor at the first refusal, bits per key, and the
/// effect of its parameters. Each line gives the range that is allowed if the formula holds, which follows from
/// statistics and not from the measurement. If a measurement is outside of it, the exit code is 1.
/// Takes less than half a minute.
#[derive(Clone, Debug, Args)]
pub struct Theory {
    /// Keys of each table, and absent keys to look up in it. The more keys, the narrower the
    /// allowed range.
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = value_parser!(u64).range(LEAST_KEYS..=1 << 28))]
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
    (LockFree::NAME, lock_free),
    (Growing::NAME, growing),
    (GlobalLock::NAME, global_lock),
    (Bloom::NAME, bloom::claims),
    (CountingBloom::NAME, bloom::claims_of_counters),
    (ScalableBloom::NAME, scalable_bloom::claims),
    (BlockedBloom::NAME, blocked_bloom::claims),
    (<Fastbloom>::NAME, fastbloom),
    (VectorQuotient::NAME, vector_quotient::claims),
    (SmartCuckooMutex::NAME, smart_cuckoo::claims),
    (CountMin::NAME, count_min::claims),
];

/// The load factor that tables with two choices of buckets of four slots cannot exceed, however
/// keys are shifted (Cain, Sanders, Wormald 2007; Fernholz, Ramachandran 2007).
const THRESHOLD: f64 = 0.9803;

/// From the formulas in `filter::layout`.
fn lock_free(trial: Trial) -> Result<Vec<Claim>> {
    trial.full_table::<LockFree>(
        (
            "Layout::WORKABLE_LOAD, to plan for",
            Layout::WORKABLE_LOAD..=THRESHOLD,
        ),
        ("64 / 4 / α, Layout::BITS_PER_KEY", |load| {
            Layout::BITS_PER_KEY * Layout::WORKABLE_LOAD / load
        }),
        ("Layout::FALSE_POSITIVE_RATE · α", |load| {
            Layout::FALSE_POSITIVE_RATE * load
        }),
    )
}

/// The single-threaded filter has a victim slot.
fn global_lock(trial: Trial) -> Result<Vec<Claim>> {
    trial.full_table::<GlobalLock>(
        ("0.95 for b = 4, Fan et al. 2014, table 2", 0.95..=THRESHOLD),
        ("64 / b / α: f = 12 bits a slot, and 4 unused", |load| {
            64.0 / SLOTS_PER_BUCKET as f64 / load
        }),
        ("1 − (1 − 2^−f)^(2bα), Fan et al. 2014", |load| {
            let slots = 2.0 * SLOTS_PER_BUCKET as f64 * load;
            1.0 - (1.0 - 1.0 / (Layout::MAX_FINGERPRINT + 1) as f64).powf(slots)
        }),
    )
}

/// The error of the filter that grows, here from a hundredth of the size, follows from how full its
/// table is, and never exceeds the stated rate.
fn growing(trial: Trial) -> Result<Vec<Claim>> {
    let growing = Growing::with_buckets(trial.keys.div_ceil(SLOTS_PER_BUCKET as u64) as usize)?;
    trial.insert(&growing, 0..trial.keys)?;
    let stated = growing.0.false_positive_rate();
    let load = trial.keys as f64 / growing.0.slots() as f64;
    let now = trial.false_positive_rate(
        &growing,
        trial.keys,
        format!("grown a hundredfold, load factor {load:.2}"),
        "Layout::FALSE_POSITIVE_RATE · α of its table",
        (stated * load, 0.0),
    );
    let bound = Claim::exact(
        "false positive rate, at most what it states",
        "Σ Layout::FALSE_POSITIVE_RATE of its tables",
        stated,
        now.measured,
    );
    // The measurement may deviate as much as that of the claim before.
    let most = stated + (now.allowed.end() - now.predicted);
    Ok(vec![now, bound.allowing(0.0..=most)])
}

/// The crate is wrong as often as a Bloom filter of its bits and hashes.
fn fastbloom(trial: Trial) -> Result<Vec<Claim>> {
    let buckets = (trial.keys / SLOTS_PER_BUCKET as u64) as usize;
    let filter = Fastbloom::with_buckets(buckets)?;
    let (n, size) = (filter.slots(buckets) as u64, filter.size());
    trial.insert(&filter, 0..n)?;
    let at = format!("{:.1} bits per key", size.cells as f64 / n as f64);
    Ok(vec![size.claim(trial, &filter, n, at)])
}

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
                Bloom::NAME => 20_000,
                ScalableBloom::NAME => 70_000,
                VectorQuotient::NAME => 200_000,
                SmartCuckooMutex::NAME | CountMin::NAME => LEAST_KEYS,
                _ => 100_000,
            };
            let claims = claims(Trial::new(keys, 1 ^ 1 << 32)).unwrap();
            assert!(!claims.is_empty());
            assert!(claims.iter().all(Claim::holds), "{name}: {claims:?}");
        }
    }
}
