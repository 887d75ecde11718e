//! How a filter that forgets is saved, and loaded.

use std::hash::BuildHasher;
use std::io::Read;

use super::table::{Aged, MAX_ASKED};
use super::{Ages, ExpiringCuckooFilter};
use crate::builder::Loadable;
use crate::layout::Layout;
use crate::save::LoadError;
use crate::save::fixed::{Header, Saved};
use crate::save::words::{EXPIRING, Kind};

impl<const SLOTS: usize, const BITS: usize, const AGE_BITS: usize> Loadable
    for Ages<SLOTS, BITS, AGE_BITS>
{
    type Filter<S> = ExpiringCuckooFilter<SLOTS, BITS, AGE_BITS, S>;

    fn load<S: BuildHasher>(
        self,
        mut reader: impl Read,
        length: Option<u64>,
        hasher: S,
    ) -> Result<Self::Filter<S>, LoadError> {
        Header::of::<Self>(&mut reader)?.load::<Self, S>(reader, length, hasher)
    }
}

/// A bucket is saved as its slots and how many periods ago each was filled; after the buckets comes the
/// number of the period.
impl<const SLOTS: usize, const BITS: usize, const AGE_BITS: usize> Saved
    for Ages<SLOTS, BITS, AGE_BITS>
{
    const KIND: &'static Kind = &EXPIRING;
    const LAYOUT: (usize, usize, usize) = (SLOTS, BITS, AGE_BITS);
    const MORE: usize = 1;

    fn copies(word: u64) -> Option<usize> {
        Self::is_possible(word).then(|| Layout::<SLOTS, BITS>::occupied(word))
    }

    fn filter<S>(
        mut words: Vec<u64>,
        copies: usize,
        hasher: S,
    ) -> Result<Self::Filter<S>, LoadError> {
        let period = words.pop().expect("the period follows the buckets");
        // So that as many more can begin.
        if period > MAX_ASKED {
            let what = "so late a period";
            return Err(LoadError::Impossible { what });
        }
        let table = Aged::of_contents(words, period);
        Ok(ExpiringCuckooFilter::of(table, copies, hasher))
    }
}
