//! The structures with claims, and the claims about those that are no relatives.

use anyhow::Result;
use relatives::theory::{Claim, Claims, Trial};
use relatives::*;
use subject::layout::Layout;
use subject::{SLOTS_PER_BUCKET, Subject};

use crate::subjects::{Fastbloom, GlobalLock, Growing, LockFree};

/// All structures with claims, by the names that `harness list` shows, in the order in which they are
/// shown.
pub(super) const STRUCTURES: &[(&str, Claims)] = &[
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
    (HyperLogLog::NAME, hyper_log_log::claims),
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
        ("64 / 4 / α, Layout::BITS_A_KEY", |load| {
            Layout::BITS_A_KEY * Layout::WORKABLE_LOAD / load
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
    let load = trial.keys as f64 / growing.0.capacity() as f64;
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
    let at = format!("{:.1} bits a key", size.cells as f64 / n as f64);
    Ok(vec![size.claim(trial, &filter, n, at)])
}

#[cfg(test)]
mod tests {
    use relatives::theory::LEAST_KEYS;

    use super::*;
    use crate::subjects::Registry;

    #[test]
    fn structures_are_subjects_and_their_claims_hold() {
        let registry = Registry::standard();
        // The fewest keys that suffice for each.
        let enough = |name: &str| match name {
            Bloom::NAME => 20_000,
            ScalableBloom::NAME => 70_000,
            VectorQuotient::NAME => 200_000,
            SmartCuckooMutex::NAME | CountMin::NAME | HyperLogLog::NAME => LEAST_KEYS,
            _ => 100_000,
        };
        for (name, claims) in STRUCTURES {
            assert!(registry.get(name).is_ok());
            let claims = claims(Trial::new(enough(name), 1)).unwrap();
            assert!(!claims.is_empty());
            for claim in claims {
                assert!(claim.holds(), "{name}: {claim:?}");
            }
        }
    }
}
