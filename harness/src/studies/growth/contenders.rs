//! The contenders of `growth`: the filter that grows, and the rivals it is compared with.

use anyhow::{Context, Result};
use subject::Subject;
use subject::layout::FALSE_POSITIVE_RATE;

use super::Row;
use super::run::{Contender, GROWTH, GrowthRun, run};
use crate::studies::study::{Entrant, Progress};
use crate::subjects::{Growing, LockFree, ScalableBloom};

/// Name of the filter that grows.
pub(super) const OURS: &str = Growing::NAME;

/// Names of its rivals.
#[cfg(test)]
pub(super) const RIVALS: [&str; 2] = [LockFree::NAME, ScalableBloom::NAME];

type Run = fn(&GrowthRun, &mut Progress, &mut Vec<Row>) -> Result<()>;

/// All contenders, in the order of the first round.
pub(super) const ALL: [Entrant<Run>; 3] =
    [of::<Growing>(), of::<LockFree>(), of::<ScalableBloom>()];

const fn of<C: Contender>() -> Entrant<Run> {
    Entrant {
        name: C::NAME,
        meaning: C::START,
        run: run::<C>,
    }
}

fn first_keys(keys: u64) -> Result<usize> {
    Ok(usize::try_from(keys / GROWTH)?)
}

impl Contender for Growing {
    const START: &'static str = "the lock-free filter that grows, started with room for a thousandth of the keys or \
                                 half of that, and at least with 8 KiB";

    fn for_keys(keys: u64) -> Result<Self> {
        Ok(Self::with_room_for(
            first_keys(keys)?,
            usize::try_from(keys)?,
        )?)
    }
}

impl Contender for LockFree {
    const START: &'static str =
        "the lock-free filter of fixed size, with room for all keys from the start";

    fn for_keys(keys: u64) -> Result<Self> {
        Ok(Self::with_room_for(usize::try_from(keys)?)?)
    }
}

impl Contender for ScalableBloom {
    const START: &'static str = "scalable Bloom filter, started with a stage for a thousandth of the keys; wrong as often \
                                 as a full lock-free, and cannot remove";

    fn for_keys(keys: u64) -> Result<Self> {
        let first = first_keys(keys)?;
        Self::new(first, FALSE_POSITIVE_RATE, Self::GROWTH, Self::TIGHTENING)
            .context("its first stage")
    }

    fn parts(&self) -> usize {
        self.stages()
    }
}
