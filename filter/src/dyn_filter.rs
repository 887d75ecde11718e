//! A filter whose layout is chosen at run time, by the false positive rate asked for.

use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher};
use std::io::{Read, Write};

use crate::builder::{BuildError, Builder, Loadable, Size, buckets_for};
use crate::filter::CuckooFilter;
use crate::geometry::{self, MAX_BUCKETS};
use crate::hashing::FixedState;
use crate::insert_error::InsertError;
use crate::layout::{Layout, Shape};
use crate::lookup;
use crate::save::fixed::Header;
use crate::save::{LoadError, SaveError};
use crate::snapshot::SnapshotError;
use crate::traits::{Class, Filter, Sealed, passed_on};
use crate::update_error::UpdateError;

/// Declares [`DynCuckooFilter`] over these layouts, with each of its functions as one `match`.
///
/// They are listed by memory, the least first, and each is wrong less often than those before it:
/// so the first that meets a rate is the smallest that does, and among those of the same memory the
/// one with the longest timestamps. For each number of slots the list has the longest fingerprints:
/// no other dependable layout is smaller at any rate.
///
/// An insert takes 21 instructions more than in a [`CuckooFilter`] for the `match`, of 195 up to a load
/// of 0.5 and 404 from there to 0.95, and a remove 6 more, of 188. With the masks of the layout as values
/// ([`Shape`]) instead, as lookups have them, a plain insert took 31 more in a prototype (68 without
/// the rest of the call, 99 with values): so there is one variant per layout.
macro_rules! dyn_filter {
    ($($variant:ident: $slots:literal $bits:literal,)+) => {
        /// A [`CuckooFilter`] whose layout was chosen at run time; built by
        /// [`Builder::false_positive_rate`].
        ///
        /// A lookup does not depend on the layout. Every other call takes one more branch than in
        /// a [`CuckooFilter`], and that branch always goes the same way.
        ///
        /// ```
        /// use filter::CuckooFilter;
        ///
        /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
        /// let seen = CuckooFilter::builder()
        ///     .capacity(10_000)
        ///     .false_positive_rate(0.01) // one absent key in a hundred
        ///     .build()?;
        /// seen.insert("key")?;
        /// assert!(seen.contains("key"));
        /// assert_eq!((seen.layout().slots, seen.layout().bits), (5, 10));
        /// # Ok(()) }
        /// ```
        pub struct DynCuckooFilter<S = FixedState> {
            /// What lookups need to know of the layout, so that they do not have to branch on it.
            shape: Shape,
            filter: AnyLayout<S>,
        }

        /// The filter itself, in one variant per layout.
        enum AnyLayout<S> {
            $($variant(CuckooFilter<S, $slots, $bits>),)+
        }

        $(impl<S> From<CuckooFilter<S, $slots, $bits>> for DynCuckooFilter<S> {
            fn from(filter: CuckooFilter<S, $slots, $bits>) -> Self {
                DynCuckooFilter {
                    shape: Layout::<$slots, $bits>::SHAPE,
                    filter: AnyLayout::$variant(filter),
                }
            }
        })+

        /// The layouts, as slots of a bucket and bits of a fingerprint, and their false positive rates
        /// in descending order.
        const LAYOUTS: &[(usize, usize, f64)] =
            &[$(($slots, $bits, Layout::<$slots, $bits>::FALSE_POSITIVE_RATE)),+];

        /// Evaluates the same expression for whichever filter it is.
        macro_rules! each {
            ($self:expr, $filter:ident => $call:expr) => {
                match $self {
                    $(AnyLayout::$variant($filter) => $call,)+
                }
            };
        }

        impl Loadable for Rate {
            type Filter<S> = DynCuckooFilter<S>;

            fn load<S: BuildHasher>(
                self,
                mut reader: impl Read,
                length: Option<u64>,
                hasher: S,
            ) -> Result<DynCuckooFilter<S>, LoadError> {
                let header = Header::read::<Layout<4, 12>>(&mut reader)?;
                let Header { slots, bits, .. } = header;
                $(
                    if (slots, bits) == ($slots, $bits) && self.allows::<$slots, $bits>() {
                        let filter = header.load::<Layout<$slots, $bits>, S>(reader, length, hasher)?;
                        return Ok(filter.into());
                    }
                )+
                Err(LoadError::Layout { slots, bits, ages: 0 })
            }
        }

        impl<S> Builder<Rate, S> {
            /// Builds in the first layout that meets the rate.
            fn build_smallest(self) -> Result<DynCuckooFilter<S>, BuildError> {
                $(
                    if self.kind.allows::<$slots, $bits>() {
                        return self.build_in::<$slots, $bits>().map(DynCuckooFilter::from);
                    }
                )+
                Err(self.no_such_rate())
            }
        }
    };
}

