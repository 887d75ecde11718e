//! The claims about cuckoo filters of our layout: how full they get, what a key takes then, and how
//! often they are wrong.

use anyhow::Result;
use relatives::theory::Keys;
use relatives::theory::{Claim, Trial, exactly};
use subject::layout::Layout;
use subject::{SLOTS_PER_BUCKET, Subject};

use crate::subjects::{GlobalLock, LockFree};

/// The load factor that tables with two choices of buckets of four slots cannot exceed, however
/// keys are shifted (Cain, Sanders, Wormald 2007; Fernholz, Ramachandran 2007).
const THRESHOLD: f64 = 0.9803;

/// Returns the claims about our filter, from the formulas in `filter::layout`.
pub(super) fn lock_free(trial: Trial) -> Result<Vec<Claim>> {
    of_full_table::<LockFree>(
        trial,
        ("Layout::WORKABLE_LOAD, to plan for", Layout::WORKABLE_LOAD),
        ("64 / 4 / α, Layout::BITS_A_KEY", |load| {
            Layout::BITS_A_KEY * Layout::WORKABLE_LOAD / load
        }),
        ("Layout::FALSE_POSITIVE_RATE · α", |load| {
            Layout::FALSE_POSITIVE_RATE * load
        }),
    )
}

/// Returns the claims about the single-threaded filter with a victim slot.
pub(super) fn global_lock(trial: Trial) -> Result<Vec<Claim>> {
    of_full_table::<GlobalLock>(
        trial,
        ("0.95 for b = 4, Fan et al. 2014, table 2", 0.95),
        ("64 / b / α: f = 12 bits a slot, and 4 unused", |load| {
            64.0 / SLOTS_PER_BUCKET as f64 / load
        }),
        ("1 − (1 − 2^−f)^(2bα), Fan et al. 2014", |load| {
            let slots = 2.0 * SLOTS_PER_BUCKET as f64 * load;
            1.0 - (1.0 - 1.0 / (Layout::MAX_FINGERPRINT + 1) as f64).powf(slots)
        }),
    )
}

/// Name of a formula, and the formula as a function of the load factor.
type Formula = (&'static str, fn(f64) -> f64);

/// Fills a table until it refuses a key.
fn of_full_table<S: Subject>(
    trial: Trial,
    (planned, least_load): (&'static str, f64),
    (of_bits, bits): Formula,
    (of_rate, rate): Formula,
) -> Result<Vec<Claim>> {
    let subject = S::with_buckets(trial.keys.div_ceil(SLOTS_PER_BUCKET as u64) as usize)?;
    let (keys, slots) = (Keys::of(trial), subject.slots() as f64);
    let mut inserted = 0;
    while subject.insert(&keys.key(inserted)) {
        inserted += 1;
    }
    let load = (inserted - S::STASH as u64) as f64 / slots;
    let at = format!("at load {load:.3}");
    let refusal = exactly::<S>(
        "load factor at the first refusal",
        planned,
        least_load,
        load,
    );
    // The load of the first refusal varies between tables by the order of one over the root of
    // their slots.
    let refusal = refusal.between(least_load, THRESHOLD + super::SIGMAS / slots.sqrt());

    let bits_a_key = |bytes: usize| 8.0 * bytes as f64 / inserted as f64;
    let spent = bits_a_key(subject.memory_bytes());
    let memory = exactly::<S>(format!("bits a key, {at}"), of_bits, bits(load), spent);
    // Besides the table there is what even the smallest filter has, once a thread has counted in
    // it.
    let smallest = S::with_buckets(1)?;
    smallest.insert(&0);
    let beside = bits_a_key(smallest.memory_bytes() + S::STASH * size_of::<u64>());
    // The victim takes no bits of the table.
    let table = bits(load) * (1.0 - S::STASH as f64 / inserted as f64);
    let memory = memory.between(table, table + beside);

    let rate = (rate(load), 0.0);
    let wrong = keys.false_positive_rate(&subject, inserted, at, of_rate, rate);
    Ok(vec![refusal, memory, wrong])
}

#[cfg(test)]
mod tests {
    use relatives::theory::all_hold;

    use super::*;

    #[test]
    fn they_are_filled_and_wrong_as_planned() {
        all_hold(100_000, lock_free);
        all_hold(100_000, global_lock);
    }
}
