//! `with_capacity(n)` holds n distinct keys, for every n, with the memory and the false positive
//! rate that the docs promise; bad sizes are clear errors, and errors say what to do.

use crate::identity::Identity;
use ahash::RandomState;
use filter::BuildError::{NoSize, TooManyFalsePositives, ZeroSize};
use filter::layout::Layout;
use filter::{
    BuildError, Builder, CuckooFilter, ExpiringCuckooFilter, Filter, GrowingCuckooFilter,
    InsertError,
};

/// The bounds on memory and errors are those that a user would compute: the key is compared with two
/// buckets of four slots, each of which matches by chance once in 2^12.
#[test]
fn n_distinct_keys_fit_and_are_found() {
    for n in [1, 2, 3, 7, 100, 1_000, 12_345, 1_000_003] {
        let filter = CuckooFilter::with_capacity(n);
        assert_eq!(filter.insert_all(0..n), Ok(n), "{n} keys");
        assert!((0..n).all(|key| filter.contains(&key)) && filter.len() == n);
        assert!(n < 1_000 || filter.load_factor() > 0.85, "{n} keys");
        if n > 1_000_000 {
            let bits_per_key = filter.memory_bytes() as f64 * 8.0 / n as f64;
            let absent = n..n + 1_000_000;
            let wrong = absent.filter(|key| filter.contains(key)).count();
            let (rate, theory) = (wrong as f64 / 1e6, 2.0 * 4.0 / 4096.0);
            println!("{n} keys: {bits_per_key:.2} bits per key, false positive rate {rate:.6}");
            assert!(bits_per_key <= 18.0, "{bits_per_key} bits per key");
            assert!((0.5 * theory..=1.3 * theory).contains(&rate), "{rate}");
        }
    }
}

/// The sizes for which the promise of `Builder::capacity` was measured: less room would break it,
/// more would waste memory. A capacity of 0 is one, and makes a small filter, like a vector.
#[test]
fn capacity_allots_measured_room() {
    for (n, capacity) in [(0, 4), (1, 8), (1_000, 1_120), (1_000_000, 1_054_636)] {
        assert_eq!(CuckooFilter::with_capacity(n).slots(), capacity);
    }
    let fitted = CuckooFilter::builder().false_positive_rate(0.01);
    assert_eq!(fitted.capacity(0).build().unwrap().slots(), 5);
    let last = CuckooFilter::builder().capacity(1_000_000).buckets(3);
    assert_eq!(last.clone().build().unwrap().slots(), 12);
    assert_eq!(last.capacity(1_000).build().unwrap().slots(), 1_120);
}

/// The loads that `limits` names: a bucket of four slots has room for few keys of several copies.
#[test]
fn repeated_keys_are_refused_at_lower_load() {
    for (copies, load) in [(2, 0.84), (3, 0.58), (4, 0.32)] {
        let filter = CuckooFilter::builder().buckets(1 << 15).build().unwrap();
        let mut keys = (0u64..).flat_map(|key| [key].repeat(copies));
        assert!(keys.any(|key| filter.insert(&key) == Err(InsertError::Full)));
        let found = filter.load_factor();
        assert!((found - load).abs() < 0.01, "{copies} copies: {found}");
    }
}

/// In an expiring filter, which has one copy of a class at most, no class has too many keys for two slots.
#[test]
fn undependable_layouts_take_no_capacity() {
    let builder = CuckooFilter::builder().capacity(1_000);
    let refused = builder.clone().layout::<2, 9>().build().unwrap_err();
    assert!(
        refused.to_string().contains("2 slots of 9 bits"),
        "{refused}"
    );
    assert!(builder.clone().layout::<4, 6>().build().is_err());
    assert!(builder.clone().layout::<2, 10>().build().is_ok());
    assert!(builder.buckets(10).layout::<1, 12>().build().is_ok());
    let builder = ExpiringCuckooFilter::builder().capacity(1_000);
    let filter = builder.clone().layout::<2, 7, 2>().build().unwrap();
    (0..1_000).for_each(|key| filter.insert(&key).unwrap());
    assert!(builder.layout::<2, 6, 2>().build().is_err());
}