dyn_filter! {
    F8x7: 8 7,
    F7x8: 7 8,
    F6x8: 6 8,
    F6x9: 6 9,
    F5x10: 5 10,
    F5x11: 5 11,
    F4x12: 4 12,
    F4x13: 4 13,
    F4x14: 4 14,
    F3x16: 3 16,
    F3x18: 3 18,
    F2x24: 2 24,
    F2x28: 2 28,
}

/// The layout of a filter, if it is known only at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct LayoutInfo {
    /// Slots of a bucket.
    pub slots: usize,
    /// Bits of a fingerprint.
    pub bits: usize,
}

/// What the builder of a [`DynCuckooFilter`] builds: a filter that is wrong no more often than this.
#[derive(Clone, Copy, Debug)]
pub struct Rate(f64);

impl Rate {
    /// True if this layout is wrong no more often than this rate.
    fn allows<const SLOTS: usize, const BITS: usize>(self) -> bool {
        Layout::<SLOTS, BITS>::FALSE_POSITIVE_RATE <= self.0
    }
}

/// Builds a [`DynCuckooFilter`]; made by [`Builder::false_positive_rate`].
pub type DynBuilder<S = FixedState> = Builder<Rate, S>;

impl<const SLOTS: usize, const BITS: usize, S> Builder<Layout<SLOTS, BITS>, S> {
    /// Builds a [`DynCuckooFilter`] in the smallest layout that reports at most `rate` of the absent keys as present,
    /// however full the filter is. For example, 0.01 is one in a hundred. `rate` must be below 1 and not below about
    /// one in 67 million; [`build`](Builder::build) checks this.
    ///
    /// No [dependable](Layout::DEPENDABLE) layout that meets the rate is smaller. Among layouts of the same size,
    /// it chooses the one in the [table](crate::layout#layouts) with the longest timestamps, which may be as short as
    /// [7 bits](crate::layout#when-a-timestamp-wraps). [`DynCuckooFilter::layout`] returns the layout.
    pub fn false_positive_rate(self, rate: f64) -> DynBuilder<S> {
        self.of_kind(Rate(rate))
    }
}

impl<S> Builder<Rate, S> {
    /// Chooses the layout with the least memory whose
    /// [`FALSE_POSITIVE_RATE`](Layout::FALSE_POSITIVE_RATE) is at most the rate asked for, and
    /// builds the filter.
    ///
    /// # Errors
    /// [`BuildError`] when no layout has so low a rate, when the rate is not between 0 and 1,
    /// when the size is missing, 0 buckets or too large for the layout, or when there is not enough
    /// memory.
    pub fn build(self) -> Result<DynCuckooFilter<S>, BuildError> {
        if self.kind.0 < 1.0 {
            self.build_smallest()
        } else {
            Err(self.no_such_rate())
        }
    }

    fn no_such_rate(&self) -> BuildError {
        BuildError::Rate {
            requested: self.kind.0,
            least: LAYOUTS[LAYOUTS.len() - 1].2,
        }
    }

    fn build_in<const SLOTS: usize, const BITS: usize>(
        self,
    ) -> Result<CuckooFilter<S, SLOTS, BITS>, BuildError> {
        if let Some(Size::Keys(requested)) = self.size {
            let fits = |keys: usize| buckets_for::<SLOTS, BITS>(keys) <= MAX_BUCKETS;
            if !fits(requested) {
                let most = greatest(requested, fits);
                return Err(BuildError::TooManyKeys { requested, most });
            }
        }
        self.of_kind(Layout::<SLOTS, BITS>(())).build()
    }
}

