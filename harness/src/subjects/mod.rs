//! The measured structures, one file each. Ours share hash function, bucket layout and table size,
//! so that they differ only in how they coordinate threads. Published crates are configured to come
//! as close to that as they can, and say where they differ.
//!
//! Where a structure belongs:
//!
//! | Folder | What it is for |
//! |---|---|
//! | `ours` | our filter, through each of its interfaces |
//! | `locks` | our table under locks or with the published protocol, and whatever one lock makes a subject of, such as a `HashSet` of the standard library under its `Mutex` |
//! | `crates` | published crates that threads share as they are, or under the lock that they need |
//! | `bounds` | no filters, but the least work that an operation needs |
//! | `ablations` | our filter with one decision changed |
//!
//! What is published as a paper alone, and has a theory to check, is in the crate [`relatives`].

mod ablations;
mod bounds;
mod crates;
mod locks;
mod ours;
pub mod registry;
pub mod words;

pub use ablations::{
    AblationControl, AblationDcss, AblationEpoch, AblationHelpingReaders, AblationHopByHop,
    AblationOneRound, AblationRandomWalk, AblationTwoPhaseLookup, AblationUncounted,
};
pub(crate) use ablations::{OwnersByDcss, Words};
pub use bounds::*;
pub use crates::*;
pub use locks::*;
pub use ours::*;
pub use relatives::{
    BlockedBloom, Bloom, CountMinSet, CountingBloom, HyperLogLogCounter, PlainCuckooMutex,
    ScalableBloom, SmartCuckooMutex, VectorQuotient,
};
pub use words::{KcasWords, MutexWords};

use subject::Subject;

/// The subjects that are bounds, not filters: they hold no keys.
pub(crate) const BOUNDS: [&str; 4] = [
    Roofline::NAME,
    BatchedRoofline::NAME,
    UpdateRoofline::NAME,
    Null::NAME,
];

/// The subjects that can be simulated: all that they share between threads comes through the doors
/// of [`kcas::sync`] and [`subject::sync`].
#[cfg(feature = "simulation")]
pub(crate) const SIMULATED: [&str; 17] = [
    LockFree::NAME,
    LockFreeFitted::NAME,
    WordLock::NAME,
    SegmentLock::NAME,
    StripedTimestamps::NAME,
    Optimistic::NAME,
    GlobalLock::NAME,
    TwoPhase::NAME,
    AblationDcss::NAME,
    Roofline::NAME,
    UpdateRoofline::NAME,
    KcasWords::<2>::NAME,
    KcasWords::<4>::NAME,
    KcasWords::<8>::NAME,
    MutexWords::<2>::NAME,
    MutexWords::<4>::NAME,
    MutexWords::<8>::NAME,
];

#[cfg(test)]
mod tests {
    use std::ops::Range;
    use std::sync::Barrier;
    use std::thread;

    use filter::hashing::MAX_BUCKETS;
    use subject::SLOTS_PER_BUCKET;

    use super::registry::Registry;
    use super::*;

    /// Enough that eviction paths are long at [`LOAD`], few enough that threads collide.
    const BUCKETS: usize = 500;
    const LOAD: f64 = 0.92;
    /// How often threads fill and empty their part of a table.
    const LAPS: u64 = 100;

    fn residents() -> u64 {
        (LOAD * (BUCKETS * SLOTS_PER_BUCKET) as f64) as u64
    }

    fn each<S: Subject>(
        subject: &S,
        keys: Range<u64>,
        operation: impl Fn(&S, &u64) -> bool,
        name: &str,
    ) {
        for key in keys {
            assert!(operation(subject, &key), "{name} {key}");
        }
    }

    /// In one thread, every key goes in, is found and comes out again, and nothing is left.
    fn keeps_what_it_is_given<S: Subject>() {
        keeps::<S>(residents());
    }

    fn keeps<S: Subject>(keys: u64) {
        let subject = S::with_buckets(BUCKETS).unwrap();
        let half = keys / 2;
        for _ in 0..3 {
            each(&subject, 0..keys, S::insert, "insert");
            each(&subject, 0..keys, S::contains, "contains");
            each(&subject, 0..half, S::remove, "remove");
            each(&subject, half..keys, S::contains, "contains");
            each(&subject, 0..half, S::insert, "insert");
            each(&subject, 0..keys, S::contains, "contains");
            each(&subject, 0..keys, S::remove, "remove");
            each(
                &subject,
                0..keys,
                |subject, key| !subject.contains(key),
                "nothing left of",
            );
        }
    }