#[test]
fn memory_is_what_was_allocated() {
    fn is_so<F: Filter>(build: impl FnOnce() -> Result<F, BuildError>) {
        let mut built = None;
        let measured = allocation_counter::measure(|| {
            let filter = build().unwrap();
            filter.insert("the thread's first use").unwrap();
            built = Some(filter);
        });
        let filter = built.unwrap();
        let allocated = usize::try_from(measured.bytes_current).unwrap();
        assert_eq!(filter.memory_bytes(), allocated + size_of_val(&filter));
    }
    // The first K-CAS of a process allocates records, for all filters.
    let other = CuckooFilter::builder().buckets(1_000).build().unwrap();
    (0..9).for_each(|key| _ = other.insert_if_absent(&key).unwrap());
    for buckets in [1, 1_000] {
        is_so(|| CuckooFilter::builder().buckets(buckets).build());
        is_so(|| ExpiringCuckooFilter::builder().buckets(buckets).build());
        // While it has not grown.
        let growing = GrowingCuckooFilter::builder().reserved_bytes(0);
        is_so(|| growing.buckets(buckets).build());
    }
}

/// With few fingerprints, the bound that is computed for a full table exceeds 1.
#[test]
fn false_positive_rate_is_fraction_and_bound() {
    fn is_so<const SLOTS: usize, const BITS: usize>() {
        let builder = CuckooFilter::builder().layout::<SLOTS, BITS>();
        let filter = builder.buckets(1_000).build().unwrap();
        let case = format!("{SLOTS}×{BITS}");
        assert_eq!(filter.false_positive_rate(), 1.0, "{case}");
        for key in 0..1_000u64 {
            let _ = filter.insert(&key); // The smallest of them refuses some.
        }
        let wrong = (1_000..11_000u64).filter(|key| filter.contains(key));
        let rate = wrong.count() as f64 / 10_000.0;
        let bound = filter.false_positive_rate_at(filter.len());
        assert!((rate..=1.0).contains(&bound), "{case}: {rate}, {bound}");
        assert!(filter.false_positive_rate_at(usize::MAX) <= 1.0, "{case}");
    }
    is_so::<28, 2>();
    is_so::<18, 3>();
    is_so::<2, 2>();
}

/// Calls a function for the layouts in the docs, and for the lowest dependable numbers at either end.
macro_rules! for_each_layout {
    ($check:ident) => {
        for_each_layout! {
            $check: 2 10, 2 24, 2 28, 3 7, 3 16, 3 18, 4 8, 4 12, 4 13, 4 14, 5 10, 5 11, 6 8, 6 9, 7 8, 8 7
        }
    };
    ($check:ident: $($slots:literal $bits:literal),+) => {
        $($check::<$slots, $bits>();)+
    };
}

/// Returns the rows of the table of layouts in the docs.
fn documented() -> impl Iterator<Item = ((usize, usize), [f64; 3])> {
    include_str!("../../src/layout.rs").lines().filter_map(row)
}

/// Returns the columns of a row, if `line` is one of that table.
fn row(line: &str) -> Option<((usize, usize), [f64; 3])> {
    let mut columns = line.strip_prefix("//! | ")?.split('|');
    let name = columns.next()?.split([',', ' ']).next()?;
    let (slots, bits) = name.split_once('×')?;
    let numbers = columns.filter_map(|column| column.trim().replace(',', "").parse().ok());
    let numbers: Vec<f64> = numbers.collect();
    let layout = (slots.parse().ok()?, bits.parse().ok()?);
    Some((layout, numbers.try_into().ok()?))
}

#[test]
fn layout_table_matches_measurements() {
    for_each_layout! {
        is_documented: 8 7, 7 8, 6 8, 6 9, 5 10, 5 11, 4 8, 4 12, 4 13, 4 14, 3 16, 3 18, 2 24, 2 28
    }
    assert_eq!(documented().count(), 14, "other layouts");
}

