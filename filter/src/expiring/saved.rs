//! How a filter that forgets is saved, and loaded.

use super::table::{Aged, MAX_PERIOD};
use super::{AgedLayout, ExpiringCuckooFilter};
use crate::layout::Layout;
use crate::save::LoadError;
use crate::save::fixed::Saved;
use crate::save::words::{EXPIRING, Kind};

/// A bucket is saved as its slots and how many periods ago each was filled; after the buckets comes the
/// number of the period.
impl<const SLOTS: usize, const BITS: usize, const AGE_BITS: usize> Saved
    for AgedLayout<SLOTS, BITS, AGE_BITS>
{
    const KIND: &'static Kind = &EXPIRING;
    const LAYOUT: (usize, usize, usize) = (SLOTS, BITS, AGE_BITS);
    const MORE: usize = 1;
    type Filter<S> = ExpiringCuckooFilter<S, SLOTS, BITS, AGE_BITS>;

    fn copies(word: u64) -> Option<usize> {
        Self::is_possible(word).then(|| Layout::<SLOTS, BITS>::occupied(word))
    }

    fn filter<S>(
        mut words: Vec<u64>,
        copies: usize,
        hasher: S,
    ) -> Result<Self::Filter<S>, LoadError> {
        let period = words.pop().expect("the period follows the buckets");
        if period > MAX_PERIOD {
            let what = "so late a period";
            return Err(LoadError::Impossible { what });
        }
        let table = Aged::of_contents(words, period);
        Ok(ExpiringCuckooFilter::wrap(table, copies, hasher))
    }
}
