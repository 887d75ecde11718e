//! The claims about the filter that grows: its error follows from how full its tables are, and
//! never exceeds the stated rate.

use anyhow::Result;
use relatives::theory::Keys;
use relatives::theory::{Claim, Trial};
use subject::{SLOTS_PER_BUCKET, Subject};

use crate::subjects::Growing;

/// Starts at a hundredth of the size.
pub(super) fn theory(trial: Trial) -> Result<Vec<Claim>> {
    let buckets = trial.keys.div_ceil(SLOTS_PER_BUCKET as u64) as usize;
    let growing = Growing::with_buckets(buckets)?;
    let keys = Keys::of(trial);
    keys.insert(&growing, 0..trial.keys)?;
    let filter = growing.filter();
    let (stated, load) = (
        filter.false_positive_rate(),
        trial.keys as f64 / filter.capacity() as f64,
    );
    let now = keys.false_positive_rate(
        &growing,
        trial.keys,
        format!("grown a hundredfold, load factor {load:.2}"),
        "Layout::FALSE_POSITIVE_RATE · α of its table",
        (stated * load, 0.0),
    );
    let bound = Claim {
        quantity: "false positive rate, at most what it states".into(),
        formula: "Σ Layout::FALSE_POSITIVE_RATE of its tables",
        predicted: stated,
        least: 0.0,
        // The measurement may deviate as much as that of the row before.
        most: stated + (now.most - now.predicted),
        ..now.clone()
    };
    Ok(vec![now, bound])
}

#[cfg(test)]
mod tests {
    use relatives::theory::all_hold;

    #[test]
    fn what_is_measured_agrees_with_theory() {
        all_hold(40_000, super::theory);
    }
}