fn is_documented<const SLOTS: usize, const BITS: usize>() {
    let row = documented().find(|(layout, _)| *layout == (SLOTS, BITS));
    let (_, [one_in, bits, timestamp]) = row.expect("it is in the table");
    let expected = 1.0 / Layout::<SLOTS, BITS>::FALSE_POSITIVE_RATE;
    let off = (one_in / expected - 1.0).abs();
    let case = format!("{SLOTS}×{BITS}: one in {expected}, not {one_in}");
    assert!(off < 0.005, "{case}");
    let off = (bits - Layout::<SLOTS, BITS>::BITS_PER_KEY).abs();
    assert!(off < 0.050_001, "{SLOTS}×{BITS}: {bits} bits");
    assert_eq!(timestamp, Layout::<SLOTS, BITS>::TIMESTAMP_BITS as f64);
}

/// The promise of `Builder::capacity` for small tables, where chance plays a large part: of this
/// many tables, at most three refuse one of their keys. Too small a margin shows at some of these
/// sizes.
#[test]
fn small_tables_rarely_refuse() {
    for_each_layout!(keeps_the_promise);
}

fn keeps_the_promise<const SLOTS: usize, const BITS: usize>() {
    for n in [1, 3, 6, 9, 14, 24, 32, 50, 70, 100, 300, 1_000] {
        // Fewer show less, but in a build with steps, each access takes longer.
        let (most, tables) = if cfg!(feature = "__steps") {
            (1, 1_000_u64.min(200_000 / n))
        } else {
            (3, 10_000_u64.min(2_000_000 / n))
        };
        let refuses = |&seed: &u64| refuses::<SLOTS, BITS>(n, seed);
        let refused = (0..tables).filter(refuses).count();
        let case = format!("{SLOTS}×{BITS}, {n} keys: {refused} of {tables} tables refused one");
        if refused > 0 {
            println!("{case}");
        }
        assert!(refused <= most, "{case}");
    }
}

fn builder<const SLOTS: usize, const BITS: usize>(
    seed: u64,
) -> Builder<Layout<SLOTS, BITS>, RandomState> {
    let hasher = RandomState::with_seeds(seed, 1, 2, 3);
    CuckooFilter::builder().layout().unmixed_hasher(hasher)
}

fn refuses<const SLOTS: usize, const BITS: usize>(n: u64, seed: u64) -> bool {
    let filter = builder::<SLOTS, BITS>(seed).capacity(n as usize).build();
    let filter = filter.unwrap();
    (0..n).any(|key| filter.insert(&key).is_err())
}

/// With two slots a bucket, chains become as long as a K-CAS has entries; unique inserts need one of those for
/// the bucket that they only compare.
#[test]
fn unique_insert_has_entry_for_compared_bucket() {
    let builder = CuckooFilter::builder().layout::<2, 24>();
    let filter = builder.buckets(1 << 14).build().unwrap();
    let refused = (0u64..).find(|key| filter.insert_if_absent(key) != Ok(true));
    let refused = refused.expect("it is full at some time");
    assert_eq!(filter.insert_if_absent(&refused), Err(InsertError::Full));
    // 0.867; with chains shorter by one bucket, 0.845, and by two, 0.805.
    assert!(filter.load_factor() > 0.86, "{}", filter.load_factor());
}

/// In a sufficiently large table, the load to plan for is passed with room to spare before the
/// first refusal, which loses and changes nothing.
#[test]
fn every_layout_reaches_workable_load() {
    for_each_layout!(passes_the_workable_load);
}

fn passes_the_workable_load<const SLOTS: usize, const BITS: usize>() {
    let workable = Layout::<SLOTS, BITS>::WORKABLE_LOAD;
    let filter = builder::<SLOTS, BITS>(0).buckets(50_000).build().unwrap();
    let refused = (0_u64..).find(|key| filter.insert(key) == Err(InsertError::Full));
    let (refused, reached) = (refused.unwrap(), filter.load_factor());
    println!("{SLOTS}×{BITS}: first refusal at load {reached:.4}, planned {workable}");
    let more = workable + [0.005, 0.015][usize::from((SLOTS, BITS) == (4, 12))];
    assert!(reached > more, "{SLOTS}×{BITS}: {reached}");
    assert_eq!(filter.len() as u64, refused);
    assert!((0..refused).all(|key| filter.contains(&key)));
}

