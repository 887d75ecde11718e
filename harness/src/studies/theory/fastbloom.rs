//! The claim about the crate [`Fastbloom`]: it is wrong as often as a Bloom filter of its bits and
//! hashes.

use anyhow::Result;
use relatives::bloom::theory as bloom;
use relatives::theory::Keys;
use relatives::theory::{Claim, Trial};
use subject::{SLOTS_PER_BUCKET, Subject};

use crate::subjects::Fastbloom;

pub(super) fn theory(trial: Trial) -> Result<Vec<Claim>> {
    let filter = Fastbloom::with_buckets((trial.keys / SLOTS_PER_BUCKET as u64) as usize)?;
    let keys = Keys::of(trial);
    let n = filter.slots() as u64;
    keys.insert(&filter, 0..n)?;
    let size = filter.size();
    let name = format!("{:.1} bits a key", size.cells() as f64 / n as f64);
    let expected = bloom::rate(&size, n as f64);
    Ok(vec![keys.false_positive_rate(
        &filter,
        n,
        name,
        bloom::RATE,
        expected,
    )])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_wrong_as_often_as_published() {
        relatives::theory::all_hold(100_000, theory);
    }
}