    /// A key inserted twice is there until it is removed twice.
    fn counts_copies<S: Subject>() {
        let subject = S::with_buckets(BUCKETS).unwrap();
        assert!(subject.insert("twice") && subject.insert("twice"));
        assert!(subject.remove("twice") && subject.contains("twice"));
        assert!(subject.remove("twice") && !subject.contains("twice"));
        assert!(!subject.remove("twice"));
    }

    /// A full filter refuses keys and keeps all that it accepted.
    fn refuses_rather_than_loses<S: Subject>() {
        let subject = S::with_buckets(BUCKETS).unwrap();
        // A cuckoo hash table of one key a bucket fills a little more than half of its buckets.
        let most = 2 * subject.slots() as u64;
        let (accepted, refused): (Vec<u64>, Vec<u64>) =
            (0..most + 10).partition(|key| subject.insert(key));
        assert!(
            refused.len() >= 9,
            "only a victim slot may take one key more than there are slots"
        );
        for key in accepted {
            assert!(subject.contains(&key), "contains {key}");
        }
    }

    /// Each of four threads never misses a key of its own while the eviction paths of all of them
    /// move it around.
    fn threads_never_miss_their_keys<S: Subject>(laps: u64) {
        threads_never_miss::<S>(laps, residents());
    }

    fn threads_never_miss<S: Subject>(laps: u64, keys: u64) {
        const THREADS: u64 = 4;
        let subject = S::with_buckets(BUCKETS).unwrap();
        let barrier = Barrier::new(THREADS as usize);
        let share = keys / THREADS;
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let (subject, barrier) = (&subject, &barrier);
                scope.spawn(move || {
                    let start = thread * share;
                    let (half, end) = (start + share / 2, start + share);
                    barrier.wait();
                    for _ in 0..laps {
                        each(subject, start..end, S::insert, "insert");
                        each(subject, start..end, S::contains, "contains");
                        each(subject, start..half, S::remove, "remove");
                        each(subject, half..end, S::contains, "contains");
                        each(subject, start..half, S::insert, "insert");
                        each(subject, start..end, S::contains, "contains");
                        each(subject, start..end, S::remove, "remove");
                    }
                });
            }
        });
        each(
            &subject,
            0..keys,
            |subject, key| !subject.contains(key),
            "nothing left of",
        );
    }

    /// Four threads only insert. Each finds its keys at once, and all are found in the end.
    fn threads_find_what_they_insert<S: Subject>() {
        const THREADS: u64 = 4;
        let subject = S::with_buckets(BUCKETS).unwrap();
        let barrier = Barrier::new(THREADS as usize);
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let (subject, barrier) = (&subject, &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    for key in (thread..residents()).step_by(THREADS as usize) {
                        assert!(subject.insert(&key) && subject.contains(&key), "{key}");
                    }
                });
            }
        });
        each(&subject, 0..residents(), S::contains, "contains");
    }

    fn is_a_correct_filter<S: Subject>() {
        keeps_what_it_is_given::<S>();
        counts_copies::<S>();
        refuses_rather_than_loses::<S>();
        threads_never_miss_their_keys::<S>(LAPS);
    }

    macro_rules! correct_filters {
        ($($test:ident: $subject:ty,)+) => {$(
            #[test]
            fn $test() {
                is_a_correct_filter::<$subject>();
            }
        )+};
    }

    correct_filters! {
        segment_lock_is_a_correct_filter: SegmentLock,
        word_lock_is_a_correct_filter: WordLock,
        striped_timestamps_is_a_correct_filter: StripedTimestamps,
        global_lock_is_a_correct_filter: GlobalLock,
        rwlock_is_a_correct_filter: RwLock,
        optimistic_is_a_correct_filter: Optimistic,
        two_phase_is_a_correct_filter: TwoPhase,
        vector_quotient_is_a_correct_filter: VectorQuotient,
    }

    #[test]
    fn lock_free_is_a_correct_filter() {
        is_a_correct_filter::<LockFree>();
        is_a_correct_filter::<LockFreeBatch>();
        is_a_correct_filter::<LockFreeFitted>();
        is_a_correct_filter::<LockFreeCopies>();
    }

    /// It refuses nothing.
    #[test]
    fn growing_is_a_correct_filter_that_grows() {
        keeps_what_it_is_given::<Growing>();
        counts_copies::<Growing>();
        threads_never_miss_their_keys::<Growing>(LAPS);
        keeps_what_it_is_given::<GrowingReader>();
    }

    #[test]
    fn ablations_are_correct_filters() {
        is_a_correct_filter::<AblationControl>();
        is_a_correct_filter::<AblationTwoPhaseLookup>();
        is_a_correct_filter::<AblationHopByHop>();
        is_a_correct_filter::<AblationRandomWalk>();
        is_a_correct_filter::<AblationEpoch>();
        is_a_correct_filter::<AblationHelpingReaders>();
        is_a_correct_filter::<AblationDcss>();
        is_a_correct_filter::<AblationUncounted>();
    }

    /// With several threads it may miss a key.
    #[test]
    fn the_ablation_of_one_round_is_a_correct_filter_of_one_thread() {
        keeps_what_it_is_given::<AblationOneRound>();
        counts_copies::<AblationOneRound>();
        refuses_rather_than_loses::<AblationOneRound>();
    }

    /// With several threads it may miss a key.
    #[test]
    fn atomic_cuckoo_filter_is_a_correct_filter_of_one_thread() {
        keeps_what_it_is_given::<AtomicCuckooFilter>();
        counts_copies::<AtomicCuckooFilter>();
        refuses_rather_than_loses::<AtomicCuckooFilter>();
    }

    /// A refused insert loses another key.
    #[test]
    fn cuckoofilter_mutex_is_a_correct_filter_until_it_refuses() {
        keeps_what_it_is_given::<CuckoofilterMutex>();
        counts_copies::<CuckoofilterMutex>();
        threads_never_miss_their_keys::<CuckoofilterMutex>(LAPS);
    }

    /// It refuses nothing. Papaya is slow without optimisation.
    #[test]
    fn exact_set_is_a_correct_filter_that_grows() {
        keeps_what_it_is_given::<ExactSet>();
        counts_copies::<ExactSet>();
        threads_never_miss_their_keys::<ExactSet>(LAPS / 10);
    }

    /// With one key per bucket there is room for half of the keys.
    #[test]
    fn cuckoo_hash_tables_are_correct_filters_below_their_threshold() {
        fn is_correct<S: Subject>() {
            let keys = residents() * 2 / 5;
            keeps::<S>(keys);
            counts_copies::<S>();
            refuses_rather_than_loses::<S>();
            threads_never_miss::<S>(LAPS / 5, keys);
        }
        is_correct::<SmartCuckooMutex>();
        is_correct::<PlainCuckooMutex>();
    }

    /// It refuses nothing.
    #[test]
    fn count_min_is_a_correct_filter_that_is_never_full() {
        keeps_what_it_is_given::<CountMinSet>();
        counts_copies::<CountMinSet>();
        threads_never_miss_their_keys::<CountMinSet>(LAPS / 10);
    }

    #[test]
    fn bloom_filters_find_what_threads_inserted() {
        threads_find_what_they_insert::<BlockedBloom>();
        threads_find_what_they_insert::<Fastbloom>();
        threads_find_what_they_insert::<Bloom>();
        threads_find_what_they_insert::<ScalableBloom>();
        threads_find_what_they_insert::<CountingBloom>();
    }

    /// It refuses nothing.
    #[test]
    fn counting_bloom_is_a_correct_filter_that_is_never_full() {
        keeps_what_it_is_given::<CountingBloom>();
        counts_copies::<CountingBloom>();
        threads_never_miss_their_keys::<CountingBloom>(LAPS);
    }

    #[test]
    fn an_impossible_number_of_buckets_is_an_error() {
        for entry in Registry::standard().entries() {
            for buckets in [0, MAX_BUCKETS + 1] {
                assert!(entry.build(buckets).is_err(), "{}: {buckets}", entry.name);
            }
        }
    }

    #[test]
    fn the_bounds_are_those_that_hold_no_keys_but_for_words() {
        let registry = Registry::standard();
        let without_keys = (registry.entries().iter().filter(|entry| !entry.holds_keys))
            .map(|entry| entry.name)
            .filter(|name| !words::NAMES.contains(name));
        assert!(without_keys.eq(BOUNDS));
    }

    #[test]
    fn all_have_the_table_they_are_asked_for() {
        let registry = Registry::standard();
        let others = registry.entries().iter().filter(|entry| {
            let slots = entry.build(BUCKETS).unwrap().slots();
            slots != BUCKETS * SLOTS_PER_BUCKET
        });
        // Their sizes go by powers of two or by blocks.
        let others: Vec<&str> = (others.map(|entry| entry.name))
            .filter(|name| !words::NAMES.contains(name))
            .collect();
        assert_eq!(
            others,
            [
                VectorQuotient::NAME,
                AtomicCuckooFilter::NAME,
                CuckoofilterMutex::NAME
            ]
        );
    }
}