/// Returns the greatest number below `end` that fits, provided that every number below a fitting
/// one fits.
fn greatest(end: usize, fits: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, end);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if fits(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// One line, like that of [`CuckooFilter`].
impl<S> fmt::Debug for DynCuckooFilter<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let memory_bytes = self.occupied_bytes();
        each!(&self.filter, filter => filter.describe("DynCuckooFilter", memory_bytes, f))
    }
}

impl<S: BuildHasher + Send + Sync> DynCuckooFilter<S> {
    /// [`CuckooFilter::class`].
    pub fn class<T: Hash + ?Sized>(&self, key: &T) -> Class {
        each!(&self.filter, filter => filter.class(key))
    }
}

impl<S> DynCuckooFilter<S> {
    /// Returns the layout that was chosen.
    pub fn layout(&self) -> LayoutInfo {
        each!(&self.filter, filter => layout_of(filter))
    }

    /// Returns a separate filter with the same contents: [`CuckooFilter::try_clone`].
    ///
    /// # Errors
    /// [`SnapshotError`].
    #[doc(alias = "clone")]
    pub fn try_clone(&self) -> Result<Self, SnapshotError>
    where
        S: Clone,
    {
        each!(&self.filter, filter => filter.try_clone().map(Self::from))
    }

    /// [`CuckooFilter::clear`].
    #[doc(alias = "reset")]
    pub fn clear(&mut self) {
        each!(&mut self.filter, filter => filter.clear());
    }

    fn occupied_bytes(&self) -> usize {
        let filter = each!(&self.filter, filter => filter.occupied_bytes() - size_of_val(filter));
        filter + size_of::<Self>()
    }
}

macro_rules! of_any_layout {
    ($self:expr, $filter:ident => $call:expr) => {
        each!(&$self.filter, $filter => $call)
    };
}

impl<S: BuildHasher + Send + Sync> Sealed for DynCuckooFilter<S> {
    fn fetch(&self, hashes: &[u64]) {
        each!(&self.filter, filter => filter.fetch(hashes));
    }

    #[inline]
    fn hash_with(&self, write: &mut dyn FnMut(&mut dyn Hasher)) -> u64 {
        each!(&self.filter, filter => filter.hash_with(write))
    }
}

impl<S: BuildHasher + Send + Sync> Filter for DynCuckooFilter<S> {
    passed_on!(of_any_layout);

    #[inline]
    fn contains_hash(&self, hash: u64) -> bool {
        #[cold]
        fn slowly<S: BuildHasher + Send + Sync>(filter: &AnyLayout<S>, hash: u64) -> bool {
            each!(filter, filter => filter.contains_hash(hash))
        }
        // In the same place whichever filter it is, so this takes no branch.
        let words = each!(&self.filter, filter => filter.buckets.words());
        let location = geometry::locate(hash, self.shape.max_fingerprint, words.len());
        match lookup::contains_at_once(words, self.shape, location) {
            Some(found) => found,
            None => slowly(&self.filter, hash),
        }
    }

    #[inline]
    fn hash_one<T: Hash + ?Sized>(&self, key: &T) -> u64 {
        each!(&self.filter, filter => filter.hash_one(key))
    }

    fn memory_bytes(&self) -> usize {
        self.occupied_bytes()
    }
}

fn layout_of<const SLOTS: usize, const BITS: usize, S>(
    _: &CuckooFilter<S, SLOTS, BITS>,
) -> LayoutInfo {
    LayoutInfo {
        slots: SLOTS,
        bits: BITS,
    }
}