/// All memory of a copy is freed with it, except for what the thread's first one makes.
#[test]
fn copies_give_their_memory_back() {
    let filter = CuckooFilter::builder().buckets(10_000).build().unwrap();
    let save = || filter.write_to(std::io::sink()).unwrap();
    save();
    let measured = allocation_counter::measure(|| (0..20).for_each(|_| save()));
    assert!(measured.bytes_max > 80_000, "{measured:?}");
    assert_eq!(measured.bytes_current, 0, "{measured:?}");
}

/// The purpose of mixing: with the weakest hasher, a filter built in the ordinary way takes as many
/// keys, and is wrong as rarely, as with a good one. Keys are numbers that a program might use.
#[test]
fn weak_hasher_makes_no_worse_filter() {
    type KeyOf = fn(u64) -> u64;
    let n = 100_000;
    let kinds: [(&str, KeyOf); 5] = [
        ("sequential", |n| n),
        ("multiples of 4096", |n| n << 12),
        ("high bits only", |n| n << 40),
        ("two counters side by side", |n| {
            (n / 1_000) << 32 | (n % 1_000)
        }),
        ("squares", |n| n * n),
    ];
    for (kind, key) in kinds {
        let builder = CuckooFilter::builder().capacity(n as usize);
        let filter = builder.hasher(Identity::default()).build().unwrap();
        let inserted = (0..n).try_for_each(|number| filter.insert(&key(number)));
        assert_eq!(inserted, Ok(()), "{kind}");
        let wrong = (n..11 * n).filter(|&number| filter.contains(&key(number)));
        let rate = wrong.count() as f64 / (10 * n) as f64;
        assert!((0.0016..0.0021).contains(&rate), "{kind}: {rate}");
    }
}

#[test]
fn bad_sizes_are_errors() {
    let (fixed, growing) = (CuckooFilter::builder(), GrowingCuckooFilter::builder());
    let fitted = fixed.clone().false_positive_rate(0.01);
    assert_eq!(fixed.clone().build().unwrap_err(), NoSize);
    assert_eq!(fitted.clone().build().unwrap_err(), NoSize);
    assert_eq!(fixed.clone().buckets(0).build().unwrap_err(), ZeroSize);
    assert_eq!(fitted.clone().buckets(0).build().unwrap_err(), ZeroSize);
    assert_eq!(growing.clone().buckets(0).build().unwrap_err(), ZeroSize);
    // With 32 bits, no number of buckets is too large, except for memory.
    #[cfg(target_pointer_width = "64")]
    for buckets in [usize::MAX, 1 << 50, (1 << 32) + 1] {
        let is_so = |error| matches!(error, BuildError::TooLarge { buckets: named, .. } if named == buckets);
        assert!(is_so(fixed.clone().buckets(buckets).build().unwrap_err()));
        assert!(is_so(growing.clone().buckets(buckets).build().unwrap_err()));
    }
    // The rate of an empty filter is 6 / 2^15.
    let limited = |rate| growing.clone().max_false_positive_rate(rate).build().err();
    assert_eq!(limited(1.0 / 5_461.0), None);
    for rate in [1.0 / 5_462.0, f64::NAN] {
        assert_eq!(limited(rate), Some(TooManyFalsePositives));
    }
    #[cfg(target_pointer_width = "64")]
    for absurd in [usize::MAX, 1 << 60] {
        let is_so = |error| matches!(error, Some(BuildError::TooLarge { .. }));
        assert!(is_so(fixed.clone().capacity(absurd).build().err()));
        assert!(is_so(growing.clone().capacity(absurd).build().err()));
        assert!(std::panic::catch_unwind(|| CuckooFilter::with_capacity(absurd)).is_err());
    }
}