#[cfg(all(test, not(kcas_loom)))]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// A layout: its slots and bits, its error rate, and how many buckets it takes for some keys.
    type Known = ((usize, usize), f64, fn(usize) -> usize);

    /// Returns all dependable layouts.
    fn dependable() -> Vec<Known> {
        let mut known = Vec::<Known>::new();
        macro_rules! layouts {
            ($($slots:literal: $($bits:literal)+,)+) => {
                $($(if Layout::<$slots, $bits>::DEPENDABLE {
                    // Each of 2 × SLOTS slots is compared; of 2^BITS hashes, two make the same
                    // fingerprint.
                    let alike = (1.0 + 2.0 / f64::powi(2.0, $bits)) / f64::powi(2.0, $bits);
                    let rate = 2.0 * $slots as f64 * alike;
                    known.push((($slots, $bits), rate, buckets_for::<$slots, $bits>));
                })+)+
            };
        }
        // With more bits, each would leave fewer than 7 for the timestamp; with fewer, none is dependable.
        layouts! {
            2: 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28,
            3: 7 8 9 10 11 12 13 14 15 16 17 18,
            4: 7 8 9 10 11 12 13 14,
            5: 7 8 9 10 11,
            6: 7 8 9,
            7: 7 8,
            8: 7,
        }
        let shortest = |(slots, bits): (usize, usize)| 63 - slots * bits;
        for slots in 2..=8 {
            let left = known.iter().filter(|l| l.0.0 == slots);
            let left = left.map(|l| shortest(l.0)).min().unwrap();
            assert!(left >= 7 && left - 7 < slots, "a longer one is missing");
        }
        known
    }

    /// Returns the chance that a Poisson number with this mean is greater than `most`.
    fn chance_of_more(most: usize, mean: f64) -> f64 {
        let (mut chance, mut of_more) = ((-mean).exp(), 0.0);
        for number in 1..most + 20 {
            chance *= mean / number as f64;
            of_more += if number > most { chance } else { 0.0 };
        }
        of_more
    }

    /// More keys of one class than its two buckets have slots are too many, wherever the others are. Short
    /// fingerprints make few classes, with more keys each, and with every bucket there are more classes to which
    /// that may happen.
    #[test]
    fn largest_dependable_tables_hold_every_class() {
        for ((slots, bits), _, buckets) in dependable() {
            let keys = greatest(usize::MAX, |keys| buckets(keys) <= MAX_BUCKETS);
            // For each fingerprint, two buckets make one class.
            let classes = MAX_BUCKETS as f64 / 2.0;
            let fingerprints = f64::powi(2.0, bits as i32);
            let too_large = |hashes: f64| {
                let mean = keys as f64 * hashes / fingerprints / classes;
                classes * chance_of_more(2 * slots, mean)
            };
            // Of 2^BITS hashes, two make the same fingerprint.
            let expected = (fingerprints - 2.0) * too_large(1.0) + too_large(2.0);
            println!("{slots}×{bits}: {expected:.1e} classes are too large");
            assert!(expected < 0.05, "{slots}×{bits}: {expected}");
        }
    }

    /// No dependable layout that is wrong as rarely as requested is smaller, at any rate and size; of
    /// those offered that are as small, the one with the longest timestamps is taken; and each that is
    /// offered is taken at some rate.
    #[test]
    fn rate_selects_smallest_layout() {
        let known = dependable();
        let offered = LAYOUTS.iter().map(|&(slots, bits, _)| (slots, bits));
        let offered: HashSet<_> = offered.collect();
        let fitted = |n, rate| {
            let builder = CuckooFilter::builder().capacity(n);
            builder.false_positive_rate(rate).build().unwrap()
        };
        for n in [1, 100, 12_345] {
            let steps = (0..2_000).map(|step| 0.999 * f64::powf(10.0, -f64::from(step) / 250.0));
            let borders = known
                .iter()
                .flat_map(|l| [0.999_999, 1.0, 1.000_001].map(|x| x * l.1));
            let mut chosen = HashSet::new();
            for rate in steps.chain(borders).filter(|&rate| rate >= 1.4902e-8) {
                let meet = known.iter().filter(|l| l.1 <= rate);
                let smallest = meet.clone().map(|l| l.2(n)).min();
                let filter = fitted(n, rate);
                let LayoutInfo { slots, bits } = filter.layout();
                let buckets = Some(filter.slots() / slots);
                assert_eq!(buckets, smallest, "{n} keys at {rate}: {slots}×{bits}");
                // In the smallest tables, layouts with other numbers of slots may take equally many
                // buckets.
                let alike = meet.filter(|l| offered.contains(&l.0) && l.0.0 == slots);
                assert_eq!(Some(bits), alike.map(|l| l.0.1).min(), "at {rate}");
                chosen.insert((slots, bits));
            }
            assert_eq!(chosen, offered);
        }
        for (rate, slots, bits) in [(0.99, 8, 7), (0.03, 6, 9), (2.4e-7, 2, 24)] {
            assert_eq!(fitted(1_000, rate).layout(), LayoutInfo { slots, bits });
        }
    }
}
